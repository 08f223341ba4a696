"""What is shown of a table: its first rows, and the columns that are asked for."""

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
    """What is shown: the width of the screen, most rows, and columns that are asked for."""

    width: int
    # None shows all.
    rows: int | None = None
    # None shows the most important ones that fit.
    columns: AskedColumns | None = None
    # How to see all rows, and all columns.
    more_rows: str | None = None
    more_columns: str | None = None
    # Whether it shows colours.
    colored: bool = False

    @property
    def terminal(self) -> Terminal:
        """The terminal, which has columns that are asked for below each other."""
        return Terminal(self.width, self.colored, below=self.columns is not None)

    def count_left_out(self, table: pl.DataFrame) -> str:
        """Say how many rows of a table are left out, and how to see them and all columns."""
        notes = list[str]()
        if self.rows is not None and table.height > self.rows:
            left_out = table.height - self.rows
            notes.append(f"{left_out:,} more row{'' if left_out == 1 else 's'}")
            notes[0] += f": {self.more_rows}" if self.more_rows else ""
        if self.columns is None and self.more_columns:
            notes.append(f"all {table.width} columns: {self.more_columns}")
        return "; ".join(notes)

    def lay_out_asked(self, table: pl.DataFrame, keys: Sequence[str]) -> Table:
        """Lay out the columns that are asked for, after the keys."""
        self.check_columns(table)
        asked = table.columns if self.columns in (None, "all") else self.columns
        chosen = table.select([*dict.fromkeys([*keys, *(asked or [])])])
        return lay_out_columns(chosen, keys, rows=self.rows, note=self.count_left_out(table))

    def check_columns(self, table: pl.DataFrame) -> None:
        """Check that a table has the columns that are asked for."""
        if self.columns is None or self.columns == "all":
            return
        if unknown := [name for name in self.columns if name not in table.columns]:
            listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
            reject("columns", f"be all, or columns out of {listed}", f"{unknown[0]!r}{hint}")
