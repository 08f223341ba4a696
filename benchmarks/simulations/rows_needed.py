"""Whether the numbers of rows that `rows_needed` gives have the power and the width asked for.

    python benchmarks/simulations/rows_needed.py

The tables go into ``rows_needed.md``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from simulation import REPLICATE, SEGMENT, gaps, intervals
from tables import Cell, Measure, Section, Table, command_of, parse_options, share, write_page

import polars_wroc as wroc
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.rates import Count, Rate, compare_tables

# Replicates of rates, which are drawn as counts; those of AUCs are drawn row by row.
REPLICATES = 20_000
# Powers and ratios of widths that count as those asked for.
POWER, WIDTH = (0.75, 0.85), (0.95, 1.05)
NORMAL = NormalDist()


def main() -> None:
    """Simulate all settings and write the page."""
    options = parse_options("Simulate the numbers of `rows_needed`.", 1_000, 2026112907)
    random = np.random.default_rng(options.seed)
    promise = "targets are shown in 78 to 82 of 100 samples, and widths are within 1%"
    sections = [
        Section(
            "Power",
            "The share of replicates in which the target is shown, at the number of rows that "
            "`rows_needed` gives for a power of 0.8: gaps of rates by the test of two proportions, "
            "equivalent rates by their limits, a release by the shares of changed rows, and gaps "
            f"of AUCs of normal scores by `group_gaps`. A power outside of {POWER[0]:g} to "
            f"{POWER[1]:g} fails.",
            Table(
                ("target", "assumed", "needed", "power"), list(powers(random, options.replicates))
            ),
            settings=3,
            promise=promise,
        ),
        Section(
            "Width",
            "The mean half width of intervals divided by the one asked for. A ratio outside of "
            f"{WIDTH[0]:g} to {WIDTH[1]:g} fails.",
            Table(
                ("metric", "assumed", "needed", "found / asked"),
                list(widths(random, options.replicates)),
            ),
            settings=3,
            promise=promise,
        ),
    ]
    write_page(
        "rows_needed",
        "Rows needed",
        "Data are drawn with the number of rows that `rows_needed` returns for a target: a gap, an "
        "equivalence, a release that is no worse, or an interval of some width. The target is then "
        "found with a power of about 0.8, and intervals have the width asked for.",
        command_of("rows_needed", options, f" of AUCs, and {REPLICATES:,} of rates"),
        sections,
    )


Cells = list[tuple[Cell, ...]]


def powers(random: np.random.Generator, replicates: int) -> Cells:
    """Simulate each target."""
    settings: list[tuple[dict[str, Any], Callable[..., Measure]]] = [
        *(
            ({"metric": "tpr", "value": value, "gap": gap, "ratio": ratio, "tests": tests}, a_gap)
            for value, gap, ratio, tests in (
                (0.8, 0.05, 1, 1),
                (0.05, 0.03, 9, 1),
                (0.2, 0.1, 4, 10),
                (0.8, 0.05, 9, 1),
                (0.2, 0.05, 4, 10),
            )
        ),
        *(
            ({"metric": "tpr", "value": value, "equivalent_within": 0.05, "tests": tests}, alike)
            for value, tests in ((0.5, 1), (0.9, 1), (0.8, 5))
        ),
        *(
            ({"metric": "tpr", "no_worse_by": margin, "changed": changed}, no_worse)
            for margin, changed in ((0.01, 0.02), (0.02, 0.1), (0.02, 0.3))
        ),
        *(
            ({"metric": "auc", "value": auc, "gap": 0.1, "prevalence": 0.3, "ratio": ratio}, an_auc)
            for auc, ratio in ((0.8, 1), (0.9, 1), (0.8, 4))
        ),
    ]
    cells: Cells = []
    for given, simulate in settings:
        needed = wroc.rows_needed(**given).row(0, named=True)
        print(given, needed["needed"], file=sys.stderr, flush=True)
        power = simulate(random, needed, replicates=replicates, **given)
        target = needed["target"]
        said = [f"{name} {each:g}" for name, each in given.items() if name != "metric"]
        cells.append(
            (
                f"{given['metric']} {target}",
                ", ".join(said),
                f"{needed['needed']:,}",
                power.between(*POWER),
            )
        )
    return cells


def rate_of(random: np.random.Generator, value: float, rows: int) -> Rate:
    """Draw the rate of each replicate."""
    events = random.binomial(rows, value, REPLICATES).astype(float)
    others = rows - events
    return Rate(Count(events, events, events), Count(others, others, others), events + others)


def with_limits(rate: NDArray[np.float64], rows: int) -> Wilson:
    """Return rates of so many rows with Wilson's limits."""
    size = np.full(REPLICATES, 1 / rows)
    return Wilson(rate, 1 - rate, size, size)


