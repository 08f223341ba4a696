"""Tests and limits of sums that few or heavy rows make skewed, of many at once.

All are functions of arrays, since the steps of their solutions are too many for plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from polars_wroc.plans.formulas import Values
from polars_wroc.stats.distributions import (
    student_p_value,
    student_score,
    two_sided_p_value,
    upper_quantile,
)

Array: TypeAlias = NDArray[np.float64]

# Below this skewness the distribution is the normal one.
_LEAST_SKEWNESS = 1e-3
# From this shape on both tails are integrals of a smooth density; below it the lower one is a
# series of at most so many terms.
_LARGE_SHAPE, _MOST_TERMS = 100.0, 500
# So many integrals are computed at once, for the memory.
_MOST_AT_ONCE = 10_000
_NODES, _WEIGHTS = (each / 2 for each in np.polynomial.legendre.leggauss(64))
_log_gamma: Callable[..., Array] = np.vectorize(math.lgamma, otypes=[float])


def computed(formula: Callable[..., Any], *arrays: Array) -> Array:
    """Compute a formula of columns from arrays; null is NaN."""
    values: Values = formula(*(cast("Any", Values(each)) for each in arrays))
    return np.where(values.is_known(), values.array, np.nan)


def pearson_tail(z: Array, skewness: Array) -> Array:
    """Probability that a standardized variable of Pearson's type III exceeds ``z``.

    It is a gamma variable with that skewness, or the negative of one; the normal one without any.
    """
    z, skewness = np.broadcast_arrays(np.asarray(z, float), np.asarray(skewness, float))
    tail = computed(two_sided_p_value, z) / 2
    tail = np.where(z < 0, 1 - tail, tail)
    skewed = np.abs(skewness) >= _LEAST_SKEWNESS
    shape, upper = 4 / skewness[skewed] ** 2, skewness[skewed] > 0
    at = np.maximum(shape + np.where(upper, 1, -1) * z[skewed] * np.sqrt(shape), 0.0)
    tail[skewed] = _gamma_tail(shape, at, upper)
    return tail


def _gamma_tail(shape: Array, at: Array, upper: NDArray[np.bool_]) -> Array:
    """Probability that a gamma variable is above a number, where ``upper``, or else below it.

    The smaller tail is computed with its digits. The relative error is below 1e-10.
    """
    if shape.size > _MOST_AT_ONCE:
        parts = range(0, shape.size, _MOST_AT_ONCE)
        of = (slice(first, first + _MOST_AT_ONCE) for first in parts)
        return np.concatenate([_gamma_tail(shape[part], at[part], upper[part]) for part in of])
    large = shape >= _LARGE_SHAPE
    above = at >= np.where(large, shape, shape + 1)
    log_scale = np.log(shape / (2 * math.pi)) / 2 - _stirling_rest(shape)

    def density(place: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            power = shape * np.log(place / shape) - np.log(place)
        return np.exp(shape - place + power + log_scale)

    # Ten standard deviations beyond, and more where the tail is exponential.
    end = np.where(above, at + 10 * np.sqrt(shape) + 40, np.maximum(at - 10 * np.sqrt(shape), 0))
    places = at + (end - at) * (_NODES[:, None] + 0.5)
    tail = np.where(at == end, 0.0, (_WEIGHTS @ density(places)) * abs(end - at))
    series = ~large & ~above
    if series.any():
        own = np.where(at > 0, density(at) * at / shape, 0.0)
        tail[series] = own[series] * _series(shape[series], at[series])
    tail = np.clip(tail, 0.0, 1.0)
    return np.where(above == upper, tail, 1 - tail)


def _series(shape: Array, at: Array) -> Array:
    """Add up the powers in the lower tail of a gamma distribution."""
    total = term = np.ones_like(shape)
    for number in range(1, _MOST_TERMS):
        term = term * at / (shape + number)
        total = total + term
        if (term < 1e-17 * total).all():
            break
    return total


def _stirling_rest(shape: Array) -> Array:
    """Return the logarithm of the gamma function less that of Stirling's formula."""
    rest = 1 / (12 * shape) - 1 / (360 * shape**3)
    small = shape < _LARGE_SHAPE
    few = shape[small]
    rest[small] = _log_gamma(few) - (few - 0.5) * np.log(few) + few - math.log(2 * math.pi) / 2
    return rest


