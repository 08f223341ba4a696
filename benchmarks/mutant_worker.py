"""Run tests of mutated modules, one after another in one process that has imported libraries.

Before each mutant the package and the tests are forgotten and imported anew, the mutated module
from the text that is handed over: no file is changed, and no process is forked. Requests and
answers are lines of JSON; `mutants.py` writes and reads them, and restarts a process that hangs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import polars as pl
import pytest

PACKAGE = "polars_wroc"
# Imported once, since it takes longer than most tests.
LIBRARIES = ("numpy", "scipy.stats", "sklearn.metrics", "statsmodels.api", "altair", "hypothesis")


class _Mutated(SourceFileLoader):
    """Loads a module from a text in place of its file."""

    text: str

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text; nothing is cached."""
        return compile(self.text, self.get_filename(fullname), "exec", dont_inherit=True)


class Mutation(MetaPathFinder):
    """Finds one module as it is mutated."""

    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module, if it is the mutated one."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self.module else None
        if spec is not None and spec.origin is not None:
            loader = _Mutated(fullname, spec.origin)
            loader.text = self.text
            spec.loader = loader
        return spec


class _Outcome:
    """Remembers which test failed."""

    def __init__(self) -> None:
        self.passed, self.failed = 0, ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
        self.passed += report.when == "call" and report.passed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"import of {report.nodeid}"


def main() -> None:
    """Answer requests until there are no more."""
    # What tests print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        answers.write(json.dumps(run(**json.loads(line))) + "\n")
        answers.flush()


def run(module: str, text: str | None, tests: list[str]) -> dict[str, object]:
    """Run tests up to the first that fails; without a text the module is as it is."""
    forget()
    mutation = Mutation(module, text) if text is not None else None
    if mutation:
        sys.meta_path.insert(0, mutation)
    try:
        return _run(module, tests)
    finally:
        if mutation:
            sys.meta_path.remove(mutation)


def _run(module: str, tests: list[str]) -> dict[str, object]:
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001  (a mutant may raise anything)
        why = traceback.format_exc(limit=-1).splitlines()[-1]
        return {"code": 1, "passed": 0, "failed": f"import: {why}"}
    outcome = _Outcome()
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:unraisableexception",
        "--tb=no",
        "--assert=plain",
    ]
    with warnings.catch_warnings():
        code = pytest.main([*options, *tests], plugins=[outcome])
    return {"code": int(code), "passed": outcome.passed, "failed": outcome.failed}


def forget() -> None:
    """Forget the package, its namespaces and the tests."""
    tests = str(Path.cwd() / "tests") + os.sep
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.split(".")[0] == PACKAGE or file.startswith(tests):
            del sys.modules[name]
    for frame in (pl.DataFrame, pl.LazyFrame, pl.Expr, pl.Series):
        if "wroc" in vars(frame):
            delattr(frame, "wroc")


if __name__ == "__main__":
    main()
