"""The ratio of observed to expected positives, from sums over rows."""

from __future__ import annotations

import polars as pl

from polars_wroc.curves.calibration_curve import CALIBRATION_SUMS
from polars_wroc.curves.calibration_design import RATIO_VARIANCE
from polars_wroc.curves.in_the_large import (
    NEGATIVES_SQUARES,
    POSITIVES_SQUARES,
    SQUARES_OF_POSITIVES,
    SQUARES_OF_SCORES,
)
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.proportions import ROUNDING, is_exact

OE_COLUMNS = ("oe_ratio", "oe_low", "oe_high")
_POSITIVES = CALIBRATION_SUMS[0]


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
    margin = normal_quantile((1 + level) / 2) * squares.sqrt() / field(_POSITIVES)
    return varies & is_exact(observed + field(NEGATIVES_SQUARES)), margin


def _margin_by_design(ratio: pl.Expr, level: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    variance = field(RATIO_VARIANCE)
    quantile = student_quantile((1 + level) / 2, design_df(field))
    return (ratio > 0) & (variance > 0), quantile * variance.sqrt() / ratio
