"""Pages of the documentation that follow from the code."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from floors import picture
from public_surface import JSON_SCHEMA, RESULT_TYPES, fields_of
from reference_options import types_of_options
from site_navigation import DOCS, index_for_models, navigation

import polars_wroc as wroc
from polars_wroc import typing
from polars_wroc.cli.app import app
from polars_wroc.cli.catalog import COMMANDS
from polars_wroc.groups.comparisons import CALIBRATION, FAIRNESS, IMPACT, SHIFTS, SMD
from polars_wroc.metrics.registry import CURVE_METRICS
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_PROPERTIES = (property, cached_property)
FLOORS_PICTURE = DOCS / "maintaining" / "floors.svg"


# The page that names every function.
_QUESTIONS = "guides/which-function.md"


class _Page(NamedTuple):
    title: str
    folders: tuple[str, ...]
    text: str


# Where the public names of each folder of the package are described.
_PAGES = {
    "metrics": _Page(
        "Metrics",
        ("metrics",),
        "Expressions give one value for each group in `select`, `group_by().agg()` and `over`."
        " Functions whose first argument is a frame return a table.",
    ),
    "curves": _Page(
        "Curves and thresholds",
        ("curves", "thresholds"),
        "These functions return the points of curves, numbers read from curves, and rates at given"
        " thresholds or at a threshold that a rule chooses.",
    ),
    "groups": _Page(
        "Groups",
        ("groups",),
        "These functions compare groups: gaps, fairness metrics, impact ratios, and thresholds that"
        " give groups equal rates. `ranges` turns numbers into groups.",
    ),
    "counts": _Page(
        "Counts",
        ("counts", "namespaces"),
        "Counts of rows by score add up over days, machines and sites. [Files of"
        " counts](counts-format.md) describes their columns.",
    ),
    "audits": _Page(
        "Audits",
        ("audits",),
        "An audit compares all segments of all attributes; `audit_changes` compares two audits.",
    ),
    "charts": _Page(
        "Charts and printed tables",
        ("charts", "documents"),
        "Each chart function takes a table of this package and returns an Altair chart, which you"
        " can modify further; `show` prints any table.",
    ),
    "options": _Page(
        "Options and data",
        ("config", "looks", "inputs", "data"),
        "These say what rows represent (outcomes at a horizon, weights that count rows, survey"
        " designs), and how much memory or which cluster to use. `data` has sample tables.",
    ),
}


def pages() -> dict[Path, str]:
    """Describe each page: its path, and its text."""
    names = _names_of_pages()
    reference = {
        **{_reference(name): _page(page, names[name]) for name, page in _PAGES.items()},
        _reference("namespaces"): _namespaces(),
        _reference("cli"): _commands(),
        _reference("json"): _json(),
        FLOORS_PICTURE: picture(),
    }
    reference[_reference("options")] += f"\n{types_of_options()}"
    reference[_reference("metrics")] += f"\n{_define_metrics()}"
    return reference | {DOCS / "llms.txt": index_for_models(reference)}


def _define_metrics() -> str:
    """Write the definitions of all metrics as tables."""
    sections = []
    for title, text, metrics in (
        ("Metrics of decisions", "In `threshold_metrics` and as gaps", THRESHOLD_METRICS),
        ("Metrics of scores", "In `bootstrap`, and some in `summary` and as gaps", CURVE_METRICS),
        ("Metrics of comparisons", "In `audit` and other tables of comparisons", _COMPARED),
    ):
        rows = [
            f"| `{metric.column}` | {metric.label} | {metric.definition} |"
            for metric in metrics.values()
        ]
        head = ["| name | in charts and text | definition |", "|---|---|---|"]
        sections.append("\n".join([f"## {title}\n\n{text}:\n", *head, *rows]))
    return "\n\n".join(sections) + "\n"


# Metrics that only comparisons have.
_COMPARED = {IMPACT.name: IMPACT, SMD.name: SMD} | CALIBRATION | FAIRNESS | SHIFTS


def _reference(name: str) -> Path:
    return DOCS / "reference" / f"{name}.md"


def _names_of_pages() -> dict[str, list[str]]:
    """Sort the public names by page; a folder without a page is an error.

    On a page they are in the order of the questions that they answer, others come last.
    """

    def place(name: str) -> float:
        at = questions.find(f"][{_path(name)}]")
        return at if at >= 0 else math.inf

    questions = (DOCS / _QUESTIONS).read_text(encoding="utf-8")
    page_of = {folder: name for name, page in _PAGES.items() for folder in page.folders}
    names = defaultdict(list)
    for name in sorted([*wroc.__all__, *RESULT_TYPES], key=place):
        names[page_of[defined_in(name).split(".")[1]]].append(name)
    return names


def defined_in(name: str) -> str:
    """Return the module of a public name, which may be a module itself."""
    value = _named(name)
    return str(value.__name__ if inspect.ismodule(value) else value.__module__)


def _named(name: str) -> Any:
    """Return what a public name, or that of a type of results, stands for."""
    return getattr(typing if name in RESULT_TYPES else wroc, name)


def _path(name: str) -> str:
    """Return the whole name that users import."""
    return f"{'polars_wroc.typing' if name in RESULT_TYPES else 'polars_wroc'}.{name}"


def _page(page: _Page, names: list[str]) -> str:
    rows = [f"| [`{n}`](#{_path(n)}) | {_linked(_summary(_named(n)))} |" for n in names]
    parts = [f"# {page.title}", page.text, "\n".join(["| name | what it is |", "|---|---|", *rows])]
    described = [part for name in names for part in (_described(name), _mentions(name)) if part]
    return "\n\n".join([*parts, *described]) + "\n"


def _described(name: str) -> str:
    value, path = _named(name), _path(name)
    if name == "Counts":
        methods = ", ".join(_link(method) for method in _methods(value))
        return f"::: {path}\n\nMethods: {methods}."
    if inspect.ismodule(value):
        members = [*value.__all__]
    elif name in ("Audit", "NewYorkSummary"):
        properties = (n for n, v in vars(value).items() if isinstance(v, _PROPERTIES))
        members = [*_methods(value), *(name for name in properties if name[0] != "_")]
    else:
        return f"::: {path}"
    listed = "\n".join(f"        - {member}" for member in members)
    return f"::: {path}\n    options:\n      members:\n{listed}"


def _mentions(name: str) -> str:
    """Link to the guides and the pictures that name a function."""
    found = []
    for _, title, path in navigation():
        if path.startswith(("guides/", "gallery")) and path != _QUESTIONS:
            text = (DOCS / path).read_text(encoding="utf-8")
            place = f"#{name}" if f"\n### `{name}`\n" in text else ""
            if f"][{_path(name)}]" in text:
                found.append(f"[{title}](../{path}{place})")
    return f"See also: {', '.join(found)}." if found else ""


def _summary(value: Any) -> str:
    first = (inspect.getdoc(value) or "").split("\n", 1)[0].replace("``", "`").replace("|", "\\|")
    noun = first.removeprefix("Return ")
    return noun[:1].upper() + noun[1:]


def _linked(text: str) -> str:
    """Link names of the package, which stand in single backticks."""
    words = text.split("`")
    linked = [
        _link(w) if i % 2 and w in (*wroc.__all__, *RESULT_TYPES) else f"`{w}`" if i % 2 else w
        for i, w in enumerate(words)
    ]
    return "".join(linked)


def _link(name: str) -> str:
    return f"[`{name}`][{_path(name)}]"


def _methods(kind: type) -> list[str]:
    return [name for name, value in vars(kind).items() if callable(value) and name[0] != "_"]


def _namespaces() -> str:
    expression = type(pl.col("s").wroc)  # type: ignore[attr-defined]
    frame = type(pl.LazyFrame().wroc).__mro__[1]  # type: ignore[attr-defined]

    def table(kind: type) -> str:
        rows = (f"| {_link(n)} | {_linked(_summary(getattr(wroc, n)))} |" for n in _methods(kind))
        return "\n".join(["| name | what it is |", "|---|---|", *rows])

    return f"""# Methods of expressions and frames

