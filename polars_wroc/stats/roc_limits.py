"""Limits of points of ROC curves, whose threshold is also estimated, and bands of curves.

A curve is read at a given rate of one class; the rate found there belongs to the other class.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import scipy

from polars_wroc.arrays import TOLERANCE, Array, Ints, Mask
from polars_wroc.stats.contrasts import combine_margins
from polars_wroc.stats.estimates import Limits, Wilson


@dataclass(frozen=True)
class RatesAlongCurves:
    """The vertices of the ROC curves of segments: a given rate, and the other rate.

    Both rise along each curve. ``starts`` are the places of the first vertices of the curves,
    followed by the number of vertices. Where a curve has several values at a given rate,
    ``highest`` takes the highest (of true positive rates) instead of the lowest (of false positive
    rates).
    """

    given: Array
    found: Array
    starts: Ints
    highest: bool

    def look_up(self, given: Array, starts: Ints) -> Array:
        """Return the other rate at given ones, interpolated between vertices.

        ``starts`` are the places of the first rates of each curve, followed by their number.
        """
        # A vertex that differs by rounding from the given rate counts as being there.
        shift = TOLERANCE if self.highest else 0.0
        before = self._last_up_to(given + shift, starts)
        after = self._first_from(given + shift - TOLERANCE, starts)
        x0, y0 = self.given[before], self.found[before]
        x1, y1 = self.given[after], self.found[after]
        line = y0 + (given - x0) / (x1 - x0) * (y1 - y0)
        if self.highest:
            return np.where(x0 >= given - TOLERANCE, y0, line)
        return np.where(x1 <= given + TOLERANCE, y1, line)

    def find_nearest(self, given: Array, starts: Ints) -> Ints:
        """Return the place of the vertex next to each given rate.

        With ``highest`` it reaches at most the given rate, otherwise at least the given rate.
        """
        if self.highest:
            return self._last_up_to(given + TOLERANCE, starts)
        return self._first_from(given - TOLERANCE, starts)

    def _last_up_to(self, given: Array, starts: Ints) -> Ints:
        """Return the place of the last vertex with at most each rate, or the first one."""
        return self._search(given, starts, "right", -1)

    def _first_from(self, given: Array, starts: Ints) -> Ints:
        """Return the place of the first vertex with at least each rate, or the last one."""
        return self._search(given, starts, "left", 0)

    def _search(
        self, given: Array, starts: Ints, side: Literal["left", "right"], step: int
    ) -> Ints:
        found = np.empty(len(given), np.int64)
        curves = zip(pairwise(self.starts.tolist()), pairwise(starts.tolist()), strict=True)
        for (first, stop), (begin, end) in curves:
            vertices = self.given[first:stop]
            place = np.searchsorted(vertices, given[begin:end], side) + step
            found[begin:end] = first + np.clip(place, 0, len(vertices) - 1)
        return found


class RocPoints(NamedTuple):
    """Points of ROC curves: estimates of both rates, and their correlation if sampled by a design.

    ``starts`` are the places of the first points of each curve, followed by their number.
    """

    given: Wilson
    found: Wilson
    starts: Ints
    correlation: Array | float = 0.0

    @property
    def are_known(self) -> Mask:
        """Whether both rates and their effective sizes are defined."""
        return ~np.isnan(self.given.value + self.given.low + self.found.value + self.found.low)


def limit_points(
    points: RocPoints, curves: RatesAlongCurves, quantile: Array | float
) -> tuple[Limits, Mask]:
    """Return the limits of the rates found, and whether only one side has a limit.

    The margins of both rates are combined (Donner and Zou 2012, Statistical Methods in Medical
    Research 21, 347-359): the margin of the rate found, and its change along the curve between the
    limits of the given rate.
    """
    rate, own = points.found.value, points.found.limits(quantile)
    given = points.given.limits(quantile)
    # On a step of the curve, the rate at a limit may be on the other side of the estimate.
    reached_low = np.minimum(curves.look_up(given.low, points.starts), rate)
    reached_high = np.maximum(curves.look_up(given.high, points.starts), rate)
    below = combine_margins(rate - own.low, rate - reached_low, points.correlation)
    above = combine_margins(own.high - rate, reached_high - rate, points.correlation)
    low, high = rate - below, rate + above
    one_sided = _may_be_beyond_all_rows(points.given, quantile, highest=curves.highest)
    if curves.highest:
        low = np.where(one_sided, 0.0, low)
    else:
        high = np.where(one_sided, 1.0, high)
    return _clip_where(points.are_known, low, high), one_sided


def limit_curves(
    given: Array,
    starts: Ints,
    inverse_sizes: tuple[Array, Array],
    curves: RatesAlongCurves,
    error: float,
) -> Limits:
    """Return a band that holds at all rates simultaneously, with an error of at most ``error``.

    The curve is shifted by the bands of the score distributions of both classes (Campbell 1994,
    Statistics in Medicine 13, 499-508). ``inverse_sizes`` are 1 divided by the effective numbers of
    rows of the class of the given rate and of the other class.
    """
    # Each band has level sqrt(1 - a), so that both hold with probability 1 - a: by the inequality
    # of Dvoretzky, Kiefer and Wolfowitz its half-width is sqrt(log(2 / (1 - sqrt(1 - a))) / (2 n)).
    factor = np.log(2 / (1 - np.sqrt(1 - error))) / 2
    given_shift, found_shift = (np.sqrt(factor * size) for size in inverse_sizes)
    low, high = (
        curves.look_up(np.clip(given + shift, 0.0, 1.0), starts)
        for shift in (-given_shift, given_shift)
    )
    low = np.where(given - given_shift >= 0, low - found_shift, 0.0)
    high = high + found_shift
    return _clip_where(~np.isnan(high), low, high)


def _may_be_beyond_all_rows(given: Wilson, quantile: Array | float, *, highest: bool) -> Mask:
    """Return whether the true threshold of the given rate may be beyond all rows.

    That is above all negatives or, for a given true positive rate, below all positives, with a
    probability of more than half the error.
    """
    size = given.low if highest else given.low + given.slope
    inner = given.complement if highest else given.value
    # (1 - f)^n > a / 2, with the effective number of rows n = 1 / r
    return np.asarray(inner ** (1 / size) > scipy.special.ndtr(-np.asarray(quantile)))


def _clip_where(known: Mask, low: Array, high: Array) -> Limits:
    return Limits(
        np.where(known, np.clip(low, 0.0, 1.0), np.nan),
        np.where(known, np.clip(high, 0.0, 1.0), np.nan),
    )
