"""The logistic regressions of calibration slope and intercept, in parts of the data or at once."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.curves.calibration_curve import CALIBRATION_SUMS
from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.queries import Fields, Step, join_on_keys
from polars_wroc.ranking.curve import are_both_classes
from polars_wroc.stats.logistic_fit import FIXED, FREE, GROUP, SHARE, SQUARES, VARIABLE
from polars_wroc.stats.proportions import is_exact, normal_limits

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
_POSITIVES, _POSITIVES_SQUARES, _NEGATIVES, _NEGATIVES_SQUARES, _EXPECTED = CALIBRATION_SUMS[:5]
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
    errors = {name: pl.col(f"{name}_se") for name in (_INTERCEPT, SLOPE)}
    return [_on_logits, partial(normal_limits, errors=errors, level=level)]


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
