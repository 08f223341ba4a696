"""Tests and intervals of gaps between groups that are all alike."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import polars as pl
from designs import Groups, RandomSegments, Spread, Weights
from simulation import SEGMENT, Simulation, family_error, gaps
from tables import SIGNIFICANCE, Cell, Section, Table, coverage, mean, share, spans

SIZES = tuple((n, 3 * n) for n in (10, 20, 40, 80))
LARGEST = len(SIZES) - 1
AUCS = (0.75, 0.9, 0.97)
KINDS: tuple[tuple[Spread, Weights], ...] = (
    ("equal", "unit"),
    ("unequal", "unit"),
    ("unequal", "lognormal"),
    ("equal", "related"),
)
FAMILIES = ("rest", str(LARGEST))
OFFSETS = (0.0, 0.0, 2.0)
PROMISE = (
    "gaps of AUCs err in at most 6%, except where tails differ and weights fall with the score"
)


def segment_gaps(simulation: Simulation) -> list[Section]:
    """Simulate families of tests, references to all rows, and groups with an offset."""
    return [families(simulation), overall(simulation), offset(simulation)]


def families(simulation: Simulation) -> Section:
    """Family-wise error of tests by Holm's method."""
    body: list[tuple[Cell, ...]] = []
    for (spread, weights), auc in product(KINDS, AUCS):
        setting = Groups(SIZES, auc, weights, spread)
        tables = simulation.run(setting, partial(_gaps_of_ways, ways=FAMILIES))
        errors = [family_error(tables.filter(way=way)).family_error for way in range(len(FAMILIES))]
        body.append((spread, weights, f"{auc:g}", *errors))
    audits = RandomSegments(5, 1500, 0.95, "unit", "unequal", 0.15)
    tables = simulation.run(audits, partial(_gaps_of_ways, ways=("rest",)))
    body.append(("unequal", "unit", "0.95, 5 segments", family_error(tables).family_error, "-"))
    return Section(
        "Gaps of AUCs: family error",
        "Share of replicates in which any test of four equal groups of 10, 20, 40 and 80 "
        "positives, with three negatives to each, is significant after Holm's method: against "
        "the rest, or against the largest group by name. The five segments have 1,500 rows in "
        "all, 15% of which are positive.",
        Table(("spread", "weights", "AUC", "rest", "largest"), body),
        settings=3,
        promise=PROMISE,
    )


def overall(simulation: Simulation) -> Section:
    """Coverage of gaps to all rows, and how often interval and test contradict each other."""
    body: list[tuple[Cell, ...]] = []
    for spread, weights in KINDS:
        setting = Groups(SIZES, AUCS[-1], weights, spread)
        own = simulation.run(setting, partial(gaps, reference="overall", metrics=["auc"])).filter(
            metric="auc"
        )
        covered = [coverage(each, 0.0, "gap_low", "gap_high") for _, each in own.group_by(SEGMENT)]
        outside = (own["gap_low"] > 0) | (own["gap_high"] < 0)
        contradict = share((own["p_value"] < SIGNIFICANCE) != outside)
        least = min(covered, key=lambda measure: measure.value)
        body.append(
            (
                spread,
                weights,
                least.coverage,
                spans(covered),
                family_error(own).family_error,
                f"{contradict.value:.3f}",
            )
        )
    return Section(
        "Gaps to all rows",
        f"The same four groups at an AUC of {AUCS[-1]:g}: coverage of the gap, the least and all "
        "of the groups, the family error, and how often the interval and the unadjusted p-value "
        "contradict each other.",
        Table(
            (
                "spread",
                "weights",
                "least coverage",
                "coverage",
                "family error",
                "contradictions",
            ),
            body,
        ),
        settings=2,
        promise=PROMISE,
    )


def offset(simulation: Simulation) -> Section:
    """Gaps of groups when the scores of another group are higher."""
    body: list[tuple[Cell, ...]] = []
    for n_pos, n_neg in ((100, 300), (300, 900)):
        setting = Groups([(n_pos, n_neg)] * 3, 0.75, "unit", offsets=OFFSETS)
        own = simulation.run(setting, partial(gaps, reference="rest", metrics=["auc"])).filter(
            metric="auc"
        )
        others = own.filter(pl.col(SEGMENT).cast(pl.Int64) < LARGEST - 1)
        gap = mean(others["gap"].to_numpy())
        median = float(np.nanmedian(others["p_value"].to_numpy()))
        error = family_error(own).family_error
        body.append((f"{n_pos}/{n_neg}", "'rest'", f"{gap.value:+.3f}", f"{median:.2g}", error))
    return Section(
        "One group that scores higher",
        "Three groups with one and the same ROC curve (AUC 0.75), of which one scores 2 higher: "
        "mean gap and median p-value of the two others, and family error of all three.",
        Table(("size", "reference", "gap of the others", "p-value", "family error"), body),
        settings=2,
        promise=PROMISE,
    )


def _gaps_of_ways(frame: pl.DataFrame, ways: tuple[str, ...]) -> pl.DataFrame:
    """Gaps of the same rows to several references."""
    return pl.concat(
        gaps(frame, reference, metrics=["auc"]).with_columns(way=pl.lit(way))
        for way, reference in enumerate(ways)
    )
