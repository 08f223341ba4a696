"""Search for the place at which a condition begins to hold, for many rows at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from polars_wroc.arrays import Array, Mask

# Doubles have 53 binary digits.
_DIGITS = 60
# A few places take as long as one, so a step tries this many and leaves a sixteenth of an interval.
_TRIED, _FEW_ROWS = 15, 1000


def first_place(
    holds: Callable[[Array], Mask], low: Array, high: Array, *, digits: int = _DIGITS
) -> Array:
    """Return the place of each row from which on a condition holds.

    The condition is evaluated at several places of each row at once, along a first axis, but never
    at ``low`` and ``high``, between which the place lies. A row whose condition holds nowhere in
    between has the place ``high``. ``digits`` are the binary digits of the result; the default is
    all of them.
    """
    number = _TRIED if low.size <= _FEW_ROWS else 1
    parts = np.arange(1, number + 1).reshape(-1, *np.ones_like(low.shape)) / (number + 1)
    rows = tuple(np.indices(low.shape))
    # Both ends of an interval, and the places in between; at the high end the condition holds.
    places = np.empty((number + 2, *low.shape))
    does_hold = np.ones((number + 1, *low.shape), dtype=bool)
    places[0], places[-1] = low, high
    for _ in range(math.ceil(digits / math.log2(number + 1))):
        places[1:-1] = places[0] + parts * (places[-1] - places[0])
        does_hold[:-1] = holds(places[1:-1])
        first = does_hold.argmax(axis=0)
        places[0], places[-1] = places[(first, *rows)], places[(first + 1, *rows)]
    return np.asarray(places[-1])
