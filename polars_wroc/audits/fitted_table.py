"""Tables of results as text that fits a screen, with what is left out and how to see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.audits.phrases import many
from polars_wroc.audits.text_table import BETWEEN, text_table, widths_of
from polars_wroc.inputs.arguments import did_you_mean

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
