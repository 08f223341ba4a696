"""Solve for the place at which a condition begins to hold, for many rows at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from polars_wroc.arrays import Array, Mask

# Doubles have 53 binary digits.
_DIGITS = 60
# Few rows take as long as one: a step tries so many places, and leaves a sixteenth of an interval.
_TRIED, _FEW_ROWS = 15, 1000


def first_place(
    holds: Callable[[Array], Mask], low: Array, high: Array, *, digits: int = _DIGITS
) -> Array:
    """Return the least place of each row at which a condition holds that holds from there on.

    The condition is evaluated at several places of each row at once, along a first axis, but never
    at ``low`` and ``high``, between which the place lies. A row whose condition holds nowhere in
    between has the place ``high``. Fewer binary ``digits`` than by default are not the last ones.
    """
    number = _TRIED if low.size <= _FEW_ROWS else 1
    parts = np.arange(1, number + 1).reshape(-1, *np.ones_like(low.shape)) / (number + 1)
    rows = tuple(np.indices(low.shape))
    for _ in range(math.ceil(digits / math.log2(number + 1))):
        places = low + parts * (high - low)
        first = np.concatenate([holds(places), [np.ones_like(low, bool)]]).argmax(axis=0)
        ends = np.concatenate([[low], places, [high]])
        low, high = ends[(first, *rows)], ends[(first + 1, *rows)]
    return high
