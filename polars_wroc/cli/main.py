"""The ``polars-wroc`` command: files in, tables, charts, reports and counts out."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from polars_wroc.cli import commands, sources, streams, tables
from polars_wroc.cli.arguments import check_columns, in_options
from polars_wroc.cli.diff import run_diff
from polars_wroc.cli.impact import run_impact
from polars_wroc.cli.interruption import run_stoppable
from polars_wroc.cli.parser import build_parser
from polars_wroc.cli.progress import Progress
from polars_wroc.cli.results import GateError
from polars_wroc.cli.spilling import name_spill_folder, remove_spilled
from polars_wroc.cli.usage import UsageError
from polars_wroc.files import outputs
from polars_wroc.files.messages import first_line, without_credentials

# Exit code 1 is only for a failed gate.
DONE, GATE_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if arguments is not None:
        return _guarded(arguments, ends_here=False)
    streams.reserve_numbers()
    try:
        return _guarded(sys.argv[1:], ends_here=True)
    finally:
        streams.finish()


def command_line(arguments: Sequence[str]) -> str:
    """Write the command as one line, without the credentials of addresses."""
    return without_credentials(shlex.join(["polars-wroc", *arguments]))


def _guarded(arguments: Sequence[str], *, ends_here: bool) -> int:
    try:
        return _main(arguments, ends_here=ends_here)
    except BrokenPipeError:
        # The reader of the output closed it, as `head` does.
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001  (a panic of Polars is no Exception)
        return _complain(_unexpected(error))


def _main(arguments: Sequence[str], *, ends_here: bool) -> int:
    try:
        options = build_parser(
            {
                "audit": commands.run_audit,
                "auc": commands.run_auc,
                "curve": commands.run_curve,
                "counts": commands.run_counts,
                "merge": commands.run_merge,
                "compare": tables.run_compare,
                "gaps": tables.run_gaps,
                "thresholds": tables.run_thresholds,
                "calibrate": tables.run_calibrate,
                "impact": run_impact,
                "diff": run_diff,
            }
        ).parse_args(arguments)
        check_columns(options)
    except BrokenPipeError:
        raise
    except (UsageError, OSError) as error:
        return _complain(str(error))
    except SystemExit:
        # After help, or the version.
        return DONE
    options.command_line = command_line(arguments)
    wanted = options.progress and sys.stderr is not None and sys.stderr.isatty()
    options.progress = Progress(sys.stderr) if wanted else None

    def work() -> int:
        name_spill_folder()
        code = _run(options)
        if ends_here:
            # Until the process ends, Polars may need the folder.
            remove_spilled()
        return code

    return run_stoppable(work, lambda: _clean(options.progress))


@sources.without_hints()
def _run(options: argparse.Namespace) -> int:
    try:
        _carry_out(options)
    except UsageError as error:
        return _complain(str(error))
    except GateError as error:
        if error.__cause__ and not isinstance(error.__cause__, BrokenPipeError):
            _complain(_described(error.__cause__, options))
        _complain(str(error))
        return GATE_FAILED
    except (*sources.ERRORS, ImportError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        return _complain(_described(error, options))
    return DONE


def _carry_out(options: argparse.Namespace) -> None:
    try:
        options.run(options)
    finally:
        if options.progress:
            options.progress.stop()


def _described(error: BaseException, options: argparse.Namespace) -> str:
    if not isinstance(error, (*sources.ERRORS, ImportError)):
        return _unexpected(error)
    try:
        return in_options(sources.describe(error, options), options)
    except Exception:  # noqa: BLE001  (the first error matters)
        return first_line(error)


def _unexpected(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory must suffice; found that it does not"
    return f"unexpected {type(error).__name__}: {first_line(error)}"


def _clean(progress: Progress | None) -> None:
    if progress:
        progress.stop()
    # Polars still runs, and would report the removed files on standard error.
    streams.silence(sys.stderr)
    outputs.discard_partial()
    remove_spilled()


def _complain(message: str) -> int:
    streams.complain(message)
    return BAD_INPUT
