"""Tables for readers: as text that fits a screen, Markdown, and pages that open offline."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from polars_wroc.audits.words import many, points
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.documents.markdown_writer import escape_markdown, markdown_table
from polars_wroc.documents.text_writer import fit_text, text_width
from polars_wroc.groups.comparisons import CLEARED, FINDINGS
from polars_wroc.names import escape_controls
from polars_wroc.stats.families import INCONCLUSIVE

if TYPE_CHECKING:
    import jinja2

# A number, with its sign or unit, or limits; what has none of it is a dash.
_NUMBER = r"[<+\-\N{MINUS SIGN}]?[\d,]*\.?\d+(?:e[+-]?\d+)?%?|[-\N{EN DASH}]"
_NUMBERS = re.compile(rf"(?:{_NUMBER})(?: to (?:{_NUMBER}))?")


BETWEEN = "  "
# Fewest columns of the screen that a name is cut to.
_LEAST = 4
# Smaller numbers would be 0 with three decimals, and smaller p-values are not told apart.
_SMALLEST, _LEAST_P = 0.0005, 0.001
# Smaller numbers are written with a power of ten.
_MOST_DECIMALS = 6
# Signs of findings, so that a colour is never alone.
SIGNS = {
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "better": "\N{WHITE UP-POINTING TRIANGLE}",
    "either": "\N{BLACK DIAMOND}",
}
# How a terminal shows verdicts, by how they begin: bold red, yellow, bold blue, green, and dim.
BOLD, RED, CYAN, _BLUE, _GREEN, _YELLOW, _DIM = "1", "31", "36", "1;34", "32", "33", "2"
_STYLES = {
    **dict.fromkeys(("worse", SIGNS["worse"]), f"{BOLD};{RED}"),
    **dict.fromkeys((*FINDINGS, SIGNS["either"]), _YELLOW),
    **dict.fromkeys(("better", SIGNS["better"]), _BLUE),
    **dict.fromkeys((*CLEARED, "no worse"), _GREEN),
    INCONCLUSIVE: _DIM,
}
_WITH_VERDICTS = ("gaps", "verdict")


def styled(text: str, style: str | None) -> str:
    """Let a terminal show a text in a style, such as `BOLD`."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text else text


def text_table(
    table: pl.DataFrame, width: int, names: Sequence[str], *, colored: bool = False
) -> str:
    """Write a table with a heading; what is in the columns of ``names`` is cut to fit the width.

    Texts are in one line each, numbers are written as by `texts_of`. The heading and verdicts have
    styles if the text is ``colored``.
    """
    widths = widths_of(table)
    _narrow(widths, width, [name for name in names if name in widths])
    columns = [
        [fit_text(cell, widths[name], right=table.schema[name].is_numeric()) for cell in cells]
        for name, cells in _cells(table).items()
    ]
    heading, *rows = zip(*columns, strict=True)
    first = BETWEEN.join(heading).rstrip()
    if colored:
        first, judged = styled(first, BOLD), [name in _WITH_VERDICTS for name in table.columns]
        rows = [tuple(map(_colored, row, judged)) for row in rows]
    return "\n".join([first, *(BETWEEN.join(row).rstrip() for row in rows)])


def _colored(cell: str, is_verdict: bool) -> str:  # noqa: FBT001  (of columns, one by one)
    """Show a verdict in its style, without the spaces after it."""
    style = next((s for start, s in _STYLES.items() if is_verdict and cell.startswith(start)), None)
    text = cell.rstrip()
    return styled(text, style) + cell[len(text) :]


def widths_of(table: pl.DataFrame) -> dict[str, int]:
    """Count the columns of the screen that each column of a table takes."""
    return {name: max(map(text_width, cells)) for name, cells in _cells(table).items()}


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
    return {name: [cell_text(name), *texts_of(table[name])] for name in table.columns}


def texts_of(column: pl.Series) -> list[str]:
    """Write the values of a column: numbers with three decimals, and null as an empty text.

    Counts, which are floats if they are weighted, have none if all are whole; gaps and changes have
    a sign. Small p-values are below 0.001, other small numbers have one digit.
    """
    values = column.to_list()
    if not column.dtype.is_float():
        return [cell_text(value) for value in values]
    known = column.drop_nulls()
    # Of a cell, 0 and 1 are numbers of rows, too.
    counts = column.name in _CELLS or bool((known.abs() > 1).any())
    if counts and (known.is_finite() & (known == known.round())).all():
        return [cell_text(None if value is None else int(value)) for value in values]
    if column.name.startswith("p_"):
        return [cell_text(p) if p is None or p >= _LEAST_P else f"<{_LEAST_P}" for p in values]
    sign = "+" if column.name.startswith(_SIGNED) else ""
    return [f"{sign if (value or 0) > 0 else ''}{cell_text(value)}" for value in values]


_CELLS = ("tp", "fp", "fn", "tn")
_SIGNED = ("gap", "change", "mean_calibration_error")


