"""Docstrings as the site shows them: a griffe extension, named in ``zensical.toml``.

Docstrings are written for `help()`: names of the package in single backticks, references as in
reStructuredText, and arguments with one description in one entry. Here names become links, and
each argument gets its own type and default.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import griffe

_PACKAGE = Path(__file__).parents[1] / "polars_wroc"
_NAME = re.compile(r"(?<!`)`((?:polars_wroc\.)?)(\w+)`(?!`)")
_LINK = re.compile(r"`([^`<]+?) <([^>`]+)>`_")
_CITED = re.compile(r"\[(\d+)\]_")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] ", re.MULTILINE)


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
        obj.docstring.value = self._markdown(obj.docstring.value, obj)
        if isinstance(obj, griffe.Function):
            _with_values(obj, loader.modules_collection)
            _separate(obj)

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


def _separate(function: griffe.Function) -> None:
    assert function.docstring is not None
    arguments = function.parameters
    for section in function.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.parameters:
            for entry in section.value:
                if entry.name in arguments:
                    entry.annotation = arguments[entry.name].annotation
                    default = arguments[entry.name].default
                    entry.value = None if default is None else str(default)
