"""Gates of commands: what is said of them, and the exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import polars as pl

from polars_wroc.audits.gates import Judgement
from polars_wroc.cli import process
from polars_wroc.cli.arguments import in_options
from polars_wroc.cli.process import BAD_INPUT, DONE, GATE_FAILED, NOT_JUDGED


class GateError(Exception):
    """A result met a condition of --fail-if, or a condition could not be judged."""

    def __init__(self, code: int, lines: list[str]) -> None:
        super().__init__(code, lines)
        self.code, self.lines = code, lines


def present(judgement: Judgement, show: Callable[[], None], options: argparse.Namespace) -> None:
    """Show a result that was judged; raise if a gate is met or cannot be judged."""
    code = _code(judgement, strict=options.fail_unjudged)
    lines = [line for gate in judgement.gates for line in gate.lines]
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
