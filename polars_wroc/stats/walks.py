"""Ranges of cumulative sums: their distribution, location, tests and limits.

Sums of differences along the scores rise where scores are too high and fall where they are too low.
If scores are calibrated, their range is the range of Brownian motion.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import scipy

from polars_wroc.arrays import Array, Ints, Mask, cumulate
from polars_wroc.stats.solve import first_place

# Terms of both series of the distribution of a range, and the range above which the tail needs few.
_TAIL_TERMS, _BODY_TERMS, _FROM_TAIL = range(1, 5), range(3), 2.0
# Tails with quantiles, and the ends between which these ranges lie.
_LEAST_TAIL, _MOST_TAIL = 1e-16, 0.5
_LEAST_RANGE, _MOST_RANGE = 1.0, 12.0
# Half of Siegmund's (1985) correction for sums that change in steps.
_CORRECTION = 0.5826
# With fewer expected rows of a class, or fewer effective steps, there is no test.
LEAST_EXPECTED, _LEAST_STEPS = 5, 2
# Sums are equal if they differ by less, per unit of weight.
_ROUNDING = 1e-12


def range_p_value(x: Array) -> Array:
    """Return the probability that the range of Brownian motion on [0, 1] is at least x.

    One of the two series of Feller (1951), Annals of Mathematical Statistics 22, 427-432.
    """
    tail, body = np.zeros(x.shape), np.zeros(x.shape)
    for j in _TAIL_TERMS:
        # P = sum_j (-1)^(j - 1) 4 j P(|Z| > j x)
        tail += (-1) ** (j - 1) * 4 * j * 2 * scipy.special.ndtr(-j * x)
    for j in _BODY_TERMS:
        # 1 - P = sum_j (8 / x^2 + 2 / r_j) exp(-2 r_j / x^2), r_j = ((j + 1 / 2) pi)^2
        rate = ((j + 0.5) * np.pi) ** 2
        body += (8 / x**2 + 2 / rate) * np.exp(-2 * rate / x**2)
    p_value = np.where(x >= _FROM_TAIL, tail, np.where(x > 0, np.minimum(1 - body, 1.0), 1.0))
    return np.where(np.isnan(x), np.nan, p_value)


@lru_cache(maxsize=1024)
def range_quantile(tail: float) -> float:
    """Return the range that Brownian motion on [0, 1] exceeds with this probability.

    Probabilities above 0.5 count as 0.5, and below 1e-16 as 1e-16.
    """
    wanted = min(max(tail, _LEAST_TAIL), _MOST_TAIL)
    ends = np.array([_LEAST_RANGE]), np.array([_MOST_RANGE])
    return float(first_place(lambda x: range_p_value(x) <= wanted, *ends)[0])


@dataclass(frozen=True)
class WalkSteps:
    """Steps of the sums of segments, in descending order of the score.

    A step is a score or a block of scores, from ``low`` to ``high``. It adds a ``difference`` to
    the sum, with a ``variance`` under calibration, and has a ``weight``. ``starts`` are the places
    of the first steps of the segments, which may have none, followed by the number of steps.
    """

    low: Array
    high: Array
    weight: Array
    difference: Array
    variance: Array
    starts: Ints


@dataclass(frozen=True)
class WalkRanges:
    """Ranges of the sums of segments, and the intervals of scores that have them.

    ``size`` is the largest sum less the smallest one, ``total`` the sum of all steps, and
    ``variance`` its variance. ``steps`` are the numbers of steps, and ``effective`` the number of
    equal steps with the same variance. The interval is ``from_score`` to ``to_score``; the
    ``inside`` values are sums over its steps. Sums are divided by the weight of all steps, and
    variances by its square. NaN where there is no weight, or where it overflows.
    """

    size: Array
    total: Array
    variance: Array
    steps: Array
    effective: Array
    from_score: Array
    to_score: Array
    difference_inside: Array
    weight_inside: Array
    variance_inside: Array


def find_ranges(steps: WalkSteps) -> WalkRanges:
    """Return the ranges of segments.

    If several intervals have the same range, the shortest is taken, then the one with the lowest
    scores.
    """
    number = np.diff(steps.starts)
    filled = np.flatnonzero(number > 0)
    found = {each.name: np.full(len(number), np.nan) for each in fields(WalkRanges)}
    found["steps"] = number.astype(np.float64)
    if len(filled):
        known = _find_ranges_of_steps(steps, steps.starts[:-1][filled])
        for name, values in known.items():
            found[name][filled] = values
    return WalkRanges(**found)


def _find_ranges_of_steps(steps: WalkSteps, starts: Ints) -> dict[str, Array]:
    """Return the ranges of segments that have steps, beginning at the given places."""
    number = np.diff(starts, append=len(steps.weight))
    total = np.add.reduceat(steps.weight, starts)
    total = np.where(np.isfinite(total) & np.isfinite(1 / total), total, np.nan)

    def spread(values: Array, each: Ints) -> Array:
        """Return repeated values of segments, or a single segment's value for broadcasting."""
        return values if len(values) == 1 else np.repeat(values, each)

    scale = spread(total, number)
    difference, variance = steps.difference / scale, steps.variance / scale / scale
    whole_variance = np.add.reduceat(variance, starts)
    # 1 / m = sum_i (v_i / V)^2
    share = variance / spread(whole_variance, number)
    # The sums begin at 0 before the first step of a segment.
    ends = np.insert(cumulate(difference, starts), starts, 0.0)
    first = starts + np.arange(len(starts))
    high, low = np.maximum.reduceat(ends, first), np.minimum.reduceat(ends, first)
    found = {
        "size": high - low,
        "total": np.add.reduceat(difference, starts),
        "variance": whole_variance,
        "effective": 1 / np.add.reduceat(share * share, starts),
    }
    is_high = ends >= spread(high - _ROUNDING, number + 1)
    extremes = np.flatnonzero(is_high | (ends <= spread(low + _ROUNDING, number + 1)))
    segments = np.searchsorted(first, extremes, side="right") - 1
    before, after, segment = _pair_extremes(extremes, is_high[extremes], segments)
    # The steps after one extreme up to the other; a segment has one more sum than steps.
    first_step, last_step = before - segment, after - segment - 1
    from_score, to_score = steps.low[last_step], steps.high[first_step]
    picked = _pick_nearest(segment, to_score - from_score, from_score)
    of_segment = segment[picked]
    first_step, last_step = first_step[picked], last_step[picked]

    def put(values: Array) -> Array:
        placed = np.full(len(starts), np.nan)
        placed[of_segment] = values
        return placed

    def sum_inside(values: Array) -> Array:
        # The places after the intervals too, except one at the very end
        places = np.stack([first_step, last_step + 1], axis=1).ravel()
        return put(np.add.reduceat(values, places[places < len(values)])[::2])

    return found | {
        "from_score": put(from_score[picked]),
        "to_score": put(to_score[picked]),
        "difference_inside": put(ends[after][picked] - ends[before][picked]),
        "weight_inside": sum_inside(steps.weight) / total,
        "variance_inside": sum_inside(variance),
    }


