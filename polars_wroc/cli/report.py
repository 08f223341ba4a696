"""The result of a command: its tables with a verdict, pages, charts and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.audits.gates import Judgement
from polars_wroc.audits.page import write_document
from polars_wroc.audits.provenance import list_provenance, write_foot
from polars_wroc.audits.tables import Run
from polars_wroc.cli.outcome import (
    BAD_INPUT,
    CONDITION_HOLDS,
    DONE,
    NOT_JUDGED,
    ConditionError,
    command_line,
)
from polars_wroc.cli.output import PAGES, TableOutput, write_targets
from polars_wroc.cli.source import Files
from polars_wroc.cli.terminal import print_note, print_text
from polars_wroc.documents.blocks import Block, Figures, Line, Lines, LineTone, Table, TextBlock
from polars_wroc.documents.phrases import capitalise
from polars_wroc.documents.screen import Screen
from polars_wroc.documents.table_layout import lay_out
from polars_wroc.documents.text_writer import write_text
from polars_wroc.documents.workbook import write_workbook
from polars_wroc.files import outputs, prometheus
from polars_wroc.inputs.columns import MISSING


@dataclass(frozen=True)
class Shown:
    """A table for readers, with its heading and a verdict above it.

    Its columns can be ``asked`` for, after the ``keys``, unless it is the first of two tables. What
    is ``short`` is laid out for readers if they are not; nothing for a page that has a chart alone.
    """

    heading: str
    table: pl.DataFrame
    keys: Sequence[str] = ()
    verdict: str | None = None
    asked: bool = True
    short: pl.DataFrame | None = None

    def write_blocks(self, screen: Screen) -> list[Block]:
        """Return the verdict, and the table with the columns that fit or are asked for."""
        shown = screen if self.asked else replace(screen, columns=None, more_columns=None)
        if not self.verdict:
            return [self.lay_out(shown)]
        # A head without rows says nothing more.
        return [TextBlock(self.verdict), *([self.lay_out(shown)] if self.table.height else [])]

    def lay_out(self, screen: Screen) -> Table:
        """Lay out the table for readers, or the columns that are asked for."""
        if screen.columns is not None and self.asked:
            keys = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in self.keys]
            return screen.lay_out_asked(self.table.with_columns(keys), self.keys)
        table = self.table if self.short is None else self.short
        note = screen.count_left_out(self.table if self.asked else table)
        return lay_out(table, rows=screen.rows, note=note)


@dataclass(frozen=True)
class Report:
    """The result of a command: a table, what readers see of it, and what draws its charts."""

    source: Files
    table: pl.DataFrame
    shown: Sequence[Shown]
    # Charts of a page, of which an image is the first.
    draw: Callable[[], Sequence[Any]] = list
    # Where the page or what is printed is another than the shown tables, or cells and numbers for
    # Prometheus another table.
    write_page: Callable[[str], str] | None = None
    write_blocks: Callable[[Screen], Sequence[Block]] | None = None
    in_cells: pl.DataFrame | None = None
    numbers: pl.DataFrame | None = None
    # Columns that tell the rows of the table apart, if not those of the first shown table.
    row_keys: Sequence[str] | None = None

    def lay_out(self, screen: Screen) -> Sequence[Block]:
        """Return what is printed."""
        if self.write_blocks is not None:
            return self.write_blocks(screen)
        return [block for each in self.shown for block in each.write_blocks(screen)]

    @property
    def keys(self) -> Sequence[str]:
        """The columns that tell the rows of the table apart."""
        return self.shown[0].keys if self.row_keys is None else self.row_keys

    @property
    def title(self) -> str:
        """The title of the tables."""
        return capitalise(" and ".join(each.heading for each in self.shown))


def run_of(source: Files) -> Run:
    """Return by which command and from which files a result is made."""
    return Run(command=command_line.get(), files=source.describe(contents=True))


def show_report(
    report: Report,
    output: TableOutput,
    judgement: Judgement = Judgement(),
) -> None:
    """Print a result or write it to files; raise if a condition holds or cannot be judged."""

    def show() -> None:
        if not output.targets:
            screen = output.screen
            print_text(f"{write_text(report.lay_out(screen), screen.terminal)}\n")
        write_targets(output.targets, partial(_choose_writer, report, output, judgement.lines))

    show_judged(show, judgement, report.source)


def show_judged(show: Callable[[], None], judgement: Judgement, source: Files) -> None:
    """Show a result that was judged; raise if a condition holds or cannot be judged."""
    code = _find_code(judgement)
    failed = [line for line in judgement.lines if line.startswith("FAILED")]
    failed += judgement.unknown
    try:
        show()
    except (Exception, pl.exceptions.PanicException) as error:
        # A condition that holds matters more than output that failed, any more than a reader who
        # left.
        if code == CONDITION_HOLDS or (code and isinstance(error, BrokenPipeError)):
            raise ConditionError(code, failed) from error
        raise
    finally:
        for line in judgement.lines:
            if line.startswith("NOT JUDGED"):
                print_note(line)
    source.say_values()
    if code:
        raise ConditionError(code, failed)


def _find_code(judgement: Judgement) -> int:
    """Return the exit code."""
    if any(gate.met for gate in judgement.gates):
        return CONDITION_HOLDS
    if judgement.unknown:
        return BAD_INPUT
    lacking = (
        not gate.n_judged or (judgement.strict and gate.not_judged) for gate in judgement.gates
    )
    return NOT_JUDGED if any(lacking) else DONE


def _choose_writer(
    report: Report, output: TableOutput, lines: Sequence[str], suffix: str
) -> Callable[[Path], object]:
    """Return what writes a result in a format."""
    if suffix in (".csv", outputs.WORKBOOK) and report.in_cells is not None:
        report = replace(report, table=report.in_cells)
    if suffix == outputs.WORKBOOK:
        return partial(_save_workbook, report, lines)
    if suffix in PAGES:
        write = report.write_page or partial(_write_page, report, output, lines)
        return partial(outputs.save_text, write(suffix))
    if suffix in outputs.CHART_SUFFIXES:
        charts = report.draw()
        if not charts:
            verdict = report.shown[0].verdict
            msg = f"{verdict} There is nothing to draw; -o with .html writes the sentence"
            raise ValueError(msg)
        return partial(outputs.save_chart, charts[0])
    if suffix == prometheus.SUFFIX:
        table = report.table if report.numbers is None else report.numbers
        return partial(outputs.save_text, prometheus.write_prometheus(table, report.keys))
    return partial(outputs.save_table, report.table)


def _write_page(report: Report, output: TableOutput, lines: Sequence[str], suffix: str) -> str:
    """Lay out tables and, in HTML, charts as a document, with how they were made."""
    charts: list[Block] = []
    if suffix == ".html" and (drawn := report.draw()):
        # Only a page with charts should cost the import of Altair.
        from polars_wroc.audits.figures import make_figure  # noqa: PLC0415

        charts = [Figures([make_figure(chart) for chart in drawn])]
    tables = [each for each in report.shown if each.table.width and each.table.height]
    laid_out = [each.lay_out(output.page) for each in tables]
    if len(tables) > 1:
        titled = zip(laid_out, tables, strict=True)
        laid_out = [replace(table, title=capitalise(each.heading)) for table, each in titled]
    # Conditions that failed come first.
    tones: dict[str, LineTone] = {"FAILED": "failed", "NOT JUDGED": "unjudged", "PASSED": "passed"}
    checks = [
        Line(line, tone)
        for start, tone in tones.items()
        for line in lines
        if line.startswith(start)
    ]
    blocks: list[Block] = [
        TextBlock(report.title, 1),
        *(TextBlock(each.verdict, style="answer") for each in report.shown if each.verdict),
        *([Lines(checks, style="checks")] if checks else []),
        # A table without a title is the only one.
        *(replace(table, label=table.title or report.title) for table in laid_out),
        *charts,
        *write_foot(run_of(report.source)),
    ]
    return write_document(blocks, report.title, suffix)


def _save_workbook(report: Report, lines: Sequence[str], path: Path) -> None:
    """Write a table as a workbook, after the verdicts and how it was made."""
    run = run_of(report.source)
    facts: list[tuple[str, object]] = [
        *(("Answer", each.verdict) for each in report.shown if each.verdict),
        *(("Pipeline check", line) for line in lines),
        *list_provenance(run),
    ]
    write_workbook(report.title, facts, {"table": report.table}, path, run.date)
