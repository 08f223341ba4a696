"""What a command prints and writes: tables with a verdict, pages, charts, JSON and numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from polars_wroc.audits.gates import Judgement
from polars_wroc.audits.page import write_document
from polars_wroc.audits.provenance import list_provenance, write_foot
from polars_wroc.audits.tables import Run
from polars_wroc.audits.words import capitalised
from polars_wroc.cli.options import OUTPUT, read_by
from polars_wroc.cli.source import Files
from polars_wroc.cli.terminal import measure_screen, print_note, print_text
from polars_wroc.cli.values import read_names, read_row_count
from polars_wroc.documents.blocks import Block, Figures, Line, Lines, LineTone, Table
from polars_wroc.documents.blocks import Text as Paragraph
from polars_wroc.documents.screen import Screen
from polars_wroc.documents.table_layout import lay_out
from polars_wroc.documents.text_writer import write_text
from polars_wroc.documents.workbook import write_workbook
from polars_wroc.files import outputs, prometheus
from polars_wroc.inputs.columns import MISSING

TABLES = (*outputs.TABLE_SUFFIXES, outputs.WORKBOOK, prometheus.SUFFIX, ".md")
TABLES_AND_CHARTS = (*TABLES, *outputs.CHART_SUFFIXES)
# Files that are no text.
_BINARY = (".parquet", outputs.WORKBOOK, ".png")
# Files with sentences and a table for readers.
_PAGES = (".html", ".md")
# Most rows of a page, unless more are asked for.
_MOST_ROWS = 1_000
_ELSEWHERE = "--rows all shows them, and files such as .csv and .xlsx have them"

# Exit codes. 1 is only for a condition that holds, 3 for one that could not be judged.
DONE, CONDITION_HOLDS, BAD_INPUT, NOT_JUDGED, INTERRUPTED = 0, 1, 2, 3, 130

# The command, as it can be given again, which pages end with.
command_line: ContextVar[str] = ContextVar("command_line", default="polars-wroc")


@dataclass(frozen=True)
class Target:
    """A file that is written, or ``-`` for standard output."""

    name: str
    suffix: str
    # Whether its name does not end in the suffix.
    renamed: bool = False
    # Whether it is added to what the file has, as to the summary of a job.
    appended: bool = False

    @property
    def is_read(self) -> bool:
        """Whether the file is for readers: a chart or a page."""
        return self.suffix in (*_PAGES, *outputs.CHART_SUFFIXES)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a result goes."""

    output: Annotated[list[str], Parameter(name=("--output", "-o"), allow_leading_hyphen=True)] = (
        field(default_factory=list)
    )
    """File that is written, in the format of its name: .parquet, .csv, .json, .xlsx, .md, .prom,
    and .html, .png or .svg where there is a chart; - prints JSON; repeatable."""
    format: str | None = None
    """Format of a file whose name does not end in one, and of what -o - prints."""

    def find_targets(self, suffixes: Sequence[str], read: Sequence[str]) -> list[Target]:
        """Return the files that are written, after checking that they can be."""
        if self.format is not None and f".{self.format}" not in suffixes:
            known = ", ".join(suffix[1:] for suffix in suffixes)
            msg = f"--format must be one of {known}; found {self.format!r}"
            raise ValueError(msg)
        targets = [self._find_target(name, suffixes) for name in self.output]
        if self.format is not None and not any(each.renamed for each in targets):
            msg = (
                "--format applies to a file whose name does not end in one, as in -o summary "
                "--format md, or to text that -o - prints"
            )
            raise ValueError(msg)
        for target in targets:
            if target.name != "-":
                outputs.check_target(target.name, suffixes, read, target.suffix)
        return targets

    def _find_target(self, name: str, suffixes: Sequence[str]) -> Target:
        summary, own = os.environ.get("GITHUB_STEP_SUMMARY"), Path(name).suffix.lower()
        # What steps before have written into the summary of a job stays.
        appended = bool(summary) and Path(name).resolve() == Path(summary or "").resolve()
        if own in suffixes:
            return Target(name, own, appended=appended)
        if self.format is not None:
            if name == "-" and f".{self.format}" in _BINARY:
                msg = f"-o - prints text, and .{self.format} is none: name a file"
                raise ValueError(msg)
            return Target(name, f".{self.format}", renamed=True, appended=appended)
        default = ".json" if name == "-" else ".md" if appended else own
        return Target(name, default, renamed=True, appended=appended)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class TableOutput(Output):
    """Where a table goes, and how much of it is printed."""

    columns: Annotated[list[str] | None, Parameter(converter=read_by(read_names), n_tokens=1)] = (
        None
    )
    """Columns that are printed, such as n,auc,auc_low, or all; default the first that fit."""
    rows: Annotated[Any, Parameter(converter=read_by(read_row_count), n_tokens=1)] = "fitting"
    """Most rows that are printed, or all; default what a terminal shows, elsewhere all."""

    @property
    def asked_columns(self) -> Any:
        """The columns that are asked for: names, all, or None."""
        return "all" if self.columns == ["all"] else self.columns

    @property
    def asked_rows(self) -> Any:
        """How many rows are asked for, or all; None where it is not said."""
        return None if self.rows == "fitting" else self.rows or "all"

    @property
    def screen(self) -> Screen:
        """What standard output shows."""
        screen = measure_screen(self.asked_columns, None if self.rows == "fitting" else self.rows)
        return replace(screen, rows=None) if self.rows is None else screen

    @property
    def page(self) -> Screen:
        """What a page shows."""
        rows = _MOST_ROWS if self.rows == "fitting" else self.rows
        return Screen(0, rows, self.asked_columns, more_rows=_ELSEWHERE)

    def find_targets(self, suffixes: Sequence[str], read: Sequence[str]) -> list[Target]:
        """Return the files that are written; columns and rows are chosen for readers alone."""
        targets = super().find_targets(suffixes, read)
        given = {"columns": self.columns is not None, "rows": self.rows != "fitting"}
        for name in [name for name, is_given in given.items() if is_given]:
            if targets and not any(target.suffix in _PAGES for target in targets):
                msg = f"--{name} applies to what is printed; {targets[0].name} has all {name}"
                raise ValueError(msg)
        return targets


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
        return [Paragraph(self.verdict), *([self.lay_out(shown)] if self.table.height else [])]

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
    # Where the page or what is printed is another than the shown tables, or cells another table.
    write_page: Callable[[str], str] | None = None
    write_blocks: Callable[[Screen], Sequence[Block]] | None = None
    in_cells: pl.DataFrame | None = None

    def lay_out(self, screen: Screen) -> Sequence[Block]:
        """Return what is printed."""
        if self.write_blocks is not None:
            return self.write_blocks(screen)
        return [block for each in self.shown for block in each.write_blocks(screen)]

    @property
    def title(self) -> str:
        """What the tables show."""
        return capitalised(" and ".join(each.heading for each in self.shown))


