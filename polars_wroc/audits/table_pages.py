"""Tables as pages: HTML that opens without a network and in word processors, Markdown, and text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.audits.formats import cell_text, markdown_table, markdown_text, text_table
from polars_wroc.charts.options import visible

if TYPE_CHECKING:
    import jinja2

# A number, with its sign or unit, or limits; what has none of it is a dash.
_NUMBER = r"[<+\-\N{MINUS SIGN}]?[\d,]*\.?\d+(?:e[+-]?\d+)?%?|[-\N{EN DASH}]"
_NUMBERS = re.compile(rf"(?:{_NUMBER})(?: to (?:{_NUMBER}))?")


@dataclass(frozen=True)
class Section:
    """A table below its heading, which may be empty; the columns of ``keys`` name its rows."""

    heading: str
    table: pl.DataFrame
    keys: Collection[str]
    notes: Sequence[str] = ()

    @cached_property
    def cells(self) -> dict[str, list[str]]:
        """The cells of each column as texts."""
        columns = self.table.to_dict(as_series=False)
        # Gaps are padded to be below each other.
        return {name: [cell_text(cell).strip() for cell in columns[name]] for name in columns}

    @cached_property
    def right(self) -> list[str]:
        """The columns that are aligned to the right: those of numbers, and of texts that are."""
        return [
            name
            for name, cells in self.cells.items()
            if name not in self.keys and all(_NUMBERS.fullmatch(cell) for cell in cells if cell)
        ]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of each row."""
        return [*zip(*self.cells.values(), strict=True)]


@dataclass(frozen=True)
class Page:
    """A title, facts by their names, such as a date, sentences, tables, and what comes last.

    Verdicts stand out among the sentences.
    """

    title: str
    facts: Mapping[str, str]
    verdicts: Sequence[str]
    sections: Sequence[Section]
    closing: Sequence[str] = ()
    explanations: Sequence[str] = ()

    @property
    def sentences(self) -> list[str]:
        """What is said above the tables."""
        return [*self.verdicts, *self.explanations]


def pages() -> jinja2.Environment:
    """Make what renders the templates; it escapes what users named, and shows control characters.

    The same for pages with and without charts, which need Altair.
    """
    # Only a page should cost the import.
    import jinja2  # noqa: PLC0415

    return jinja2.Environment(
        loader=jinja2.PackageLoader("polars_wroc.audits", "report/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _visible(value: object) -> object:
    """Show control characters in names; code of the page is marked as safe, and stays."""
    return visible(value) if type(value) is str else value


def in_html(page: Page) -> str:
    """Render a page without charts, and so without scripts."""
    template = pages().get_template("tables.html")
    return template.render(page=page, figures=[], scripts=[], hashes=[])


def in_markdown(page: Page) -> str:
    """Write a page as Markdown."""
    facts = [f"- {markdown_text(name)}: {markdown_text(text)}" for name, text in page.facts.items()]
    parts = [f"# {markdown_text(page.title)}", "\n".join(facts), *_escaped(page.sentences)]
    for section in page.sections:
        columns = {markdown_text(name): name for name in section.table.columns}
        right = [heading for heading, name in columns.items() if name in section.right]
        rows = (list(_escaped(row)) for row in section.rows)
        parts += [f"## {markdown_text(section.heading)}"] if section.heading else []
        parts += [markdown_table([*columns], rows, right), *_escaped(section.notes)]
    return "\n\n".join([part for part in (*parts, *_escaped(page.closing)) if part]) + "\n"


def _escaped(texts: Iterable[str]) -> Iterable[str]:
    return map(markdown_text, texts)


def in_text(page: Page, width: int) -> str:
    """Write a page for a terminal."""
    facts = [f"{name}: {text}" for name, text in page.facts.items()]
    parts = [page.title, "\n".join(_filled(facts, width)), *_filled(page.sentences, width)]
    for section in page.sections:
        parts += [section.heading, text_table(_aligned(section), width, [*section.keys])]
        parts += _filled(section.notes, width)
    return "\n\n".join([part for part in (*parts, *_filled(page.closing, width)) if part])


def _filled(texts: Iterable[str], width: int) -> list[str]:
    return [textwrap.fill(text, width) for text in texts]


def _aligned(section: Section) -> pl.DataFrame:
    columns = {}
    for name, cells in section.cells.items():
        width = max(map(len, [name, *cells])) if name in section.right else 0
        columns[name] = [cell.rjust(width) for cell in cells]
    return pl.DataFrame(columns, dict.fromkeys(columns, pl.String))
