"""Bins of equal width, which include their upper end; the first also its lower end."""

from __future__ import annotations

import numpy as np

from polars_wroc.arrays import Array, Ints


def find_ends(bins: int, low: float, high: float) -> Array:
    """Return the lower end of the first bin and the upper ends of all."""
    share = np.arange(bins + 1) / bins
    # A width times a number could overflow, and miss the upper end.
    return np.asarray(low * (1 - share) + high * share)


def number_bins(values: Array, ends: Array) -> Ints:
    """Return the number of the bin of each value, from 0."""
    number = np.searchsorted(ends, values, side="left") - 1
    return np.clip(number, 0, len(ends) - 2)


def choose_range(values: Array, highest: Array | None = None) -> tuple[float, float]:
    """Return the range of bins: from 0 to 1 if all values are in it, otherwise their range.

    If all values are equal, it extends by half of the value on either side, but at least by 0.5.
    ``highest`` is the highest of the values that each one stands for, if there are several.
    """
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float((values if highest is None else highest).max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    around = max(abs(low) / 2, 0.5) if low == high else 0.0
    return low - around, high + around
