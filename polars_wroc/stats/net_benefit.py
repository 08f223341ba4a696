"""Net benefit: the share of true positives minus the share of false positives times the odds.

Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574. Arrays of cells have a row
for each of tp, fp, fn and tn, and a column for each segment.
"""

from __future__ import annotations

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.stats.contrasts import Contrast, correlate_shares, credible_correlation
from polars_wroc.stats.estimates import Scaled, Wald
from polars_wroc.stats.rates import LEAST_SQUARES, Rate


def contrast_shares(tp: Rate, fp: Rate, odds: Array, covariance: Array | None = None) -> Contrast:
    """Return the net benefit as the difference of shares of true and of false positives.

    Both are shares of all rows. With a design, their ``covariance`` replaces the covariance of
    independent rows.
    """
    if covariance is None:
        rho = correlate_shares(tp.value, fp.value)
    else:
        rho = _correlate_by_design(tp, fp, covariance)
    # NB = TP / N - FP / N t / (1 - t)
    return Contrast(tp.estimate(), Scaled(fp.estimate(), odds), correlation=rho)


def contrast_rates(
    tpr: Rate, fpr: Rate, odds: Array, prevalence: float, covariance: Array | None = None
) -> Contrast:
    """Return the net benefit in a population with a prevalence, as a difference of rates.

    The classes are independent samples, unless the rates have a ``covariance`` by a design.
    """
    rho: Array | float = 0.0
    if covariance is not None:
        rho = _correlate_by_design(tpr, fpr, covariance)
    gain = Scaled(tpr.estimate(), prevalence)
    loss = Scaled(fpr.estimate(), (1 - prevalence) * odds)
    return Contrast(gain, loss, correlation=rho)


def estimate_standardized(weight: Array, squares: Array, odds: Array) -> Wald:
    """Return the net benefit divided by the prevalence, from sums in the cells of matrices.

    NaN without positives; there are no limits where squared weights overflow or underflow.
    """
    tp, fp, fn, _ = weight
    positives = tp + fn
    # R = sum w g / sum w y, where the gain g of a row is 1 in tp, -t / (1 - t) in fp, 0 elsewhere
    value = (tp - odds * fp) / positives
    zero = np.zeros_like(odds)
    gain = np.stack([zero + 1, -odds, zero, zero])
    expected = np.stack([value, zero, value, zero])
    # V = sum w^2 (g - R y)^2 / (sum w y)^2
    variance = (squares * ((gain - expected) / positives) ** 2).sum(axis=0)
    total = squares.sum(axis=0)
    is_known = np.isfinite(total) & (total >= LEAST_SQUARES)
    return Wald(value, np.where(is_known, np.sqrt(variance), np.nan))


def _correlate_by_design(one: Rate, other: Rate, covariance: Array) -> Array:
    assert one.variance is not None
    assert other.variance is not None
    return credible_correlation(covariance, one.variance, other.variance)
