"""Results of commands: gates first, then what is printed and written."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.fitted_table import Screen
from polars_wroc.audits.gates import Judgement
from polars_wroc.cli import streams
from polars_wroc.cli.drawing import draw
from polars_wroc.cli.screen import check_printed, screen_of
from polars_wroc.files import outputs


class GateError(Exception):
    """A result met a condition of --fail-if."""


def present(judgement: Judgement, show: Callable[[], None]) -> None:
    """Show a result that was judged; raise if a gate is met or cannot be judged."""
    problem = _problem(judgement)
    try:
        show()
    except (Exception, pl.exceptions.PanicException) as error:
        # The exit code of a failed gate takes precedence over that of failed output.
        if problem:
            raise problem from error
        raise
    finally:
        for gate in judgement.gates:
            if gate.not_judged:
                streams.complain(f"{gate.condition} is not judged in {'; '.join(gate.not_judged)}")
    if problem:
        raise problem


def _problem(judgement: Judgement) -> Exception | None:
    """Return the error of gates that are met or cannot be judged."""
    failures = [f"{gate.condition}: {place}" for gate in judgement.gates for place in gate.where]
    text = "; ".join([*failures, *judgement.unknown])
    if failures:
        return GateError(text)
    return ValueError(text) if judgement.unknown else None


def check_output(
    options: argparse.Namespace, allowed: Sequence[str], *, printed: bool = False
) -> None:
    """Check the file that is written, if any. ``printed``: a table is printed too."""
    check_printed(options, printed=options.output is None or (printed and options.output != "-"))
    if options.output not in (None, "-"):
        outputs.check_target(options.output, allowed, options.files)


def show_table(
    kind: str,
    table: pl.DataFrame,
    options: argparse.Namespace,
    text: Callable[[Screen], str],
    **known: Any,
) -> None:
    """Write a table to a file, draw it, or print it: as JSON, or as text for readers.

    ``known`` are arguments of its chart.
    """
    if options.output == "-":
        print_json(table, options)
    elif options.output:
        write_table(kind, table, options, **known)
    else:
        say(f"{text(screen_of(options))}\n", options)


def write_table(kind: str, table: pl.DataFrame, options: argparse.Namespace, **known: Any) -> None:
    """Write a table, or its chart, to a file."""
    if is_chart(options):
        draw(kind, table, options.output, **known)
    else:
        outputs.save_table(table, options.output)
    say_written(options)


def is_chart(options: argparse.Namespace) -> bool:
    """Whether the file that is written is a chart."""
    return (options.output or "").lower().endswith(outputs.CHART_SUFFIXES)


def print_json(table: pl.DataFrame, options: argparse.Namespace) -> None:
    """Print the rows of a table as JSON."""
    say(outputs.json_of(table) + "\n", options, json=True)


def say_written(options: argparse.Namespace) -> None:
    """Say which file was written."""
    say(f"wrote {options.output}\n", options)


def say(text: str, options: argparse.Namespace, *, json: bool = False) -> None:
    """Print on standard output, after removing the progress line."""
    if options.progress:
        options.progress.stop()
    streams.say(text, json=json)
