"""Tables as text that fits a terminal, with what is left out and how to see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from unicodedata import category, east_asian_width

import polars as pl

from polars_wroc.audits.words import many, points
from polars_wroc.inputs.arguments import did_you_mean

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


Columns: TypeAlias = Sequence[str] | Literal["all"]


@dataclass(frozen=True)
class Screen:
    """What is shown: the width of the screen, most rows, and columns that are asked for."""

    width: int
    # None shows all.
    rows: int | None = None
    # None shows the most important ones that fit.
    columns: Columns | None = None
    # How to see all rows, all columns and, of an audit, all findings.
    more_rows: str | None = None
    more_columns: str | None = None
    more_findings: str | None = None


def fitted_table(
    table: pl.DataFrame, short: pl.DataFrame, screen: Screen, keys: Sequence[str], least: int
) -> str:
    """Write a table that fits a screen, and what is left out.

    ``short`` has the columns of ``keys``, which are always shown, and what else is shown if no
    columns are asked for: the ``least`` of them, and others that fit. Columns that are asked for
    are those of the ``table``; where they do not fit, they are written in blocks below each other.
    """
    check_columns(table, screen)
    asked = short if screen.columns is None else _chosen(table, screen.columns, keys)
    shown = asked if screen.rows is None else asked.head(screen.rows)
    if screen.columns is None:
        names, blocks = keys, [_fitting(shown, screen.width, keys, least)]
    else:
        names = [*keys, *(name for name, dtype in shown.schema.items() if dtype == pl.String)]
        blocks = [*_blocks(shown, screen.width, keys)]
    texts = [text_table(shown.select(*keys, *block), screen.width, names) for block in blocks]
    return "\n".join(["\n\n".join(texts), *_left_out(table, shown.height, screen)])


def check_columns(table: pl.DataFrame, screen: Screen) -> None:
    """Check that a table has the columns that are asked for."""
    if screen.columns is None or screen.columns == "all":
        return
    if unknown := [name for name in screen.columns if name not in table.columns]:
        listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
        msg = f"`columns` must be all, or columns out of {listed}; found {unknown[0]!r}{hint}"
        raise ValueError(msg)


def _chosen(table: pl.DataFrame, columns: Columns, keys: Sequence[str]) -> pl.DataFrame:
    if columns == "all":
        return table.select(*keys, pl.exclude(keys))
    return table.select([*dict.fromkeys([*keys, *columns])])


def _fitting(shown: pl.DataFrame, width: int, keys: Sequence[str], least: int) -> list[str]:
    """List the first columns, and those after them for which there is room."""
    widths = widths_of(shown)
    fitting, used = list[str](), sum(widths[key] + len(BETWEEN) for key in keys)
    for name in (name for name in shown.columns if name not in keys):
        if len(fitting) >= least and used + widths[name] > width:
            break
        fitting.append(name)
        used += widths[name] + len(BETWEEN)
    return fitting


def _blocks(shown: pl.DataFrame, width: int, keys: Sequence[str]) -> Iterator[list[str]]:
    """Divide the columns, but for the keys, into blocks that fit next to the keys."""
    widths = {name: taken + len(BETWEEN) for name, taken in widths_of(shown).items()}
    # Long keys are cut, to at most half of the screen.
    room = width + len(BETWEEN) - min(sum(widths[key] for key in keys), width // 2)
    block, used = list[str](), 0
    for name in shown.columns:
        if name in keys:
            continue
        if block and used + widths[name] > room:
            yield block
            block, used = [], 0
        block.append(name)
        used += widths[name]
    yield block


def _left_out(table: pl.DataFrame, rows: int, screen: Screen) -> list[str]:
    """Say how many rows are left out, and how to see them and all columns."""
    notes = list[str]()
    if more := table.height - rows:
        notes.append(many(more, "more row") + _how(screen.more_rows))
    if screen.columns is None and screen.more_columns:
        notes.append(f"all {table.width} columns{_how(screen.more_columns)}")
    return ["; ".join(notes)] if notes else []


def _how(text: str | None) -> str:
    return f": {text}" if text else ""
