"""Limits of rates in a population with another prevalence, from the limits of both classes.

Positives and negatives are two samples, whose rates are the same in any population.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.stats.contrasts import find_gap_limits, find_ratio_limits
from polars_wroc.stats.estimates import Limits


class LimitedRate(NamedTuple):
    """A rate and its confidence limits."""

    value: Array
    limits: Limits

    @property
    def complement(self) -> LimitedRate:
        """1 less the rate."""
        low, high = self.limits
        return LimitedRate(1 - self.value, Limits(1 - high, 1 - low))


def predictive_limits(one: LimitedRate, other: LimitedRate, odds: float) -> Limits:
    """Return the limits of the share of one class among all rows selected.

    ``one`` and ``other`` are the rates at which both classes are selected, and ``odds`` are the
    odds of the first class. NaN where no row of either class is selected.
    """
    # P = 1 / (1 + R / odds) with the ratio R of the other rate to the one
    low, high = find_ratio_limits(other.value, other.limits, one.value, one.limits)
    known = (one.value > 0) | (other.value > 0)
    return Limits(*(np.where(known, 1 / (1 + end / odds), np.nan) for end in (high, low)))


def mixture_limits(one: LimitedRate, other: LimitedRate, share: float) -> Limits:
    """Return the limits of the mean of two rates; the first has the weight ``share``."""
    # share p - (share - 1) q, as a difference of independent estimates
    rest = share - 1
    return find_gap_limits(
        share * one.value,
        Limits(share * one.limits.low, share * one.limits.high),
        rest * other.value,
        Limits(rest * other.limits.high, rest * other.limits.low),
    )