def upper_tail(z: Array, skewness: Array, least: Array) -> Array:
    """Probability of a sum at least as large.

    In the direction of the short tail the skewness is the ``least`` one: a segment without a single
    event would be at the very end of the distribution.
    """
    return pearson_tail(z, np.where(skewness >= 0, skewness, least))


def lower_tail(z: Array, skewness: Array, least: Array) -> Array:
    """Probability of a sum at least as small."""
    return upper_tail(-z, -skewness, -least)


def student_tail(tail: Array, df: Array) -> Array:
    """Probability that Student's t exceeds the normal quantile of an upper tail, at most 0.5."""
    quantile = computed(upper_quantile, tail)
    return computed(student_p_value, quantile, df) / 2


def normal_tail(tail: Array, df: Array) -> Array:
    """Probability that a normal variable exceeds Student's quantile of an upper tail."""
    quantile = computed(student_score, computed(upper_quantile, tail), df)
    return computed(two_sided_p_value, quantile) / 2


# Of larger hypergeometric variances the skewed distribution has the same tails.
MOST_EXACT = 1000.0


def exact_tail(both: Array, rows: Array, events: Array, total: Array) -> Array:
    """Upper tail of the hypergeometric distribution with half the probability of what is observed.

    Of ``total`` rows some are in the segment, some have the event, and ``both``.
    """

    def log_choose(of: Array, number: Array) -> Array:
        return _log_gamma(of + 1) - _log_gamma(number + 1) - _log_gamma(of - number + 1)

    choices = log_choose(events, both) + log_choose(total - events, rows - both)
    first = np.exp(choices - log_choose(total, rows))
    tail, term, at = np.full_like(first, 0.5), np.ones_like(first), both.copy()
    while (term > 1e-17 * tail).any():
        left = (events - at) * (rows - at)
        term = term * left / ((at + 1) * (total - events - rows + at + 1))
        tail, at = tail + term, at + 1
    return first * tail


_LEAST_RATE = 1e-15
# Halvings of a range that has the solution.
_STEPS = 42


def _solved(low: Array, high: Array, is_beyond: Callable[[Array], NDArray[np.bool_]]) -> Array:
    """Find where a condition that holds at the high end begins to."""
    for _ in range(_STEPS if low.size else 0):
        middle = (low + high) / 2
        beyond = is_beyond(middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return (low + high) / 2


def tail_quantiles(skewness: Array, least: Array, tail: Array) -> tuple[Array, Array]:
    """Numbers of standard errors below and above 0 at which the tails have a probability."""
    zero, most = np.zeros_like(skewness), np.full_like(skewness, 1e3)
    return (
        _solved(zero, most, lambda z: upper_tail(z, skewness, least) <= tail),
        _solved(zero, most, lambda z: lower_tail(-z, skewness, least) <= tail),
    )


def rate_limits(
    rate: Array, sums: tuple[Array, Array, Array], tail: Array, effect: Array
) -> tuple[Array, Array]:
    """Limits of a rate: the rates at which it would be in either tail, of a probability.

    ``sums`` are those of the weights, of their squares and of their cubes; the ``effect`` of a
    design is how many times its variance is larger.
    """
    weight, squares, cubes = sums

    def parts(true: Array) -> tuple[Array, Array, Array]:
        # Without an event, or with nothing else, the solution is at the end of the range.
        true = np.clip(true, _LEAST_RATE, 1 - _LEAST_RATE)
        spread = np.sqrt(true * (1 - true))
        z = (rate - true) * weight / np.sqrt(squares * effect) / spread
        skewness, of_cubes = (1 - 2 * true) / spread, cubes / squares**1.5
        least = np.minimum(of_cubes, np.sqrt(squares) / weight)
        return z, skewness * of_cubes, skewness * least

    zero, one = np.zeros_like(rate), np.ones_like(rate)
    low = _solved(zero, rate, lambda true: upper_tail(*parts(true)) > tail)
    high = _solved(rate, one, lambda true: lower_tail(*parts(true)) <= tail)
    return low, high
