"""The ``polars-wroc`` command: files in, tables, charts, reports and counts out."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn

from polars_wroc.cli import command_options, commands, process, shared_options, sources
from polars_wroc.cli.arguments import check_columns, in_options
from polars_wroc.cli.commands import run_diff, run_impact
from polars_wroc.cli.process import (
    Progress,
    UsageError,
    name_spill_folder,
    remove_spilled,
    run_stoppable,
)
from polars_wroc.cli.results import GateError
from polars_wroc.files import outputs
from polars_wroc.files.sources import first_line, without_credentials
from polars_wroc.inputs.arguments import did_you_mean


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # An abbreviation may become ambiguous with a new option.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        msg = f"{message}{see} {self.prog} --help"
        raise UsageError(msg)

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # Here the command knows its own options, and is named by the message.
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = did_you_mean(unknown[0], self._option_string_actions)
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


class _Command(NamedTuple):
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    # What must be given, and an example: what it does, and the command.
    usage: str
    does: str
    example: str


_COLUMNS = "--label L --score S"
_COMMANDS = {
    "audit": _Command(
        "AUCs, decisions and gaps of segments, as a report",
        command_options.add_audit,
        f"FILE... {_COLUMNS} --attribute A",
        "write a report on sex and on ranges of age",
        "polars-wroc audit loans.csv --label repaid --score s --threshold 0.5 \\\n"
        "    --favorable selected --attribute sex --attribute 'age:18,30,50' -o report.html",
    ),
    "diff": _Command(
        "what changed between two audits of different rows",
        command_options.add_diff,
        "BEFORE AFTER",
        "fail if a gap in AUC has grown by more than two points",
        "polars-wroc diff march.json april.json --fail-if 'auc.gap.growth>0.02'",
    ),
    "impact": _Command(
        "selection rates of categories divided by the highest, without a label",
        command_options.add_impact,
        "FILE... --attribute A (--selected D | --score S --threshold T) --favorable F",
        "fail if the selection rate of a category is surely below four fifths",
        "polars-wroc impact hires.csv --selected hired --favorable selected \\\n"
        "    --attribute sex --attribute race --fail-if 'impact_ratio.ratio_high<0.8'",
    ),
    "auc": _Command(
        "the AUC and other metrics of each group",
        command_options.add_auc,
        f"FILE... {_COLUMNS}",
        "draw the AUC of each site with its interval",
        "polars-wroc auc loans.parquet --label repaid --score s --by site -o auc.svg",
    ),
    "compare": _Command(
        "tests whether two or more scores have different AUCs on the same rows",
        command_options.add_compare,
        f"FILE... {_COLUMNS} --score S",
        "compare a new score with the old one",
        "polars-wroc compare loans.parquet --label repaid --score old --score new",
    ),
    "gaps": _Command(
        "tests whether groups differ from a reference in AUC or in rates",
        command_options.add_gaps,
        f"FILE... {_COLUMNS} --attribute A",
        "compare the true positive rate of each site with that of the others",
        "polars-wroc gaps loans.parquet --label repaid --score s --attribute site \\\n"
        "    --threshold 0.5 --metric tpr",
    ),
    "thresholds": _Command(
        "rates at thresholds, or at one that a rule chooses",
        command_options.add_thresholds,
        f"FILE... {_COLUMNS} --threshold T...",
        "find the lowest threshold that at most a tenth of the negatives reach",
        "polars-wroc thresholds loans.parquet --label repaid --score s --threshold max-fpr=0.1",
    ),
    "calibrate": _Command(
        "whether scores are probabilities: observed rates in bins, and the calibration slope",
        command_options.add_calibrate,
        f"FILE... {_COLUMNS}",
        "show the calibration of each sex in bins of equal weight",
        "polars-wroc calibrate loans.parquet --label repaid --score s --by sex --strategy quantile",
    ),
    "curve": _Command(
        "ROC and other curves, as a table or a chart",
        command_options.add_curve,
        f"FILE... {_COLUMNS} -o FILE",
        "draw the precision-recall curve of each site",
        "polars-wroc curve loans.parquet --label repaid --score s --by site --kind pr -o pr.png",
    ),
    "counts": _Command(
        "counts of rows by score, which add up and can replace the rows",
        command_options.add_score_counts,
        "FILE... --score S -o FILE",
        "count the rows of a day by sex",
        "polars-wroc counts monday.csv --label repaid --score s --by sex -o monday.parquet",
    ),
    "merge": _Command(
        "the sum of the counts in several files",
        command_options.add_merge,
        "FILE... -o FILE",
        "add up the counts of a week",
        "polars-wroc merge monday.parquet tuesday.parquet -o week.parquet",
    ),
}


def build_parser(
    runs: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Build the parser; ``runs`` maps the name of each command to its function."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, row in _COMMANDS.items():
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=row.description,
            description=f"{row.description[0].upper()}{row.description[1:]}.",
            usage=f"polars-wroc {name} {row.usage} [options]",
            epilog=f"example: {row.does}\n  {row.example}",
            # Lines of examples stay whole, to be copied.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(
            run=runs[name], counts=False, bins=None, required=("label", "score"), attributes=False
        )
        row.add_options(command)
        shared_options.mark_required(command)
        command.set_defaults(flags=shared_options.flags_of(command))
    return parser


# Exit code 1 is only for a failed gate.
DONE, GATE_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


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
        options = build_parser(
            {
                "audit": commands.run_audit,
                "auc": commands.run_auc,
                "curve": commands.run_curve,
                "counts": commands.run_counts,
                "merge": commands.run_merge,
                "compare": commands.run_compare,
                "gaps": commands.run_gaps,
                "thresholds": commands.run_thresholds,
                "calibrate": commands.run_calibrate,
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
    process.silence(sys.stderr)
    outputs.discard_partial()
    remove_spilled()


def _complain(message: str) -> int:
    process.complain(message)
    return BAD_INPUT
