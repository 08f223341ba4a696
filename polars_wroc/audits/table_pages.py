"""Tables for readers, as text that fits a screen and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.audits.words import many, points
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.documents.blocks import Table
from polars_wroc.documents.markdown_writer import escape_markdown, write_markdown
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.documents.text_writer import BOLD, Terminal, write_text
from polars_wroc.names import write_in_one_line


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
    # Whether it shows colours.
    colored: bool = False

    @property
    def terminal(self) -> Terminal:
        """The terminal, which has columns that are asked for below each other."""
        return Terminal(self.width, self.colored, below=self.columns is not None)

    def heading(self, text: str) -> str:
        """Make a heading stand out, where there are colours."""
        return self.terminal.paint(write_in_one_line(text), BOLD)

    def fill(self, text: str) -> str:
        """Break a text into lines that fit."""
        return textwrap.fill(write_in_one_line(text), self.width)

    def write(self, table: Table) -> str:
        """Write a table with the columns that fit, or with all that are asked for."""
        return write_text([table], self.terminal)

    def count_left_out(self, table: pl.DataFrame) -> str:
        """Say how many rows of a table are left out, and how to see them and all columns."""
        notes = list[str]()
        if self.rows is not None and table.height > self.rows:
            notes.append(many(table.height - self.rows, "more row") + _how(self.more_rows))
        if self.columns is None and self.more_columns:
            notes.append(f"all {table.width} columns{_how(self.more_columns)}")
        return "; ".join(notes)


def _how(text: str | None) -> str:
    return f": {text}" if text else ""


def fitted_table(
    table: pl.DataFrame, short: pl.DataFrame, screen: Screen, keys: Sequence[str], least: int
) -> str:
    """Write a table that fits a screen, and what is left out.

    ``short`` has the columns of ``keys``, which are always shown, and what else is shown if no
    columns are asked for: the ``least`` of them, and others that fit.
    """
    if screen.columns is not None:
        return screen.write(asked_columns(table, screen, keys))
    others = [name for name in short.columns if name not in keys]
    note = screen.count_left_out(table)
    return screen.write(
        lay_out_columns(short, keys, essential=others[:least], rows=screen.rows, note=note)
    )


def asked_columns(table: pl.DataFrame, screen: Screen, keys: Sequence[str]) -> Table:
    """Lay out the columns that are asked for, after the keys."""
    check_columns(table, screen)
    asked = table.columns if screen.columns in (None, "all") else screen.columns
    chosen = table.select([*dict.fromkeys([*keys, *(asked or [])])])
    return lay_out_columns(chosen, keys, rows=screen.rows, note=screen.count_left_out(table))


def check_columns(table: pl.DataFrame, screen: Screen) -> None:
    """Check that a table has the columns that are asked for."""
    if screen.columns is None or screen.columns == "all":
        return
    if unknown := [name for name in screen.columns if name not in table.columns]:
        listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
        reject("columns", f"be all, or columns out of {listed}", f"{unknown[0]!r}{hint}")


@dataclass(frozen=True)
class Page:
    """A title, facts by their names, such as a date, sentences, tables, and what comes last.

    Verdicts stand out among the sentences.
    """

    title: str
    facts: Mapping[str, str]
    verdicts: Sequence[str]
    sections: Sequence[Table]
    closing: Sequence[str] = ()
    explanations: Sequence[str] = ()

    @property
    def sentences(self) -> list[str]:
        """What is said above the tables."""
        return [*self.verdicts, *self.explanations]


def in_markdown(page: Page) -> str:
    """Write a page as Markdown."""
    facts = [
        f"- {escape_markdown(name)}: {escape_markdown(text)}" for name, text in page.facts.items()
    ]
    parts = [f"# {escape_markdown(page.title)}", "\n".join(facts), *_escaped(page.sentences)]
    parts += [write_markdown([table]).rstrip() for table in page.sections]
    return "\n\n".join([part for part in (*parts, *_escaped(page.closing)) if part]) + "\n"


def _escaped(texts: Iterable[str]) -> Iterable[str]:
    return map(escape_markdown, texts)


def in_text(page: Page, screen: Screen) -> str:
    """Write a page for a terminal."""
    facts = [screen.fill(f"{name}: {text}") for name, text in page.facts.items()]
    parts = [screen.heading(page.title), "\n".join(facts), *map(screen.fill, page.sentences)]
    parts += map(screen.write, page.sections)
    return "\n\n".join([part for part in (*parts, *map(screen.fill, page.closing)) if part])
