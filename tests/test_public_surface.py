"""Public names, signatures, options and columns stay as they are, or change by decision."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, is_typeddict

import pytest
from public_surface import SNAPSHOT, differences, literals, surface

import polars_wroc as wroc
from polars_wroc import typing
from polars_wroc.bounds import find_number_type

# Those of comparisons, and the parts of a gap with their limits and tests.
MOST_COLUMNS = 30


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(surface()))
    return found


def test_what_users_rely_on_is_as_it_was(described: dict[str, Any]) -> None:
    before = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = differences(before, described)
    assert not found, "\n".join([*found, "If that is meant: python tests/public_surface.py"])


def test_no_table_has_more_columns_than_its_budget(described: dict[str, Any]) -> None:
    """Tables grow by rows: a column that breaks the budget needs one that goes."""
    tables = described["tables"] | described["audit"]
    # What a caller asks for by name is no part of the budget.
    columns = {name: len({*tables[name]} - {"g"}) for name in tables if not name.endswith("all")}
    assert {name: n for name, n in columns.items() if n > MOST_COLUMNS} == {}
    assert MOST_COLUMNS in columns.values()


def test_a_change_is_named() -> None:
    old = {"names": {"summary": "(frame)", "ks": "()"}, "tables": {"summary": {"n": "Int64"}}}
    assert differences(old, old) == []
    new = {"names": {"summary": "(data)"}, "tables": {"summary": {"auc": "Float64", "n": "Int64"}}}
    assert differences(old, new) == [
        "names / summary: (frame) became (data)",
        "names / ks: () became None",
        "tables / summary / auc: None became Float64",
    ]
    swapped = {"ks": 1, "summary": 2}
    assert differences({"summary": 2, "ks": 1}, swapped, "names") == ["names: in another order"]


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
        if literals(names.get(name)) or find_number_type(names.get(name)) is not None
    }


@pytest.mark.parametrize("function", [*functions()], ids=lambda function: function.__qualname__)
def test_types_of_options_are_exported(function: Callable[..., Any]) -> None:
    public = [getattr(typing, name) for name in typing.__all__]
    names = vars(sys.modules[function.__module__])
    assert [name for name in option_types(function) if names[name] not in public] == []


def test_options_of_a_function_are_found() -> None:
    types = {"AucMethod", "Bins", "ConfidenceLevel", "Proportion"}
    assert option_types(wroc.summary) == types


def test_methods_and_the_json_are_in_the_snapshot(described: dict[str, Any]) -> None:
    assert len(described["frame namespace"]) > 27
    assert described["JSON"].keys() == {"polars-wroc/audit 2.1"}