def run_of(source: Files) -> Run:
    """Return by which command and from which files a result is made."""
    return Run(command=command_line.get(), files=source.describe(contents=True))


class ConditionError(Exception):
    """A condition of --fail-if holds, or could not be judged."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(code, lines)
        self.code, self.lines = code, lines


NOTHING_JUDGED = Judgement([], [])


def show_report(
    report: Report,
    output: TableOutput,
    targets: Sequence[Target],
    judgement: Judgement = NOTHING_JUDGED,
    *,
    strict: bool = False,
) -> None:
    """Print a result or write it to files; raise if a condition holds or cannot be judged."""
    lines = [line for gate in judgement.gates for line in gate.lines]

    def show() -> None:
        if not targets:
            screen = output.screen
            print_text(f"{write_text(report.lay_out(screen), screen.terminal)}\n")
        write_targets(targets, partial(_choose_writer, report, output, lines))

    show_judged(show, judgement, report.source, strict=strict)


def show_judged(
    show: Callable[[], None], judgement: Judgement, source: Files, *, strict: bool
) -> None:
    """Show a result that was judged; raise if a condition holds or cannot be judged."""
    code = _find_code(judgement, strict=strict)
    lines = [line for gate in judgement.gates for line in gate.lines]
    failed = [line for line in lines if line.startswith("FAILED")] + judgement.unknown
    try:
        show()
    except (Exception, pl.exceptions.PanicException) as error:
        # A condition that holds matters more than output that failed, any more than a reader who
        # left.
        if code == CONDITION_HOLDS or (code and isinstance(error, BrokenPipeError)):
            raise ConditionError(code, failed) from error
        raise
    finally:
        for line in lines:
            if line.startswith("NOT JUDGED"):
                print_note(line)
    source.say_values()
    if code:
        raise ConditionError(code, failed)


def _find_code(judgement: Judgement, *, strict: bool) -> int:
    """Return the exit code; strictly, each condition must be judged in all segments."""
    if any(gate.met for gate in judgement.gates):
        return CONDITION_HOLDS
    if judgement.unknown:
        return BAD_INPUT
    lacking = (not gate.n_judged or (strict and gate.not_judged) for gate in judgement.gates)
    return NOT_JUDGED if any(lacking) else DONE


def _choose_writer(
    report: Report, output: TableOutput, lines: Sequence[str], suffix: str
) -> Callable[[Path], object]:
    """Return what writes a result in a format."""
    if suffix in (".csv", outputs.WORKBOOK) and report.in_cells is not None:
        report = replace(report, table=report.in_cells)
    if suffix == outputs.WORKBOOK:
        return partial(_save_workbook, report, lines)
    if suffix in _PAGES:
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
        return partial(outputs.save_text, prometheus.write_numbers(report.table))
    return partial(outputs.save_table, report.table)


def write_targets(
    targets: Sequence[Target], choose: Callable[[str], Callable[[Path], object]], text: str = ""
) -> None:
    """Write files, each by what is chosen for its suffix, then print a text and say so.

    Where the result is printed in another format, the text is not, and files are named on the error
    output.
    """
    is_printed = any(target.name == "-" for target in targets)
    # A reader who leaves early, as `head` does, gets all files.
    for target in sorted(targets, key=lambda target: target.name == "-"):
        _write_target(target, choose(target.suffix))
    if text and not is_printed:
        print_text(text)
    for target in targets:
        if is_printed and target.name != "-":
            print_note(f"wrote {target.name}")
        elif not is_printed:
            print_text(f"wrote {target.name}\n")


def _write_target(target: Target, write: Callable[[Path], object]) -> None:
    """Let a function write a file, which it may know by its suffix."""

    def print_it(part: Path) -> None:
        print_text(part.read_text(encoding="utf-8"), json=target.suffix == ".json")

    def add(part: Path) -> None:
        with Path(target.name).open("ab") as file:
            file.write(b"\n" + part.read_bytes())

    if target.name == "-":
        outputs.write(Path(gettempdir(), "printed"), write, target.suffix, print_it)
    elif target.renamed or target.appended:
        deliver = add if target.appended else None
        outputs.write(target.name, write, target.suffix, deliver)
    else:
        write(Path(target.name))


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
        laid_out = [replace(table, title=capitalised(each.heading)) for table, each in titled]
    # Conditions that failed come first.
    tones: dict[str, LineTone] = {"FAILED": "failed", "NOT JUDGED": "unjudged", "PASSED": "passed"}
    checks = [
        Line(line, tone)
        for start, tone in tones.items()
        for line in lines
        if line.startswith(start)
    ]
    blocks: list[Block] = [
        Paragraph(report.title, 1),
        *(Paragraph(each.verdict, style="answer") for each in report.shown if each.verdict),
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
