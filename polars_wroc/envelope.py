"""Where the lowest of many lines is the highest.

Like the hull this runs in Python: which lines matter depends on all the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from polars_wroc.rates import TOLERANCE
from polars_wroc.staged import as_struct


class Line(NamedTuple):
    """A line by its slope and its height at 0."""

    slope: float
    height: float


def highest_of_lowest(slope: pl.Expr, height: pl.Expr) -> pl.Expr:
    """Find the place from 0 to 1 where the lowest of all lines is the highest; the first such."""
    lines = as_struct(dict(zip(Line._fields, (slope, height), strict=True)))
    return lines.implode().map_batches(_places, return_dtype=pl.Float64, is_elementwise=True)


def _places(lists: pl.Series) -> pl.Series:
    places = [_highest(_lowest(lines)) for lines in lists]
    return pl.Series(lists.name, places, dtype=pl.Float64)


def _lowest(lines: pl.Series) -> list[tuple[Line, float]]:
    """Keep the lines that are the lowest somewhere, from left to right, and where that begins."""
    steepest_first = lines.struct.unnest().sort("slope", "height", descending=[True, False])
    lowest: list[tuple[Line, float]] = []
    for line in (Line(*row) for row in steepest_first.rows()):
        begin = -math.inf
        # Of parallel lines only the first is ever the lowest.
        if lowest and lowest[-1][0].slope == line.slope:
            continue
        while lowest and (begin := _crossing(lowest[-1][0], line)) <= lowest[-1][1]:
            lowest.pop()
        lowest.append((line, begin))
    return lowest


def _crossing(one: Line, other: Line) -> float:
    return (other.height - one.height) / (one.slope - other.slope)


def _highest(lowest: Iterable[tuple[Line, float]]) -> float:
    """Find where the lowest line rises no more."""
    place = next((begin for line, begin in lowest if line.slope <= TOLERANCE), 1.0)
    return min(max(place, 0.0), 1.0)
