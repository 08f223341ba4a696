"""Names have one meaning and say what they are; no public function takes too many arguments."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter, defaultdict

from floors import PACKAGE

import polars_wroc as wroc


def defined(statement: ast.stmt) -> list[str]:
    """List the names that a statement of a file defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    parts = (part for target in targets for part in ast.walk(target))
    names = (part for part in parts if isinstance(part, ast.Name))
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


def is_overload(statement: ast.stmt) -> bool:
    """Whether a statement is one of several signatures of a function."""
    decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    return any(ast.unparse(decorator) == "overload" for decorator in decorators)


def test_no_file_defines_a_name_twice() -> None:
    for path in PACKAGE.rglob("*.py"):
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        statements = [statement for statement in statements if not is_overload(statement)]
        names = Counter(name for statement in statements for name in defined(statement))
        assert [name for name, times in names.items() if times > 1] == [], path


# A command has the name of the function that it calls.
COMMANDS = PACKAGE / "cli" / "commands"


def test_no_two_files_define_the_same_public_name() -> None:
    files = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        for name in {name for statement in statements for name in defined(statement)}:
            is_command = path.parent == COMMANDS and name in wroc.__all__
            if not name.startswith("_") and not is_command:
                files[name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


# Begins like a relation and not like an action, or is nothing but a participle.
NO_VERB = re.compile(r"_*(of_.*|[a-z]+ed|held|shown|found|given|seen|known|kept|drawn|chosen)$")


def test_functions_are_named_by_verbs() -> None:
    names = {
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and NO_VERB.match(node.name)
    }
    assert names == set()


MOST_ARGUMENTS = 20


def test_no_public_function_takes_too_many_arguments() -> None:
    functions = {name: getattr(wroc, name) for name in wroc.__all__}
    functions = {name: one for name, one in functions.items() if inspect.isfunction(one)}
    counts = {name: len(inspect.signature(one).parameters) for name, one in functions.items()}
    # Audits of decisions alone say which categories are unknown, and which are too small.
    allowed = {"audit": MOST_ARGUMENTS + 2}
    assert {n: k for n, k in counts.items() if k > allowed.get(n, MOST_ARGUMENTS)} == {}
