"""No file defines a name twice, and no public function takes too many arguments."""

from __future__ import annotations

import ast
import inspect
from collections import Counter

from floors import PACKAGE

import polars_wroc as wroc


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
