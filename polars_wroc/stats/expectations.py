"""Metrics implied by the probabilities of rows, and their derivatives by the labels.

A row of weight w and probability p counts as a positive of weight w p and a negative of weight
w (1 - p). If labels are independent, the variance of a metric is the sum of w^2 p (1 - p) h^2,
where h is the derivative of the metric by the label of the row, divided by its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array

# Below this proportion of all pairs, pairs of different rows are a rounding error.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class ExpectedAuc:
    """The expected AUC of segments (van Klaveren et al. 2016, Stat. Med. 35, 4136-4152).

    ``positives`` and ``negatives`` are the expected weights of both classes. ``right`` is the
    weight of correctly ranked pairs of a positive and a negative, ties counting half; ``own`` is
    the weight of the pairs of a row with itself, which do not count.
    """

    positives: Array
    negatives: Array
    right: Array
    own: Array

    @property
    def with_own_pairs(self) -> Array:
        """The AUC of all pairs, where a row is tied with itself."""
        return self.right / self.positives / self.negatives

    @property
    def value(self) -> Array:
        """The AUC of all pairs of different rows; NaN without any."""
        # A = (sum w_i p_i w_j (1 - p_j) (s_i > s_j) - o / 2) / (P N - o), o = sum w^2 p (1 - p)
        own = self.own / self.positives / self.negatives
        others = np.where(1 - own > _ROUNDING, 1 - own, np.nan)
        return (self.with_own_pairs - own / 2) / others

    def slopes(self, lower: Array, spread: Callable[[Array], Array]) -> Array:
        """Return the derivative h by each row's label, given the weights at lower scores.

        Weights at the same score count half. ``spread`` repeats values of segments for their rows.
        """
        p, n, a = self.positives, self.negatives, self.with_own_pairs
        # h = (B / N - A) / P - (1 - C / P - A) / N, where B and C are lower negatives and positives
        #   = (B + C) / (P N) - (A / P + (1 - A) / N)
        return lower * spread(1 / p / n) - spread(a / p + (1 - a) / n)


@dataclass(frozen=True)
class LabelSlopes:
    """Derivatives of a metric of decisions by the labels of rows, divided by their weight."""

    selected: Array
    rejected: Array


def rate_slopes(cells: Array, counted: Sequence[int], others: Sequence[int]) -> LabelSlopes:
    """Return the derivatives of the share of some cells in these and others.

    Cells are tp, fp, fn, tn; a label moves a row from a negative cell to a positive one.
    """
    whole = cells[[*counted, *others]].sum(axis=0)
    rate = cells[[*counted]].sum(axis=0) / whole
    # d(C / (C + O)) = (dC - r (dC + dO)) / (C + O)
    slopes = np.zeros_like(cells)
    slopes[[*counted]] = (1 - rate) / whole
    slopes[[*others]] = -rate / whole
    tp, fp, fn, tn = slopes
    return LabelSlopes(tp - fp, fn - tn)


def net_benefit_slopes(cells: Array, odds: float) -> LabelSlopes:
    """Return the derivatives of the net benefit: tp less the odds times fp, per weight."""
    total = cells.sum(axis=0)
    return LabelSlopes((1 + odds) / total, np.zeros_like(total))
