"""Limits of partial AUCs, as shares of a perfect score's area over the same range.

The share A is an AUC with placement values of its own, so its variance follows from moments like
the variance of an AUC. Score-type limits also depend on the rows of one class in the range: the
negatives for false positive rates, the positives for true positive rates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.stats.aucs import Auc, AucMethod, add_pseudo_rows
from polars_wroc.stats.estimates import Estimate, Wilson

# With fewer effective rows in the range there are no score-type limits.
_LEAST_POSITIVES, _LEAST_NEGATIVES = 3, 4
# Pseudo-rows are added to the negatives in a range of false positive rates.
_PSEUDO_NEGATIVES = 2
# More than the rounding error of a number of rows.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class PartialArea:
    """Partial AUCs over a range of true or false positive rates, as shares A of a perfect score's.

    ``first`` and ``second`` are sums over the class of the ``rate``, of its shares h of the weight:
    sum(h^2 f) and sum(h^2 f^2). f is the part of a negative within the range or, for a positive,
    its part times the share of the negatives above it.
    """

    auc: Auc
    rate: Literal["fpr", "tpr"]
    low: float
    high: float
    first: Array
    second: Array

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    def estimate(self, method: AucMethod = "score") -> Estimate:
        """Return the share with the limits of a method; NaN where these are not defined."""
        if method != "score":
            return self.auc.estimate(method)
        if self.width == 1:
            return self.auc.estimate("score")
        if self.rate == "tpr":
            return self._wilson(self._size_over_tpr(), self.auc.df)
        if self.low == 0:
            return self._wilson(*self._size_over_fpr())
        # Ranges that start above 0 have no score-type interval.
        return _logit_by_student(self.auc)

    def _wilson(self, size: Array, df: Array | float) -> Wilson:
        effective = size * self.auc.effect
        return Wilson(self.auc.value, self.auc.complement, effective, effective, df=df)

    def _size_over_tpr(self) -> Array:
        """Return 1 divided by the effective size for a range of true positive rates up to 1."""
        b, delta = self.width, self.auc.complement
        pos, neg = self.auc.pos, self.auc.neg
        some = (self.auc.value > 0) & (delta > 0)
        # k+ = delta^2 / sum(h_b x / b)^2, k- = delta^2 / (v- + delta^2 h2-)
        spread_pos, spread_neg = self.second / b**2, neg.variance + delta**2 * neg.h2
        k_pos = np.where(some & (spread_pos > 0), delta**2 / spread_pos, 0.0)
        k_neg = np.where(some & (spread_neg > 0), delta**2 / spread_neg, 0.0)
        # q = max(1, sum(h_b h x / b) / (delta h2+))
        q = np.where(some, np.maximum(self.first / (delta * b * pos.h2), 1.0), 1.0)
        # e+ = h2+ q^2 / b, e- = h2-
        pseudo = pos.h2 * q**2 / b
        size_pos = add_pseudo_rows(k_pos, self.auc.find_own_size(pos, k_pos, pseudo), q, pseudo)
        size_neg = add_pseudo_rows(k_neg, self.auc.find_own_size(neg, k_neg, neg.h2), 1.0, neg.h2)
        enough = pos.effective_rows * b >= _LEAST_POSITIVES * (1 - _TOLERANCE)
        # Ranges that end below 1 have no such interval.
        return np.where(enough & (self.high == 1), size_pos + size_neg, np.nan)

    def _size_over_fpr(self) -> tuple[Array, Array]:
        """Return 1 divided by the effective size for a range that starts at 0, and its df."""
        v_pos, v_neg = self.auc.pos.variance, self.auc.neg.variance
        spread = self.auc.value * self.auc.complement
        # k = b^2 / sum(f h^2), over the negatives inside
        k = self.width**2 / self.first
        # r = v+ / (A (1 - A)) + (k v- / (A (1 - A)) + 2 / k) / (k + 2)
        size = v_pos / spread + (k * v_neg / spread + _PSEUDO_NEGATIVES / k) / (
            k + _PSEUDO_NEGATIVES
        )
        enough = (v_pos + v_neg > 0) & (k >= _LEAST_NEGATIVES * (1 - _TOLERANCE))
        # 1 / df = (v-^2 / (k - 1) + v+^2 h2+ / (1 - h2+)) / v^2
        h2, total = self.auc.pos.h2, v_pos + v_neg
        df = 1 / ((v_neg / total) ** 2 / (k - 1) + (v_pos / total) ** 2 * h2 / (1 - h2))
        df = np.maximum(np.fmin(df, self.auc.df), 1.0)
        return np.where(enough, size, np.nan), df


def _logit_by_student(auc: Auc) -> Estimate:
    """Return limits on the logit scale, by Student's t."""
    if auc.design_variance is not None:
        return auc.estimate("logit")
    return replace(auc, df=auc.satterthwaite_df).estimate("logit")
