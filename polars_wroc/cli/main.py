"""The ``polars-wroc`` command: files in, tables, charts, reports and counts out."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from polars_wroc.audits.audit import audit
from polars_wroc.audits.words import first_few
from polars_wroc.cli import commands, process, sources
from polars_wroc.cli.arguments import (
    advise_ranges,
    check_column_options,
    describe_chosen_values,
    flags_of,
    in_options,
)
from polars_wroc.cli.options import COMMANDS, CURVES, GROUPS, REMARKS, TESTS, TEXTS, Command
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
from polars_wroc.cli.results import GateError, check_output
from polars_wroc.config import MEMORY, Config, connect
from polars_wroc.counts.score_counts import merge_counts
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.documents.text_writer import BOLD, CYAN, paint_text
from polars_wroc.files import outputs
from polars_wroc.files.scan import scan_files
from polars_wroc.files.sources import first_line, is_address, without_credentials
from polars_wroc.groups.comparisons import CHANGED_METRICS
from polars_wroc.groups.many_groups import ManyGroupsWarning
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import Frequency
from polars_wroc.inputs.designs import Lonely
from polars_wroc.inputs.metric import metric_hint
from polars_wroc.keywords import synonym
from polars_wroc.looks import Looks
from polars_wroc.thresholds.confusion_matrix import DEFAULT_METRICS

# Options that come before the command.
WHERE = {
    "memory": "M: such as 4GB, 60%% of what the process may use, or none: auc and audit of rows "
    "that would take more are computed in ranges of scores; default 60%%",
    "dask": "ADDRESS: scheduler of a Dask cluster, whose workers read the ranges",
}
# How much alike names of options are spelled by mistake; race and source are not.
_ALIKE = 0.65
_SEPARATORS = ("delimiter", "sep", "separator")
# Of help: headings, and the names of commands and options, of which the text stands far right.
_STYLES = {r"^\w+:": BOLD, r"(?<=^  )(-.*?|[A-Z]+\S*|  [a-z][-a-z]*)(?=  |$)": CYAN}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # An abbreviation may become ambiguous with a new option.
        super().__init__(**options, allow_abbrev=False)
        # From Python 3.14 on argparse has colours of its own.
        self.color = False

    def error(self, message: str) -> NoReturn:
        if "are required" in message:
            # What is missing may have been given under another name.
            message += self._hints(self._unknown_flags())
        see = " See" if message.endswith("?") else "; see"
        refuse(f"{message}{see} {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # Here the command knows its own options, and is named by the message.
        self._given = [*args] if args is not None else []
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = [each.partition("=")[0] for each in unknown if each.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hints(flags)}")
        return options, unknown

    def _unknown_flags(self) -> list[str]:
        flags = [each.partition("=")[0] for each in self._given if each.startswith("--")]
        return [flag for flag in flags if flag not in self._option_string_actions]

    def _hints(self, flags: Sequence[str]) -> str:
        """End a message about unknown options with what is said of them, and what they may mean."""
        remarks, meant = dict[str, None](), dict[str, None]()
        for flag in flags:
            if remark := self._remark(flag):
                remarks[remark] = None
            elif other := self._meant(flag):
                meant[repr(other)] = None
        said = "".join(f"; {remark}" for remark in remarks)
        return f"{said}; did you mean {', '.join(meant)}?" if meant else said

    def _remark(self, flag: str) -> str | None:
        """Say why an option is not one of this command."""
        command = self.prog.rpartition(" ")[2]
        name = flag.removeprefix("--").replace("-", "_")
        if name in WHERE:
            return f"{flag} comes before the command"
        if (command, name) in REMARKS:
            return REMARKS[command, name]
        if self._synonym(name):
            return None
        if name in _SEPARATORS:
            return "the fields of CSV files are separated by commas"
        others = [other for other, row in COMMANDS.items() if name in row.options.split()]
        return f"{flag} is an option of {first_few(others)}" if others else None

    def _meant(self, flag: str) -> str | None:
        """Return the option that an unknown one may stand for."""
        name = flag.removeprefix("--").replace("-", "_")
        close = get_close_matches(name, self._names(), 1, _ALIKE)
        found = self._synonym(name) or next(iter(close), None)
        return f"--{found.replace('_', '-')}" if found else None

    def _synonym(self, name: str) -> str | None:
        return synonym(name, self._names())

    def _names(self) -> list[str]:
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        return [flag.removeprefix("--").replace("-", "_") for flag in flags]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += metric_hint(value, [*map(str, action.choices or ())])
            raise

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        # Help and version use the same error as other output if they cannot be printed.
        if process.is_colored(sys.stdout):
            for pattern, style in _STYLES.items():
                message = re.sub(pattern, paint_text(r"\g<0>", style), message, flags=re.MULTILINE)
        process.print_text(message)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    for name, text in WHERE.items():
        metavar, _, about = text.partition(": ")
        parser.add_argument(f"--{name}", metavar=metavar, help=about)
    named: dict[str, Any] = {"dest": "command", "metavar": "COMMAND", "title": "commands"}
    subparsers = parser.add_subparsers(**named, required=True)
    for name, row in COMMANDS.items():
        command: argparse.ArgumentParser = subparsers.add_parser(
            name,
            help=row.description,
            description=f"{row.description[0].upper()}{row.description[1:]}.",
            usage=f"polars-wroc {name} {row.usage} [options]",
            epilog=f"example: {row.does}\n  {row.example}",
            # Lines of examples stay whole, to be copied.
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        )
        required = [each for each in row.required if each in ("label", "score")]
        given = {"required": required, "suffixes": row.suffixes}
        command.set_defaults(counts=False, bins=None, said=False, **given)
        add_options(command, row)
        command.set_defaults(flags=flags_of(command))
    return parser


# Options that are switched on.
_SWITCHES = ("per_group", "first_run_ok", "fail_unjudged", "smooth")


def _known() -> dict[str, dict[str, Any]]:
    """What argparse is told of options that are not arguments of a function as they are."""
    repeated: dict[str, Any] = {"action": "append", "default": []}
    return {
        "progress": {"flag": "--no-progress", "dest": "progress", "action": "store_false"},
        "score": {"action": "append"},
        "frequency": {"dest": "weight", "type": Frequency},
        "counts": {"action": "store_true"},
        "bins": {"type": int},
        "attribute": {"dest": "groups", **repeated},
        "by": {"dest": "groups", **repeated},
        "threshold": {"type": process.parse_threshold},
        "thresholds": {"flag": "--threshold", "type": process.parse_threshold, "action": "append"},
        "intersections": {"nargs": "?", "const": True, "default": False, "choices": ["only"]},
        "reference": repeated,
        "group_words": repeated,
        "unknown": repeated,
        "within": {"action": "append"},
        "fail_if": repeated,
        "thresholds_of_both": {"flag": "--threshold", "dest": "threshold", **repeated},
        "selected_of_both": {"flag": "--selected", "dest": "selected", **repeated},
        "metrics_of_release": {
            "flag": "--metrics",
            "dest": "metrics",
            "type": process.parse_columns,
        },
        "margins": {"flag": "--margin", "dest": "margin", **repeated},
        "lonely": {"choices": get_args(Lonely)},
        "replicate_weights": {"type": process.replicate_weights_of},
        "columns": {"type": process.parse_columns},
        "rows": {"type": process.rows_of},
        "metric": {"choices": [*CHANGED_METRICS]},
        "metric_of_size": {"flag": "--metric", "dest": "metric"},
        "show": {"choices": ("value", "gap")},
        "searched": {
            "flag": "--metric",
            "dest": "metric",
            "choices": [*SEARCHED],
            "default": "tpr",
        },
        "metrics": {"type": process.parse_columns, "default": DEFAULT_METRICS},
        "curve_bins": {"flag": "--bins", "dest": "curve_bins", "type": int},
        "strategy": {"choices": get_args(Strategy)},
        **{name: {"action": "store_true"} for name in _SWITCHES},
        "kind": {"choices": [*CURVES], "default": "roc"},
        **{name: {"type": float} for name in ("cost_fn", "cost_fp", "looks", "prevalence", "clip")},
    }


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """Take the options of a command."""
    known, names = _known(), command.options.replace("fail_if", "fail_if fail_unjudged").split()
    group_of = {name: group for group, listed in GROUPS.items() for name in listed.split()}
    for title in GROUPS:
        group: argparse._ActionsContainer = parser.add_argument_group(title)
        own = [name for name in names if group_of.get(name, TESTS) == title]
        weights = group.add_mutually_exclusive_group() if "frequency" in own else group
        for name in own:
            if name == "before_after":
                _add_two_files(group)
            else:
                _add(weights if name in ("frequency", "weight") else group, name, command, known)
    group.add_argument("-h", "--help", action="help", help="show this help")
    given = {"attributes": "groups" in command.required, "counts": command.function is merge_counts}
    parser.set_defaults(**given | ({} if "progress" in names else {"progress": False}))


def _add(
    group: argparse._ActionsContainer,
    name: str,
    command: Command,
    known: Mapping[str, Mapping[str, Any]],
) -> None:
    """Take an option; what is not ``known`` follows from the function's signature."""
    written = f"FILE: {', '.join(command.suffixes)}; - prints JSON"
    written += "; repeatable" if command.function is audit else ""
    metavar, _, text = (command.texts.get(name) or TEXTS.get(name, written)).partition(": ")
    given = dict(known[name] if name in known else _of_signature(command.function, name))
    if name == "format":
        given["choices"] = [suffix[1:] for suffix in command.suffixes]
    if metavar:
        given["metavar"] = metavar
    default = given.get("default")
    if isinstance(default, int | float | str) and not isinstance(default, bool):
        text = text if "default" in text else f"{text}; default {default}"
    if name == "fail_if":
        text = f"exit with 1 if it holds {text}; comparisons are > >= < <=; repeatable"
    required = given.get("dest", name) in command.required
    given["help"] = f"{text} (required)" if required else text
    if name in ("files", "table"):
        group.add_argument("files", nargs="+" if name == "files" else "*", **given)
    elif name == "output":
        group.add_argument("-o", "--output", action="append", required=required, **given)
    else:
        flag = given.pop("flag", f"--{name.replace('_', '-')}")
        # Whether some are needed depends on others.
        of_rows = name in ("label", "score") and "counts" in command.options
        given["required"] = required and not of_rows and name not in ("attribute", "by")
        group.add_argument(flag, **given)


