"""Write the parts of the page on evidence that follow from the simulations.

    python benchmarks/simulations/evidence.py

Every page of a simulation begins with the checks that fail. This collects them in
``docs/evidence.md``, between the comments that name its parts; the other text there is written by
hand. Run it after a simulation: a test compares the page with what this would write.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

BENCHMARKS = Path(__file__).parents[1]
PAGE = BENCHMARKS.parent / "docs" / "evidence.md"
SIMULATIONS = (
    "coverage",
    "bent_assumptions",
    "other_shapes",
    "smaller_intervals",
    "calibration_ranges",
    "surveys",
    "horizon",
    "null_audits",
    "worst_segments",
    "release_check",
    "looks",
    "rows_needed",
)
# Checks in these columns count errors of tests; all others count intervals that hold the truth.
ERROR_COLUMNS = (
    "error",
    "all equal: plain",
    "wrongly: plain",
    "without design=",
    "with design=",
    "replicate weights",
)
# What a column adds to the title of its table, for readers who do not see the table.
ADDED = {
    "its coverage": "tpr",
    "O:E": "O:E",
    "tpr": "tpr",
    "AUC": "AUC",
    "replicate weights": "replicate weights",
    "logit": '`method="logit"`',
    "delong": '`method="delong"`',
    "all equal: plain": "tests of two groups, where all are equal",
    "wrongly: plain": "tests of two groups, where another one is lower",
}
INTRODUCTIONS = {
    "defaults": "**Defaults:**",
    "design": "**Rows that belong together, without `design=`:**",
    "others": "**Methods that are offered to reproduce other software, or shown for comparison:**",
}

_COUNTS = re.compile(r"^Checks that fail: ([\d,]+) of ([\d,]+); borderline: ([\d,]+)", re.MULTILINE)
_FAILURE = re.compile(
    r"^\| (.+) \| (.+) \| (\d+ of \d+) \| ([\d.]+) ± [\d.]+ \| .+ \| (.+) \|$", re.MULTILINE
)


class Failure(NamedTuple):
    """Checks of one column of a table that fail, with the worst of them."""

    simulation: str
    table: str
    column: str
    failing: str
    worst: str
    promise: str

    @property
    def kind(self) -> str:
        """Whether a default fails, a design was left out, or another method was asked for."""
        if "only to reproduce" in self.promise or "for comparison only" in self.promise:
            return "others"
        return "design" if "`design=`" in self.promise else "defaults"

    @property
    def number(self) -> int:
        """The number of checks that fail."""
        return int(self.failing.split()[0])

    def __str__(self) -> str:
        anchor = re.sub(r"[^\w\s-]", "", self.table).lower().replace(" ", "-")
        link = f"[{self.table}](benchmarks/{self.simulation}.md#{anchor})"
        what = f"{link}: {ADDED[self.column]}" if self.column in ADDED else link
        measure = "errors" if self.column in ERROR_COLUMNS else "coverage"
        worst = f"{measure} {float(self.worst):.1%}"
        return f"| {what} | {self.failing} | {worst} | {self.promise} |"


class Simulation(NamedTuple):
    """What the page of a simulation says about itself."""

    name: str
    title: str
    failing: int
    checks: int
    borderline: int
    failures: list[Failure]


def read_simulation(name: str) -> Simulation:
    """Read the title, the number of checks and the failures of a page of `benchmarks/`."""
    text = (BENCHMARKS / f"{name}.md").read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    counts = _COUNTS.search(text)
    if title is None or counts is None:
        msg = f"{name}.md is no page of a simulation"
        raise ValueError(msg)
    failing, checks, borderline = (int(count.replace(",", "")) for count in counts.groups())
    summary, _, _ = text.partition("## How to run it")
    failures = [Failure(name, *row) for row in _FAILURE.findall(summary)]
    return Simulation(name, title[1], failing, checks, borderline, failures)


def failing_checks(simulations: list[Simulation]) -> str:
    """Return the failures of all simulations, those of defaults first."""
    failing = sum(simulation.failing for simulation in simulations)
    checks = sum(simulation.checks for simulation in simulations)
    borderline = sum(simulation.borderline for simulation in simulations)
    failures = [failure for simulation in simulations for failure in simulation.failures]
    by_kind = {kind: [one for one in failures if one.kind == kind] for kind in INTRODUCTIONS}
    number = {kind: sum(one.number for one in own) for kind, own in by_kind.items()}
    total = (
        f"{failing:,} of {checks:,} checks fail, and {borderline:,} are borderline: "
        f"{number['defaults']} failures of defaults, {number['design']} where rows that belong "
        f"together are taken as independent, and {number['others']} of other methods."
    )
    parts = [total]
    header = ["| what | fail | worst | what users are told |", "|---|---|---|---|"]
    for kind, introduction in INTRODUCTIONS.items():
        parts += [introduction, "\n".join([*header, *map(str, by_kind[kind])])]
    return "\n\n".join(parts)


def list_simulations(simulations: list[Simulation]) -> str:
    """Return a table of the simulations with their numbers of checks."""
    lines = ["| all tables | checks | fail | borderline |", "|---|---|---|---|"]
    for name, title, failing, checks, borderline, _ in simulations:
        lines.append(
            f"| [{title}](benchmarks/{name}.md) | {checks:,} | {failing:,} | {borderline:,} |"
        )
    return "\n".join(lines)


def fill_page(page: str) -> str:
    """Replace the parts of the page that follow from the simulations."""
    simulations = [read_simulation(name) for name in SIMULATIONS]
    parts = {
        "failing checks": failing_checks(simulations),
        "simulations": list_simulations(simulations),
    }
    for part, text in parts.items():
        marks = re.compile(rf"(?<=<!-- {part} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        found = marks.findall(page)
        if len(found) != 1:
            msg = f"the page must have one part <!-- {part} --> ... <!-- end -->; got {len(found)}"
            raise ValueError(msg)
        page = page.replace(found[0], f"\n{text}\n\n")
    return page


if __name__ == "__main__":
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
