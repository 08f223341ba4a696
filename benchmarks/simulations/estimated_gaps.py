"""Simulate gaps between groups that are known as probabilities, where the true gap is known.

    python benchmarks/simulations/estimated_gaps.py
    python benchmarks/simulations/estimated_gaps.py --runs 50

All runs of a setting are groups of one table each, drawn by NumPy. What comes out goes into
``estimated_gaps.md``.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
from interval_coverage import two_or_more
from tables import COVERAGE_LEAST, RULE, Table, share

import polars_wroc as wroc

OUTPUT = Path(__file__).parents[1] / "estimated_gaps.md"
ROWS, UNIT, KNOWN, SPREAD = 1000, 20, 0.3, 0.8
SHAPE = (0.6, 1.4)
# What members lose at equal probability, and what each loses by the probability.
EFFECTS = ((0.1, 0.1), (0.1, 0.0), (0.0, 0.15), (0.0, 0.0), (0.1, -0.2), (-0.1, 0.2))
KINDS = ("rows", "weights", "clusters")
GAPS = ("gap_weighted", "gap_linear")
# Var(b) / (mean (1 - mean)) and the mean of the beta distribution.
MEAN = SHAPE[0] / sum(SHAPE)
RELIABILITY = 1 / (sum(SHAPE) + 1)


def draw(effects: tuple[float, float], kind: str, random: np.random.Generator) -> pl.DataFrame:
    """Draw one sample; in clusters half of what decides is shared."""
    b = random.beta(*SHAPE, ROWS)
    member = random.random(ROWS) < b
    chance = random.random(ROWS)
    unit = np.arange(ROWS) // UNIT
    if kind == "clusters":
        shared = np.repeat(random.random(ROWS // UNIT), UNIT)
        chance = np.where(random.random(ROWS) < SPREAD / 4, shared, chance)
    chosen = chance < 0.5 - effects[0] * member - effects[1] * b
    weight = random.lognormal(0, SPREAD, ROWS) if kind == "weights" else np.ones(ROWS)
    known = np.where(random.random(ROWS) < KNOWN, np.where(member, "g", "h"), None)
    columns = {"b": b, "d": chosen, "w": weight, "unit": unit, "known": known.tolist()}
    return pl.DataFrame(columns)


def held(table: pl.DataFrame, name: str, truth: float) -> float:
    """Share of runs whose limits hold a number."""
    inside = (pl.col(f"{name}_low") <= truth) & (pl.col(f"{name}_high") >= truth)
    return float(table.select(inside.mean()).item())


def measure(effects: tuple[float, float], kind: str, runs: int, seed: int) -> list[str]:
    """Simulate a setting, and write its row."""
    random = np.random.default_rng(seed)
    design = "unit" if kind == "clusters" else None
    options = {"selected": "d", "by": {"g": "b"}, "known": "known", "weight": "w"}
    tables = [
        wroc.estimated_gaps(draw(effects, kind, random), design=design, **options)  # type: ignore[arg-type]
        for _ in range(runs)
    ]
    table = pl.concat(tables)
    # Of probabilities that are right the outcome falls by this much along them.
    limit = -(effects[0] + effects[1])
    truth = -effects[0] - effects[1] * RELIABILITY
    own = [held(table, GAPS[0], limit * RELIABILITY), held(table, GAPS[1], limit)]
    shown = [f"{effects[0]:g}, {effects[1]:g}", kind, f"{truth:.3f}"]
    shown += [f"{table[name].mean():.3f}" for name in GAPS]
    for value in (*own, held(table, "gap", truth), held(table, "gap_corrected", truth)):
        shown.append(f"**{share(value)} fails**" if value < COVERAGE_LEAST else share(value))
    verdicts = table["bracket"].to_list()
    return [*shown, *(share(verdicts.count(word) / runs) for word in ("supported", "refuted"))]


def main() -> None:
    """Simulate all settings, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=two_or_more, default=200)
    parser.add_argument("--seed", type=int, default=404)
    options = parser.parse_args()
    header = ["member, probability", "sample", "truth", "weighted", "linear"]
    header += ["weighted: its own", "linear: its own", "bracket: truth", "corrected: truth"]
    lines = Table([*header, "supported", "refuted"])
    for i, effects in enumerate(EFFECTS):
        for j, kind in enumerate(KINDS):
            lines.add(*measure(effects, kind, options.runs, options.seed + 10 * i + j))
    print(lines)


if __name__ == "__main__":
    main()
