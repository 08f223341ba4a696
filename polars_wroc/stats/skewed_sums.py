"""Tests and limits of many sums at once, which few or heavy rows make skewed."""

from __future__ import annotations

import numpy as np
import scipy

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import student_quantile
from polars_wroc.stats.solve import first_place

# Below this skewness the normal distribution is used.
_LEAST_SKEWNESS = 1e-3
# Tails are searched within this many standard errors.
_MOST_ERRORS = 1e3
# Rates closer to 0 or 1 count as 0 or 1.
_LEAST_RATE = 1e-15
# With larger hypergeometric variances the skewed distribution is accurate enough.
MOST_EXACT = 1000.0
# Smaller terms do not change a sum.
_NEGLIGIBLE = 1e-17


def pearson_tail(z: Array, skewness: Array) -> Array:
    """Return the probability that a standardized variable of Pearson's type III exceeds ``z``.

    It is a gamma variable with that skewness or its negative, and normal without skewness.
    """
    z, skewness = np.broadcast_arrays(z, skewness)
    is_skewed = np.abs(skewness) >= _LEAST_SKEWNESS
    # A gamma variable with shape k has the mean k, the variance k and the skewness 2 / sqrt(k).
    shape = 4 / np.where(is_skewed, skewness, 1.0) ** 2
    place = np.maximum(shape + np.sign(skewness) * z * np.sqrt(shape), 0.0)
    upper, lower = scipy.special.gammaincc(shape, place), scipy.special.gammainc(shape, place)
    gamma = np.where(skewness > 0, upper, lower)
    return np.asarray(np.where(is_skewed, gamma, scipy.special.ndtr(-z)))


def upper_tail(z: Array, skewness: Array, least: Array) -> Array:
    """Return the probability of a sum at least as large.

    In the direction of the short tail the skewness is ``least``, since a segment without a single
    event would otherwise be at the very end of the distribution.
    """
    return pearson_tail(z, np.where(skewness >= 0, skewness, least))


def lower_tail(z: Array, skewness: Array, least: Array) -> Array:
    """Return the probability of a sum at least as small."""
    return upper_tail(-z, -skewness, -least)


def student_tail(tail: Array, df: Array) -> Array:
    """Return the probability that Student's t exceeds the normal quantile of an upper tail."""
    return np.asarray(scipy.special.stdtr(df, scipy.special.ndtri(tail)))


def normal_tail(tail: Array, df: Array) -> Array:
    """Return the probability that a normal variable exceeds Student's quantile of a tail."""
    return np.asarray(scipy.special.ndtr(-student_quantile(-scipy.special.ndtri(tail), df)))


def exact_tail(both: Array, rows: Array, events: Array, total: Array) -> Array:
    """Return the mid-p upper tail of the hypergeometric distribution.

    Of the ``total`` rows some are in the segment, some have the event, and ``both`` counts both.
    """
    choices = _log_choose(events, both) + _log_choose(total - events, rows - both)
    first = np.exp(choices - _log_choose(total, rows))
    tail, term, at = np.full_like(first, 0.5), np.ones_like(first), both.copy()
    while (term > _NEGLIGIBLE * tail).any():
        # P(k + 1) / P(k) = (K - k) (n - k) / ((k + 1) (N - K - n + k + 1))
        left = (events - at) * (rows - at)
        term = term * left / ((at + 1) * (total - events - rows + at + 1))
        tail, at = tail + term, at + 1
    return np.asarray(first * tail)


def _log_choose(all_rows: Array, taken: Array) -> Array:
    """Return the logarithm of the number of ways to take some rows."""
    return np.asarray(
        scipy.special.gammaln(all_rows + 1)
        - scipy.special.gammaln(taken + 1)
        - scipy.special.gammaln(all_rows - taken + 1)
    )


def tail_quantiles(skewness: Array, least: Array, tail: Array) -> tuple[Array, Array]:
    """Return the distances from 0, in standard errors, of tails with a probability."""
    zero, most = np.zeros_like(skewness), np.full_like(skewness, _MOST_ERRORS)
    return (
        first_place(lambda z: upper_tail(z, skewness, least) <= tail, zero, most),
        first_place(lambda z: lower_tail(-z, skewness, least) <= tail, zero, most),
    )


def limit_rates(
    rate: Array, weight: Array, squares: Array, cubes: Array, tail: Array, effect: Array
) -> Limits:
    """Return the limits of rates, at which the observed rate would be in either tail.

    ``effect`` is the design effect: the factor of the variance of the rate.
    """

    def standardize(true: Array) -> tuple[Array, Array, Array]:
        # Without an event, or with events only, the solution is at the end of the range.
        true = np.clip(true, _LEAST_RATE, 1 - _LEAST_RATE)
        spread = np.sqrt(true * (1 - true))
        z = (rate - true) * weight / np.sqrt(squares * effect) / spread
        skewness, of_cubes = (1 - 2 * true) / spread, cubes / squares**1.5
        least = np.minimum(of_cubes, np.sqrt(squares) / weight)
        return z, skewness * of_cubes, skewness * least

    def is_above_low(true: Array) -> Mask:
        return np.asarray(upper_tail(*standardize(true)) > tail)

    def is_above_high(true: Array) -> Mask:
        return np.asarray(lower_tail(*standardize(true)) <= tail)

    low = first_place(is_above_low, np.zeros_like(rate), rate)
    return Limits(low, first_place(is_above_high, rate, np.ones_like(rate)))
