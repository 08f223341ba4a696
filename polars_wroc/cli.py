"""The ``polars-wroc`` command: files in, tables, charts, reports and counts out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from polars_wroc import cli_commands, cli_inputs, files
from polars_wroc.cli_parser import UsageError, build_parser
from polars_wroc.interruption import stoppable
from polars_wroc.messages import one_line
from polars_wroc.progress import Progress
from polars_wroc.spilling import name_spill_folder, remove_spilled

DONE, GATE_FAILED, BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        options = build_parser(
            {
                "audit": cli_commands.run_audit,
                "auc": cli_commands.run_auc,
                "curve": cli_commands.run_curve,
                "counts": cli_commands.run_counts,
                "merge": cli_commands.run_merge,
            }
        ).parse_args(arguments)
        cli_inputs.check_columns(options)
    except UsageError as error:
        return _complain(str(error))
    wanted = options.progress and sys.stderr.isatty()
    options.progress = Progress(sys.stderr) if wanted else None
    with stoppable(lambda: _clean(options.progress)):
        name_spill_folder()
        code = _run(options)
        if arguments is None:
            # Only where the process ends here too: Polars needs the folder as long as it goes on.
            remove_spilled()
    return code


@cli_inputs.without_hints()
def _run(options: argparse.Namespace) -> int:
    try:
        _carry_out(options)
    except UsageError as error:
        return _complain(str(error))
    except cli_commands.GateError as error:
        _complain(str(error))
        return GATE_FAILED
    except BrokenPipeError:
        # Whoever read the output has seen enough; say nothing more at the end either.
        _silence(sys.stdout)
    except (*cli_inputs.ERRORS, ImportError) as error:
        return _complain(cli_inputs.describe(error, options))
    return DONE


def _carry_out(options: argparse.Namespace) -> None:
    try:
        options.run(options)
    finally:
        if options.progress:
            options.progress.stop()


def _clean(progress: Progress | None) -> None:
    if progress:
        progress.stop()
    # Polars goes on until the very end, and would complain of the files that it misses.
    _silence(sys.stderr)
    files.discard_partial()
    remove_spilled()


def _silence(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str) -> int:
    sys.stderr.write(f"polars-wroc: {one_line(message)}\n")
    return BAD_INPUT
