"""Where the lowest of many lines is the highest.

Like the hull this runs in Python: which lines matter depends on all the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from polars_wroc.rates import TOLERANCE
from polars_wroc.staged import as_struct


class Line(NamedTuple):
    """A line by its slope and its height at 0, and the ends of the edge of a hull on it."""

    slope: float
    height: float
    start: float
    end: float


def highest_of_lowest(slope: pl.Expr, height: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Find the place from 0 to 1 where the lowest of all lines is the highest; the first such.

    The lines are those through the edges of concave curves, of which none is left out.
    """
    lines = as_struct(dict(zip(Line._fields, (slope, height, start, end), strict=True)))
    return lines.implode().map_batches(_places, return_dtype=pl.Float64, is_elementwise=True)


def _places(lists: pl.Series) -> pl.Series:
    places = [_place(_steepest_first(lines)) for lines in lists]
    return pl.Series(lists.name, places, dtype=pl.Float64)


def _steepest_first(lines: pl.Series) -> Iterable[Line]:
    ordered = lines.struct.unnest().sort("slope", "height", descending=[True, False])
    return (Line(*row) for row in ordered.rows())


def _place(lines: Iterable[Line]) -> float:
    """Keep the lines that are the lowest somewhere, and stop where they rise no more."""
    lowest: list[tuple[Line, float]] = []
    for line in lines:
        if lowest and lowest[-1][0].slope == line.slope:
            continue
        since = 0.0
        while lowest:
            since = _crossing(lowest[-1][0], line)
            if since > lowest[-1][1]:
                break
            lowest.pop()
            since = 0.0
        lowest.append((line, since))
    rising = None
    for line, since in lowest:
        if line.slope <= TOLERANCE:
            return 0.0 if rising is None else _between(since, rising, line)
        rising = line
    return 1.0


def _crossing(one: Line, other: Line) -> float:
    return (other.height - one.height) / (one.slope - other.slope)


def _between(place: float, rising: Line, falling: Line) -> float:
    """Put a crossing on the edges, so that a corner of a hull is met without rounding."""
    if falling.start <= rising.end:
        place = min(max(place, falling.start), rising.end)
    return min(place, 1.0)