`import polars_wroc` registers the functions as methods, under `.wroc`.

## Expressions

The expression is the score; the other arguments are the arguments of the function:
`pl.col("score").wroc.roc_auc("label", weight="w")`.

{table(expression)}

## Frames

The frame is the first argument of the function, as in `frame.wroc.summary("label", "score")`.
A DataFrame gives a DataFrame, a LazyFrame a LazyFrame; only `audit` collects. Type checkers do not
know these methods, because they are added when the program runs. If types matter, write
`frame.pipe(wroc.summary, "label", "score")`: see [types of options](options.md#types).

{table(frame)}
"""


_ABOUT_COMMANDS = """\
`polars-wroc COMMAND --help` prints all options of a command. The exit code is 0 when all is done, 1
if a condition of `--fail-if` holds, 3 if one could not be judged, 130 if the command was
interrupted, and 2 after any other error. [On the command line](../guides/command-line.md) shows
what it is for, with files of options and completion."""


def _commands() -> str:
    listed = "\n".join(f"| [`{name}`](#{name}) | {row.text}. |" for name, row in COMMANDS.items())
    table = f"| command | what it prints or writes |\n|---|---|\n{listed}"
    _, *described = re.split(r"(?m)^## polars-wroc (?=[a-z])", app.generate_docs())
    usage = (text.replace("```console", "```text", 1) for text in described)
    # Cyclopts writes the command in front of a usage that already names it.
    usage = (
        re.sub(r"^(polars-wroc (\S+)) \2\b", r"\1", text, flags=re.MULTILINE) for text in usage
    )
    commands = [f"## {re.sub(_CONTINUED, ' ', text).strip()}" for text in usage]
    commands[-1] = commands[-1].split("\n## ")[0]
    sections = _describe_once([text.strip() for text in commands])
    return "\n\n".join(["# Command line", _ABOUT_COMMANDS, table, *sections]) + "\n"


def _describe_once(commands: Sequence[str]) -> list[str]:
    """Move options that many commands have, in the same words, to a section in front of them."""
    counts = Counter(option for command in commands for option in _OPTION.findall(command))
    shared = {option for option, count in counts.items() if count >= _MANY_COMMANDS}
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    shortened = []
    for command in commands:
        text, *parts = _GROUP.split(command)
        moved = []
        for title, group in zip(parts[::2], parts[1::2], strict=True):
            options = _OPTION.findall(group)
            moved += [option for option in options if option in shared]
            groups[title] |= dict.fromkeys(option for option in options if option in shared)
            own = [option for option in options if option not in shared]
            if own:
                text += "\n\n" + _write_group(title, own)
        if moved:
            names = ", ".join(f"`{_OPTION_NAME.findall(option)[0]}`" for option in moved)
            text += f"\n\n[Options of many commands](#options-of-many-commands): {names}."
        shortened.append(text)
    described = [_write_group(title, options) for title, options in groups.items() if options]
    return ["\n\n".join(["## Options of many commands", *described]), *shortened]


def _write_group(title: str, options: Iterable[str]) -> str:
    return "\n".join([f"**{title}**:", "", *options])


# Lines of the description of an option after its first.
_CONTINUED = re.compile(r"\n {8}")
_OPTION = re.compile(r"^\* .*$", re.MULTILINE)
_OPTION_NAME = re.compile(r"^\* `([\w-]+)")
_GROUP = re.compile(r"\n\n\*\*([\w ]+)\*\*:\n\n")
_MANY_COMMANDS = 10


def _between(page: str, mark: str, text: str) -> str:
    """Put a text between the two marks of a page."""
    begin, end = f"<!-- begin {mark} -->\n", f"<!-- end {mark} -->\n"
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def _json() -> str:
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    rows = (f"| `{path}` | {kind} | {text} |" for path, kind, text in fields_of(schema, ""))
    table = "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])
    return _between(_reference("json").read_text(encoding="utf-8"), "fields", table)


def renew() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
