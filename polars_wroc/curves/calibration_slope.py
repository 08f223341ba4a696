"""Calibration slope and intercept, and the ratio of observed to expected positives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.curves.calibration_curve import (
    CALIBRATION_SUMS,
    calibration_steps,
    calibration_sums,
)
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.curves.observed_expected import (
    OE_COLUMNS,
    observed_expected,
    observed_expected_sums,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Fields, Step, in_columns
from polars_wroc.ranking.curve import are_both_classes
from polars_wroc.stats.distributions import normal_quantile
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
from polars_wroc.stats.proportions import is_exact

_INTERCEPT, _SLOPE = "calibration_intercept", "calibration_slope"
_COLUMNS = (
    *("n", "n_pos", "n_missing", "n_extreme", "mean_score", "observed_rate", *OE_COLUMNS),
    *(_INTERCEPT, f"{_INTERCEPT}_low", f"{_INTERCEPT}_high"),
    *(_SLOPE, f"{_SLOPE}_se", f"{_SLOPE}_low", f"{_SLOPE}_high"),
)
# Of a group: mean, standard deviation and range of the logits, and what can be estimated.
_LOGIT, _MEAN, _SD, _LEAST, _MOST = (
    f"__logit{part}" for part in ("", "_mean", "_sd", "_least", "_most")
)
_INFINITE, _TOTAL = "__logit_infinite", "__weight_in_group"
_POSITIVES, _POSITIVES_SQUARES, _NEGATIVES, _NEGATIVES_SQUARES, _EXPECTED = CALIBRATION_SUMS
# Below it 1 less a float is 1 again, or nearly.
_LEAST_CLIP = 1e-15


def calibration_slope(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    clip: float | None = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
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
    weight_type
        Meaning of the weights: see `roc_auc_ci`.

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
        underflow; the ratio also where all scores are 0. Slope and intercept are null where a class
        has no weight, where a score is 0 or 1, and where the regression does not converge, as the
        slope if the score separates the classes; the slope also where all scores are equal. Limits
        and standard error are null where the squares of the weights overflow or underflow.

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
    model does not; for frequency weights they are those of maximum likelihood. The limits of the
    ratio are computed on its logarithm, with a linearised variance of both means. Without
    positives, or where no row differs from its expectation, they are Wilson's of the observed
    rate, divided by the mean score.

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
        arguments.number("clip", clip, low=_LEAST_CLIP, high=0.5)
    arguments.level(level)
    check_weight_type(weight_type)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    rows.require_scores("a calibration")
    rows = rows.as_probabilities()
    rows = replace(rows, frame=rows.frame.with_columns(_logit(clip).alias(_LOGIT)))
    sums = _sums(rows, weight_type)
    points = _points(rows, sums)
    fit = fitted(points, in_columns(sums, [_start]).select(GROUP, *COEFFICIENTS))
    found = with_variances(points, fit, robust=weight_type == "probability")
    table = sums.join(found, on=GROUP, how="left")
    steps: list[Step] = [
        *calibration_steps(IN_THE_LARGE, level),
        observed_expected(level),
        partial(_on_logits, weight_type=weight_type),
        partial(_limits, level=level),
    ]
    return like_input(frame, rows.result(in_columns(table, steps), _COLUMNS))


def _logit(clip: float | None) -> pl.Expr:
    """Return the logit of a score; null where it is infinite."""
    score = pl.col(SCORE)
    inside = score if clip is None else score.clip(clip, 1 - clip)
    return pl.when((inside > 0) & (inside < 1)).then((inside / (1 - inside)).log())


def _sums(rows: Rows, weight_type: WeightType) -> pl.LazyFrame:
    """Reduce each group to sums, and number the groups in their order."""
    weight, score, logit = pl.col(WEIGHT), pl.col(SCORE), pl.col(_LOGIT)
    sums = calibration_sums(rows, weight_type)
    check = rows.observations.label_check
    if check is not None:
        sums = {name: value + check for name, value in sums.items()}
    table = rows.aggregate(
        rows.frame,
        {
            "n": rows.count_where(score.is_not_null()),
            "n_pos": rows.class_counts()["n_pos"],
            "n_missing": rows.count_where(weight.is_null()),
            "n_extreme": rows.count_where((score == 0) | (score == 1)),
            _INFINITE: (score.is_not_null() & logit.is_null()).any(),
            **sums,
            **observed_expected_sums(rows, weight_type),
            _MEAN: logit.mean(),
            _SD: pl.when(logit.max() > logit.min()).then(logit.std()).otherwise(1.0),
            _LEAST: logit.min(),
            _MOST: logit.max(),
        },
    )
    ordered = table.sort(rows.keys) if rows.keys else table
    # Each use would ask for some of the sums, and read the rows again.
    return ordered.with_row_index(GROUP).with_columns(pl.col(GROUP).cast(pl.Int64)).cache()


def _start(field: Fields) -> dict[str, pl.Expr]:
    """Begin with the prevalence and the mean score; NaN for what cannot be estimated."""
    positives, negatives = field(_POSITIVES), field(_NEGATIVES)
    mean = (field(_EXPECTED) / (positives + negatives)).clip(_LEAST_CLIP, 1 - _LEAST_CLIP)
    odds, expected_odds = positives / negatives, mean / (1 - mean)
    known = are_both_classes(positives, negatives) & ~field(_INFINITE)
    differ = known & (field(_MOST) > field(_LEAST))
    return {
        FREE.intercept: pl.when(differ).then(odds.log()).otherwise(float("nan")),
        FREE.slope: pl.lit(0.0),
        FIXED.intercept: pl.when(known)
        .then((odds / expected_odds).log() + field(_MEAN))
        .otherwise(float("nan")),
        FIXED.slope: field(_SD),
    }


def _points(rows: Rows, sums: pl.LazyFrame) -> pl.LazyFrame:
    """Standardise the logits and the weights of the rows of each group."""
    total = (pl.col(_POSITIVES) + pl.col(_NEGATIVES)).alias(_TOTAL)
    moments = sums.select(*rows.keys, GROUP, _MEAN, _SD, total)
    there = rows.frame.filter(pl.col(WEIGHT).is_not_null())
    joined = join_on_keys(there, moments, rows.keys, how="inner", maintain_order="none")
    points = joined.select(
        GROUP,
        ((pl.col(_LOGIT) - pl.col(_MEAN)) / pl.col(_SD)).fill_null(0.0).alias(VARIABLE),
        (pl.col(WEIGHT) / pl.col(_TOTAL)).alias(SHARE),
        (rows.signed_squares.abs() / pl.col(_TOTAL) / pl.col(_TOTAL)).alias(SQUARES),
    )
    return prepared(points, sums)


def _on_logits(field: Fields, weight_type: WeightType) -> dict[str, pl.Expr]:
    """Return from standardised logits to those of the scores."""
    squares = field(_POSITIVES_SQUARES) + field(_NEGATIVES_SQUARES)
    rows = field("weight") if weight_type == "frequency" else pl.lit(1.0)
    slope, intercept = (field(each.variance) / rows for each in (FREE, FIXED))
    return {
        _INTERCEPT: field(FIXED.intercept) - field(_MEAN),
        f"{_INTERCEPT}_se": pl.when(is_exact(squares) & (intercept > 0)).then(intercept.sqrt()),
        _SLOPE: field(FREE.slope) / field(_SD),
        f"{_SLOPE}_se": pl.when(is_exact(squares) & (slope > 0)).then(slope.sqrt() / field(_SD)),
    }


def _limits(field: Fields, level: float) -> dict[str, pl.Expr]:
    quantile = normal_quantile((1 + level) / 2)
    return {
        f"{name}_{end}": field(name) + side * quantile * field(f"{name}_se")
        for name in (_INTERCEPT, _SLOPE)
        for end, side in (("low", -1), ("high", 1))
    }
