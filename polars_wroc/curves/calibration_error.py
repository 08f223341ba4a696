"""Calibration in the large, expected and maximum calibration error."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.curves.calibration_curve import (
    CALIBRATION_SUMS,
    DIFFERENCE,
    DIFFERENCE_VARIANCE,
    Strategy,
    calibration_columns,
    calibration_steps,
    calibration_sums,
    check_bin_options,
    sums_in_bins,
    walked_calibration_sums,
)
from polars_wroc.inputs.columns import SCORE, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import CLASSES, IntoColumns, Rows, class_weights
from polars_wroc.plans.queries import (
    Fields,
    FrameT,
    Step,
    in_columns,
    join_on_keys,
    like_input,
    sum_unless_null,
)
from polars_wroc.ranking.curve import are_both_classes, is_divisor
from polars_wroc.ranking.placements import over_decisions
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.proportions import ROUNDING, effective_sample_size, is_exact
from polars_wroc.stats.variances import design_df

IN_THE_LARGE = "calibration_in_the_large"
IN_THE_LARGE_COLUMNS = calibration_columns(IN_THE_LARGE)
# Null where the limits are those of the observed rate.
IN_THE_LARGE_SE = "__in_the_large_se"
# The same if each score is the probability of its row; and the effective number of rows.
PROMISED_SE, EFFECTIVE_ROWS = "__promised_se", "__effective_rows"

_POSITIVES, POSITIVES_SQUARES, _NEGATIVES, NEGATIVES_SQUARES = CALIBRATION_SUMS[:4]
# Sums of squared weights: times the score in each class, times its square in both.
_OF_SCORES = SQUARES_OF_POSITIVES, _SQUARES_OF_NEGATIVES, SQUARES_OF_SCORES = (
    "__squares_of_positive_scores",
    "__squares_of_negative_scores",
    "__squares_of_squared_scores",
)
IN_THE_LARGE_SUMS: Sequence[str] = (*CALIBRATION_SUMS, *_OF_SCORES)


def in_the_large_sums(rows: Rows) -> dict[str, pl.Expr]:
    """Sums over rows that `in_the_large_steps` needs."""
    positive, negative = class_weights(rows.signed_squares)
    score = pl.col(SCORE).cast(pl.Float64)
    values = positive * score, negative * score, (positive + negative) * score**2
    of_scores = {name: value.sum() for name, value in zip(_OF_SCORES, values, strict=True)}
    return calibration_sums(rows) | of_scores


def walked_in_the_large_sums() -> dict[str, pl.Expr]:
    """Name the sums of the compiled engine over all rows as `in_the_large_sums` does."""
    names = [*(f"scores_squares_{side}" for side in CLASSES), "second_scores_squares"]
    of_scores = dict(zip(_OF_SCORES, map(over_decisions, names), strict=True))
    return walked_calibration_sums() | of_scores


def in_the_large_steps(level: float, *, designed: bool = False) -> list[Step]:
    """Steps from these sums to the columns of `calibration_steps`, with limits of the difference.

    ``designed`` with the columns of `calibration_variances`. Where a class has no rows, or no row
    differs from the mean difference, only the observed rate is uncertain.
    """

    def error(field: Fields) -> dict[str, pl.Expr]:
        variance = field(DIFFERENCE_VARIANCE) if designed else _variance(field)
        total = field(_POSITIVES) + field(_NEGATIVES)
        of_labels = field(POSITIVES_SQUARES) + field(NEGATIVES_SQUARES)
        promised = field(SQUARES_OF_POSITIVES) + field(_SQUARES_OF_NEGATIVES)
        # Of scores of 0 and 1 nothing is left, and rounding must not be a variance.
        left = promised - field(SQUARES_OF_SCORES)
        promised = pl.when(is_exact(of_labels) & (left > ROUNDING * promised)).then(left)
        return {
            IN_THE_LARGE_SE: pl.when(variance > 0).then(variance.sqrt()),
            PROMISED_SE: pl.when(promised > 0).then(promised.sqrt() / total),
            EFFECTIVE_ROWS: effective_sample_size(total, of_labels),
        }

    def limits(field: Fields) -> dict[str, pl.Expr]:
        tail = (1 + level) / 2
        quantile = student_quantile(tail, design_df(field)) if designed else normal_quantile(tail)
        margin, columns = quantile * field(IN_THE_LARGE_SE), {}
        for end, limit in (
            ("low", field(IN_THE_LARGE) - margin),
            ("high", field(IN_THE_LARGE) + margin),
        ):
            name = f"{IN_THE_LARGE}_{end}"
            columns[name] = pl.coalesce(limit, field(name))
            if designed:
                known = pl.when(field(DIFFERENCE_VARIANCE).is_not_null())
                columns[name] = known.then(columns[name])
        return columns

    return [*calibration_steps(IN_THE_LARGE, level, designed=designed), error, limits]


def _variance(field: Fields) -> pl.Expr:
    """Variance of a weighted mean of independent rows; null where it says nothing."""
    difference = field(IN_THE_LARGE)
    positives, negatives = field(_POSITIVES), field(_NEGATIVES)
    of_positives, of_labels = field(SQUARES_OF_POSITIVES), field(POSITIVES_SQUARES)
    of_both = of_labels + field(NEGATIVES_SQUARES)
    terms = field(SQUARES_OF_SCORES) + of_labels + difference**2 * of_both
    mixed = of_positives + difference * (of_positives + field(_SQUARES_OF_NEGATIVES) - of_labels)
    squares, total = terms - 2 * mixed, positives + negatives
    known = are_both_classes(positives, negatives) & is_exact(of_both)
    return pl.when(known & (squares > ROUNDING * terms)).then(squares / total / total)


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
    weight: IntoWeight | None = None,
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
    of_bins = sums_in_bins(rows, bins, strategy, in_the_large_sums(rows))
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
