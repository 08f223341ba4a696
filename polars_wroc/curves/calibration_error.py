"""Calibration in the large, expected and maximum calibration error."""

from __future__ import annotations

import polars as pl

from polars_wroc.curves.calibration_curve import (
    DIFFERENCE,
    Strategy,
    calibration_steps,
    check_bin_options,
    sums_in_bins,
)
from polars_wroc.curves.in_the_large import (
    IN_THE_LARGE_COLUMNS,
    IN_THE_LARGE_SUMS,
    in_the_large_steps,
    in_the_large_sums,
)
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.by_keys import join_on_keys, sum_unless_null
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.ranking.curve import is_divisor

_COLUMNS = (
    *IN_THE_LARGE_COLUMNS,
    "expected_calibration_error",
    "maximum_calibration_error",
)


def calibration_error(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    level: float = 0.95,
) -> FrameT:
    """Calibration in the large, expected and maximum calibration error of each group.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, bins, strategy, level
        As for `calibration_curve`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with ``n`` (Int64 rows,
        without the missing) and the Float64 columns ``weight``; ``mean_score``;
        ``observed_rate``, the proportion of positives, with its limits ``observed_rate_low,
        observed_rate_high``; ``calibration_in_the_large``, the mean score minus the observed
        rate, with its limits ``calibration_in_the_large_low, calibration_in_the_large_high``;
        ``expected_calibration_error``, the weighted mean over the bins of the absolute
        difference between mean score and observed rate [1]_; and
        ``maximum_calibration_error``, the largest of these differences. All but the first two
        are null where no row has weight, or where sums of weights overflow or underflow; the weight
        where it overflows.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_curve`.

    Notes
    -----
    The limits of the calibration in the large are those of a mean of independent rows, of the score
    less 1 in positives: ``sqrt(sum(w**2 * (s - y - d)**2)) / sum(w)`` is the standard error of the
    mean ``d``. With rows of one class only, they are those of the observed rate. Both errors depend
    on the bins and are above 0 by chance alone, more so the fewer rows a bin has: to compare groups
    of different sizes, use ``calibration_in_the_large``.

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> table = wroc.calibration_error(df, "y", "s", bins=2)
    >>> table.select("n", "mean_score", "observed_rate", "expected_calibration_error")
    shape: (1, 4)
    ┌─────┬────────────┬───────────────┬────────────────────────────┐
    │ n   ┆ mean_score ┆ observed_rate ┆ expected_calibration_error │
    │ --- ┆ ---        ┆ ---           ┆ ---                        │
    │ i64 ┆ f64        ┆ f64           ┆ f64                        │
    ╞═════╪════════════╪═══════════════╪════════════════════════════╡
    │ 5   ┆ 0.48       ┆ 0.4           ┆ 0.24                       │
    └─────┴────────────┴───────────────┴────────────────────────────┘
    """
    bins, level = check_bin_options(bins, strategy, level)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    of_bins = sums_in_bins(rows, bins, strategy, in_the_large_sums(rows, "probability"))
    by_bin = in_columns(of_bins, calibration_steps(DIFFERENCE, level))
    difference, weights = pl.col(DIFFERENCE).abs(), pl.col("weight")
    total_weight = sum_unless_null(weights)
    known = pl.when(is_divisor(total_weight))
    sums = {name: pl.col(name).sum() for name in ("n", *IN_THE_LARGE_SUMS)}
    table = rows.aggregate(
        by_bin,
        {
            **sums,
            "expected_calibration_error": known.then((difference * weights).sum() / total_weight),
            "maximum_calibration_error": known.then(difference.max()),
        },
    )
    if rows.keys:
        # A group with missing rows only has no bin.
        table = join_on_keys(rows.key_values(), table, rows.keys)
    filled = table.with_columns(pl.col("n", *IN_THE_LARGE_SUMS).fill_null(0))
    measured = in_columns(filled, in_the_large_steps(level))
    return like_input(frame, rows.result(measured, _COLUMNS))
