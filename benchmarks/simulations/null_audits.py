"""Simulate what audits find although their segments are all alike.

    python benchmarks/simulations/null_audits.py
    python benchmarks/simulations/null_audits.py --replicates 200

Each audit has rows, labels, weights and segments of its own. What comes out goes into
``null_audits.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product

import numpy as np
import polars as pl
from agreement import check_agreement
from designs import DRAWN, RandomSegments, Spread, Weights
from largest import excludes_equality
from simulation import SEGMENT, Simulation, family_error, gaps, largest_gaps
from tables import Cell, Section, Table, command_of, parse_options, write_page

ROWS, POSITIVES, FPR = 1500, 0.15, 0.1
SEGMENTS = (2, 5, 20)
AUCS = (0.6, 0.9, 0.97)
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


def main() -> None:
    """Simulate and write the page."""
    options = parse_options("Simulate audits that have nothing to find.", 250, 2026112908)
    check_agreement()
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    write_page(
        "null_audits",
        "What audits find where there is nothing",
        f"Audits of {ROWS:,} rows, {POSITIVES:.0%} of them positive, whose segments are drawn at "
        "random, so that every difference that is found is an error. Each segment is compared with "
        "the rest, however few rows it has. After Holm's method an audit finds something in about "
        "3% of samples on average and in at most 6%, within the errors of the simulation.",
        command_of("null_audits", options),
        [one_attribute(simulation), several_attributes(simulation)],
        f"## How data are drawn\n\n{DRAWN} The threshold of the rates has a false positive rate of "
        f"{FPR:g}. Segments are compared with `min_rows=0`; `audit` leaves out estimates from "
        "fewer than 30 rows.",
    )


def one_attribute(simulation: Simulation) -> Section:
    """Errors of the tests and limits of one attribute."""
    body: list[tuple[Cell, ...]] = []
    for (spread, weights), auc, count in product(KINDS, AUCS, SEGMENTS):
        setting = RandomSegments(count, ROWS, auc, weights, spread, POSITIVES)
        threshold = setting.threshold(FPR)
        estimates = simulation.run(setting, partial(_both, threshold=threshold))
        tested, largest = (estimates.filter(way=way) for way in ("gaps", "largest"))
        errors = [family_error(tested, metrics) for metrics in ("auc", RATES, f"auc|{RATES}")]
        joint = [excludes_equality(largest, metric) for metric in JOINT.values()]
        checks = (measure.family_error for measure in (*errors, *joint))
        body.append((spread, weights, f"{auc:g}", str(count), *checks))
    return Section(
        "One attribute",
        "*Error*: share of audits in which a test is significant after Holm's method for all gaps "
        "of AUCs, of rates (selection rate, tpr, fpr, ppv, npv), or of both together. *Joint*: "
        "share of audits in which the limits of `fairness` exclude equality.",
        Table(
            (
                "spread",
                "weights",
                "AUC",
                "segments",
                "error: AUCs",
                "error: rates",
                "error: all",
                *(f"joint: {name}" for name in JOINT),
            ),
            body,
        ),
        settings=4,
        promise=state_promise,
    )


def state_promise(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for errors of a kind."""
    if column.startswith("joint"):
        return "joint limits exclude equality in up to 6% of samples of equal groups"
    return "a gap where there is none in at most 6% of audits"


def several_attributes(simulation: Simulation) -> Section:
    """Errors of audits of several attributes, whose tests are adjusted together."""
    body: list[tuple[Cell, ...]] = []
    for spread, weights in KINDS:
        setting = RandomSegments(ATTRIBUTES[0], ROWS, 0.8, weights, spread, POSITIVES)
        estimate = partial(_attributes, random=simulation.random, threshold=setting.threshold(FPR))
        estimates = simulation.run(setting, estimate)
        errors = (family_error(estimates, metrics) for metrics in ("auc", f"auc|{RATES}"))
        body.append((spread, weights, *(error.family_error for error in errors)))
    sizes = ", ".join(map(str, ATTRIBUTES[:-1])) + f" and {ATTRIBUTES[-1]}"
    return Section(
        "Several attributes",
        f"Share of audits of three attributes, of {sizes} segments, in which any test is "
        "significant; AUC 0.8.",
        Table(("spread", "weights", "error: AUCs", "error: all"), body),
        settings=2,
        promise=state_promise,
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