def cell_text(value: object) -> str:
    """Write a value for readers, in one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A small p-value is not 0.
        if 0 < abs(value) < _SMALLEST:
            decimals = -floor(log10(abs(value)))
            return f"{value:.{decimals}f}" if decimals <= _MOST_DECIMALS else f"{value:.0e}"
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    # A name may hold anything, such as a line break or what a terminal takes for a command.
    return "".join(sign if sign.isprintable() else " " for sign in str(value))


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

    def heading(self, text: str) -> str:
        """Make a heading stand out, where there are colours."""
        return styled(text, BOLD if self.colored else None)


def fitted_table(
    table: pl.DataFrame, short: pl.DataFrame, screen: Screen, keys: Sequence[str], least: int
) -> str:
    """Write a table that fits a screen, and what is left out.

    ``short`` has the columns of ``keys``, which are always shown, and what else is shown if no
    columns are asked for: the ``least`` of them, and others that fit. Columns that are asked for
    are those of the ``table``; where they do not fit, they are written in blocks below each other.
    """
    check_columns(table, screen)
    asked = short if screen.columns is None else chosen(table, screen.columns, keys)
    shown = asked if screen.rows is None else asked.head(screen.rows)
    taken = sum(widths_of(shown.select(keys)).values()) + len(BETWEEN) * len(keys)
    if screen.columns is None:
        names, blocks = keys, _blocks(shown, screen.width - taken, keys, least)[:1]
    else:
        names = [*keys, *(name for name, dtype in shown.schema.items() if dtype == pl.String)]
        # Long keys are cut, to at most half of the screen.
        blocks = _blocks(shown, screen.width - min(taken, screen.width // 2), keys)
    parts = [shown.select(*keys, *block) for block in blocks]
    texts = [text_table(part, screen.width, names, colored=screen.colored) for part in parts]
    return "\n".join(["\n\n".join(texts), *_left_out(table, shown.height, screen)])


def check_columns(table: pl.DataFrame, screen: Screen) -> None:
    """Check that a table has the columns that are asked for."""
    if screen.columns is None or screen.columns == "all":
        return
    if unknown := [name for name in screen.columns if name not in table.columns]:
        listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
        reject("columns", f"be all, or columns out of {listed}", f"{unknown[0]!r}{hint}")


def chosen(table: pl.DataFrame, columns: Columns, keys: Sequence[str]) -> pl.DataFrame:
    """Select the columns that are asked for, after the keys."""
    if columns == "all":
        return table.select(*keys, pl.exclude(keys))
    return table.select([*dict.fromkeys([*keys, *columns])])


def _blocks(shown: pl.DataFrame, room: int, keys: Sequence[str], least: int = 1) -> list[list[str]]:
    """Divide the columns, but for the keys, into blocks that fit, of ``least`` columns or more."""
    blocks, used = [list[str]()], 0
    for name, width in widths_of(shown.drop(keys)).items():
        if len(blocks[-1]) >= least and used + width > room:
            blocks.append([])
            used = 0
        blocks[-1].append(name)
        used += width + len(BETWEEN)
    return blocks


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
        # Gaps are padded to be below each other.
        return {each.name: [text.strip() for text in texts_of(each)] for each in self.table}

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
        finalize=_escape_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _escape_text(value: object) -> object:
    """Show control characters in names; code of the page is marked as safe, and stays."""
    return escape_controls(value) if type(value) is str else value


def in_html(page: Page) -> str:
    """Render a page without charts, and so without scripts."""
    template = pages().get_template("tables.html")
    return template.render(page=page, figures=[], scripts=[], hashes=[])


def in_markdown(page: Page) -> str:
    """Write a page as Markdown."""
    facts = [
        f"- {escape_markdown(name)}: {escape_markdown(text)}" for name, text in page.facts.items()
    ]
    parts = [f"# {escape_markdown(page.title)}", "\n".join(facts), *_escaped(page.sentences)]
    for section in page.sections:
        columns = {escape_markdown(name): name for name in section.table.columns}
        right = [name in section.right for name in columns.values()]
        rows = (list(_escaped(row)) for row in section.rows)
        parts += [f"## {escape_markdown(section.heading)}"] if section.heading else []
        parts += [markdown_table([*columns], rows, right), *_escaped(section.notes)]
    return "\n\n".join([part for part in (*parts, *_escaped(page.closing)) if part]) + "\n"


def _escaped(texts: Iterable[str]) -> Iterable[str]:
    return map(escape_markdown, texts)


def in_text(page: Page, screen: Screen) -> str:
    """Write a page for a terminal."""
    width, facts = screen.width, [f"{name}: {text}" for name, text in page.facts.items()]
    title = screen.heading(page.title)
    parts = [title, "\n".join(_filled(facts, width)), *_filled(page.sentences, width)]
    for section in page.sections:
        table = text_table(_aligned(section), width, [*section.keys], colored=screen.colored)
        parts += [screen.heading(section.heading), table, *_filled(section.notes, width)]
    return "\n\n".join([part for part in (*parts, *_filled(page.closing, width)) if part])


def _filled(texts: Iterable[str], width: int) -> list[str]:
    return [textwrap.fill(text, width) for text in texts]


def _aligned(section: Section) -> pl.DataFrame:
    columns = {}
    for name, cells in section.cells.items():
        width = max(map(len, [name, *cells])) if name in section.right else 0
        columns[name] = [cell.rjust(width) for cell in cells]
    return pl.DataFrame(columns, dict.fromkeys(columns, pl.String))
