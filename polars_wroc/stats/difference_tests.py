"""Confidence interval and test of a difference, given its variance."""

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
    correlation = covariance / (one.variance * other.variance).sqrt()
    limits = difference_limits(one.limits(level), other.limits(level), correlation)
    logits = [(area.auc / area.one_minus_auc).log() for area in (one, other)]
    parts = [area.variance * area.slope**2 for area in (one, other)]
    logit_variance = parts[0] + parts[1] - 2 * covariance * one.slope * other.slope
    df = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / one.df + parts[1] ** 2 / other.df)
    t = (logits[0] - logits[1]) / logit_variance.sqrt()
    known = pl.when(variance > 0)
    return {
        "difference": pl.when(variance.is_not_null()).then(one.auc - other.auc),
        "se": variance.sqrt(),
        "ci_low": known.then(limits.low),
        "ci_high": known.then(limits.high),
        "p_value": known.then(two_sided_p_value(normal_score(t, df.clip(lower_bound=1.0)))),
    }


def contrast(difference: pl.Expr, variance: pl.Expr, level: float) -> dict[str, pl.Expr]:
    """Normal confidence interval and test of a difference, as `CONTRAST_COLUMNS`.

    With a variance of 0, interval and ``z`` are null; the p-value is 1 for a difference of 0, else
    null.
    """
    se = variance.sqrt()
    known = pl.when(se > 0)
    no_difference = (se == 0) & (difference.abs() <= TOLERANCE)
    margin = normal_quantile((1 + level) / 2) * se
    z = difference / se
    return {
        "difference": difference,
        "se": se,
        "ci_low": known.then(difference - margin),
        "ci_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(two_sided_p_value(z)).when(no_difference).then(1.0),
    }
