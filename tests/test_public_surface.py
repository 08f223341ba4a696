"""Public names, signatures, options and columns stay as they are, or change by decision."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from public_surface import SNAPSHOT, differences, surface

import polars_wroc as wroc


def test_what_users_rely_on_is_as_it_was() -> None:
    before = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = differences(before, json.loads(json.dumps(surface())))
    assert not found, "\n".join([*found, "If that is meant: python tests/public_surface.py"])


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


def test_type_checkers_see_the_same_names() -> None:
    stub = Path(wroc.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    seen = {
        name.asname: str(line.module).removeprefix("polars_wroc.")
        for line in ast.parse(stub).body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    assert seen == vars(wroc)["_MODULES"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'polars_wroc' has no attribute 'rocauc'$"):
        getattr(wroc, "rocauc")  # noqa: B009
