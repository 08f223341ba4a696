"""Imports run down the floors only, and no files import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "polars_wroc"
# What is on a floor imports what is on its own floor in its own folder, and what is below.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("plans", "kernels", "early_interruption"),
    ("inputs",),
    ("stats", "ranking", "files"),
    ("counts",),
    ("metrics", "thresholds"),
    ("charts", "groups", "curves"),
    ("audits",),
    ("namespaces", "dask"),
    ("cli", "__init__"),
)
FLOOR = {folder: floor for floor, folders in enumerate(FLOORS, 1) for folder in folders} | {
    "__main__": len(FLOORS) + 1
}


def modules(package: Path) -> dict[str, Path]:
    """Name each file as it is imported."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        names[".".join(part for part in parts if part != "__init__")] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Name the files that a file imports, inside functions and for types too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in found:
            module = target if target in known else target.rpartition(".")[0]
            if module in known and module != name:
                yield module


def graph(package: Path) -> dict[str, set[str]]:
    """Say of each file what it imports."""
    known = modules(package)
    return {name: set(imports(name, path, known)) for name, path in known.items()}


def folder(name: str) -> str:
    """Name the folder of a file, or the file where it is in none."""
    return (name.split(".")[1:] or ["__init__"])[0]


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
