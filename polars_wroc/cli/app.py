"""The command line: its commands, how they end, and how errors are said."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from inspect import BoundArguments
from io import StringIO
from pathlib import Path
from typing import Any

from cyclopts import App, Argument, ArgumentCollection, CycloptsError, Group, Parameter
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.help import DefaultFormatter
from polars.exceptions import PolarsError

from polars_wroc.checks import OTHER_WORDS
from polars_wroc.cli import outcome, settings, terminal
from polars_wroc.cli.catalog import COMMAND_PARTS, COMMANDS
from polars_wroc.files.sources import first_line, without_credentials
from polars_wroc.groups.many_groups import ManyGroupsWarning

_WEB = "https://pypi.org/project/polars-wroc"
# The least similarity of a misspelled name to the one that is meant.
_ALIKE = 0.65


def _write_default(value: Any) -> str | None:
    """Write a default that a reader should know of."""
    if isinstance(value, bool) or value is None or value in ("", [], ()):
        return None
    if isinstance(value, list | tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


class _HelpFormatter(DefaultFormatter):
    """Help whose text above the options is printed as it is written.

    As Markdown, an example would be a black block on a light terminal.
    """

    def render_description(self, console: Any, options: Any, description: Any) -> None:  # noqa: ARG002
        """Print the text above the options."""
        console.print(description.primary_renderable.markup, markup=False, highlight=False)


def _add_settings(_: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Add options of the file and of variables; keep the arguments, whose tokens say the source."""
    _called[:] = arguments
    settings.add_settings(app, commands, arguments)
    for argument in arguments:
        if argument.hint in (int, int | None):
            _check_whole(argument)


def _check_whole(argument: Argument) -> None:
    """Refuse a fraction where a whole number is wanted, to which Cyclopts would round it."""
    for token in argument.tokens:
        if re.fullmatch(r"[+-]?\d*\.\d+", token.value) and not float(token.value).is_integer():
            msg = f"{argument.name} must be a whole number; found {token.value}"
            raise ValueError(msg)


# The arguments of the command that is called, with the texts that each was given.
_called: list[Any] = []

app = App(
    name="polars-wroc",
    help="Weighted ROC analysis and fairness audits of scored rows.\n\n"
    "To see a report on bundled data: polars-wroc demo\n"
    "To see the options of a command: polars-wroc audit --help\n",
    help_formatter=_HelpFormatter(),
    help_epilogue="Exit codes: 0 done, 1 condition met, 2 error, 3 not judged, 130 stopped.\n\n"
    f"Options are read from {settings.FILE} too, and from variables such as "
    f"{settings.VARIABLES}LABEL.\n\nDocumentation: {_WEB}",
    version=lambda: f"polars-wroc {version('polars-wroc')}",
    default_parameter=Parameter(
        negative_iterable=(), negative_bool=(), show_default=_write_default
    ),
    config=(_add_settings,),
    result_action="return_value",
    exit_on_error=False,
    print_error=False,
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(help="Install completion for the shell.")
for _number, _part in enumerate(COMMAND_PARTS):
    _group = Group(_part, sort_key=_number)
    for _place, (_name, _about) in enumerate(COMMAND_PARTS[_part].items()):
        _module = _name.replace("-", "_")
        app.command(
            f"polars_wroc.cli.commands.{_module}:{_module}",
            name=_name,
            usage=_about.usage,
            help=_about.help,
            group=_group,
            sort_key=_place,
        )
_group = Group("Options", sort_key=len(COMMAND_PARTS))
for _flag in ("--help", "--version", "--install-completion"):
    app[_flag].group = _group


def run(arguments: Sequence[str] | None) -> int:
    """Run a command, by default that of the process, and return its exit code."""
    if arguments is not None:
        return _run([*arguments])
    terminal.open_closed_streams()
    try:
        return _run(sys.argv[1:])
    finally:
        terminal.drop_unwritable()


def _run(arguments: list[str]) -> int:
    """Run a command; every error becomes one sentence."""
    try:
        command, bound, *_ = app.parse_args(arguments)
        if command.__name__ in ("help_print", "version_print"):
            _print_help(command, bound)
        else:
            _carry_out(command, bound, arguments)
    except BrokenPipeError:
        # The reader of the output closed it, as `head` does.
        return outcome.DONE
    except SystemExit as error:
        return int(error.code or 0)
    except outcome.ConditionError as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, BrokenPipeError):
            terminal.print_error(describe_error(error.__cause__))
        for line in error.lines:
            terminal.print_error(line)
        return error.code
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (a panic of Polars is no Exception)
        terminal.print_error(describe_error(error))
        return outcome.BAD_INPUT
    return outcome.DONE


