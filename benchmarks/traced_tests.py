"""Pytest plugin: which lines of the package each test runs, and how long it takes.

    TRACED=folder pytest -p traced_tests tests/stats

leaves a file in the folder that `mutants.py` reads; several runs may leave several.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_OUTPUT = Path(os.environ["TRACED"]) / str(os.getpid())
_TRACER = coverage.Coverage(data_file=f"{_OUTPUT}.cov", source=["polars_wroc"], config_file=False)
_SECONDS: dict[str, float] = {}


def pytest_configure() -> None:
    """Start before anything of the package is imported."""
    _TRACER.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what one test runs."""
    _TRACER.switch_context(item.nodeid)
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        _SECONDS[item.nodeid] = time.perf_counter() - start
        _TRACER.switch_context("")


def pytest_sessionfinish() -> None:
    """Write the lines of each file with their tests."""
    _TRACER.stop()
    data = _TRACER.get_data()
    root = Path.cwd()
    lines = {
        str(Path(file).relative_to(root)): {
            line: sorted(filter(None, tests))
            for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    text = json.dumps({"seconds": _SECONDS, "lines": lines})
    Path(f"{_OUTPUT}.json").write_text(text, "utf-8")
