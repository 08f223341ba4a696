"""Confidence interval and test of a difference, given its variance."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.stats.differences import Estimate, difference_limits
from polars_wroc.stats.distributions import (
    normal_quantile,
    student_p_value,
    student_quantile,
    two_sided_p_value,
)
from polars_wroc.stats.proportions import TOLERANCE, logit_limits

CONTRAST_COLUMNS = ("difference", "se", "ci_low", "ci_high", "z", "p_value")


class AucEstimate(NamedTuple):
    """An AUC, 1 - AUC, the variance of the AUC and the degrees of freedom of the variance."""

    auc: pl.Expr
    one_minus_auc: pl.Expr
    variance: pl.Expr
    df: pl.Expr

    @property
    def slope(self) -> pl.Expr:
        """Derivative of the logit of the AUC."""
        return 1 / (self.auc * self.one_minus_auc)

    def limits(self, level: float) -> Estimate:
        """Confidence interval by Student's t distribution on the logit."""
        margin = student_quantile((1 + level) / 2, self.df) * self.variance.sqrt()
        return Estimate(self.auc, *logit_limits(self.auc, self.one_minus_auc, margin))


def auc_difference_test(
    one: AucEstimate, other: AucEstimate, variance: pl.Expr, level: float
) -> dict[str, pl.Expr]:
    """Confidence interval and test of the difference of two AUCs, given its ``variance``.

    The test is Student's t on the difference of the logits, and the interval combines the
    intervals of both AUCs. In small groups the level holds on the logit, not on the AUC itself.
    """
    covariance = (one.variance + other.variance - variance) / 2
    # Roots and proportions, since products of variances may underflow.
    correlation = covariance / (one.variance.sqrt() * other.variance.sqrt())
    limits = difference_limits(one.limits(level), other.limits(level), correlation)
    logits = [(area.auc / area.one_minus_auc).log() for area in (one, other)]
    parts = [area.variance * area.slope**2 for area in (one, other)]
    both = parts[0] + parts[1]
    logit_variance = both - 2 * covariance * one.slope * other.slope
    df = 1 / ((parts[0] / both) ** 2 / one.df + (parts[1] / both) ** 2 / other.df)
    t = (logits[0] - logits[1]) / logit_variance.sqrt()
    known = pl.when(variance > 0)
    p_value = student_p_value(t, df.clip(lower_bound=1.0))
    return {
        "difference": pl.when(variance.is_not_null()).then(one.auc - other.auc),
        "se": variance.sqrt(),
        "ci_low": known.then(limits.low.fill_nan(None)),
        "ci_high": known.then(limits.high.fill_nan(None)),
        "p_value": known.then(p_value.fill_nan(None)),
    }


def contrast(
    difference: pl.Expr, variance: pl.Expr, level: float, df: pl.Expr | None = None
) -> dict[str, pl.Expr]:
    """Normal confidence interval and test of a difference, as `CONTRAST_COLUMNS`.

    With ``df``, degrees of freedom of the variance, those of Student's t.
    With a variance of 0, interval and ``z`` are null; the p-value is 1 for a difference of 0, else
    null.
    """
    se = variance.sqrt()
    known = pl.when(se > 0)
    no_difference = (se == 0) & (difference.abs() <= TOLERANCE)
    tail, z = (1 + level) / 2, difference / se
    quantile = pl.lit(normal_quantile(tail)) if df is None else student_quantile(tail, df)
    p_value = two_sided_p_value(z) if df is None else student_p_value(z, df)
    margin = quantile * se
    return {
        "difference": difference,
        "se": se,
        "ci_low": known.then(difference - margin),
        "ci_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(p_value).when(no_difference).then(1.0),
    }
