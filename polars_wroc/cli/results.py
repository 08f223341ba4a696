"""Results of commands: gates first, then what is printed and written."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import polars as pl

from polars_wroc.audits.gates import Judgement
from polars_wroc.cli import streams
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


def check_output(options: argparse.Namespace, allowed: Sequence[str]) -> str | None:
    """Return the suffix of the file that is written, if there is one."""
    if options.output in (None, "-"):
        return None
    return outputs.check_target(options.output, allowed, options.files)


def show_table(table: pl.DataFrame, options: argparse.Namespace, text: Callable[[], str]) -> None:
    """Write a table to a file, or print it: as JSON, or as text for readers."""
    if options.output == "-":
        print_json(table, options)
    elif options.output:
        outputs.save_table(table, options.output)
        say_written(options)
    else:
        say(f"{text()}\n", options)


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
