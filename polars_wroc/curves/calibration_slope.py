"""Calibration slope and intercept, and the ratio of observed to expected positives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.curves.calibration_curve import CALIBRATION_SUMS, RATIO_VARIANCE
from polars_wroc.curves.calibration_error import (
    NEGATIVES_SQUARES,
    POSITIVES_SQUARES,
    SQUARES_OF_POSITIVES,
    SQUARES_OF_SCORES,
    in_the_large_steps,
    in_the_large_sums,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.queries import Fields, FrameT, Step, in_columns, join_on_keys, like_input
from polars_wroc.ranking.curve import are_both_classes
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.logistic_fit import (
    COEFFICIENTS,
    FIXED,
    FREE,
    GROUP,
    SHARE,
    SQUARES,
    VARIABLE,
    fitted,
    prepared,
    with_variances,
)
from polars_wroc.stats.proportions import ROUNDING, Limits, is_exact
from polars_wroc.stats.variances import design_df

_INTERCEPT = "calibration_intercept"
SLOPE, SLOPE_SE = "calibration_slope", "calibration_slope_se"
# How much the rows say about the slope, if the model is right.
SLOPE_INFORMATION = "__calibration_slope_information"
FIT_COLUMNS = (
    *(_INTERCEPT, f"{_INTERCEPT}_low", f"{_INTERCEPT}_high"),
    *(SLOPE, SLOPE_SE, f"{SLOPE}_low", f"{SLOPE}_high"),
)
EXTREMES = "n_extreme"
# Of a group: whether there is an infinite logit, and the number, mean, squared distances from the
# mean and range of the finite ones.
LOGIT, INFINITE = "__logit", "__logit_infinite"
_COUNT, _SPREAD, _LEAST, _MOST = (
    f"__logit_{part}" for part in ("count", "spread", "least", "most")
)
MOMENTS = _MEAN, _SD = "__logit_mean", "__logit_sd"
# Of a part of a group: its number.
PART = "__part"
_POSITIVES, _POSITIVES_SQUARES, _NEGATIVES, _NEGATIVES_SQUARES, _EXPECTED = CALIBRATION_SUMS
TOTAL = "__weight_in_group"
# For a smaller float x, 1 - x would round to 1, or keep hardly a digit of x.
LEAST_CLIP = 1e-15


def logit(clip: float | None = None) -> pl.Expr:
    """Return the logit of a score; null where it is infinite."""
    score = pl.col(SCORE).cast(pl.Float64)
    inside = score if clip is None else score.clip(clip, 1 - clip)
    return pl.when((inside > 0) & (inside < 1)).then((inside / (1 - inside)).log())


def extremes(rows: Rows) -> pl.Expr:
    """Count the rows with a score of exactly 0 or 1."""
    return rows.count_where((pl.col(SCORE) == 0) | (pl.col(SCORE) == 1))


def logit_sums() -> dict[str, pl.Expr]:
    """Sum the logits of rows."""
    value = pl.col(LOGIT)
    return {
        INFINITE: (pl.col(SCORE).is_not_null() & value.is_null()).any(),
        _COUNT: value.count().cast(pl.Float64),
        _MEAN: value.mean().fill_null(0.0),
        _SPREAD: (value.var(ddof=0) * value.count()).fill_null(0.0),
        _LEAST: value.min(),
        _MOST: value.max(),
    }


def added_logit_sums() -> dict[str, pl.Expr]:
    """Add up these sums of parts of the rows."""
    count, mean = pl.col(_COUNT), pl.col(_MEAN)
    of_all = ((count * mean).sum() / count.sum()).fill_nan(0.0)
    return {
        INFINITE: pl.col(INFINITE).any(),
        _COUNT: count.sum(),
        _MEAN: of_all,
        _SPREAD: (pl.col(_SPREAD) + count * (mean - of_all) ** 2).sum(),
        _LEAST: pl.col(_LEAST).min(),
        _MOST: pl.col(_MOST).max(),
    }


def standard_deviation(field: Fields) -> dict[str, pl.Expr]:
    """Step to the standard deviation of the logits; 1 where they are equal."""
    deviation = (field(_SPREAD) / field(_COUNT)).sqrt()
    differ = (field(_MOST) > field(_LEAST)) & (deviation > 0)
    return {_SD: pl.when(differ).then(deviation).otherwise(1.0)}


def start(field: Fields) -> dict[str, pl.Expr]:
    """Begin with the prevalence and the mean score; NaN for what cannot be estimated."""
    positives, negatives = field(_POSITIVES), field(_NEGATIVES)
    mean = (field(_EXPECTED) / (positives + negatives)).clip(LEAST_CLIP, 1 - LEAST_CLIP)
    odds, expected_odds = positives / negatives, mean / (1 - mean)
    known = are_both_classes(positives, negatives) & ~field(INFINITE)
    differ = known & (field(_MOST) > field(_LEAST))
    return {
        FREE.intercept: pl.when(differ).then(odds.log()).otherwise(float("nan")),
        FREE.slope: pl.lit(0.0),
        FIXED.intercept: pl.when(known)
        .then((odds / expected_odds).log() + field(_MEAN))
        .otherwise(float("nan")),
        FIXED.slope: field(_SD),
    }


def total(field: Fields) -> dict[str, pl.Expr]:
    """Step from `CALIBRATION_SUMS` to the weight of a group."""
    return {TOTAL: field(_POSITIVES) + field(_NEGATIVES)}


def standardised_rows(rows: Rows, sums: pl.LazyFrame) -> pl.LazyFrame:
    """Standardise the logits and the weights of the rows of each group.

    ``sums`` have `GROUP`, `TOTAL`, and the columns of `logit_sums` and `standard_deviation`.
    """
    moments = sums.select(*rows.keys, GROUP, _MEAN, _SD, TOTAL)
    there = rows.frame.filter(pl.col(WEIGHT).is_not_null())
    joined = join_on_keys(there, moments, rows.keys, how="inner", maintain_order="none")
    return joined.select(
        GROUP,
        ((pl.col(LOGIT) - pl.col(_MEAN)) / pl.col(_SD)).fill_null(0.0).alias(VARIABLE),
        (pl.col(WEIGHT) / pl.col(TOTAL)).alias(SHARE),
        (rows.signed_squares / pl.col(TOTAL) / pl.col(TOTAL)).alias(SQUARES),
    )


def standardised_rows_of_parts(
    parts: pl.LazyFrame, of_parts: pl.LazyFrame, sums: pl.LazyFrame
) -> pl.LazyFrame:
    """Turn standardised rows of the parts of groups into those of the groups.

    ``of_parts`` has a row for each part and group that it belongs to: the number of the part as
    `PART`, the `GROUP`, and of the part `TOTAL` and `MOMENTS`. ``sums`` has these of the groups.
    """
    columns = [*MOMENTS, TOTAL]
    own, whole = (
        {name: pl.col(f"{name}{suffix}") for name in columns} for suffix in ("", "_right")
    )
    known = of_parts.select(PART, GROUP, *columns).join(sums.select(GROUP, *columns), on=GROUP)
    joined = parts.join(known, left_on=GROUP, right_on=PART, maintain_order="none", suffix="_of")
    value = pl.col(VARIABLE) * own[_SD] + own[_MEAN]
    share = own[TOTAL] / whole[TOTAL]
    return joined.select(
        pl.col(f"{GROUP}_of").alias(GROUP),
        ((value - whole[_MEAN]) / whole[_SD]).alias(VARIABLE),
        pl.col(SHARE) * share,
        pl.col(SQUARES) * share * share,
    )


def fit_steps(level: float) -> list[Step]:
    """Steps from the coefficients and variances of standardised logits to `FIT_COLUMNS`."""
    return [_on_logits, partial(_limits, level=level)]


def _on_logits(field: Fields) -> dict[str, pl.Expr]:
    """Return from standardised logits to those of the scores."""
    squares = field(_POSITIVES_SQUARES) + field(_NEGATIVES_SQUARES)
    slope, intercept = (field(each.variance) for each in (FREE, FIXED))
    return {
        _INTERCEPT: field(FIXED.intercept) - field(_MEAN),
        f"{_INTERCEPT}_se": pl.when(is_exact(squares) & (intercept > 0)).then(intercept.sqrt()),
        SLOPE: field(FREE.slope) / field(_SD),
        SLOPE_SE: pl.when(is_exact(squares) & (slope > 0)).then(slope.sqrt() / field(_SD)),
        SLOPE_INFORMATION: field(FREE.information)
        * field(_SD) ** 2
        * (field(_POSITIVES) + field(_NEGATIVES)),
    }


def _limits(field: Fields, level: float) -> dict[str, pl.Expr]:
    quantile = normal_quantile((1 + level) / 2)
    return {
        f"{name}_{end}": field(name) + side * quantile * field(f"{name}_se")
        for name in (_INTERCEPT, SLOPE)
        for end, side in (("low", -1), ("high", 1))
    }


OE_COLUMNS = ("oe_ratio", "oe_low", "oe_high")
_OBSERVED = CALIBRATION_SUMS[0]


def observed_expected(level: float, *, designed: bool = False) -> Step:
    """Step from the columns and sums of `in_the_large_steps` to `OE_COLUMNS`.

    ``designed`` with the columns of `calibration_variances`.
    """

    def step(field: Fields) -> dict[str, pl.Expr]:
        mean, rate = field("mean_score"), field("observed_rate")
        ratio = pl.when(mean > 0).then(rate / mean)
        margin = _margin_by_design if designed else _margin
        varies, on_logarithm = margin(ratio, level, field)
        factor = on_logarithm.exp()
        # Without a variance the score is taken as fixed, and the rate is uncertain.
        fixed = Limits(*(field(f"observed_rate_{end}") / mean for end in Limits._fields))
        limits = (
            pl.when(varies).then(log_limit).otherwise(limit)
            for log_limit, limit in zip((ratio / factor, ratio * factor), fixed, strict=True)
        )
        known = pl.when(ratio.is_not_null() & field("observed_rate_low").is_not_null())
        ends = (known.then(limit) for limit in limits)
        columns = zip(OE_COLUMNS, (ratio, *ends), strict=True)
        # Divided by a mean of nearly 0, or with a wide margin, they overflow.
        return {name: pl.when(value.is_finite()).then(value) for name, value in columns}

    return step


def _margin(ratio: pl.Expr, level: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """Whether the ratio has a variance, and the distance of its limits on the logarithm."""
    observed = field(POSITIVES_SQUARES)
    expected = ratio**2 * field(SQUARES_OF_SCORES)
    squares = observed - 2 * ratio * field(SQUARES_OF_POSITIVES) + expected
    varies = (ratio > 0) & (squares > ROUNDING * (observed + expected))
    margin = normal_quantile((1 + level) / 2) * squares.sqrt() / field(_OBSERVED)
    return varies & is_exact(observed + field(NEGATIVES_SQUARES)), margin


def _margin_by_design(ratio: pl.Expr, level: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    variance = field(RATIO_VARIANCE)
    quantile = student_quantile((1 + level) / 2, design_df(field))
    return (ratio > 0) & (variance > 0), quantile * variance.sqrt() / ratio


_COLUMNS = (
    *("n", "n_pos", "n_missing", EXTREMES, "mean_score", "observed_rate"),
    *(*OE_COLUMNS, *FIT_COLUMNS),
)


def calibration_slope(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    clip: float | None = None,
    level: float = 0.95,
) -> FrameT:
    """Calibration slope, calibration intercept and observed-to-expected ratio of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
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
        positives, the missing, and those with a score of exactly 0 or 1), and Float64 columns:
        ``mean_score``; ``observed_rate``, the proportion of positives; ``oe_ratio``, the observed
        rate divided by the mean score, with its limits ``oe_low, oe_high``;
        ``calibration_intercept, calibration_intercept_low, calibration_intercept_high``; and
        ``calibration_slope, calibration_slope_se, calibration_slope_low, calibration_slope_high``.
        All of these are null where no row has weight, or where sums of weights overflow or
        underflow; the ratio also where all scores are 0; and the ratio and its limits also where
        they overflow. Slope and intercept are null where a class has no weight, where a score is 0
        or 1, and where the regression does not converge, as the slope if the score separates the
        classes; the slope also where all scores are equal. Limits and standard error are null where
        the squares of the weights overflow or underflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``clip`` outside its range, for counts in bins of scores and, at
        collect, for a score that is not between 0 and 1.

    Notes
    -----
    The slope is that of a weighted logistic regression of the label on the logit of the score.
    Below 1 the scores are too far apart: high ones are too high and low ones too low. The intercept
    is that of the regression with the slope held at 1. It is above 0, and the ratio above 1, where
    the scores are too low [1]_. Each regression takes up to 20 Newton steps, from a fit of rows
    pooled in narrow bins of the logit, and has converged when a step changes the coefficients by
    less than 1e-8 of one plus their size.

    Standard errors of the coefficients are robust (HC0 sandwich) and also hold where the logistic
    model does not. The limits of the ratio are computed on its logarithm, with a linearised
    variance of both means. Without positives, or where no row differs from its expectation, they
    are Wilson's of the observed rate, divided by the mean score.

    References
    ----------
    .. [1] Van Calster, B. et al. (2025), arXiv 2412.10288.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> table = wroc.calibration_slope(df, "y", "s")
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
    if clip is not None:
        clip = arguments.number("clip", clip, low=LEAST_CLIP, high=0.5)
    level = arguments.level(level)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    rows.require_scores("a calibration")
    rows = rows.as_probabilities()
    rows = replace(rows, frame=rows.frame.with_columns(logit(clip).alias(LOGIT)))
    sums = _sums(rows)
    # Each step reads them. Polars would find out too, but takes half as long again.
    of_rows = prepared(standardised_rows(rows, sums), sums).cache()
    fit = fitted(of_rows, in_columns(sums, [start]).select(GROUP, *COEFFICIENTS))
    found = with_variances(of_rows, fit)
    table = sums.join(found, on=GROUP, how="left")
    steps: list[Step] = [
        *in_the_large_steps(level),
        observed_expected(level),
        *fit_steps(level),
    ]
    return like_input(frame, rows.result(in_columns(table, steps), _COLUMNS))


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
