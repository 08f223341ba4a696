"""Simulate how often intervals hold the truth, and how often tests err where there is nothing.

Every replicate is a group of one long frame, so that one call serves thousands of them. What
comes out, and what it was made of, goes into ``coverage.md`` and ``coverage.png``. (A module that
is called coverage would hide the package of that name, which other packages import if it is there.)

    python benchmarks/simulations/interval_coverage.py
    python benchmarks/simulations/interval_coverage.py --replicates 200 --only gaps curves
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from agreement import check_agreement
from auc_grid import auc_grid
from calibration import calibration_designs
from chosen_thresholds import chosen_thresholds
from curves import curves
from designs import DRAWN
from grid_chart import save_grid
from largest import largest
from picked import picked_references
from promises import promises
from segment_gaps import segment_gaps
from simulation import Simulation
from smaller import smaller_intervals
from tables import FAILS, RULE, Section, Table

OUTPUT = Path(__file__).parents[1] / "coverage.md"


def main() -> None:
    """Simulate, print and, unless only parts are wanted, write."""
    options = options_of()
    check_agreement()
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    sections: list[Section] = []
    for name in options.only or [name for name in PARTS if name not in PRINTED_ONLY]:
        start = time.perf_counter()
        sections += PARTS[name](simulation)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    report = "\n\n".join([preamble(options, sections), str(before_and_after(sections))])
    report = "\n\n".join([report, *map(str, sections)])
    print(report)
    if not options.only:
        OUTPUT.write_text(report + "\n", encoding="utf-8")


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Simulate the intervals and tests of polars-wroc.")
    parser.add_argument("--replicates", type=two_or_more, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="print these, write nothing")
    return parser.parse_args()


def two_or_more(text: str) -> int:
    """Read a number of replicates."""
    number = int(text)
    if number < 2:
        msg = f"must be 2 or more; found {number}"
        raise argparse.ArgumentTypeError(msg)
    return number


def preamble(options: argparse.Namespace, sections: Sequence[Section]) -> str:
    """Say what was simulated, and how many promises are met."""
    met, missed = (sum(s.table.count(cell) for s in sections) for cell in ("met", "missed"))
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    error = (0.05 * 0.95 / options.replicates) ** 0.5
    return (
        "# Coverage of intervals and errors of tests, simulated\n\n"
        "`python benchmarks/simulations/interval_coverage.py --replicates "
        f"{options.replicates} --seed {options.seed}` with {versions}: {options.replicates:,} "
        "replicates of each setting. The Monte Carlo standard error, which stands after ± in some "
        f"tables, is {error:.4f} at a share of 0.95 or 0.05.\n\n"
        f"{RULE} Promises met: {met} of {met + missed}.\n\n{DRAWN} Several replicates share one "
        "call of the library's code, and Holm's method is applied to each replicate's tests; that "
        "this gives what `group_gaps` and `fairness` return for each replicate alone is checked "
        "at the start, in all columns."
    )


def before_and_after(sections: Sequence[Section]) -> Section:
    """Collect what was found with the old options and with the defaults."""
    found = [each for section in sections for each in section.found]
    failing = [sum(FAILS in getattr(each, when) for each in found) for when in ("before", "after")]
    return Section(
        "What was found, before and after",
        '*Before* are the defaults of earlier development versions: `method="logit"`, '
        "the limits of the picked pair, rates "
        "without the bootstrap. *After* are those of now (for chosen thresholds: "
        '`honest="bootstrap"`), on the same simulated data. '
        f"Failing: {failing[0]} of {len(found)} before, {failing[1]} after; biases are not judged, "
        "nor are intervals that there are not.",
        Table(("where", "data", "before", "after"), found),
    )


def grid(simulation: Simulation) -> list[Section]:
    """Simulate the grid and draw it."""
    section, cells = auc_grid(simulation)
    save_grid(cells, OUTPUT.with_suffix(".png"))
    return [section]


PARTS: dict[str, Callable[[Simulation], Sequence[Section]]] = {
    "grid": grid,
    "gaps": segment_gaps,
    "largest": lambda simulation: [largest(simulation)],
    "curves": curves,
    "thresholds": lambda simulation: [chosen_thresholds(simulation)],
    "promises": promises,
    "calibration": lambda simulation: [calibration_designs(simulation)],
    "picked": lambda simulation: [picked_references(simulation)],
    "smaller": smaller_intervals,
}
# Parts of other pages.
PRINTED_ONLY = ("calibration", "picked", "smaller")


if __name__ == "__main__":
    main()
