"""From a difference and its variance to an interval, a test and an adjusted p-value."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.stats.differences import Estimate, difference_limits
from polars_wroc.stats.distributions import (
    normal_quantile,
    normal_score,
    student_quantile,
    two_sided_p_value,
)
from polars_wroc.stats.proportions import logit_limits

# A difference of two AUCs that is rounding.
_NOTHING = 1e-12

CONTRAST_COLUMNS = ("difference", "se", "ci_low", "ci_high", "z", "p_value")


class AucEstimate(NamedTuple):
    """An AUC, 1 - AUC, the variance and the degrees of freedom of that."""

    auc: pl.Expr
    one_minus_auc: pl.Expr
    variance: pl.Expr
    df: pl.Expr

    @property
    def slope(self) -> pl.Expr:
        """How much the logit moves with the AUC."""
        return 1 / (self.auc * self.one_minus_auc)

    def limits(self, level: float) -> Estimate:
        """Interval by Student's t on the logit."""
        margin = student_quantile((1 + level) / 2, self.df) * self.variance.sqrt()
        return Estimate(self.auc, *logit_limits(self.auc, self.one_minus_auc, margin))


def auc_difference_test(
    one: AucEstimate, other: AucEstimate, variance: pl.Expr, level: float
) -> dict[str, pl.Expr]:
    """Interval and test of the difference of two AUCs, given its ``variance``.

    The test is Student's t on the difference of the logits, and the interval is put together
    from those of both: small groups hold their level on the logit, not on the AUC.
    """
    covariance = (one.variance + other.variance - variance) / 2
    correlation = covariance / (one.variance * other.variance).sqrt()
    limits = difference_limits(one.limits(level), other.limits(level), correlation)
    logits = [(area.auc / area.one_minus_auc).log() for area in (one, other)]
    parts = [area.variance * area.slope**2 for area in (one, other)]
    spread = parts[0] + parts[1] - 2 * covariance * one.slope * other.slope
    df = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / one.df + parts[1] ** 2 / other.df)
    t = (logits[0] - logits[1]) / spread.sqrt()
    known = pl.when(variance > 0)
    return {
        "difference": pl.when(variance.is_not_null()).then(one.auc - other.auc),
        "se": variance.sqrt(),
        "ci_low": known.then(limits.low),
        "ci_high": known.then(limits.high),
        "p_value": known.then(two_sided_p_value(normal_score(t, df.clip(lower_bound=1.0)))),
    }


def contrast(difference: pl.Expr, variance: pl.Expr, level: float) -> dict[str, pl.Expr]:
    """Normal interval and test of a difference, as `CONTRAST_COLUMNS`.

    Without a variance there is no interval, and no evidence either where nothing differs.
    """
    se = variance.sqrt()
    known = pl.when(se > 0)
    nothing = (se == 0) & (difference.abs() <= _NOTHING)
    margin = normal_quantile((1 + level) / 2) * se
    z = difference / se
    return {
        "difference": difference,
        "se": se,
        "ci_low": known.then(difference - margin),
        "ci_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(two_sided_p_value(z)).when(nothing).then(1.0),
    }