def _print_help(command: Callable[..., Any], bound: BoundArguments) -> None:
    """Print help or the version; an output that is closed or full is an error."""
    # Only help should cost the import.
    from rich.console import Console  # noqa: PLC0415

    text = StringIO()
    colored, width = terminal.is_colored(sys.stdout), shutil.get_terminal_size().columns
    bound.arguments["console"] = Console(file=text, force_terminal=colored, width=width)
    command(*bound.args, **bound.kwargs)
    terminal.print_text(text.getvalue())


def _carry_out(command: Callable[..., Any], bound: BoundArguments, arguments: list[str]) -> None:
    outcome.command_line.set(write_command_line([*arguments, *_settings()], _paths()))
    with warnings.catch_warnings():
        # Hints of Polars about cloud settings; and the command itself advises its own options.
        warnings.filterwarnings("ignore", r".*\bregion\b.* not set", UserWarning)
        warnings.simplefilter("ignore", ManyGroupsWarning)
        command(*bound.args, **bound.kwargs)


def _settings() -> list[str]:
    """Return the options that are not from the command line, as they could have been given."""
    return [
        text
        for argument in _called
        for token in argument.tokens
        if token.source != "cli"
        for text in (argument.name, token.value)
    ]


def _paths() -> list[str]:
    """Return the files that are read and written."""
    files = [each for each in _called if each.name in ("FILE", "BEFORE", "AFTER", "--output")]
    return [token.value for argument in files for token in argument.tokens]


def write_command_line(arguments: Sequence[str], paths: Sequence[str] = ()) -> str:
    """Write the command as one line, without credentials of addresses and folders of files."""
    named = [_without_folders(argument, paths) for argument in arguments]
    return without_credentials(shlex.join(["polars-wroc", *named]))


def _without_folders(argument: str, paths: Sequence[str]) -> str:
    """Return an argument with the name alone of the local file that it is, or ends with."""
    for path in sorted(paths, key=len, reverse=True):
        if argument.endswith(path) and path != "-" and "://" not in path:
            return argument.removesuffix(path) + (Path(path).name or path)
    return argument


def describe_error(error: BaseException) -> str:
    """Describe an error in one sentence, with the options in place of arguments."""
    if isinstance(error, CycloptsError):
        return _describe_wrong_call(error)
    if isinstance(error, MemoryError):
        return "out of memory; try --memory 4GB, or --approximate 4096"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | PolarsError):
        return _name_options(first_line(error))
    return f"unexpected {type(error).__name__}: {first_line(error)}"


# Arguments of functions that have other names than the options.
_ALIASES = {
    "path": "--output",
    "counts": "FILE",
    "files": "FILE",
    "frame": "FILE",
    "frames": "FILE",
    "table": "FILE",
    **dict.fromkeys(("by", "attributes", "facet"), "--attribute"),
    "bins": "--approximate",
    "design": "--cluster",
    "planned": "--looks",
    "client": "--dask",
}
# Functions that messages name, and the commands that call them.
_FUNCTIONS = {
    "audit": "polars-wroc audit",
    "audit_changes": "polars-wroc diff",
    "calibration_summary": "polars-wroc calibrate",
    "group_gaps": "polars-wroc gaps",
    "merge_counts": "polars-wroc counts",
    "release_check": "polars-wroc release",
    "score_counts": "polars-wroc counts",
    "summary": "polars-wroc auc",
}


def _name_options(message: str) -> str:
    """Name arguments in a message as the options that set them, and the one file that is read."""
    flags = {each.name for each in _called}
    known = {argument: flag for argument, flag in _ALIASES.items() if flag in flags}
    known |= _FUNCTIONS
    if "--by" in flags:
        known |= dict.fromkeys(("by", "attributes", "facet"), "--by")
    known |= {flag.lower(): flag for flag in flags if flag.isupper()} | {"FILE": "FILE"}
    known |= {flag.removeprefix("--").replace("-", "_"): flag for flag in flags if flag[0] == "-"}
    files = [token.value for each in _called if each.name == "FILE" for token in each.tokens]
    if len(files) == 1:
        message = message.replace("a column of the frame", f"a column of {files[0]}")
    message = message.replace("a column of the frame", "a column of the files")
    message = re.sub(r"`(--[\w-]+)`", r"\1", message)
    message = _LIST.sub(lambda found: _write_names(literal_eval(found[0])), message)
    # Anything but an argument is a file.
    message = re.sub(r"^`(?!\w+`)([^`]+)`", r"\1", message)
    message = re.sub(r"`(\w+)`", lambda found: known.get(found[1], found[0]), message)
    return message + _name_setting(message)


