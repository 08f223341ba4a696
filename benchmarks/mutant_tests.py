"""Which tests a mutant meets: short ones that run its line, then those of its module."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from mutant_sites import Mutant

MOST_NEAR = 20
# Seconds that the tests took when they were traced.
NEAR_SECONDS, FAR_SECONDS = 3.0, 8.0


@dataclass(frozen=True)
class Traced:
    """What `traced_tests` wrote: seconds of each test, and the tests of each line of each file."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    # Lines of the package that each test runs.
    breadth: dict[str, int]

    def choose(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return tests that run the line and little else, and others that run the module."""
        lines = self.lines.get(mutant.file, {})
        every = set().union(*lines.values())
        # A line inside an expression counts as run where the line before it was.
        before = (lines.get(line) for line in range(mutant.line, mutant.first - 1, -1))
        of_line = next((tests for tests in before if tests), every)
        quickest = sorted(
            of_line, key=lambda test: (self.breadth[test] * (0.2 + self.seconds[test]), test)
        )
        near = self._within(quickest, NEAR_SECONDS)[:MOST_NEAR]
        own = Counter(test for tests in lines.values() for test in tests)
        most_inside = sorted(
            every - set(near), key=lambda test: (-own[test] / self.breadth[test], test)
        )
        return near, self._within(most_inside, FAR_SECONDS)

    def _within(self, tests: list[str], limit: float) -> list[str]:
        """Return the first tests, which take some seconds together."""
        spent = accumulate((self.seconds[test] for test in tests), initial=0.0)
        return [test for test, before in zip(tests, spent, strict=False) if before < limit]


def read_traced(folder: Path) -> Traced:
    """Read all files of the folder."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text("utf-8"))
        seconds |= found["seconds"]
        for file, of_file in found["lines"].items():
            for line, tests in of_file.items():
                lines[file][int(line)].update(tests)
    every_line = (tests for of_file in lines.values() for tests in of_file.values())
    return Traced(seconds, lines, Counter(test for tests in every_line for test in tests))
