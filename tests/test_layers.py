"""Which tests may import internals: a change of a design should not change tests of the public.

Layers of the package itself are checked by import-linter. A limit, for example of rows that are
taken at once, may be lowered by its path: `monkeypatch.setattr("polars_wroc.rows._MANY_ROWS", 1)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PUBLIC = {"polars_wroc", "polars_wroc.typing"}
# The entry point of the command.
COMMAND = ("polars_wroc.cli", "main")
# Tests of functions of arrays, of writers of blocks, of files and of the command.
FOLDERS = {"stats", "ranking", "documents", "files", "cli"}
FILES = {
    # Arrays, threads and the engine.
    "test_arrays.py",
    "test_buckets.py",
    "test_steps.py",
    "test_threads.py",
    # Placements of rows as classes of `stats`, for its tests.
    "plain_placements.py",
    # A report without the work of drawing its charts, and its sentences one by one.
    "audit_words.py",
    # The options of commands on pages, which are read but not run.
    "test_docs.py",
}


def internals(path: Path) -> Iterator[str]:
    """List the internal modules that a file imports names from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polars_wroc"):
            names = {(node.module, alias.name) for alias in node.names} - {COMMAND}
            yield from (f"{module}" for module, _ in names if module not in PUBLIC)


def test_only_tests_of_functions_of_arrays_and_of_views_import_internals() -> None:
    names = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")}
    others = {name for name in names if name.partition("/")[0] not in FOLDERS}
    assert {name for name in others if any(internals(TESTS / name))} == FILES
