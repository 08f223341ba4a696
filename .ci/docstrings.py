"""Docstrings as the site shows them: a griffe extension, named in ``zensical.toml``.

Docstrings are written for `help()`: names of the package in single backticks, references as in
reStructuredText, and columns of results in lists. Here names become links, and lists of columns
become tables with the types of the columns. Arguments with one description stay one entry; others
get their type and default.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import griffe

_PROJECT = Path(__file__).parents[1]
_PACKAGE = _PROJECT / "polars_wroc"
_NAME = re.compile(r"(?<!`)`((?:polars_wroc\.)?)(\w+)`(?!`)")
_LINK = re.compile(r"`([^`<]+?) <([^>`]+)>`_")
_CITED = re.compile(r"\[(\d+)\]_")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] ", re.MULTILINE)
_LIST = re.compile(r"^(?P<indent> *)- .*\n(?:(?P=indent)(?:- |  ).*(?:\n|$))*", re.MULTILINE)
_ITEM = re.compile(r"^ *- (.*(?:\n(?! *- ).*)*)", re.MULTILINE)
# Names, perhaps their type, and what they are.
_COLUMN = re.compile(r"((?:``[^`]+``|[^`:])+)(?:: (.*))?")
_FIELD = re.compile(r"'(\w+)': (\w+)")
_TYPE = re.compile(r" \(((?:String|Boolean|U?Int\d+|Float64|Enum|List|Date)[^`]*)\)$")


def _public_names() -> set[str]:
    """Read the names of the package from its stub."""
    names = set()
    for node in _read("__init__.pyi"):
        if isinstance(node, ast.ImportFrom):
            names |= {f"polars_wroc.{alias.name}" for alias in node.names}
    return names


def _read(file: str) -> list[ast.stmt]:
    return ast.parse((_PACKAGE / file).read_text(encoding="utf-8")).body


class Docstrings(griffe.Extension):
    """Links, references and arguments of docstrings."""

    def __init__(self) -> None:
        self._names = _public_names()

    def on_object(self, *, obj: griffe.Object, loader: Any, **_: Any) -> None:
        """Rewrite the docstring of an object that has just been read."""
        if obj.docstring is None or not obj.path.startswith("polars_wroc."):
            return
        text = obj.docstring.value
        if isinstance(obj, griffe.Function):
            text = _with_tables(text, _columns_of(obj.name))
        obj.docstring.value = self._markdown(text, obj)
        if isinstance(obj, griffe.Function):
            _with_values(obj, loader.modules_collection)
            _group(obj)

    def _markdown(self, text: str, obj: griffe.Object) -> str:
        own = f"polars_wroc.{obj.name}"

        def link(match: re.Match[str]) -> str:
            path = f"polars_wroc.{match[2]}"
            linked = path in self._names and path != own
            return f"[{match[0]}][{path}]" if linked else match[0]

        text = _NAME.sub(link, _LINK.sub(r"[\1](\2)", text))
        return _REFERENCE.sub(r"\1- \\[\2\\] ", _CITED.sub(r"\\[\1\\]", text))


def _with_values(function: griffe.Function, modules: griffe.ModulesCollection) -> None:
    """Show defaults that are constants, such as ``MARGIN``, as their values."""
    for argument in function.parameters:
        if isinstance(argument.default, griffe.ExprName) and argument.default.name.isupper():
            # Names that are assigned together are not known; no public argument has one.
            with suppress(KeyError):
                argument.default = str(modules[argument.default.canonical_path].value)


def _group(function: griffe.Function) -> None:
    """Keep arguments with one description in one entry, and give others their type and default."""
    assert function.docstring is not None
    arguments = function.parameters
    for section in function.docstring.parsed:
        if section.kind is not griffe.DocstringSectionKind.parameters:
            continue
        entries: list[griffe.DocstringParameter] = []
        for entry in section.value:
            if entries and entries[-1].description == entry.description:
                entries[-1].name += f", {entry.name}"
                entries[-1].annotation = entries[-1].value = None
                continue
            if entry.name in arguments:
                entry.annotation = arguments[entry.name].annotation
                default = arguments[entry.name].default
                entry.value = None if default is None else str(default)
            entries.append(entry)
        section.value = entries


def _columns_of(function: str) -> dict[str, str]:
    """Read the columns of all tables of a function, or the fields of its result, with types."""
    surface = json.loads((_PROJECT / "tests" / "public_surface.json").read_text(encoding="utf-8"))
    tables = (surface["tables"] | surface["tables that collect"]).items()
    own = [columns for name, columns in tables if re.split(r"\W", name)[0] == function]
    fields = _FIELD.findall(surface["expressions"].get(function, ""))
    return {name: dtype for columns in (*own, dict(fields)) for name, dtype in columns.items()}


def _with_tables(text: str, columns: dict[str, str]) -> str:
    """Turn lists that describe columns into tables with a row for each entry."""

    def table(found: re.Match[str]) -> str:
        rows = [_row(" ".join(item.split()), columns) for item in _ITEM.findall(found[0])]
        if not any(dtype for _, dtype, _ in rows):
            return found[0]
        lines = [("column", "type", "meaning"), ("---", "---", "---"), *rows]
        indent = found["indent"]
        return "".join(f"{indent}| {' | '.join(line)} |\n" for line in lines)

    return _LIST.sub(table, text)


def _row(item: str, columns: dict[str, str]) -> tuple[str, str, str]:
    """Divide an entry into the columns, their type and their meaning."""
    found = _COLUMN.fullmatch(item.rstrip(";."))
    if found is None:
        return item, "", ""
    head, meaning = found[1], found[2] or ""
    stated = _TYPE.search(head)
    if stated:
        return head[: stated.start()], stated[1], meaning
    names = [name for code in re.findall("``([^`]+)``", head) for name in code.split(", ")]
    if "by" in names:
        return head, "", meaning  # its columns have types of their own
    dtypes = dict.fromkeys(columns[name] for name in names if name in columns)
    return head, ", ".join(dtypes), meaning
