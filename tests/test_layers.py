"""Imports run down the floors, and no files import each other in a circle."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import pytest
from floors import FLOOR, PACKAGE, folder, graph, modules

import polars_wroc as wroc


def upward(arrows: dict[str, set[str]]) -> list[str]:
    """List the imports that do not run down."""
    return [
        f"{name} imports {target}"
        for name, targets in arrows.items()
        for target in sorted(targets)
        if folder(name) != folder(target) and FLOOR[folder(name)] <= FLOOR[folder(target)]
    ]


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """List the files that are in or above a circle; none where there is none."""
    left = {name: set(targets) for name, targets in arrows.items()}
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_every_folder_has_a_floor() -> None:
    assert {folder(name) for name in modules(PACKAGE)} == FLOOR.keys()


def test_imports_run_down() -> None:
    assert upward(graph(PACKAGE)) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle(graph(PACKAGE)) == []


@pytest.mark.parametrize(
    "line",
    [
        "import polars_wroc.cli.main",
        "def f():\n    from polars_wroc.cli import main",
        "if TYPE_CHECKING:\n    from polars_wroc.cli import main",
    ],
)
def test_a_forbidden_import_is_found(line: str, tmp_path: Path) -> None:
    package = tmp_path / "polars_wroc"
    for name, text in (("plans", line), ("cli", "")):
        (package / name).mkdir(parents=True)
        (package / name / "main.py").write_text(text, encoding="utf-8")
    (package / "cli" / "__init__.py").touch()
    assert len(upward(graph(package))) == 1


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [*"abcd"]


def defined(statement: ast.stmt) -> list[str]:
    """List the names that a statement of a file defines, but for overloads."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [] if statement.decorator_list else [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = (part for target in targets for part in ast.walk(target))
    return [part.id for part in parts if isinstance(part, ast.Name)]


def test_no_file_defines_a_name_twice() -> None:
    for path in PACKAGE.rglob("*.py"):
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        names = Counter(name for statement in statements for name in defined(statement))
        assert [name for name, times in names.items() if times > 1] == [], path


MOST_ARGUMENTS = 20


def test_no_public_function_takes_too_many_arguments() -> None:
    functions = {name: getattr(wroc, name) for name in wroc.__all__}
    functions = {name: one for name, one in functions.items() if inspect.isfunction(one)}
    counts = {name: len(inspect.signature(one).parameters) for name, one in functions.items()}
    # Audits of decisions alone say which categories are unknown, and which are too small.
    allowed = {"audit": MOST_ARGUMENTS + 2}
    assert {n: k for n, k in counts.items() if k > allowed.get(n, MOST_ARGUMENTS)} == {}
