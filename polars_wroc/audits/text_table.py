"""A table as text that fits a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, east_asian_width

import polars as pl

from polars_wroc.audits.phrases import points

BETWEEN = "  "
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Fewest columns of the screen that a name is cut to.
_LEAST = 4
# Smaller numbers would be 0 with three decimals.
_SMALLEST = 0.0005


def text_table(table: pl.DataFrame, width: int, names: Sequence[str]) -> str:
    """Write a table with a heading; what is in the columns of ``names`` is cut to fit the width.

    Texts are in one line each, numbers have three decimals or, if small, one digit and the power
    of ten, and null is empty.
    """
    columns = _cells(table)
    widths = widths_of(table)
    _narrow(widths, width, [name for name in names if name in widths])
    numeric = {name for name in widths if table.schema[name].is_numeric()}
    lines = (
        BETWEEN.join(
            _padded(_cut(cells[row], widths[name]), widths[name], right=name in numeric)
            for name, cells in columns.items()
        )
        for row in range(table.height + 1)
    )
    return "\n".join(line.rstrip() for line in lines)


def widths_of(table: pl.DataFrame) -> dict[str, int]:
    """Count the columns of the screen that each column of a table takes."""
    return {name: max(map(_width, cells)) for name, cells in _cells(table).items()}


def limits_in_text(table: pl.DataFrame, low: str, high: str) -> pl.Series:
    """Write confidence limits; null where one is not known."""
    limits = [
        None if None in ends else f"{ends[0]:.3f} to {ends[1]:.3f}"
        for ends in table.select(low, high).iter_rows()
    ]
    return pl.Series(limits, dtype=pl.String)


def points_in_text(table: pl.DataFrame, *columns: str) -> pl.Series:
    """Write differences of proportions in points, or limits from one to the other; aligned."""
    texts = [
        "" if None in row else " to ".join(map(points, row))
        for row in table.select(columns).iter_rows()
    ]
    width = max(map(len, [columns[0] if len(columns) == 1 else "", *texts]))
    return pl.Series(columns[0], [text.rjust(width) for text in texts], pl.String)


def _narrow(widths: dict[str, int], width: int, names: Sequence[str]) -> None:
    """Take columns of the screen from the widest names until all fit."""
    excess = sum(widths.values()) + len(BETWEEN) * (len(widths) - 1) - width
    for _ in range(excess):
        widest = max(names, key=lambda name: widths[name], default=None)
        if widest is None or widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _cells(table: pl.DataFrame) -> dict[str, list[str]]:
    return {name: [_cell(name), *map(_cell, table[name])] for name in table.columns}


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A small p-value is not 0.
        return f"{value:.0e}" if 0 < abs(value) < _SMALLEST else f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    # A name may hold anything, such as a line break or what a terminal takes for a command.
    return "".join(sign if sign.isprintable() else " " for sign in str(value))


def _width(text: str) -> int:
    """Count the columns of the screen that a text takes."""
    return sum(map(_sign_width, text))


def _sign_width(sign: str) -> int:
    if category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept = ""
    for sign in text:
        if _width(kept + sign) >= width:
            break
        kept += sign
    return kept + _ELLIPSIS


def _padded(text: str, width: int, *, right: bool) -> str:
    room = " " * (width - _width(text))
    return room + text if right else text + room
