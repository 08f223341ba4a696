"""Random multiples of weights for resampling, and quantiles of the resampled metrics.

Random numbers come from the hash of a row's identity, so a row has the same numbers in all groups
and for all scores, and a seed repeats them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.designs import Units

# The distribution of the multipliers of weights, with mean 1.
Multiplier: TypeAlias = Literal["poisson", "gamma"]

# A Poisson variable of mean 1 exceeds this less than once in 10**12 draws.
_LARGEST_POISSON = 14
# Hashes have 64 bits.
_STEP = 2.0**-64


def seeds(seed: int) -> Iterator[int]:
    """Yield seeds for replicates, without end."""
    draws = random.Random(seed)  # noqa: S311  (nothing to keep secret)
    while True:
        yield draws.getrandbits(63)


def hash_evenly(identity: pl.Series, seed: int) -> Array:
    """Return a pseudo-random number from 0 to 1 for each identity: its hash."""
    # NumPy takes five times as long as Polars to make floats of whole numbers without a sign.
    return np.asarray(identity.hash(seed).cast(pl.Float64).to_numpy() * _STEP)


def poisson() -> list[float]:
    """Return the distribution function of the Poisson distribution of mean 1."""
    return list(accumulate(math.exp(-1) / math.factorial(k) for k in range(_LARGEST_POISSON)))


def count_poisson(share: Array) -> NDArray[np.int8]:
    """Return the quantiles of the Poisson distribution of mean 1 at some shares."""
    times = np.zeros(len(share), np.int8)
    # Faster than a search, since few values are above the first limits.
    for limit in poisson():
        above = share > limit
        if not above.any():
            break
        times += above
    return times


def draw_exponential(share: Array) -> Array:
    """Return the quantiles of the exponential distribution of mean 1, at 1 less each share."""
    return np.asarray(-np.log(np.maximum(share, _STEP)))


MULTIPLIERS: dict[Multiplier, Callable[[Array], NDArray[Any]]] = {
    "poisson": count_poisson,
    "gamma": draw_exponential,
}


def count_draws(units: Units) -> Array:
    """Return the number of draws from each stratum: one less than its units, at least one."""
    return np.maximum(units.size - 1, 1)


def rescale_units(units: Units, order: Ints, share: Array) -> Array:
    """Return the multipliers of weights if units are drawn with replacement.

    In ``order``, the units of a stratum are contiguous. There is a random ``share`` for each draw
    from each stratum (Rao, Wu and Yue 1992, Survey Methodology 18, 209-217).
    """
    n = units.size
    stratum = np.repeat(np.arange(len(n)), count_draws(units).astype(np.int64))
    first = np.append(0, np.cumsum(n)[:-1]).astype(np.int64)
    place = np.minimum(np.floor(share * n[stratum]), n[stratum] - 1).astype(np.int64)
    drawn = order[first[stratum] + place]
    # Each of n - 1 draws counts n / (n - 1) times.
    times = n / np.maximum(n - 1, 1)
    return np.bincount(drawn, times[stratum], len(order)).astype(np.float64)


def find_quantile(values: Array, share: float) -> Array:
    """Return a quantile along the first axis, between two values; NaN are left out."""
    ascending = np.sort(values, axis=0)
    number = (~np.isnan(values)).sum(axis=0)
    place = share * np.maximum(number - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.ceil(place).astype(np.int64)
    low, high = (
        np.take_along_axis(ascending, each[np.newaxis], axis=0)[0] for each in (below, above)
    )
    return np.asarray(low + (high - low) * (place - below))


def find_standard_deviation(values: Array) -> Array:
    """Return the standard deviation along the first axis; NaN are left out."""
    is_known = ~np.isnan(values)
    number = is_known.sum(axis=0)
    known = np.where(is_known, values, 0.0)
    away = np.where(is_known, values - known.sum(axis=0) / number, 0.0)
    variance = (away**2).sum(axis=0) / (number - 1)
    return np.where(number > 1, np.sqrt(variance), np.nan)
