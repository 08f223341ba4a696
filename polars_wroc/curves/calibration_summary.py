"""Calibration in the large, O:E, slope, intercept and errors of groups, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.curves.calibration_curve import (
    CALIBRATION_SUMS,
    DIFFERENCE,
    DIFFERENCE_VARIANCE,
    RATIO_VARIANCE,
    Strategy,
    calibration_columns,
    calibration_steps,
    calibration_sums,
    calibration_variances,
    check_bin_options,
    sums_in_bins,
    unit_scores,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, GivenDesign, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import Fields, Step, first_of, in_columns, max_of, min_of, when
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, sum_unless_null
from polars_wroc.ranking.curve import are_both_classes, is_divisor
from polars_wroc.stats.distributions import z_quantile
from polars_wroc.stats.logistic_fit import (
    INFORMATION,
    INTERCEPT,
    LEAST_PROBABILITY,
    VARIANCES,
    fit_rows,
)
from polars_wroc.stats.logistic_fit import SLOPE as SLOPE_OF_FIT
from polars_wroc.stats.proportions import (
    ROUNDING,
    effective_sample_size,
    is_exact,
    symmetric_limits,
)
from polars_wroc.stats.variances import limit_quantile

IN_THE_LARGE = "calibration_in_the_large"
IN_THE_LARGE_COLUMNS = calibration_columns(IN_THE_LARGE)
# Null where the limits are those of the observed rate.
IN_THE_LARGE_SE = "__in_the_large_se"
# The same if each score is the probability of its row; and the effective number of rows.
PROMISED_SE, EFFECTIVE_ROWS = "__promised_se", "__effective_rows"

_POSITIVES, _POSITIVES_SQUARES, _NEGATIVES, _NEGATIVES_SQUARES = CALIBRATION_SUMS[:4]
# Sums of squared weights: times the score in each class, times its square in both.
_OF_SCORES = _SQUARES_OF_POSITIVES, _SQUARES_OF_NEGATIVES, _SQUARES_OF_SCORES = tuple(
    f"__squares_of_{name}_scores" for name in ("positive", "negative", "squared")
)
IN_THE_LARGE_SUMS: Sequence[str] = (*CALIBRATION_SUMS, *_OF_SCORES)


def in_the_large_sums(rows: Rows) -> dict[str, pl.Expr]:
    """Sums over rows that `in_the_large_steps` needs."""
    positive, negative = class_weights(rows.signed_squares)
    score = pl.col(SCORE).cast(pl.Float64)
    values = positive * score, negative * score, (positive + negative) * score**2
    of_scores = {name: value.sum() for name, value in zip(_OF_SCORES, values, strict=True)}
    return calibration_sums(rows) | of_scores


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
        promised = when(is_exact(of_labels) & (left > ROUNDING * promised)).then(left)
        return {
            IN_THE_LARGE_SE: when(variance > 0).then(variance.sqrt()),
            PROMISED_SE: when(promised > 0).then(promised.sqrt() / total),
            EFFECTIVE_ROWS: effective_sample_size(total, of_labels),
        }

    def limits(field: Fields) -> dict[str, pl.Expr]:
        errors = {IN_THE_LARGE: field(IN_THE_LARGE_SE)}
        limits = symmetric_limits(field, errors, limit_quantile(field, level, designed=designed))
        limits = {name: first_of(limit, field(name)) for name, limit in limits.items()}
        if designed:
            known = when(field(DIFFERENCE_VARIANCE).is_not_null())
            limits = {name: known.then(limit) for name, limit in limits.items()}
        return _if_enough(field, level, limits)

    return [*calibration_steps(IN_THE_LARGE, level, designed=designed), error, limits]


def _if_enough(field: Fields, level: float, limits: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Make Wald's limits null at repeated looks with too few effective rows of a class."""
    classes = (_POSITIVES, _POSITIVES_SQUARES), (_NEGATIVES, _NEGATIVES_SQUARES)
    rows = [effective_sample_size(*map(field, names)) for names in classes]
    return {name: if_enough(level, limit, *rows) for name, limit in limits.items()}


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
    return when(known & (squares > ROUNDING * terms)).then(squares / total / total)


OE_COLUMNS = ("oe_ratio", "oe_ratio_low", "oe_ratio_high")


# Sums of squared weights times the label, label and score, score, and its square; each divided by
# the square of the weight, by the mean score as often as there is a score, and times the square of
# a normal quantile.
_TERMS = tuple(f"__oe_{name}" for name in ("labels", "products", "scores", "squares"))


