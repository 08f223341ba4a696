"""Bins of equal width: each includes its upper end, the first also its lower end."""

from __future__ import annotations

import polars as pl


def bin_edge(number: pl.Expr, bins: int, low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return the upper end of a bin between ``low`` and ``high``; that of number 0 is ``low``."""
    number = number.cast(pl.Float64)
    # By a column, since the engine multiplies by the inverse of a constant: 3 / 5 would not be 0.6.
    share = number / (number * 0 + bins)
    # Not a width times a number, which may overflow and may miss the upper end.
    return low * (1 - share) + high * share


def bin_number(score: pl.Expr, bins: int, low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Number the bin of a score between ``low`` and ``high``, from 1."""
    # Halves, since the range of all floats overflows.
    near = ((score / 2 - low / 2) / (high / 2 - low / 2) * bins).ceil()
    # Rounding may have moved it past an end.
    above = (score > bin_edge(near, bins, low, high)).cast(pl.Float64)
    below = (score <= bin_edge(near - 1, bins, low, high)).cast(pl.Float64)
    return (near + above - below).clip(1, bins).cast(pl.Int64)
