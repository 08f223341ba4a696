"""Calibration in the large, O:E, slope, intercept and errors of groups, in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

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
from polars_wroc.curves.calibration_fit import (
    EXTREMES,
    FIT_COLUMNS,
    LEAST_CLIP,
    LOGIT,
    extremes,
    fit_steps,
    logit,
    logit_sums,
    standard_deviation,
    standardised_rows,
    start,
    total,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
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
from polars_wroc.stats.logistic_fit import COEFFICIENTS, GROUP, fitted, prepared, with_variances
from polars_wroc.stats.proportions import ROUNDING, Limits, effective_sample_size, is_exact
from polars_wroc.stats.variances import design_df

IN_THE_LARGE = "calibration_in_the_large"
IN_THE_LARGE_COLUMNS = calibration_columns(IN_THE_LARGE)
# Null where the limits are those of the observed rate.
IN_THE_LARGE_SE = "__in_the_large_se"
# The same if each score is the probability of its row; and the effective number of rows.
PROMISED_SE, EFFECTIVE_ROWS = "__promised_se", "__effective_rows"

_POSITIVES, _POSITIVES_SQUARES, _NEGATIVES, _NEGATIVES_SQUARES = CALIBRATION_SUMS[:4]
# Sums of squared weights: times the score in each class, times its square in both.
_OF_SCORES = _SQUARES_OF_POSITIVES, _SQUARES_OF_NEGATIVES, _SQUARES_OF_SCORES = (
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
        of_labels = field(_POSITIVES_SQUARES) + field(_NEGATIVES_SQUARES)
        promised = field(_SQUARES_OF_POSITIVES) + field(_SQUARES_OF_NEGATIVES)
        # Of scores of 0 and 1 nothing is left, and rounding must not be a variance.
        left = promised - field(_SQUARES_OF_SCORES)
        promised = pl.when(is_exact(of_labels) & (left > ROUNDING * promised)).then(left)
        return {
            IN_THE_LARGE_SE: pl.when(variance > 0).then(variance.sqrt()),
            PROMISED_SE: pl.when(promised > 0).then(promised.sqrt() / total),
            EFFECTIVE_ROWS: effective_sample_size(total, of_labels),
        }

    def limits(field: Fields) -> dict[str, pl.Expr]:
        tail = (1 + level) / 2
        quantile = student_quantile(tail, design_df(field)) if designed else normal_quantile(tail)
        value, margin = field(IN_THE_LARGE), quantile * field(IN_THE_LARGE_SE)
        limits = {f"{IN_THE_LARGE}_low": value - margin, f"{IN_THE_LARGE}_high": value + margin}
        columns = {name: pl.coalesce(limit, field(name)) for name, limit in limits.items()}
        if not designed:
            return columns
        known = pl.when(field(DIFFERENCE_VARIANCE).is_not_null())
        return {name: known.then(limit) for name, limit in columns.items()}

    return [*calibration_steps(IN_THE_LARGE, level, designed=designed), error, limits]


def _variance(field: Fields) -> pl.Expr:
    """Variance of a weighted mean of independent rows; null where it says nothing."""
    difference = field(IN_THE_LARGE)
    positives, negatives = field(_POSITIVES), field(_NEGATIVES)
    of_positives, of_labels = field(_SQUARES_OF_POSITIVES), field(_POSITIVES_SQUARES)
    of_both = of_labels + field(_NEGATIVES_SQUARES)
    terms = field(_SQUARES_OF_SCORES) + of_labels + difference**2 * of_both
    mixed = of_positives + difference * (of_positives + field(_SQUARES_OF_NEGATIVES) - of_labels)
    squares, total = terms - 2 * mixed, positives + negatives
    known = are_both_classes(positives, negatives) & is_exact(of_both)
    return pl.when(known & (squares > ROUNDING * terms)).then(squares / total / total)


OE_COLUMNS = ("oe_ratio", "oe_ratio_low", "oe_ratio_high")


def observed_expected(field: Fields, level: float) -> dict[str, pl.Expr]:
    """Step from the columns and sums of `in_the_large_steps` to `OE_COLUMNS`."""
    mean, rate = field("mean_score"), field("observed_rate")
    ratio = pl.when(mean > 0).then(rate / mean)
    observed, expected = field(_POSITIVES_SQUARES), ratio**2 * field(_SQUARES_OF_SCORES)
    squares = observed - 2 * ratio * field(_SQUARES_OF_POSITIVES) + expected
    varies = (ratio > 0) & (squares > ROUNDING * (observed + expected))
    varies &= is_exact(observed + field(_NEGATIVES_SQUARES))
    margin = normal_quantile((1 + level) / 2) * squares.sqrt() / field(_POSITIVES)
    on_logarithm = (ratio / margin.exp(), ratio * margin.exp())
    # Without a variance the score is taken as fixed, and the rate is uncertain.
    fixed = (field(f"observed_rate_{end}") / mean for end in Limits._fields)
    known = pl.when(ratio.is_not_null() & field("observed_rate_low").is_not_null())
    ends = (
        known.then(pl.when(varies).then(log_limit).otherwise(limit))
        for log_limit, limit in zip(on_logarithm, fixed, strict=True)
    )
    columns = zip(OE_COLUMNS, (ratio, *ends), strict=True)
    # Divided by a mean of nearly 0, or with a wide margin, they overflow.
    return {name: pl.when(value.is_finite()).then(value) for name, value in columns}


_ERRORS = ("expected_calibration_error", "maximum_calibration_error")
_COLUMNS = (
    *("n", "n_pos", "n_missing", EXTREMES),
    # Without the number of rows and the weight.
    *IN_THE_LARGE_COLUMNS[2:],
    *(*OE_COLUMNS, *FIT_COLUMNS, *_ERRORS),
)


def calibration_summary(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    clip: float | None = None,
    level: float = 0.95,
) -> FrameT:
    """Calibration of each group: in the large, O:E, intercept, slope and errors over bins.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    bins, strategy
        The bins of both errors: see `calibration_curve`.
    clip
        Smallest distance of a score from 0 and from 1, from 1e-15 to 0.5, in the regressions:
        scores that are closer are moved to it. None leaves the scores as they are; slope and
        intercept are then null in groups with a score of exactly 0 or 1, whose logit is infinite.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_missing, n_extreme`` (Int64 numbers of rows: all without the missing, the
        positives, the missing, and those with a score of exactly 0 or 1), and Float64 columns,
        each name with ``_low`` and ``_high`` for its limits: ``mean_score`` (no limits);
        ``observed_rate``, the proportion of positives; ``calibration_in_the_large``, the mean score
        minus the observed rate; ``oe_ratio``, the observed rate divided by the mean score;
        ``calibration_intercept``; ``calibration_slope``, also with its standard error
        ``calibration_slope_se``; ``expected_calibration_error``, the weighted mean over the bins of
        the absolute difference between mean score and observed rate [1]_, and
        ``maximum_calibration_error``, the largest of these differences (no limits). All are null
        where no row has weight, or where sums of weights overflow or underflow; the ratio also
        where all scores are 0, and the ratio and its limits where they overflow. Slope and
        intercept are null where a class has no weight, where a score is 0 or 1, and where the
        regression does not converge, as the slope if the score separates the classes; the slope
        also where all scores are equal. Their limits and the standard error are null where the
        squares of the weights overflow or underflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_curve`; also for ``clip`` outside its range, and for counts in bins of
        scores.

    Notes
    -----
    The limits of the calibration in the large are those of a mean of independent rows, of the score
    less 1 in positives: ``sqrt(sum(w**2 * (s - y - d)**2)) / sum(w)`` is the standard error of the
    mean ``d``. With rows of one class only, they are those of the observed rate. Both errors depend
    on the bins and are above 0 by chance alone, more so the fewer rows a bin has: to compare groups
    of different sizes, use ``calibration_in_the_large``.

    The slope is that of a weighted logistic regression of the label on the logit of the score.
    Below 1 the scores are too far apart: high ones are too high and low ones too low. The intercept
    is that of the regression with the slope held at 1. It is above 0, and the ratio above 1, where
    the scores are too low [2]_. Each regression takes up to 20 Newton steps, from a fit of rows
    pooled in narrow bins of the logit, and has converged when a step changes the coefficients by
    less than 1e-8 of one plus their size.

    Standard errors of the coefficients are robust (HC0 sandwich) and also hold where the logistic
    model does not. The limits of the ratio are computed on its logarithm, with a linearised
    variance of both means. Without positives, or where no row differs from its expectation, they
    are Wilson's of the observed rate, divided by the mean score.

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.
    .. [2] Van Calster, B. et al. (2025), arXiv 2412.10288.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> table = wroc.calibration_summary(df, "y", "s")
    >>> table.select(pl.col("oe_ratio", "calibration_intercept", "calibration_slope").round(4))
    shape: (1, 3)
    ┌──────────┬───────────────────────┬───────────────────┐
    │ oe_ratio ┆ calibration_intercept ┆ calibration_slope │
    │ ---      ┆ ---                   ┆ ---               │
    │ f64      ┆ f64                   ┆ f64               │
    ╞══════════╪═══════════════════════╪═══════════════════╡
    │ 0.9375   ┆ -0.1992               ┆ 0.5805            │
    └──────────┴───────────────────────┴───────────────────┘
    """
    bins, level = check_bin_options(bins, strategy, level)
    if clip is not None:
        clip = arguments.number("clip", clip, low=LEAST_CLIP, high=0.5)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    rows.require_scores("a calibration")
    errors = _errors(rows, bins, strategy, level)
    rows = rows.as_probabilities()
    rows = replace(rows, frame=rows.frame.with_columns(logit(clip).alias(LOGIT)))
    sums = _sums(rows)
    # Each step reads them. Polars would find out too, but takes half as long again.
    of_rows = prepared(standardised_rows(rows, sums), sums).cache()
    fit = fitted(of_rows, in_columns(sums, [start]).select(GROUP, *COEFFICIENTS))
    found = with_variances(of_rows, fit)
    table = join_on_keys(sums.join(found, on=GROUP, how="left"), errors, rows.keys)
    ratio = partial(observed_expected, level=level)
    steps: list[Step] = [*in_the_large_steps(level), ratio, *fit_steps(level)]
    return like_input(frame, rows.result(in_columns(table, steps), _COLUMNS))


def _errors(rows: Rows, bins: int, strategy: Strategy, level: float) -> pl.LazyFrame:
    """Compute the expected and the maximum calibration error of each group."""
    of_bins = sums_in_bins(rows, bins, strategy, calibration_sums(rows))
    by_bin = in_columns(of_bins, calibration_steps(DIFFERENCE, level))
    difference, weights = pl.col(DIFFERENCE).abs(), pl.col("weight")
    total_weight = sum_unless_null(weights)
    known = pl.when(is_divisor(total_weight))
    values = known.then((difference * weights).sum() / total_weight), known.then(difference.max())
    return rows.aggregate(by_bin, dict(zip(_ERRORS, values, strict=True)))


def _sums(rows: Rows) -> pl.LazyFrame:
    """Reduce each group to sums, and number the groups in their order."""
    sums = in_the_large_sums(rows)
    check = rows.observations.label_check
    if check is not None:
        sums = {name: value + check for name, value in sums.items()}
    table = rows.aggregate(
        rows.frame,
        {
            "n": rows.count_where(pl.col(SCORE).is_not_null()),
            "n_pos": rows.class_counts()["n_pos"],
            "n_missing": rows.count_where(pl.col(WEIGHT).is_null()),
            EXTREMES: extremes(rows),
            **sums,
            **logit_sums(),
        },
    )
    ordered = table.sort(rows.keys) if rows.keys else table
    numbered = ordered.with_row_index(GROUP).with_columns(pl.col(GROUP).cast(pl.Int64))
    # Each use would ask for some of the sums, and read the rows again.
    return in_columns(numbered, [standard_deviation, total]).cache()