# A list of texts as Python writes it.
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_LIST = re.compile(rf"\[{_TEXT}(?:, {_TEXT})*\]")


def _write_names(names: Iterable[str]) -> str:
    """List names, in quotes where a comma or a space would split them."""
    return ", ".join(name if re.fullmatch(r"[^\s,;'\"]+", name) else repr(name) for name in names)


def _name_setting(message: str) -> str:
    """Return where the option in front of a message comes from, if not from the call."""
    flag, _, _ = message.partition(" ")
    for argument in _called:
        source = argument.tokens[0].source if argument.tokens else "cli"
        if argument.name == flag and source != "cli":
            variable = f"the variable {source}{flag[2:].replace('-', '_').upper()}"
            return f"; {flag} comes from {variable if source == settings.VARIABLES else source}"
    return ""


def _describe_wrong_call(error: CycloptsError) -> str:
    """Return a message about wrong options, with the ones that may be meant."""
    error.verbose = False
    command = " ".join(["polars-wroc", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError):
        word = (error.unused_tokens or [""])[0]
        said = f"there is no command {word!r}{_hint(word, [*COMMANDS])}"
    elif isinstance(error, UnknownOptionError):
        flag = (error.token.keyword or error.token.value).partition("=")[0]
        arguments = error.argument_collection or _called
        said = f"there is no option {flag}{_hint_option(flag, arguments)}"
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        what = "needs a value" if error.argument.tokens or error.keyword else "must be given"
        said = f"{error.keyword or error.argument.name} {what}"
        unknown = [each for each in error.unused_tokens or () if each.startswith("--")]
        if unknown and error.argument.name == "--over" and (period := _read_period(error)):
            said += "; give the length of periods as --over {} --every {}".format(*period)
        elif unknown:
            said += f"; there is no option {unknown[0]}{_hint_option(unknown[0], _called)}"
    elif isinstance(error, RepeatArgumentError):
        flag = f"--{(error.token.keyword or '').strip('[]-')}"
        said = f"{flag} must be given once{_name_setting(flag)}"
    elif isinstance(error, UnusedCliTokensError):
        said = f"cannot use {shlex.join(error.unused_tokens or [])}"
    else:
        said = _name_setting_in_brackets(str(error).rstrip("."))
        said = said.replace(f" from {settings.VARIABLES}", "")
        if isinstance(error, CoercionError) and error.token is not None:
            words = OTHER_WORDS.get((error.token.keyword or "").removeprefix("--"), {})
            if meant := words.get(error.token.value):
                said += f"; did you mean {meant!r}?"
    see = " See" if said.endswith("?") else "; see"
    return f"{said}{see} {command} --help"


def _name_setting_in_brackets(message: str) -> str:
    """Name the option of a message about a value of the file or of a variable."""
    found = re.search(r" for \[([\w-]+)\]", message)
    if found is None:
        return message
    flag = f"--{found[1]}"
    message = message.replace(f"[{found[1]}]", flag, 1)
    return message if " from " in message else f"{message}{_name_setting(f'{flag} ')}"


def _read_period(error: CycloptsError) -> list[str] | None:
    """Return the column and the length of --by day:1mo, which other commands take."""
    found = re.search(r"--by[ =](\S+):(\w+)", " ".join(error.unused_tokens or ()))
    return found and [shlex.quote(found[1]), found[2]]


def _hint(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, known, 1, _ALIKE)
    return f"; did you mean {close[0]!r}?" if close else ""


def _hint_option(flag: str, arguments: ArgumentCollection | list[Any]) -> str:
    """Name the option that an unknown one may stand for."""
    meant = settings.guess_option(flag[2:], settings.list_options(arguments))
    return f"; did you mean '--{meant}'?" if meant else ""
