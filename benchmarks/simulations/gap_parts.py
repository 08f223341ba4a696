"""Simulate the parts of gaps, and tests of expected metrics, where it is known what is expected.

    python benchmarks/simulations/gap_parts.py
    python benchmarks/simulations/gap_parts.py --runs 100

Rows of a group have a risk, and a label that comes true with it; the probability is the risk, or
one that is wrong. What comes out goes into ``gap_parts.md``.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from designs import Floats
from interval_coverage import two_or_more
from scipy.stats import binom
from tables import COVERAGE_LEAST, RULE, Table, share

import polars_wroc as wroc
from polars_wroc.typing import Recalibrate

OUTPUT = Path(__file__).parents[1] / "gap_parts.md"
LEVEL = 0.95
TRUTH = 100_000
ROWS, CLUSTER, SPREAD = 400, 10, 0.8
Shape = tuple[float, float]


def stretched(risk: Floats, slope: float) -> Floats:
    """Multiply the logit of a risk."""
    return risk**slope / (risk**slope + (1 - risk) ** slope)


class Design(NamedTuple):
    """Distributions of the probabilities of a group and its reference, and slopes of the risks."""

    name: str
    shapes: tuple[Shape, Shape]
    slopes: tuple[float, float] = (1.0, 1.0)
    recalibrate: Recalibrate = "none"
    kind: str = "rows"

    def draw(self, rows: int, random: np.random.Generator) -> pl.DataFrame:
        """Draw so many rows of the group, and three times as many of the reference."""
        parts = []
        for group, (shape, slope) in enumerate(zip(self.shapes, self.slopes, strict=True)):
            n = rows * (3 if group else 1)
            size = CLUSTER if self.kind == "clusters" else 1
            # Rows of a cluster have the same probability.
            p = np.repeat(random.beta(*shape, n // size), size).clip(0.001, 0.999)
            y = random.random(n) < stretched(p, slope)
            w = random.lognormal(0, SPREAD, n) if self.kind == "weights" else np.ones(n)
            unit = np.arange(n) // size + group * TRUTH
            parts.append(pl.DataFrame({"g": "ab"[group], "p": p, "y": y, "w": w, "k": unit}))
        return pl.concat(parts)

    def parts(self, frame: pl.DataFrame) -> dict[str, float]:
        """Split the gap of the group."""
        table = wroc.gap_parts(
            frame,
            "y",
            "p",
            attributes="g",
            reference="b",
            recalibrate=self.recalibrate,
            weight="w" if self.kind == "weights" else None,
            design="k" if self.kind == "clusters" else None,
            level=LEVEL,
        )
        return table.row(0, named=True)


NARROW, WIDE = (6.0, 10.0), (1.0, 2.0)
DESIGNS = (
    Design("equal", (WIDE, WIDE)),
    Design("narrow against wide", (NARROW, WIDE)),
    Design("narrow against wide, weights", (NARROW, WIDE), kind="weights"),
    Design("narrow against wide, clusters", (NARROW, WIDE), kind="clusters"),
    Design("slope of the group 0.6", (WIDE, WIDE), (0.6, 1.0)),
    Design("slope of the group 0.6, weights", (WIDE, WIDE), (0.6, 1.0), kind="weights"),
    Design("all slopes 0.7, not recalibrated", (NARROW, WIDE), (0.7, 0.7)),
    Design("all slopes 0.7, recalibrated", (NARROW, WIDE), (0.7, 0.7), "overall"),
)


def run(design: Design, runs: int, seed: int) -> tuple[str, ...]:
    """Count how often limits hold the truth, and how often the excess is significant."""
    random = np.random.default_rng(seed)
    truth = design._replace(kind="rows").parts(design._replace(kind="rows").draw(TRUTH, random))
    found = [design.parts(design.draw(ROWS, random)) for _ in range(runs)]
    held = [
        share(
            pl.Series(
                [
                    row[f"gap_{part}_low"] <= truth[f"gap_{part}"] <= row[f"gap_{part}_high"]
                    for row in found
                ]
            )
        ).coverage
        for part in ("expected", "excess")
    ]
    rejected = share(pl.Series([row["gap_excess_p_value"] <= 1 - LEVEL for row in found]))
    nothing = design.slopes == (1.0, 1.0) or design.recalibrate == "overall"
    numbers = (f"{truth[f'gap_{part}']:.3f}" for part in ("expected", "excess"))
    return (*numbers, *held, rejected.family_error if nothing else f"{rejected.value:.3f}")


def family(runs: int, seed: int) -> str:
    """Share of audits in which an excess is called different, but nothing is wrong."""
    random = np.random.default_rng(seed)
    shapes = ((1.0, 2.0), (2.0, 3.0), NARROW, (0.7, 1.0), (3.0, 3.0))
    alarms = []
    for _ in range(runs):
        p = np.concatenate([random.beta(*shape, 300) for shape in shapes])
        frame = pl.DataFrame(
            {"g": np.repeat([*"abcde"], 300), "p": p, "y": random.random(p.size) < p}
        )
        table = wroc.gap_parts(frame, "y", "p", attributes="g", threshold=0.4, level=LEVEL)
        alarms.append(bool((table["gap_excess_p_adjusted"] <= 1 - LEVEL).any()))
    return share(pl.Series(alarms)).family_error


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description="Simulate the parts of gaps.")
    parser.add_argument("--runs", type=two_or_more, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    body = [
        (each.name, *run(each, options.runs, seed))
        for seed, each in enumerate(DESIGNS, options.seed)
    ]
    audits = (
        "Five groups, AUC, tpr, fpr and ppv, nothing wrong: an excess is called different in a "
        f"share of {family(options.runs, options.seed)} of the audits."
    )
    header = ("design", "gap expected", "in excess", "held: expected", "held: excess", "p <= 0.05")
    error = (0.05 * 0.95 / options.runs) ** 0.5
    by_chance = binom.cdf(np.ceil(COVERAGE_LEAST * options.runs) - 1, options.runs, LEVEL)
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    report = (
        "# Parts of gaps in AUC\n\n"
        f"`python benchmarks/simulations/gap_parts.py --runs {options.runs} --seed {options.seed}` "
        f"with {versions}. {ROWS} rows of a group, three times as many of its reference; weights "
        f"are lognormal({SPREAD:g}); {CLUSTER} rows make a cluster. The Monte Carlo standard error "
        f"of a share of 0.05 is {error:.3f}. {RULE} "
        "With so few runs a true coverage of 0.95 is shown as failing in "
        f"{by_chance:.0%} of cells.\n\n"
        f"{Table(header, body)}\n\n{audits}"
    )
    print(report)
    OUTPUT.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
