"""Public names, signatures, options and columns stay as they are, or change by decision."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, is_typeddict

import pytest
from public_surface import SNAPSHOT, describe_number, differences, literals, surface

import polars_wroc as wroc
from polars_wroc import typing


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(surface()))
    return found


def test_what_users_rely_on_is_as_it_was(described: dict[str, Any]) -> None:
    before = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = differences(before, described)
    assert not found, "\n".join([*found, "If that is meant: python tools/renew.py surface"])


def test_only_public_names_are_listed() -> None:
    assert dir(wroc) == sorted(wroc.__all__)


def functions() -> Iterator[Any]:
    for value in (getattr(wroc, name) for name in wroc.__all__):
        if inspect.ismodule(value):
            yield from (getattr(value, name) for name in value.__all__)
            continue
        # A dictionary with types is no function.
        if is_typeddict(value):
            continue
        # A number has no initialiser of its own.
        made_by = "__new__" if isinstance(value, type) and issubclass(value, float) else "__init__"
        yield getattr(value, made_by) if inspect.isclass(value) else value


def option_types(function: Callable[..., Any]) -> set[str]:
    """Name the types of arguments that are words or numbers, as their module calls them."""
    names = vars(sys.modules[function.__module__])
    annotations = [str(p.annotation) for p in inspect.signature(function).parameters.values()]
    found = {name for text in annotations for name in re.findall(r"\w+", text)}
    return {
        name
        for name in found
        if literals(names.get(name)) or describe_number(names.get(name)) is not None
    }


@pytest.mark.parametrize("function", [*functions()], ids=lambda function: function.__qualname__)
def test_types_of_options_are_exported(function: Callable[..., Any]) -> None:
    public = [getattr(typing, name) for name in typing.__all__]
    names = vars(sys.modules[function.__module__])
    assert [name for name in option_types(function) if names[name] not in public] == []
