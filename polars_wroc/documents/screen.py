"""The visible part of a table: its first rows, and the requested columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.checks import did_you_mean, reject
from polars_wroc.documents.blocks import Table
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.documents.text_writer import Terminal

AskedColumns: TypeAlias = Sequence[str] | Literal["all"]


@dataclass(frozen=True)
class Screen:
    """The width of the screen, the most rows, and the requested columns."""

    width: int
    # None shows all.
    rows: int | None = None
    # None shows the most important columns that fit.
    columns: AskedColumns | None = None
    # Instructions for seeing all rows, and all columns.
    more_rows: str | None = None
    more_columns: str | None = None
    # Whether it shows colours.
    colored: bool = False

    @property
    def terminal(self) -> Terminal:
        """The terminal, on which requested columns that do not fit are below the others."""
        return Terminal(self.width, self.colored, below=self.columns is not None)

    def count_left_out(self, table: pl.DataFrame) -> str:
        """Return the number of rows that are left out, and how to see them and all columns."""
        notes = list[str]()
        if self.rows is not None and table.height > self.rows:
            left_out = table.height - self.rows
            notes.append(f"{left_out:,} more row{'' if left_out == 1 else 's'}")
            notes[0] += f": {self.more_rows}" if self.more_rows else ""
        if self.columns is None and self.more_columns:
            notes.append(f"all {table.width} columns: {self.more_columns}")
        return "; ".join(notes)

    def lay_out_asked(self, table: pl.DataFrame, keys: Sequence[str]) -> Table:
        """Return the table of the requested columns, after the keys."""
        self.check_columns(table)
        asked = table.columns if self.columns in (None, "all") else self.columns
        chosen = table.select([*dict.fromkeys([*keys, *(asked or [])])])
        return lay_out_columns(chosen, keys, rows=self.rows, note=self.count_left_out(table))

    def check_columns(self, table: pl.DataFrame) -> None:
        """Raise unless a table has the requested columns."""
        if self.columns is None or self.columns == "all":
            return
        if unknown := [name for name in self.columns if name not in table.columns]:
            listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
            reject(
                "columns",
                f"be all, or name columns of the table ({listed})",
                f"{unknown[0]!r}{hint}",
            )