def estimate_of(random: np.random.Generator, value: float, rows: int) -> Wilson:
    """Draw the rate of each replicate, with its limits."""
    return with_limits(random.binomial(rows, value, REPLICATES) / rows, rows)


def quantile(tests: int = 1, tails: int = 2) -> float:
    """Normal quantile of one of so many tests."""
    return NORMAL.inv_cdf(1 - 0.05 / tests / tails)


def sizes(needed: dict[str, Any]) -> tuple[int, int]:
    """Rows of the segment and of the reference."""
    return needed["needed"], needed["needed_reference"]


def a_gap(
    random: np.random.Generator,
    needed: dict[str, Any],
    *,
    value: float,
    gap: float,
    tests: int,
    **_: Any,
) -> Measure:
    """Test two proportions."""
    own, other = sizes(needed)
    one, reference = rate_of(random, value - gap, own), rate_of(random, value, other)
    return share(pl.Series(compare_tables(one, reference)) <= 0.05 / tests)


def alike(
    random: np.random.Generator, needed: dict[str, Any], *, value: float, tests: int, **_: Any
) -> Measure:
    """Find both limits of a gap within the margin."""
    one, other = (estimate_of(random, value, rows) for rows in sizes(needed))
    low, high = Contrast(one, other).limits(quantile(tests, 1))
    return share(pl.Series((low > -0.05) & (high < 0.05)))


def no_worse(
    random: np.random.Generator,
    needed: dict[str, Any],
    *,
    no_worse_by: float,
    changed: float,
    **_: Any,
) -> Measure:
    """Find the lower limit of the difference of both shares of changes above minus the margin."""
    rows = needed["needed"]
    counts = random.multinomial(rows, [changed / 2, changed / 2, 1 - changed], REPLICATES) / rows
    lost, won = (with_limits(changes, rows) for changes in counts.T[:2])
    odds = [each.value / each.complement for each in (lost, won)]
    contrast = Contrast(lost, won, correlation=-np.sqrt(odds[0] * odds[1]))
    return share(pl.Series(contrast.limits(quantile()).low > -no_worse_by))


def scores(
    random: np.random.Generator, auc: float, pos: int, neg: int, segment: str, replicates: int
) -> pl.DataFrame:
    """Draw normal scores with equal variances in both classes."""
    label = np.tile(np.repeat([True, False], [pos, neg]), replicates)
    shift = math.sqrt(2) * NORMAL.inv_cdf(auc)
    return pl.DataFrame(
        {
            "label": label,
            "score": random.normal(size=label.size) + shift * label,
            "weight": np.ones(label.size),
            REPLICATE: np.repeat(np.arange(replicates), pos + neg),
            SEGMENT: np.full(label.size, segment),
        }
    )


def an_auc(
    random: np.random.Generator,
    needed: dict[str, Any],
    *,
    value: float,
    gap: float,
    prevalence: float,
    replicates: int,
    **_: Any,
) -> Measure:
    """Find a gap of AUCs."""
    parts = []
    for auc, rows, segment in zip((value - gap, value), sizes(needed), "ab", strict=True):
        pos = round(rows * prevalence)
        parts.append(scores(random, auc, pos, rows - pos, segment, replicates))
    estimates = gaps(pl.concat(parts), {SEGMENT: "b"}, metrics=["auc"])
    own = estimates.filter(pl.col("metric") == "auc", pl.col("segment") == "a")
    return share(own["p_value"] <= 0.05)


def widths(random: np.random.Generator, replicates: int) -> Cells:
    """Simulate half widths of 0.05."""
    cells: Cells = []
    for metric, value, prevalence in (
        ("tpr", 0.9, None),
        ("tpr", 0.5, None),
        ("auc", 0.75, 0.1),
        ("auc", 0.75, 0.5),
        ("auc", 0.9, 0.3),
        ("auc", 0.97, 0.3),
    ):
        given: dict[str, Any] = {"metric": metric, "value": value, "half_width": 0.05}
        given |= {} if prevalence is None else {"prevalence": prevalence}
        rows = wroc.rows_needed(**given).row(0, named=True)
        print(given, rows["needed_total"], file=sys.stderr, flush=True)
        if prevalence is None:
            n = rows["needed"]
            low, high = estimate_of(random, value, n).limits(quantile())
            width = (high - low) / 2
        else:
            n = rows["needed_total"]
            pos = round(n * prevalence)
            rows_of_all = scores(random, value, pos, n - pos, "a", replicates)
            estimates = intervals(rows_of_all, ["score"])
            width = ((estimates["auc_high"] - estimates["auc_low"]) / 2).to_numpy()
        ratio = width / 0.05
        mean = Measure(float(ratio.mean()), float(ratio.std()) / math.sqrt(len(ratio)))
        said = ", ".join(f"{name} {each:g}" for name, each in given.items() if name != "metric")
        cells.append((metric, said, f"{n:,}", mean.between(*WIDTH)))
    return cells


if __name__ == "__main__":
    main()
