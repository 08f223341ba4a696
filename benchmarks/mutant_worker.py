"""Run tests of mutated modules, one after another in one process that has imported libraries.

Before each mutant the package and the tests are forgotten and imported anew, the mutated module
from the text that is handed over: no file is changed, and no process is forked. Requests and
answers are lines of JSON; `mutants.py` writes and reads them, and restarts a process that hangs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, settings

PACKAGE = "polars_wroc"
# Imported once, since it takes longer than most tests.
LIBRARIES = ("numpy", "scipy.stats", "sklearn.metrics", "statsmodels.api", "altair")


@contextmanager
def mutate(module: str, text: str | None) -> Iterator[None]:
    """Import a module from a text in place of its file, if there is a text."""
    compile_file = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if text is None or name != module:
            return compile_file(loader, name)
        return compile(text, loader.get_filename(name), "exec", dont_inherit=True)

    with patch.object(SourceFileLoader, "get_code", get_code):
        yield


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
    # The example that fails first is good enough.
    phases = Phase.explicit, Phase.generate
    settings.register_profile(
        "mutants", deadline=None, max_examples=1, derandomize=True, phases=phases
    )
    for line in sys.stdin:
        answers.write(json.dumps(run(**json.loads(line))) + "\n")
        answers.flush()


def run(module: str, text: str | None, tests: list[str]) -> dict[str, object]:
    """Run tests up to the first that fails; without a text the module is as it is."""
    forget()
    with mutate(module, text):
        return _run(module, tests)


def _run(module: str, tests: list[str]) -> dict[str, object]:
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  (a mutant may raise anything)
        return {"code": 1, "passed": 0, "failed": f"import: {error!r}"}
    outcome = _Outcome()
    plugins = ("cacheprovider", "xdist", "unraisableexception")
    without = [option for plugin in plugins for option in ("-p", f"no:{plugin}")]
    options = ["-q", "-x", "--tb=no", "--assert=plain", "--hypothesis-profile=mutants", *without]
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
