"""Simulate gaps between groups that are known as probabilities, where the true gap is known.

    python benchmarks/simulations/estimated_gaps.py
    python benchmarks/simulations/estimated_gaps.py --runs 50

What comes out goes into ``estimated_gaps.md``.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
from interval_coverage import two_or_more
from tables import RULE, Table, share

import polars_wroc as wroc

OUTPUT = Path(__file__).parents[1] / "estimated_gaps.md"
ROWS, UNIT, SHARED, KNOWN, SPREAD = 1000, 20, 0.2, 0.3, 0.8
SHAPE = (0.6, 1.4)
# What members lose at equal probability, and what each loses by the probability.
EFFECTS = ((0.1, 0.1), (0.1, 0.0), (0.0, 0.15), (0.0, 0.0), (0.1, -0.2), (-0.1, 0.2))
KINDS = ("rows", "weights", "clusters")
GAPS = ("gap_weighted", "gap_linear")
# Of the beta distribution: its variance, divided by that of a known group of its mean.
RELIABILITY = 1 / (sum(SHAPE) + 1)


def draw(effects: tuple[float, float], kind: str, random: np.random.Generator) -> pl.DataFrame:
    """Draw one sample; in clusters a fifth of the rows share what decides."""
    b = random.beta(*SHAPE, ROWS)
    member = random.random(ROWS) < b
    chance = random.random(ROWS)
    unit = np.arange(ROWS) // UNIT
    if kind == "clusters":
        shared = np.repeat(random.random(ROWS // UNIT), UNIT)
        chance = np.where(random.random(ROWS) < SHARED, shared, chance)
    chosen = chance < 0.5 - effects[0] * member - effects[1] * b
    weight = random.lognormal(0, SPREAD, ROWS) if kind == "weights" else np.ones(ROWS)
    pairs = zip(random.random(ROWS), member, strict=True)
    known = ["gh"[not each] if drawn < KNOWN else None for drawn, each in pairs]
    columns = {"b": b, "d": chosen, "w": weight, "unit": unit, "known": known}
    return pl.DataFrame(columns)


def held(table: pl.DataFrame, name: str, truth: float) -> str:
    """Share of runs whose limits hold a number."""
    inside = (pl.col(f"{name}_low") <= truth) & (pl.col(f"{name}_high") >= truth)
    return share(table.select(inside.alias("held"))["held"]).coverage


def measure(effects: tuple[float, float], kind: str, runs: int, seed: int) -> tuple[str, ...]:
    """Simulate a setting, and write its row."""
    random = np.random.default_rng(seed)
    found = [
        wroc.estimated_gaps(
            draw(effects, kind, random),
            selected="d",
            by={"g": "b"},
            known="known",
            weight="w",
            design="unit" if kind == "clusters" else None,
        )
        for _ in range(runs)
    ]
    table = pl.concat(found)
    # Where the probabilities are right, the outcome falls by this much along them.
    limit = -(effects[0] + effects[1])
    truth = -effects[0] - effects[1] * RELIABILITY
    estimates = [float(value) for value in table.select(pl.col(GAPS).mean()).row(0)]
    means = (f"{value:.3f}" for value in (truth, *estimates))
    covered = (
        held(table, name, value)
        for name, value in (
            *((GAPS[0], limit * RELIABILITY), (GAPS[1], limit)),
            *(("gap", truth), ("gap_corrected", truth)),
        )
    )
    counts = [table["bracket"].to_list().count(word) for word in ("supported", "refuted")]
    verdicts = (f"{count / runs:.3f}" for count in counts)
    return (f"{effects[0]:g}, {effects[1]:g}", kind, *means, *covered, *verdicts)


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description="Simulate gaps of estimated groups.")
    parser.add_argument("--runs", type=two_or_more, default=200)
    parser.add_argument("--seed", type=int, default=404)
    options = parser.parse_args()
    settings = [(effects, kind) for effects in EFFECTS for kind in KINDS]
    body = [
        measure(*setting, options.runs, seed) for seed, setting in enumerate(settings, options.seed)
    ]
    header = (
        *("group, probability", "sample", "true gap", "weighted", "linear", "weighted: its own"),
        *("linear: its own", "bracket: truth", "corrected: truth", "supported", "refuted"),
    )
    error = (0.05 * 0.95 / options.runs) ** 0.5
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    report = (
        "# Gaps of groups known as probabilities\n\n"
        f"`python benchmarks/simulations/estimated_gaps.py --runs {options.runs} --seed "
        f"{options.seed}` with {versions}. {ROWS} rows, whose probabilities are right and "
        f"distributed as Beta{SHAPE}; the first two numbers are what members lose at equal "
        "probability, and what all lose from probability 0 to 1, in the rate of selection. The "
        f"group is known of {KNOWN:.0%} of the rows. Weights are lognormal({SPREAD:g}); {UNIT} "
        f"rows make a cluster. The Monte Carlo standard error of a share of 0.05 is {error:.3f}. "
        f"{RULE}"
        f"\n\n{Table(header, body)}\n\n"
        "*Its own* is the value that the estimate has in very large samples, which the truth need "
        "not be. Where both numbers have different signs the truth is outside of the two: that is "
        "the condition, no interval covers its failure, and more rows make it worse. *Supported* "
        "and *refuted* are shares of verdicts by the known rows, of which these samples have about "
        "300: too few to say supported, even where the condition holds; the others are *not shown*."
    )
    print(report)
    OUTPUT.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
