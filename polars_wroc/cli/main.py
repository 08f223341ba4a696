"""The ``polars-wroc`` command: files in, tables, charts, reports and counts out."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Any, NoReturn, get_args

from polars_wroc.cli import commands, process, sources
from polars_wroc.cli.arguments import check_columns, flags_of, in_options
from polars_wroc.cli.gating import GateError
from polars_wroc.cli.options import COMMANDS, add_options
from polars_wroc.cli.process import (
    BAD_INPUT,
    DONE,
    INTERRUPTED,
    Progress,
    UsageError,
    name_spill_folder,
    refuse,
    remove_spilled,
    run_stoppable,
)
from polars_wroc.cli.results import check_output
from polars_wroc.files import outputs
from polars_wroc.files.sources import first_line, without_credentials
from polars_wroc.inputs.arguments import did_you_mean
from polars_wroc.inputs.looks import Looks
from polars_wroc.plans.config import MEMORY, Config, Engine, connect

# Options that come before the command.
WHERE = {
    "engine": ": what computes tables of sorted rows; default auto",
    "memory": "M: such as 4GB, 60%% of what the process may use, or none: auc and audit of rows "
    "that would take more are computed in ranges of scores; default 60%%",
    "dask": "ADDRESS: scheduler of a Dask cluster, whose workers read the ranges",
}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # An abbreviation may become ambiguous with a new option.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        refuse(f"{message}{see} {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # Here the command knows its own options, and is named by the message.
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = did_you_mean(unknown[0], self._option_string_actions)
            if unknown[0].partition("=")[0] in (f"--{name}" for name in WHERE):
                hint = ", which comes before the command"
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(value, map(str, action.choices or ()))
            raise

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        # Help and version use the same error as other output if they cannot be printed.
        process.say(message)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    for name, text in WHERE.items():
        metavar, _, about = text.partition(": ")
        choices = get_args(Engine) if name == "engine" else None
        parser.add_argument(f"--{name}", metavar=metavar or None, choices=choices, help=about)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, row in COMMANDS.items():
        command: argparse.ArgumentParser = subparsers.add_parser(
            name,
            help=row.description,
            description=f"{row.description[0].upper()}{row.description[1:]}.",
            usage=f"polars-wroc {name} {row.usage} [options]",
            epilog=f"example: {row.does}\n  {row.example}",
            # Lines of examples stay whole, to be copied.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        required = [each for each in row.required if each in ("label", "score")]
        given = {"required": required, "suffixes": row.suffixes}
        command.set_defaults(counts=False, bins=None, said=False, **given)
        add_options(command, row)
        command.set_defaults(flags=flags_of(command))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if arguments is not None:
        return _guarded(arguments, ends_here=False)
    process.reserve_numbers()
    try:
        return _guarded(sys.argv[1:], ends_here=True)
    finally:
        process.finish()


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
        options = build_parser().parse_args(arguments)
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
        with _where(options):
            _carry_out(options)
    except UsageError as error:
        return _complain(str(error))
    except GateError as error:
        if error.__cause__ and not isinstance(error.__cause__, BrokenPipeError):
            _complain(_described(error.__cause__, options))
        for line in error.lines:
            _complain(line)
        return error.code
    except (*sources.ERRORS, ImportError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        return _complain(_described(error, options))
    return DONE


@contextmanager
def _where(options: argparse.Namespace) -> Iterator[None]:
    """Compute tables where the options say; what exceeds the memory is divided by default."""
    memory = options.memory or (None if os.environ.get(MEMORY) else "60%")
    client = None if options.dask is None else connect("--dask", options.dask)
    with client or nullcontext(), Config(engine=options.engine, memory=memory, client=client):
        yield


def _carry_out(options: argparse.Namespace) -> None:
    try:
        if getattr(options, "looks", None) is not None:
            options.level = Looks(options.looks, options.level, "count")
        check_output(options)
        getattr(commands, f"run_{options.command.replace('-', '_')}")(options)
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
    process.silence(sys.stderr)
    outputs.discard_partial()
    remove_spilled()


def _complain(message: str) -> int:
    process.complain(message)
    return BAD_INPUT
