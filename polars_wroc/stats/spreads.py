"""Spreads: the largest differences between the values of several groups.

The largest of many differences is large by chance. Its limits are therefore computed for all pairs
of groups, at a quantile that holds for all pairs together (Hayter 1984, The Annals of Statistics
12, 61-75).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.contrasts import find_gap_limits, find_ratio_limits
from polars_wroc.stats.estimates import Limits, Wilson
from polars_wroc.stats.levels import Level, welch_df

# With more groups than this, the ends of all limits are compared instead of every pair.
MOST_IN_PAIRS = 200
# Equal AUCs and weighted rates of different rows may be rounded differently.
_ROUNDING = 1e-12


class Bounded(NamedTuple):
    """A number with its confidence limits; NaN is undefined."""

    value: float
    low: float
    high: float


_Ends: TypeAlias = tuple[float, float]
_UNDEFINED = Bounded(np.nan, np.nan, np.nan)


class Spread(NamedTuple):
    """The places of the groups with the largest and the smallest value, and their distance.

    The places are -1 where fewer than two groups have a value. The limits of the ``difference`` and
    of the ``ratio`` hold for all pairs of groups.
    """

    highest: int
    lowest: int
    difference: Bounded
    ratio: Bounded


@dataclass(frozen=True)
class ComparedGroups:
    """Values of groups that are all compared with each other.

    With ``variances``, a pair of groups has Welch's degrees of freedom, otherwise the smaller of
    both.
    """

    estimate: Wilson
    variances: Array | None = None

    @property
    def number(self) -> int:
        """The number of groups."""
        return self.estimate.value.size

    @property
    def df(self) -> Array:
        """The degrees of freedom of each group."""
        return np.broadcast_to(np.asarray(self.estimate.df, dtype=float), self.number)

    def pair_df(self, one: Ints, other: Ints) -> Array:
        """Return the degrees of freedom of the differences of two groups."""
        df = self.df
        if self.variances is None:
            return np.minimum(df[one], df[other])
        return welch_df(self.variances[one], df[one], self.variances[other], df[other])


def find_spread(groups: ComparedGroups, level: Level, *, metrics: int = 1) -> Spread:
    """Return the largest difference and the smallest ratio of groups that all have a value.

    ``metrics`` is the number of metrics that share the error of the limits. Among equal values the
    first is the largest and the last the smallest, so the two groups differ.
    """
    value = groups.estimate.value
    if groups.number < 2:  # noqa: PLR2004
        return Spread(-1, -1, _UNDEFINED, _UNDEFINED)
    if groups.number <= MOST_IN_PAIRS:
        difference, ratio = _limit_pairs(groups, level, metrics)
    else:
        difference, ratio = _limit_ends(groups, level, metrics)
    highest = int(np.flatnonzero(value >= value.max() - _ROUNDING)[0])
    lowest = int(np.flatnonzero(value <= value.min() + _ROUNDING)[-1])
    high, low = float(value[highest]), float(value[lowest])
    # There are no limits unless every group has limits, and no ratios to 0.
    if high == 0:
        return Spread(highest, lowest, Bounded(0.0, *difference), _UNDEFINED)
    return Spread(highest, lowest, Bounded(high - low, *difference), Bounded(low / high, *ratio))


def _limit_pairs(groups: ComparedGroups, level: Level, metrics: int) -> tuple[_Ends, _Ends]:
    """Return the limits of the largest difference and smallest ratio, from those of pairs."""
    pairs = np.array(np.triu_indices(groups.number, 1))
    # Both sides of a pair have the same quantile: -stdtrit(df, Phi(-z_K))
    quantile = level.joint_quantile(groups.number, groups.pair_df(*pairs), metrics=metrics)
    # A pair has two differences, one in each order.
    own = groups.estimate.at(pairs)
    value, limits = own.value, own.limits(quantile)
    other, other_limits = value[::-1], Limits(limits.low[::-1], limits.high[::-1])
    difference = find_gap_limits(value, limits, other, other_limits)
    ratio = find_ratio_limits(value, limits, other, other_limits)
    return (
        (float(difference.low.max()), float(difference.high.max())),
        (float(ratio.low.min()), float(ratio.high.min())),
    )


def _limit_ends(groups: ComparedGroups, level: Level, metrics: int) -> tuple[_Ends, _Ends]:
    """Return limits that are at least as wide as the limits from all pairs of groups."""
    low, high = groups.estimate.limits(
        level.joint_quantile(groups.number, groups.df, metrics=metrics)
    )
    difference = float(low.max() - high.min()), float(high.max() - low.min())
    return difference, (float(low.min() / high.max()), float(high.min() / low.max()))


def equal_groups(groups: ComparedGroups, rows: Array, *, by_design: bool) -> float:
    """Return the p-value of the test that all groups have the same rate, by chi-squared.

    ``rows`` are the groups' effective numbers of rows. With a design, the statistic is divided by
    its degrees of freedom and compared with the F distribution (Rao and Scott 1992, Biometrics 48,
    577-585), with the denominator degrees of freedom of the group with the most. NaN for fewer than
    two groups, or where one has no effective size.
    """
    value, df = groups.estimate.value, groups.number - 1
    if df < 1:
        return np.nan
    # X^2 = sum_g n_g (p_g - p)^2 / (p (1 - p)) with p = sum_g n_g p_g / sum_g n_g
    mean = (rows * value).sum() / rows.sum()
    spread = mean * (1 - mean)
    # Without variance all groups are equal.
    statistic = 0.0 if spread == 0 else (rows * (value - mean) ** 2).sum() / spread
    if by_design:
        return float(scipy.special.fdtrc(df, np.fmax.reduce(groups.df), statistic / df))
    return float(scipy.special.chdtrc(df, statistic))
