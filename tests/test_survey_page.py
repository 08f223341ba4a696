"""The page on survey designs lists all functions with limits or p-values, and what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from site_navigation import DOCS

import polars_wroc as wroc

TAKES = {"any design": "Design | None", "clusters": "IntoColumn | None", "none": None}
# Their `level` labels an axis.
CHARTS = "_chart"


def listed() -> dict[str, str]:
    """Return what the functions in the table of the page take."""
    page = (DOCS / "guides" / "weights.md").read_text(encoding="utf-8")
    table = page.partition("## Functions")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    return {name.strip(" `"): takes.strip() for name, takes in rows}


def functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions that give limits or p-values, or take a design."""
    public = {name: getattr(wroc, name) for name in wroc.__all__}
    return {
        name: function
        for name, function in public.items()
        if inspect.isfunction(function)
        and not name.endswith(CHARTS)
        and (
            {"level", "design", "adjust"} & inspect.signature(function).parameters.keys()
            or "p_value" in (function.__doc__ or "")
        )
    }


def test_all_functions_with_limits_or_tests_are_listed() -> None:
    assert sorted(listed()) == sorted(functions())


def test_what_they_take_is_what_their_signature_says() -> None:
    for name, function in functions().items():
        given = inspect.signature(function).parameters.get("design")
        found = given.annotation if given else None
        assert found == TAKES[listed()[name]], name
