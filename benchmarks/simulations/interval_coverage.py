"""Simulate how often intervals contain the truth, and how often tests err where there is nothing.

Every replicate is a group of one long frame, so that one call serves thousands of them. The tables
go into ``coverage.md`` and ``coverage.png``. (A module that is called coverage would hide the
package of that name, which other packages import if it is there.)

    python benchmarks/simulations/interval_coverage.py
    python benchmarks/simulations/interval_coverage.py --replicates 200 --only gaps curves
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from agreement import check_agreement
from auc_grid import auc_grid
from chosen_thresholds import chosen_thresholds
from curves import curves
from designs import DRAWN
from grid_chart import save_grid
from largest import largest
from promises import promises
from segment_gaps import segment_gaps
from simulation import Simulation
from tables import BENCHMARKS, Section, command_of, parse_options, write_page


def main() -> None:
    """Simulate and write the page, or print parts of it."""
    options = parse_options("Simulate intervals and tests.", 2_000, 2026112902, only=PARTS)
    check_agreement()
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    sections: list[Section] = []
    for name in options.only or PARTS:
        start = time.perf_counter()
        sections += PARTS[name](simulation)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    if options.only:
        print(*sections, sep="\n\n")
        return
    fewer = (
        f"; gaps of several groups {options.replicates // FEWER_GAPS:,}, largest gaps "
        f"{options.replicates // FEWER_LARGEST:,}"
    )
    write_page(
        "coverage",
        "Coverage of intervals and errors of tests, simulated",
        "Samples are drawn from distributions whose true values are known, and the package's "
        "intervals and tests are computed for each. The default interval of an AUC and the tests "
        "of gaps keep their level in all settings here. The other methods for an AUC, rows in "
        "clusters taken as independent, and rates at a threshold chosen on the same rows do not.",
        command_of("interval_coverage", options, fewer),
        sections,
        f"## How data are drawn\n\n{DRAWN} Several replicates share one call of the library; that "
        "this gives what `group_gaps` and `fairness` return for each replicate alone is checked at "
        "the start, in all columns.",
    )


def grid(simulation: Simulation) -> list[Section]:
    """Simulate the grid and draw it."""
    section, cells = auc_grid(simulation)
    save_grid(cells, BENCHMARKS / "coverage.png")
    return [section]


# Each replicate of these is a call of its own, or of many groups.
FEWER_GAPS, FEWER_LARGEST = 2, 4
PARTS: dict[str, Callable[[Simulation], Sequence[Section]]] = {
    "grid": grid,
    "gaps": lambda simulation: segment_gaps(simulation.fewer(FEWER_GAPS)),
    "largest": lambda simulation: [largest(simulation.fewer(FEWER_LARGEST))],
    "curves": curves,
    "thresholds": lambda simulation: [chosen_thresholds(simulation)],
    "promises": promises,
}


if __name__ == "__main__":
    main()