def _observed_expected_terms(field: Fields, level: float) -> dict[str, pl.Expr]:
    mean, total = field("mean_score"), field(_POSITIVES) + field(_NEGATIVES)
    labels, products = field(_POSITIVES_SQUARES), field(_SQUARES_OF_POSITIVES)
    scores, squares = products + field(_SQUARES_OF_NEGATIVES), field(_SQUARES_OF_SCORES)
    exact = is_exact(labels + field(_NEGATIVES_SQUARES)) & is_exact(squares)
    factor = when(exact).then(z_quantile(level) ** 2) / total / total
    values = labels, products / mean, scores / mean, squares / mean / mean
    return {name: factor * value for name, value in zip(_TERMS, values, strict=True)}


def _observed_expected(field: Fields) -> dict[str, pl.Expr]:
    """Step from the columns and sums of `in_the_large_steps`, and `_TERMS`, to `OE_COLUMNS`."""
    rate, (labels, products, scores, squares) = field("observed_rate"), map(field, _TERMS)
    # Variances of the rate: by the residuals, and if each probability is the score times the ratio.
    residual = labels - 2 * rate * products + rate**2 * squares
    promised = rate * (scores - rate * squares)
    # As one sum, as with equal scores they are the same but for rounding.
    excess = labels - rate * (2 * products + scores - 2 * rate * squares)
    more = excess > ROUNDING * (labels + rate * (products + scores))
    added = when(more).then(excess).otherwise(0.0)
    spread = max_of(promised, residual) + squares * added
    end = rate + scores / 2 + (spread + scores**2 / 4).sqrt()
    low, high = (rate**2 - added).clip(lower_bound=0.0) / end, end / (1 + squares)
    # Then no multiple of the scores may be right. Null without limits, as `more` is.
    factor = when(more).then(residual.sqrt() / rate).when(~more).then(0.0).exp()
    return _ratios(field, min_of(low, rate / factor), max_of(high, rate * factor))


def _ratios(field: Fields, low: pl.Expr, high: pl.Expr) -> dict[str, pl.Expr]:
    """Divide the observed rate and limits of it by the mean score."""
    # By one of 0 or nearly 0, or with a wide margin, they overflow.
    ratios = (value / field("mean_score") for value in (field("observed_rate"), low, high))
    columns = zip(OE_COLUMNS, ratios, strict=True)
    return {name: when(ratio.is_finite()).then(ratio) for name, ratio in columns}


def _ratio_by_design(field: Fields, level: float) -> dict[str, pl.Expr]:
    """Step to `OE_COLUMNS` with limits on the logarithm, by the variance of the design.

    Where that says nothing the observed rate alone is uncertain.
    """
    rate, variance = field("observed_rate"), field(RATIO_VARIANCE)
    known, margin = when(variance.is_not_null()), limit_quantile(field, level, designed=True)
    margin = margin * variance.sqrt() * field("mean_score") / rate
    factor = when(variance > 0).then(margin.exp())
    ends = rate / factor, rate * factor
    names = "observed_rate_low", "observed_rate_high"
    limits = {
        name: known.then(first_of(e, field(name))) for e, name in zip(ends, names, strict=True)
    }
    return _ratios(field, *_if_enough(field, level, limits).values())


_INTERCEPT = "calibration_intercept"
SLOPE, SLOPE_SE = "calibration_slope", "calibration_slope_se"
# How much the rows say about the slope, if the model is right.
SLOPE_INFORMATION = "__calibration_slope_information"
FIT_COLUMNS = (
    *(_INTERCEPT, f"{_INTERCEPT}_low", f"{_INTERCEPT}_high"),
    *(SLOPE, SLOPE_SE, f"{SLOPE}_low", f"{SLOPE}_high"),
)
EXTREMES = "n_extreme"


def fit_steps(level: float, *, designed: bool = False) -> list[Step]:
    """Steps from `FIT_OF_GROUP` to `FIT_COLUMNS`; ``designed`` with degrees of freedom."""

    def limits(field: Fields) -> dict[str, pl.Expr]:
        errors = {name: field(f"{name}_se") for name in (_INTERCEPT, SLOPE)}
        limits = symmetric_limits(field, errors, limit_quantile(field, level, designed=designed))
        return _if_enough(field, level, limits)

    return [_with_errors, limits]


