"""Simulate what audits find although their segments are all alike.

    python benchmarks/simulations/null_audits.py
    python benchmarks/simulations/null_audits.py --replicates 200 --segments 2 5

Each audit has rows, labels, weights and segments of its own. What comes out goes into
``null_audits.md``.
"""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from agreement import check_agreement
from designs import DRAWN, RandomSegments, Spread, Weights
from interval_coverage import two_or_more
from largest import excludes_equality
from simulation import SEGMENT, Simulation, family_error, gaps, largest_gaps
from tables import RULE, Section, Table, share

from polars_wroc.checks import MARGIN

OUTPUT = Path(__file__).parents[1] / "null_audits.md"
ROWS, POSITIVES, FPR = 1500, 0.15, 0.1
SEGMENTS = (2, 5, 10, 20)
AUCS = (0.6, 0.8, 0.9, 0.97)
KINDS: tuple[tuple[Spread, Weights], ...] = tuple(
    product(("equal", "unequal"), ("unit", "lognormal"))
)
ATTRIBUTES = (2, 3, 5)
JOINT = {
    "selection": "demographic_parity_difference",
    "tpr and fpr": "equalized_odds_difference",
    "AUC": "auc_difference",
}
RATES = "selection_rate|tpr|fpr|ppv|npv"
VERDICTS = ("different", "alike", "too little data")


def main() -> None:
    """Simulate, print and write."""
    options = options_of()
    check_agreement()
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    segments = options.segments or SEGMENTS
    sections = [one_attribute(simulation, segments), several_attributes(simulation)]
    report = "\n\n".join([preamble(options), *map(str, sections)])
    print(report)
    if not options.segments:
        OUTPUT.write_text(report + "\n", encoding="utf-8")


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Simulate audits that have nothing to find.")
    parser.add_argument("--replicates", type=two_or_more, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--segments", nargs="+", type=two_or_more, help="only these, not written")
    return parser.parse_args()


def preamble(options: argparse.Namespace) -> str:
    """Say what was simulated."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    error = (0.05 * 0.95 / options.replicates) ** 0.5
    return (
        "# What audits find where there is nothing\n\n"
        f"`python benchmarks/simulations/null_audits.py --replicates {options.replicates} --seed "
        f"{options.seed}` with {versions}: {options.replicates:,} audits of {ROWS:,} rows for each "
        f"line, {POSITIVES:.0%} of them positive; segments are drawn at random and all alike. "
        f"The Monte Carlo standard error is {error:.4f} at a share of 0.05.\n\n{RULE}\n\n{DRAWN} "
        f"The threshold of the rates has a false positive rate of {FPR:g}. Every segment is "
        "compared with the rest, however few rows it has (`min_rows=0`; `audit` leaves out "
        "estimates from fewer than 30)."
    )


def one_attribute(simulation: Simulation, segments: tuple[int, ...]) -> Section:
    """Errors of the tests and limits of one attribute, and its verdicts."""
    body = []
    for (spread, weights), auc, count in product(KINDS, AUCS, segments):
        setting = RandomSegments(count, ROWS, auc, weights, spread, POSITIVES)
        threshold = setting.threshold(FPR)
        found = simulation.run(setting, partial(_both, threshold=threshold))
        tested = found.filter(way="gaps")
        errors = [family_error(tested, metrics) for metrics in ("auc", RATES, f"auc|{RATES}")]
        joint = [
            excludes_equality(found.filter(way="largest"), metric) for metric in JOINT.values()
        ]
        known = tested.filter(metric="auc")["verdict"].drop_nulls()
        verdicts = (f"{share(known == verdict).value:.3f}" for verdict in VERDICTS)
        shown = (measure.family_error for measure in (*errors, *joint))
        body.append((spread, weights, f"{auc:g}", str(count), *shown, *verdicts))
    return Section(
        "One attribute",
        "*Errors*: share of audits in which a test is significant after Holm's method for all "
        "gaps of AUCs, of rates (selection rate, tpr, fpr, ppv, npv), or of both together; rates "
        "of a segment are correlated with each other, which Holm's method does not use. *Surely*: "
        "share of audits whose joint limits (`gap_low`) exclude equality. *Verdicts*: shares of "
        f"the segments' AUCs, with all tests of the audit and a margin of {MARGIN:g}.",
        Table(
            (
                "spread",
                "weights",
                "AUC",
                "segments",
                "error: AUCs",
                "error: rates",
                "error: all",
                *(f"surely: {name}" for name in JOINT),
                *VERDICTS,
            ),
            body,
        ),
    )


def several_attributes(simulation: Simulation) -> Section:
    """Errors of audits of several attributes, whose tests are adjusted together."""
    body = []
    for spread, weights in KINDS:
        setting = RandomSegments(ATTRIBUTES[0], ROWS, 0.8, weights, spread, POSITIVES)
        estimate = partial(_attributes, random=simulation.random, threshold=setting.threshold(FPR))
        found = simulation.run(setting, estimate)
        errors = (family_error(found, metrics) for metrics in ("auc", f"auc|{RATES}"))
        body.append((spread, weights, *(error.family_error for error in errors)))
    sizes = ", ".join(map(str, ATTRIBUTES[:-1])) + f" and {ATTRIBUTES[-1]}"
    return Section(
        "Several attributes",
        f"Share of audits of three attributes, of {sizes} segments, in which any test is "
        "significant; AUC 0.8.",
        Table(("spread", "weights", "error: AUCs", "error: all"), body),
    )


def _both(frame: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Gaps, and below them the largest gaps, of the same rows."""
    parts = {
        "gaps": gaps(frame, "rest", threshold=threshold),
        "largest": largest_gaps(frame, threshold),
    }
    named = [table.with_columns(way=pl.lit(way)) for way, table in parts.items()]
    return pl.concat(named, how="diagonal")


def _attributes(frame: pl.DataFrame, random: np.random.Generator, threshold: float) -> pl.DataFrame:
    """Gaps of several attributes, one below the other."""
    drawn = (
        frame.with_columns(pl.Series(SEGMENT, random.integers(count, size=len(frame))))
        for count in ATTRIBUTES
    )
    return pl.concat(gaps(each, "rest", threshold=threshold) for each in drawn)


if __name__ == "__main__":
    main()
