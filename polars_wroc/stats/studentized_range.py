"""Quantiles for statements about all pairs of several groups at once (Tukey, Kramer)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import polars as pl

from polars_wroc.stats.interpolation import interpolate, polynomial

# The quantile is known for so many groups.
MOST_GROUPS = 10_000
# Its logarithm is smooth in this power of the number of groups.
_POWER = -0.25
_FEWEST, _MOST = 2**_POWER, MOST_GROUPS**_POWER
# Normal values that the integral is taken over.
_LEAST_NORMAL, _STEP, _STEPS = -7.0, 0.1, 160
_NORMALS = [_LEAST_NORMAL + _STEP * i for i in range(_STEPS + 1)]
_SQRT_2 = math.sqrt(2)
# The last step to a solution, whose error is far smaller.
_LAST_STEP = 1e-10


def simultaneous_quantile(level: float, groups: pl.Expr) -> pl.Expr:
    """Quantile at which limits of each group give limits of all differences between them.

    The quantile of the studentised range with infinite degrees of freedom, divided by the square
    root of 2: for two groups the two-sided normal quantile. The relative error is below 2e-9 for
    levels from 0.5 on, and below 2e-8 for all. Null for one group, and for more than `MOST_GROUPS`.
    """
    known = groups.is_between(2, MOST_GROUPS)
    position = (2 * groups.cast(pl.Float64) ** _POWER - _FEWEST - _MOST) / (_MOST - _FEWEST)
    return pl.when(known).then(polynomial(_coefficients(level), position).exp())


@lru_cache(maxsize=64)
def _coefficients(level: float) -> tuple[float, ...]:
    def log_quantile(position: float) -> float:
        powered = (_FEWEST + _MOST + position * (_MOST - _FEWEST)) / 2
        return math.log(quantile_of_pairs(level, powered ** (1 / _POWER)))

    return interpolate(log_quantile)


def quantile_of_pairs(level: float, groups: float) -> float:
    """Solve for the quantile, which lies between that of one pair and Bonferroni's of all pairs."""
    alpha, normal = 1 - level, NormalDist()
    low = -normal.inv_cdf(alpha / 2)
    high = -normal.inv_cdf(alpha / (groups * (groups - 1)))

    def excess(quantile: float) -> float:
        # On the logarithm, where it is nearly a straight line.
        return math.log(alpha / _probability_beyond(quantile, groups))

    return _root(excess, low * (1 - 1e-3), high * (1 + 1e-3))


def _probability_beyond(quantile: float, groups: float) -> float:
    """Probability that the largest and the smallest of standard normal values are far apart.

    That is, by more than the quantile times the standard deviation of the difference of two.
    """
    within = 0.0
    for value, density, tail in _density_and_tail():
        # The others are above the largest value, or farther below it than allowed.
        outside = tail + math.erfc(quantile - value / _SQRT_2) / 2
        if outside < 1:
            within += density * math.exp((groups - 1) * math.log1p(-outside))
    return 1 - groups * within


@lru_cache(maxsize=1)
def _density_and_tail() -> list[tuple[float, float, float]]:
    scale = _STEP / math.sqrt(2 * math.pi)
    return [
        (value, scale * math.exp(-value * value / 2), math.erfc(value / _SQRT_2) / 2)
        for value in _NORMALS
    ]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where a rising function is 0, by false position with halved weights (Illinois)."""
    at_low, at_high = function(low), function(high)
    before, place, side = low, high, 0
    while abs(place - before) > _LAST_STEP * place:
        before, place = place, (low * at_high - high * at_low) / (at_high - at_low)
        value = function(place)
        if value > 0:
            high, at_high = place, value
            at_low /= 2 if side > 0 else 1
        else:
            low, at_low = place, value
            at_high /= 2 if side < 0 else 1
        side = 1 if value > 0 else -1
    return place
