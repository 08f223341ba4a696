"""The confusion curve: a confusion matrix per threshold."""

from __future__ import annotations

from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.ranking.curve import CURVE_COLUMNS, curve_frame


def confusion_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted confusion matrix at every distinct score, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf`` where nothing is predicted
        positive. After the ``by`` columns (and ``model``) come the Float64 columns
        ``threshold, tp, fp, fn, tn``, the last four in units of weight and null where they
        overflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    ``fn`` and ``tn`` are totals minus cumulative sums: rounding loses a weight that is 1e15 times
    smaller than another.

    Examples
    --------
    The example of R's WeightedROC:

    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {"y": [-1, -1, 1, 1, 1], "w": [1, 1, 1, 4, 5], "s": [1, 2, 3, 1, 1]}
    ... )
    >>> wroc.confusion_curve(df, "y", "s", weight="w")
    shape: (4, 5)
    ┌───────────┬──────┬─────┬──────┬─────┐
    │ threshold ┆ tp   ┆ fp  ┆ fn   ┆ tn  │
    │ ---       ┆ ---  ┆ --- ┆ ---  ┆ --- │
    │ f64       ┆ f64  ┆ f64 ┆ f64  ┆ f64 │
    ╞═══════════╪══════╪═════╪══════╪═════╡
    │ inf       ┆ 0.0  ┆ 0.0 ┆ 10.0 ┆ 2.0 │
    │ 3.0       ┆ 1.0  ┆ 0.0 ┆ 9.0  ┆ 2.0 │
    │ 2.0       ┆ 1.0  ┆ 1.0 ┆ 9.0  ┆ 1.0 │
    │ 1.0       ┆ 10.0 ┆ 2.0 ┆ 0.0  ┆ 0.0 │
    └───────────┴──────┴─────┴──────┴─────┘
    """
    rows = read_rows(frame, label, score, weight, by, pos_label)
    return like_input(frame, rows.sorted_result(curve_frame(rows), CURVE_COLUMNS))
