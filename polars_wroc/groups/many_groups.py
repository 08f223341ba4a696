"""Warnings about numbers and dates whose values are each a group."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

# More distinct numbers or dates than this are rarely meant to be groups.
_MANY_VALUES = 30


class ManyGroupsWarning(UserWarning):
    """Many numbers or dates are each a group."""


def find_many_values(columns: Iterable[pl.Series]) -> Iterator[pl.Series]:
    """Yield the distinct values of each column of numbers or dates that has many."""
    for column in columns:
        if column.dtype.is_numeric() or column.dtype in (pl.Date, pl.Datetime):
            distinct = column.drop_nulls().unique()
            if len(distinct) > _MANY_VALUES:
                yield distinct


def warn_of_many_groups(columns: Iterable[pl.Series]) -> None:
    """Warn once of the columns whose many values are each a group."""
    advice = [
        advise_fewer_groups(
            distinct,
            ranges=f"wroc.ranges({distinct.name!r}, [{write_breaks(distinct, ', ')}])",
            periods=f"pl.col({distinct.name!r}).dt.truncate('1mo')",
        )
        for distinct in find_many_values(columns)
    ]
    if advice:
        warnings.warn("; ".join(advice), ManyGroupsWarning, stacklevel=_find_caller())


def _find_caller() -> int:
    """Return the number of calls between the user's line, which a warning names, and here."""
    package = str(Path(__file__).parents[1])
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    # The call of this function does not count.
    return level - 1


def advise_fewer_groups(distinct: pl.Series, *, ranges: str, periods: str) -> str:
    """Return the advice to use ranges of numbers or periods of dates, as the caller writes them."""
    how = f"cut it into periods by {periods}"
    if distinct.dtype.is_numeric():
        how = f"if it is a quantity, cut it into ranges by {ranges}"
    return f"each of the {len(distinct):,} values of {distinct.name} is a group: {how}"


def write_breaks(values: pl.Series, separator: str) -> str:
    """Write up to three round numbers that cut the values into parts; nothing for dates."""
    if not values.dtype.is_numeric():
        return ""
    found = (values.quantile(share, "nearest") for share in (0.25, 0.5, 0.75))
    breaks = dict.fromkeys(float(f"{each:.2g}") for each in found if each is not None)
    return separator.join(f"{each:.15g}" for each in breaks)
