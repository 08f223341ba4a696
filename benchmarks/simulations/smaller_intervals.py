"""Simulate smaller parts: calibration, picked references, comparisons, means and partial areas.

    python benchmarks/simulations/smaller_intervals.py
    python benchmarks/simulations/smaller_intervals.py --replicates 200 --only picked

What comes out goes into ``smaller_intervals.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from calibration import calibration_designs
from picked import picked_references
from simulation import Simulation
from smaller import areas, compared_pairs, mean_differences
from tables import Section, command_of, parse_options, write_page

# How many times as many replicates there are of what takes little time.
MORE = {"areas": 3}
PARTS: dict[str, Callable[[Simulation], Section]] = {
    "calibration": calibration_designs,
    "picked": picked_references,
    "pairs": compared_pairs,
    "means": mean_differences,
    "areas": areas,
}


def main() -> None:
    """Simulate and write the page, or print parts of it."""
    options = parse_options("Simulate smaller intervals.", 1_200, 2026112911, only=PARTS)
    sections = []
    for number, (name, part) in enumerate(PARTS.items()):
        if not options.only or name in options.only:
            print(name, file=sys.stderr, flush=True)
            random = np.random.default_rng([options.seed, number])
            sections.append(part(Simulation(options.replicates * MORE.get(name, 1), random)))
    if options.only:
        print(*sections, sep="\n\n")
        return
    write_page(
        "smaller_intervals",
        "Calibration, picked references, comparisons, mean differences, partial areas",
        "Five parts that have no page of their own, with scores and weights for which they may "
        "fail: wrong models, skewed scores, heavy tails, and weights that depend on the score. One "
        "setting fails, the ratio of observed to expected with 30 rows and a curved model; the "
        "others that fail are methods shown for comparison.",
        command_of(
            "smaller_intervals",
            options,
            f", and {options.replicates * MORE['areas']:,} for partial areas",
        ),
        sections,
    )


if __name__ == "__main__":
    main()
