"""Solve for the place at which a condition begins to hold, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polars_wroc.arrays import Array, Mask

# Each step halves an interval, and doubles have 53 binary digits.
_HALVINGS = 60


def first_place(
    holds: Callable[[Array], Mask], low: Array, high: Array, *, halvings: int = _HALVINGS
) -> Array:
    """Return the least place of each row at which a condition holds that holds from there on.

    The condition is never evaluated at ``low`` and ``high``, between which the place lies. A row
    whose condition holds nowhere in between has the place ``high``. Fewer ``halvings`` than by
    default do not reach the last digit.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        there = holds(middle)
        low = np.where(there, low, middle)
        high = np.where(there, middle, high)
    return high
