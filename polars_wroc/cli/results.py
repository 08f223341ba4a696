"""Results of commands: where they are printed, written and drawn, and judged by gates."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from tempfile import gettempdir
from typing import Any

import polars as pl

from polars_wroc.audits.gates import Judgement
from polars_wroc.audits.page import write_document
from polars_wroc.cli import process
from polars_wroc.cli.arguments import in_options
from polars_wroc.cli.process import BAD_INPUT, DONE, GATE_FAILED, NOT_JUDGED, refuse, screen_of
from polars_wroc.cli.tables import (
    Shown,
    lay_out_page,
    save_workbook,
    title_of,
    write_shown_tables,
)
from polars_wroc.documents.blocks import Block, Figures
from polars_wroc.files import outputs

# Suffixes of files that tables are written to for readers, and of all that have sentences.
PAGES = (".html", ".md")
TOLD = (*PAGES, outputs.WORKBOOK)
# Files that are no text.
_BINARY = (".parquet", outputs.WORKBOOK, ".png")


def check_output(options: argparse.Namespace) -> None:
    """Check the files that are written, if any, and what is shown of a table; name their formats.

    An audit may have several ``outputs``, of which the options are those of the first.
    """
    names = options.output or [None]
    if len(names) > 1 and options.command != "audit":
        refuse(f"-o may be given several times to audit only; found {' and '.join(names)}")
    options.outputs = [argparse.Namespace(**vars(options) | {"output": name}) for name in names]
    for each in options.outputs:
        _check_one(each, several=len(names) > 1)
    vars(options).update(vars(options.outputs[0]))


def _check_one(options: argparse.Namespace, *, several: bool) -> None:
    """Check a file that is written."""
    options.suffix = _suffix(options, several=several)
    # An audit prints its table even if it writes a file.
    printed = options.output is None or (options.command == "audit" and options.output != "-")
    paged = options.suffix in PAGES and options.command not in ("audit", "diff")
    for name in ("columns", "rows"):
        if getattr(options, name, None) is not None and not (printed or paged):
            refuse(f"--{name} applies to what is printed; {options.output} has all {name}")
    if options.output not in (None, "-"):
        outputs.check_target(options.output, options.suffixes, options.files, options.suffix)


def _suffix(options: argparse.Namespace, *, several: bool) -> str:
    """Return the suffix of the output, which --format gives where the name of the file has none."""
    name, summary = options.output or "", os.environ.get("GITHUB_STEP_SUMMARY")
    own, given = Path(name).suffix.lower(), getattr(options, "format", None)
    # What steps before have written into the summary of a job stays.
    options.added = bool(name and summary and Path(name).resolve() == Path(summary).resolve())
    if own in options.suffixes and (several or given in (None, own[1:])):
        return own
    if given is None:
        return ".json" if name == "-" else ".md" if options.added else own
    if not name or own in options.suffixes or (name == "-" and f".{given}" in _BINARY):
        found = f"-o {name} --format {given}" if name else "no -o"
        msg = (
            "--format is that of a file whose name does not end in one, as in -o summary --format "
            f"md, or of text that -o - prints; found {found}"
        )
        refuse(msg)
    return f".{given}"


def save(options: argparse.Namespace, write: Callable[[Path], object]) -> None:
    """Let a function write the output, which it may know by its suffix."""

    def print_it(part: Path) -> None:
        print_result(part.read_text(encoding="utf-8"), options, json=options.suffix == ".json")

    def add(part: Path) -> None:
        with Path(options.output).open("ab") as file:
            file.write(b"\n" + part.read_bytes())

    if options.output == "-":
        outputs.write(Path(gettempdir(), "printed"), write, options.suffix, print_it)
    elif options.added or getattr(options, "format", None):
        outputs.write(options.output, write, options.suffix, add if options.added else None)
    else:
        write(Path(options.output))


def say_written(options: argparse.Namespace) -> None:
    """Say which file was written."""
    if options.output != "-":
        print_result(f"wrote {options.output}\n", options)


def show_table(
    chart: str,
    table: pl.DataFrame,
    options: argparse.Namespace,
    shown: Callable[[], Sequence[Shown]],
    drawn: pl.DataFrame | None = None,
    **known: Any,
) -> None:
    """Write a table to a file, draw it, or print it: as JSON, or as text for readers.

    ``known`` are arguments of the function that draws its ``chart``, from the table or from what
    is to be ``drawn`` instead. Without one there is nothing to draw: a page has the table alone.
    """
    if options.output is None:
        print_result(f"{write_shown_tables(shown(), screen_of(options))}\n", options)
    elif options.suffix == ".md":
        save_page(shown(), [], options)
    elif options.suffix == outputs.WORKBOOK:
        save(options, partial(save_workbook, table, shown(), options))
        say_written(options)
    elif is_chart(options):
        drawn = table if drawn is None else drawn
        # Only a chart should cost the import of Altair.
        charts = [resolve_name(f"polars_wroc:{chart}")(drawn, **known)] if chart else []
        _save_chart(charts, options, shown)
    else:
        save(options, partial(outputs.save_table, table))
        say_written(options)


def _save_chart(
    charts: Sequence[Any], options: argparse.Namespace, shown: Callable[[], Sequence[Shown]]
) -> None:
    """Write a chart; as HTML below its table."""
    if options.suffix == ".html":
        save_page(shown(), charts, options)
    elif not charts:
        refuse(f"{shown()[0].verdict} There is nothing to draw; -o with .html writes the sentence")
    else:
        save(options, partial(outputs.save_chart, charts[0]))
        say_written(options)


def save_page(shown: Sequence[Shown], charts: Sequence[Any], options: argparse.Namespace) -> None:
    """Write a page of tables with their charts below them."""
    figures: list[Block] = []
    if charts:
        # Only a page with charts should cost the import of Altair.
        from polars_wroc.audits.figures import make_figure  # noqa: PLC0415

        figures = [Figures([make_figure(chart) for chart in charts])]
    document = lay_out_page(shown, options, figures)
    save_text_result(write_document(document, title_of(shown), options.suffix), options)


def save_text_result(text: str, options: argparse.Namespace) -> None:
    """Write a page as the output."""
    save(options, partial(outputs.save_text, text))
    say_written(options)


def is_chart(options: argparse.Namespace) -> bool:
    """Whether the file that is written has a chart."""
    return options.suffix in outputs.CHART_SUFFIXES


def is_read(options: argparse.Namespace) -> bool:
    """Whether the file that is written is for readers: a chart or a page."""
    return is_chart(options) or options.suffix in PAGES


def print_result(text: str, options: argparse.Namespace, *, json: bool = False) -> None:
    """Print on standard output, after removing the progress line."""
    if options.progress:
        options.progress.stop()
    process.print_text(text, json=json)


class GateError(Exception):
    """A result met a condition of --fail-if, or a condition could not be judged."""

    def __init__(self, code: int, lines: list[str]) -> None:
        super().__init__(code, lines)
        self.code, self.lines = code, lines


def present(judgement: Judgement, show: Callable[[], None], options: argparse.Namespace) -> None:
    """Show a result that was judged; raise if a gate is met or cannot be judged."""
    code = _code(judgement, strict=options.fail_unjudged)
    lines = options.gate_lines = [line for gate in judgement.gates for line in gate.lines]
    failed = [line for line in lines if line.startswith("FAILED")]
    failed += [in_options(message, options) for message in judgement.unknown]
    try:
        show()
    except (Exception, pl.exceptions.PanicException) as error:
        # A failed gate matters more than output that failed, any gate more than a reader who left.
        if code == GATE_FAILED or (code and isinstance(error, BrokenPipeError)):
            raise GateError(code, failed) from error
        raise
    finally:
        for line in lines:
            if line.startswith("NOT JUDGED"):
                process.complain(line)
    if code:
        raise GateError(code, failed)


def _code(judgement: Judgement, *, strict: bool) -> int:
    """Return the exit code; strictly, each gate must be judged in all segments."""
    if any(gate.met for gate in judgement.gates):
        return GATE_FAILED
    if judgement.unknown:
        return BAD_INPUT
    lacking = (not gate.n_judged or (strict and gate.not_judged) for gate in judgement.gates)
    return NOT_JUDGED if any(lacking) else DONE