def _pair_extremes(places: Ints, are_high: Mask, segment: Ints) -> tuple[Ints, Ints, Ints]:
    """Return neighboring high and low extremes of a segment, and the segment.

    ``places`` are the places of all extremes.
    """
    differ = (are_high[:-1] != are_high[1:]) & (segment[:-1] == segment[1:])
    return places[:-1][differ], places[1:][differ], segment[1:][differ]


def _pick_nearest(segment: Ints, width: Array, from_score: Array) -> Ints:
    """Return the place of the shortest interval of each segment that has one."""
    order = np.lexsort((from_score, width, segment))
    _, firsts = np.unique(segment[order], return_index=True)
    return order[firsts]


@dataclass(frozen=True)
class RangeTests:
    """Tests that the sums of segments are random walks, and the limits of an interval.

    ``effect`` is the design effect, and ``expected`` the fewest expected effective rows of a class.
    ``limits_variance`` is the variance for limits.
    """

    ranges: WalkRanges
    effect: Array
    expected: Array
    limits_variance: Array

    @property
    def is_known(self) -> Mask:
        """Whether the variance of the sums is known."""
        return (self.ranges.variance > 0) & ~np.isnan(self.expected)

    @property
    def p_value(self) -> Array:
        """The p-values; NaN without a test, because of too few rows or steps."""
        ranges = self.ranges
        # x = R / sqrt(V d) + 0.5826 / sqrt(m d)
        x = ranges.size / np.sqrt(ranges.variance * self.effect)
        x += _CORRECTION / np.sqrt(ranges.effective * self.effect)
        enough = ~self.has_few_steps & (self.expected >= LEAST_EXPECTED)
        return np.where(self.is_known & enough, range_p_value(x), np.nan)

    @property
    def has_few_steps(self) -> Mask:
        """Whether there are too few effective steps for a test."""
        return ~(self.ranges.effective >= _LEAST_STEPS * (1 - _ROUNDING))

    @property
    def value(self) -> Array:
        """The mean difference in the interval."""
        return self.ranges.difference_inside / self.ranges.weight_inside

    @property
    def unit(self) -> Array:
        """The margin of the mean difference for a range of 1; NaN without a test."""
        margin = np.sqrt(self.limits_variance * self.effect) / self.ranges.weight_inside
        return np.where(np.isnan(self.p_value), np.nan, margin)
