"""Order of the values of a group column, and which of them are drawn in colour."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

from polars_wroc.charts.options import Sort
from polars_wroc.charts.style import COLOURS

# Number of each value; null if none of its curves has one.
Numbers: TypeAlias = Mapping[str, float | None]
_VALUE = "__value"
# Of too many values, so many of the highest and of the lowest are drawn in colour.
_EXTREMES = 2


class Ranked(NamedTuple):
    """What ``sort="value"`` orders by: a number of each curve or segment, and its name."""

    number: pl.Expr
    label: str


def numbers_of(
    table: pl.DataFrame, groups: Sequence[str], column: str, ranked: Ranked | None
) -> Numbers:
    """Mean number of the curves, or segments, of each value of a column."""
    if ranked is None:
        return {}
    of_curves = table.group_by(groups).agg(ranked.number.first().alias(_VALUE))
    return dict(of_curves.group_by(column).agg(pl.col(_VALUE).mean()).rows())


def ordered(values: Iterable[str], sort: Sort, numbers: Numbers) -> list[str]:
    """Sort names as people do, or by number, the highest first and what has none last."""
    if sort == "name":
        return sorted(values, key=_natural)
    if sort == "value":
        return sorted(values, key=lambda value: _falling(numbers.get(value)))
    return list(values)


def extremes(
    values: Sequence[str], numbers: Numbers, ranked: Ranked | None
) -> tuple[list[str], str]:
    """Choose values to draw in colour where there are too many, and say which they are."""
    if ranked is None:
        return list(values[: len(COLOURS)]), "in colour the first five"
    known = [v for v in ordered(values, "value", numbers) if numbers.get(v) is not None]
    # Values without a number fill the places that are left.
    first = [*known[:_EXTREMES], *known[_EXTREMES:][-_EXTREMES:], *values]
    chosen = list(dict.fromkeys(first))[: 2 * _EXTREMES]
    return chosen, f"in colour the two highest and the two lowest by {ranked.label}"


def _falling(number: float | None) -> tuple[bool, float]:
    return number is None, -(number or 0.0)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Compare digits in a name as numbers, so that 9 comes before 10."""
    parts = re.split(r"([0-9]+)", name.casefold())
    # Every second part is a number.
    return [
        (place % 2 == 0, int(part) if place % 2 else 0, part) for place, part in enumerate(parts)
    ]
