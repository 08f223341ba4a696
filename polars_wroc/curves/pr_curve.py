"""Precision-recall, detection error tradeoff and gain curves."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.queries import FrameT, like_input
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, curve_frame, totals
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion


def pr_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted precision-recall curve per group.

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
        threshold, after an origin row with ``threshold = +inf``. After the ``by`` columns (and
        ``model``) come the Float64 columns ``threshold, recall, precision, tp, fp, fn, tn``.
        Precision is null where nothing is predicted positive, recall where there are no positives.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    Straight lines between the points would overestimate the area [1]_: `average_precision`
    joins them by steps, `pr_auc` as if the rows between two of them were evenly mixed.

    References
    ----------
    .. [1] Davis, J., Goadrich, M. (2006), Proceedings of ICML, 233-240.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1], "s": [0.9, 0.8, 0.7]})
    >>> wroc.pr_curve(df, "y", "s").select("threshold", "recall", "precision")
    shape: (4, 3)
    ┌───────────┬────────┬───────────┐
    │ threshold ┆ recall ┆ precision │
    │ ---       ┆ ---    ┆ ---       │
    │ f64       ┆ f64    ┆ f64       │
    ╞═══════════╪════════╪═══════════╡
    │ inf       ┆ 0.0    ┆ null      │
    │ 0.9       ┆ 0.5    ┆ 1.0       │
    │ 0.8       ┆ 0.5    ┆ 0.5       │
    │ 0.7       ┆ 1.0    ┆ 0.666667  │
    └───────────┴────────┴───────────┘
    """
    columns = {"recall": "tpr", "precision": "ppv"}
    return _curve(frame, label, score, weight, by, pos_label, columns)


def det_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted detection error tradeoff per group: false negatives against false positives.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `pr_curve`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, as for `pr_curve`, with the Float64 columns
        ``threshold, fpr, fnr, tp, fp, fn, tn``. The rate of a class without weight is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    The columns are those of scikit-learn's ``det_curve``. The curve is usually drawn on normal
    deviates of both rates [1]_. The two rates are equal at the `equal_error_rate`.

    References
    ----------
    .. [1] Martin, A. et al. (1997), Proceedings of Eurospeech, 1895-1898.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1], "s": [0.9, 0.8, 0.7]})
    >>> wroc.det_curve(df, "y", "s").select("threshold", "fpr", "fnr")
    shape: (4, 3)
    ┌───────────┬─────┬─────┐
    │ threshold ┆ fpr ┆ fnr │
    │ ---       ┆ --- ┆ --- │
    │ f64       ┆ f64 ┆ f64 │
    ╞═══════════╪═════╪═════╡
    │ inf       ┆ 0.0 ┆ 1.0 │
    │ 0.9       ┆ 0.0 ┆ 0.5 │
    │ 0.8       ┆ 1.0 ┆ 0.5 │
    │ 0.7       ┆ 1.0 ┆ 0.0 │
    └───────────┴─────┴─────┘
    """
    return _curve(frame, label, score, weight, by, pos_label, {"fpr": "fpr", "fnr": "fnr"})


def gain_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted cumulative gains and lift per group.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `pr_curve`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, as for `pr_curve`, with the Float64 columns
        ``threshold``; ``selection_rate``, the proportion of all weight with at least this score;
        ``tpr``, that of the positives, which is the gain; ``lift``, ``tpr`` divided by
        ``selection_rate``; ``tp, fp, fn, tn``. Lift is null where nothing is selected.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> wroc.gain_curve(df, "y", "s").select("selection_rate", "tpr", "lift")
    shape: (5, 3)
    ┌────────────────┬─────┬──────────┐
    │ selection_rate ┆ tpr ┆ lift     │
    │ ---            ┆ --- ┆ ---      │
    │ f64            ┆ f64 ┆ f64      │
    ╞════════════════╪═════╪══════════╡
    │ 0.0            ┆ 0.0 ┆ null     │
    │ 0.25           ┆ 0.5 ┆ 2.0      │
    │ 0.5            ┆ 0.5 ┆ 1.0      │
    │ 0.75           ┆ 1.0 ┆ 1.333333 │
    │ 1.0            ┆ 1.0 ┆ 1.0      │
    └────────────────┴─────┴──────────┘
    """
    columns = {name: name for name in ("selection_rate", "tpr", "lift")}
    return _curve(frame, label, score, weight, by, pos_label, columns)


def _curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
    columns: dict[str, str],
) -> FrameT:
    """Compute metrics at every point of the curve; ``columns`` maps their names to metrics."""
    names: Sequence[str] = ["threshold", *columns, *CELLS]
    rows = read_rows(frame, label, score, weight, by, pos_label)
    points = Confusion(*[*(pl.col(name) for name in CURVE_COLUMNS), *totals()])
    asked = {name: THRESHOLD_METRICS[metric].formula(points) for name, metric in columns.items()}
    table = curve_frame(rows).select(*rows.keys, "threshold", *CELLS, **asked)
    return like_input(frame, rows.sorted_result(table, names))
