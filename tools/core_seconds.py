"""Processor time of the tests: ``--core-seconds FILE`` writes that of each, child processes too.

    python -m pytest -n auto -p core_seconds --core-seconds seconds.json
    python tools/core_seconds.py seconds.json

The second command adds up the times of each folder, and lists the tests that take most.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

_PROPERTY = "core_seconds"


def _spent() -> float:
    """Processor time of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core-seconds", type=Path, help="write the processor time of each test")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = _spent()
    item.stash[_BEFORE] = before
    return (yield)


_BEFORE = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_PROPERTY, _spent() - item.stash[_BEFORE]))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    path = config.getoption("--core-seconds")
    if path is None:
        return
    reports = [one for some in terminalreporter.stats.values() for one in some]
    found = {
        report.nodeid: value
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == _PROPERTY
    }
    path.write_text(json.dumps(found, indent=0), encoding="utf-8")


def _folder(test: str) -> str:
    file = test.split("::", maxsplit=1)[0]
    return str(Path(file).parent) if file.count("/") > 1 else file


def main(path: Path) -> None:
    """Print the times of folders, and of the longest tests."""
    seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    of_folder, tests = Counter[str](), Counter[str]()
    for test, spent in seconds.items():
        of_folder[_folder(test)] += spent  # type: ignore[assignment]
        tests[_folder(test)] += 1
    for folder, spent in of_folder.most_common():
        print(f"{spent:8.1f} s  {tests[folder]:5} tests  {folder}")
    print(f"{sum(seconds.values()):8.1f} s  {len(seconds):5} tests  all")
    for test, spent in Counter(seconds).most_common(40):
        print(f"{spent:8.2f} s  {test}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