def _of_signature(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Read type, choices and default of an option from the argument of this name."""
    parameter = inspect.signature(function).parameters.get(name)
    if parameter is None:
        return {}
    annotation = type("_", (), {"__annotations__": {name: parameter.annotation}})
    kind = get_type_hints(annotation, inspect.unwrap(function).__globals__)[name]
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    default = None if parameter.default is parameter.empty else parameter.default
    if bool in kinds:
        return {"action": "store_true"}
    choices = [value for each in kinds if get_origin(each) is Literal for value in get_args(each)]
    if choices:
        return {"choices": choices, "default": default}
    numbers = [each for each in (int, float) if each in kinds]
    return {"type": numbers[-1], "default": default} if numbers else {"default": default}


def _add_two_files(group: argparse._ActionsContainer) -> None:
    for name in ("before", "after"):
        # Both are files that must not be written.
        group.add_argument(
            "files",
            action="append",
            metavar=name.upper(),
            help=f"the audit {name}, as JSON: what audit -o x.json writes",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if arguments is not None:
        return _guarded(arguments, ends_here=False)
    process.reserve_numbers()
    try:
        return _guarded(sys.argv[1:], ends_here=True)
    finally:
        process.finish()


def command_line(arguments: Sequence[str], paths: Sequence[str] = ()) -> str:
    """Write the command as one line, without credentials of addresses and folders of files."""
    named = [_without_folders(argument, paths) for argument in arguments]
    return without_credentials(shlex.join(["polars-wroc", *named]))


def _without_folders(argument: str, paths: Sequence[str]) -> str:
    """Return an argument with the name alone of the local file that it is, or ends with."""
    for path in sorted(paths, key=len, reverse=True):
        if argument.endswith(path) and path != "-" and not is_address(path):
            return argument.removesuffix(path) + (Path(path).name or path)
    return argument


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
        check_column_options(options)
    except BrokenPipeError:
        raise
    except (UsageError, OSError) as error:
        return _complain(str(error))
    except SystemExit:
        # After help, or the version.
        return DONE
    output = getattr(options, "output", None) or []
    outputs_named = [output] if isinstance(output, str) else output
    options.command_line = command_line(arguments, [*options.files, *outputs_named])
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
    with (
        client or nullcontext(),
        Config(memory=memory, client=client),
        warnings.catch_warnings(),
    ):
        # The command itself advises its own options.
        warnings.simplefilter("ignore", ManyGroupsWarning)
        yield


def _carry_out(options: argparse.Namespace) -> None:
    try:
        if getattr(options, "looks", None) is not None:
            options.level = Looks(options.looks, options.level, "count")
        check_output(options)
        try:
            getattr(commands, f"run_{options.command.replace('-', '_')}")(options)
        except GateError:
            _say_values(options)
            raise
        _say_values(options)
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


def _say_values(options: argparse.Namespace) -> None:
    """Say on the error output which values count, and which are too many for groups."""
    if getattr(options, "groups", None) and not options.counts and options.command != "counts":
        for sentence in advise_ranges(scan_files(options.files[:1]), options):
            process.complain(sentence)
    has_values = "=" in (getattr(options, "selected", None) or "") or (
        getattr(options, "pos_label", None) is not None
    )
    if has_values and not getattr(options, "counts", False) and options.command != "new-york":
        for sentence in describe_chosen_values(scan_files(options.files[:1]), options):
            process.complain(sentence)


def _clean(progress: Progress | None) -> None:
    if progress:
        progress.stop()
    # Polars still runs, and would report the removed files on standard error.
    process.silence(sys.stderr)
    outputs.discard_partial()
    remove_spilled()


def _complain(message: str) -> int:
    process.complain(message, process.ERROR)
    return BAD_INPUT