def _with_errors(field: Fields) -> dict[str, pl.Expr]:
    known = when(are_both_classes(field(_POSITIVES), field(_NEGATIVES)))
    exact = is_exact(field(_POSITIVES_SQUARES) + field(_NEGATIVES_SQUARES))
    errors = [
        known.then(when(exact & (variance > 0) & variance.is_finite()).then(variance.sqrt()))
        for variance in map(field, VARIANCES)
    ]
    return {
        _INTERCEPT: known.then(field(INTERCEPT)),
        f"{_INTERCEPT}_se": errors[0],
        SLOPE: known.then(field(SLOPE_OF_FIT)),
        SLOPE_SE: errors[1],
        SLOPE_INFORMATION: known.then(field(INFORMATION)),
    }


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
    design: Design | None = None,
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
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. All limits, and the standard
        error of the slope, are then by its variances and Student's t.

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
        squares of the weights overflow or underflow, those of the ratio also where the squares of
        the scores do, and all where a design leaves the variance unknown.

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
    of different sizes, use ``calibration_in_the_large``. Whether the scores are off anywhere, and
    where, is the better question than how large such an error is: ask `calibration_test`, which
    needs no bins.

    The slope is that of a weighted logistic regression of the label on the logit of the score.
    Below 1 the scores are too far apart: high ones are too high and low ones too low. The intercept
    is that of the regression with the slope held at 1. It is above 0, and the ratio above 1, where
    the scores are too low [2]_. Each regression takes up to 30 Newton steps, from no slope or from
    the mean score, and has converged when a step changes the coefficients by less than 1e-8 of one
    plus their size. If there are more than 262,144 rows, groups of more than 2,000 are fitted to
    points in bins of the logit, 0.1 wide, that have the first eight moments of the rows: that
    changes the numbers by less than 1e-12 of their size. Where the slope is beyond 3.5 the bins are
    0.0125 wide, and where it is beyond 28 the rows are fitted. The regressions are a step in
    Python, which a plan does not stream through.

    The variance of a coefficient is the larger of two. One is that of the model, with the expected
    squares ``p * (1 - p)`` of the residuals at the fitted probabilities: without weights that of
    maximum likelihood. The other has the squared residuals themselves (the HC0 sandwich). It also
    holds where the logistic model does not, but alone is too small in small samples [3]_. Normal
    quantiles make the limits. A 95% interval of the slope covers 93% or more from 30 rows on, and
    is wide; with fewer than 10 rows of a class there is often no slope.

    The limits of the ratio ``r`` of observed to expected are the ratios ``R`` with ``(r - R)**2 =
    z**2 * V(R)``. ``V(R) = a * R - b * R**2``, with the sums ``a`` of ``w**2 * s`` and ``b`` of
    ``(w * s)**2`` divided by the square of the sum of ``w * s``, is the variance of ``r`` if each
    probability is ``R`` times the score. Without positives the lower limit is 0, and the upper one
    above it; if all scores are equal they are Wilson's of the observed rate, divided by the score.
    Where the residuals ``y - r * s`` vary more than that, as where the scores are much too low, the
    difference at ``r`` is added to ``V(R)``, and the limits reach at least as far as those on the
    logarithm, ``r * exp(+-z * sqrt(V) / r)``, where ``V`` is the variance by the residuals.

    By a design the variances are linearised: those of the differences and ratios of totals, and of
    the coefficients the sandwich with the totals of sampling units [4]_, or if it is larger the
    variance above. Of replicate weights each is fitted, which takes as many times the memory.
    Limits of the ratio ``r`` are on the logarithm. Where the variance is 0, those of the
    calibration in the large and of the ratio are those of the observed rate.

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.
    .. [2] Van Calster, B. et al. (2025), arXiv 2412.10288.
    .. [3] MacKinnon, J. G., White, H. (1985), Journal of Econometrics 29, 305-325.
    .. [4] Binder, D. A. (1983), International Statistical Review 51, 279-292.

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
    bins = check_bin_options(bins, strategy)
    if clip is not None:
        clip = arguments.number("clip", clip, low=LEAST_PROBABILITY, high=0.5)
    survey: GivenDesign = read_design(design)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    rows.require_scores("a calibration")
    level = arguments.level(rows.look(level, frame))
    errors = _errors(replace(rows, design=None), bins, strategy, level)
    rows = rows.as_probabilities()
    fit = fit_rows(rows, clip)
    table = join_on_keys(join_on_keys(_sums(rows), fit, rows.keys), errors, rows.keys)
    ratio: list[Step] = [partial(_observed_expected_terms, level=level), _observed_expected]
    if rows.design is not None:
        variances = calibration_variances(unit_scores(rows), rows.keys, rows.design)
        table = join_on_keys(table, variances, rows.keys)
        ratio = [partial(_ratio_by_design, level=level)]
    steps: list[Step] = [*in_the_large_steps(level, designed=survey.given), *ratio]
    steps += fit_steps(level, designed=survey.given)
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
    """Reduce each group to sums, in the order of the groups."""
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
            EXTREMES: rows.count_where((pl.col(SCORE) == 0) | (pl.col(SCORE) == 1)),
            **sums,
        },
    )
    return table.sort(rows.keys) if rows.keys else table
