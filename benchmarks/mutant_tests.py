"""Which tests a mutant meets: short ones that run its line, then those of its module."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from mutant_sites import Mutant

MOST_TESTS = 20


@dataclass(frozen=True)
class Traced:
    """What `traced_tests` wrote: seconds of each test, and the tests of each line of each file."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    # Lines of the package that each test runs.
    breadth: dict[str, int]

    def of(self, mutant: Mutant, near: float, far: float) -> tuple[list[str], list[str]]:
        """Tests of the line, and of its module, that together took these seconds at most."""
        lines = self.lines.get(mutant.file, {})
        every = set().union(*lines.values())
        before = (lines.get(line) for line in range(mutant.line, mutant.first - 1, -1))
        first = self._ranked(next((tests for tests in before if tests), every))
        close = self._within(first, near)[:MOST_TESTS]
        return close, self._within(self._by_share(every - set(close), lines), far)

    def _ranked(self, tests: set[str]) -> list[str]:
        return sorted(
            tests, key=lambda test: (self.breadth[test] * (0.2 + self.seconds[test]), test)
        )

    def _by_share(self, tests: set[str], lines: dict[int, set[str]]) -> list[str]:
        """Sort tests by how much of what they run is in the module."""
        own = Counter(test for of_line in lines.values() for test in of_line)
        return sorted(tests, key=lambda test: (-own[test] / self.breadth[test], test))

    def _within(self, tests: list[str], limit: float) -> list[str]:
        spent = accumulate((self.seconds[test] for test in tests), initial=0.0)
        return [test for test, before in zip(tests, spent, strict=False) if before < limit]


def traced(folder: Path) -> Traced:
    """Read all files of the folder."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    breadth: dict[str, int] = defaultdict(int)
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text("utf-8"))
        seconds |= found["seconds"]
        for file, of_file in found["lines"].items():
            for line, tests in of_file.items():
                lines[file][int(line)].update(tests)
                for test in tests:
                    breadth[test] += 1
    return Traced(seconds, lines, breadth)
