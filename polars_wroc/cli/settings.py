"""Options that are read from the file ``wroc.toml`` and from variables of the environment."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cyclopts import App, Argument, ArgumentCollection
from cyclopts.config import Dict, Env

from polars_wroc.cli.catalog import COMMANDS
from polars_wroc.keywords import synonym

FILE, VARIABLES = "wroc.toml", "POLARS_WROC_"
# The least similarity of a misspelled option to the one that is meant; race is not source.
_ALIKE = 0.65
# Sources of options that are meant for all commands.
_SHARED = (FILE, VARIABLES)
# The options of a call that are given to all commands, and not to this one.
shared_options: ContextVar[frozenset[str]] = ContextVar("shared_options", default=frozenset())
# Commands for which --selected excludes --score too, as it excludes --threshold for all.
_WITHOUT_SCORE = ("impact", "new-york")


def add_settings(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Add the options of the file and of variables to those of the command line.

    Options that are meant for all commands are left out where the command does not take them.
    """
    if not commands or commands[0] not in COMMANDS:
        return
    command = commands[0]
    settings = _read_file()
    sections = {name: value for name, value in settings.items() if isinstance(value, dict)}
    shared = {name: value for name, value in settings.items() if name not in sections}
    _check_sections(sections)
    _check_shared(app, shared, arguments)
    own = sections.get(command, {})
    for name in own:
        if not _takes(arguments, name):
            hint = _hint(name, list_options(arguments))
            msg = f"{FILE}: there is no option {name!r} in the section [{command}]{hint}"
            raise ValueError(msg)
    for source, options in ((f"{FILE} [{command}]", own), (FILE, shared)):
        values = {name: _unwrap(arguments, name, value) for name, value in options.items()}
        Dict(values, source=source, use_commands_as_keys=False, allow_unknown=True)(
            app, commands, arguments
        )
    Env(VARIABLES, source=VARIABLES, command=False)(app, commands, arguments)
    _leave_out_excluded(command, {argument.name: argument for argument in arguments})
    given = [argument for argument in arguments if argument.tokens]
    shared_options.set(frozenset(each.name for each in given if not _is_own(each)))


def list_options(arguments: Iterable[Argument]) -> list[str]:
    """List the names of options without their hyphens in front."""
    names = [name for argument in arguments for name in argument.names]
    return [name[2:] for name in names if name.startswith("--") and "*" not in name]


def guess_option(name: str, known: Iterable[str]) -> str | None:
    """Return the option that a name may stand for, if there is one."""
    spelled = [each.replace("-", "_") for each in known]
    name = name.replace("-", "_")
    meant = synonym(name, spelled) or next(iter(get_close_matches(name, spelled, 1, _ALIKE)), None)
    return meant and meant.replace("_", "-")


def _hint(name: str, known: Iterable[str]) -> str:
    """End a message with the option that a name may stand for."""
    meant = guess_option(name, known)
    return f"; did you mean {meant!r}?" if meant else ""


def _read_file() -> dict[str, Any]:
    """Read the file in the current folder, if there is one."""
    try:
        return tomllib.loads(Path(FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        msg = f'{FILE} cannot be read: {error}; texts need quotes, as in label = "repaid"'
        raise ValueError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{FILE} cannot be read: it must be saved as UTF-8"
        raise ValueError(msg) from error


def _check_sections(sections: Iterable[str]) -> None:
    """Check that each section is that of a command."""
    for name in sections:
        if name not in COMMANDS:
            close = get_close_matches(name.replace("_", "-"), COMMANDS, 1, _ALIKE)
            hint = f"; did you mean [{close[0]}]?" if close else f": {', '.join(COMMANDS)}"
            msg = f"{FILE}: each section must be named after a command; found [{name}]{hint}"
            raise ValueError(msg)


def _check_shared(app: App, shared: Iterable[str], arguments: ArgumentCollection) -> None:
    """Check that each option in front of the sections is one of some command."""
    unknown = [name for name in shared if not _takes(arguments, name)]
    if not unknown:
        return
    # Only what this command does not take costs the import of the others.
    others = [app[command].assemble_argument_collection() for command in COMMANDS]
    for name in unknown:
        if not any(_takes(each, name) for each in others):
            hint = _hint(name, [option for each in others for option in list_options(each)])
            msg = f"{FILE}: no command has an option {name!r}{hint}"
            raise ValueError(msg)


def _takes(arguments: ArgumentCollection, name: str) -> bool:
    """Whether a name in the file is one of these options."""
    return _find(arguments, name) is not None


def _find(arguments: ArgumentCollection, name: str) -> Argument | None:
    """Return the option of a name in the file."""
    try:
        return arguments.match(f"--{name.replace('_', '-')}")[0]
    except ValueError:
        return None


def _unwrap(arguments: ArgumentCollection, name: str, value: Any) -> Any:
    """Return the only text of a list, where a command takes one and others take several."""
    argument = _find(arguments, name)
    if not isinstance(value, list) or len(value) != 1 or argument is None:
        return value
    _, takes_several = argument.token_count()
    return value if takes_several else value[0]


def _leave_out_excluded(command: str, arguments: dict[str, Argument]) -> None:
    """Leave out options for all commands that this one refuses, or that others exclude."""
    for argument in arguments.values():
        # Options that a command does not list are parsed only to be refused.
        if not argument.show:
            _leave_out_shared(argument)
    selected = arguments.get("--selected")
    if selected is not None and selected.tokens:
        names = ("--threshold", "--score") if command in _WITHOUT_SCORE else ("--threshold",)
        rivals = [arguments[name] for name in names if name in arguments]
        if any(_is_own(rival) for rival in rivals) and not _is_own(selected):
            _leave_out_shared(selected)
        else:
            for rival in rivals:
                _leave_out_shared(rival)
    label, score = arguments.get("--label"), arguments.get("--score")
    if command == "audit" and selected and selected.tokens and score and not score.tokens:
        # Decisions alone are audited without a label.
        _leave_out_shared(arguments["--label"])
    if any(_is_own(arguments[name]) for name in ("--old", "--new") if name in arguments):
        _leave_out_shared(arguments["--score"])
    if label is not None and not label.tokens:
        _leave_out_shared(arguments["--pos-label"])


def _is_own(argument: Argument) -> bool:
    """Whether an option is given to this command itself."""
    return any(token.source not in _SHARED for token in argument.tokens)


def _leave_out_shared(argument: Argument) -> None:
    argument.tokens[:] = [token for token in argument.tokens if token.source not in _SHARED]
