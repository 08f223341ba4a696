"""The ratio of observed to expected positives, from sums over rows."""

from __future__ import annotations

import polars as pl

from polars_wroc.curves.calibration_curve import CALIBRATION_SUMS
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.proportions import ROUNDING, is_exact

OE_COLUMNS = ("oe_ratio", "oe_low", "oe_high")
_POSITIVES, _POSITIVES_SQUARES, _, _NEGATIVES_SQUARES, _EXPECTED = CALIBRATION_SUMS
# Sums of squared weights: times the score over the positives, times its square over all rows.
_OF_SCORES, _OF_SQUARES = "__squares_of_scores", "__squares_of_squared_scores"


def observed_expected_sums(rows: Rows, weight_type: WeightType) -> dict[str, pl.Expr]:
    """Sums over rows that `observed_expected` needs besides those of `calibration_sums`."""
    signed = pl.col(WEIGHT) if weight_type == "frequency" else rows.signed_squares
    positive, negative = class_weights(signed)
    score = pl.col(SCORE).cast(pl.Float64)
    return {
        _OF_SCORES: (positive * score).sum(),
        _OF_SQUARES: ((positive + negative) * score**2).sum(),
    }


def observed_expected(level: float) -> Step:
    """Step from these sums and the columns of `calibration_steps` to `OE_COLUMNS`."""
    quantile = normal_quantile((1 + level) / 2)

    def step(field: Fields) -> dict[str, pl.Expr]:
        mean, rate = field("mean_score"), field("observed_rate")
        ratio = pl.when(mean > 0).then(rate / mean)
        observed = field(_POSITIVES_SQUARES)
        expected = ratio**2 * field(_OF_SQUARES)
        squares = observed - 2 * ratio * field(_OF_SCORES) + expected
        varies = (rate > 0) & (squares > ROUNDING * (observed + expected))
        factor = (quantile * squares.sqrt() / field(_POSITIVES)).exp()
        # Without a variance the score is taken as fixed, and the rate is uncertain.
        fixed = Limits(*(field(f"observed_rate_{end}") / mean for end in Limits._fields))
        known = pl.when(ratio.is_not_null() & is_exact(observed + field(_NEGATIVES_SQUARES)))
        limits = (
            known.then(pl.when(varies).then(log_limit).otherwise(limit))
            for log_limit, limit in zip((ratio / factor, ratio * factor), fixed, strict=True)
        )
        return dict(zip(OE_COLUMNS, (ratio, *limits), strict=True))

    return step
