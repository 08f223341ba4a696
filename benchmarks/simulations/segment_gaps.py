"""Tests and intervals of gaps between groups that are all alike."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import polars as pl
from designs import Groups, RandomSegments, Spread, Weights
from simulation import SEGMENT, Simulation, family_error, gaps
from tables import SIGNIFICANCE, Found, Section, Table, coverage, mean, share, spans

from polars_wroc.groups.comparison_tests import GapMethod

SIZES = tuple((n, 3 * n) for n in (10, 20, 40, 80))
LARGEST = len(SIZES) - 1
AUCS = (0.75, 0.9, 0.97)
KINDS: tuple[tuple[Spread, Weights], ...] = (
    ("equal", "unit"),
    ("unequal", "unit"),
    ("unequal", "lognormal"),
    ("equal", "related"),
)
FAMILIES: tuple[tuple[object, GapMethod], ...] = (
    ("rest", "score"),
    (str(LARGEST), "score"),
    ("rest", "logit-t"),
    (str(LARGEST), "logit-t"),
)
OFFSETS = (0.0, 0.0, 2.0)


def segment_gaps(simulation: Simulation) -> list[Section]:
    """Simulate families of tests, references to all rows, and groups with an offset."""
    return [families(simulation), overall(simulation), offset(simulation)]


def families(simulation: Simulation) -> Section:
    """Family-wise error of tests by Holm's method."""
    body, found = [], []
    for (spread, weights), auc in product(KINDS, AUCS):
        setting = Groups(SIZES, auc, weights, spread)
        tables = simulation.run(setting, partial(_gaps_of_ways, ways=FAMILIES))
        shown = [family_error(tables.filter(way=way)).family_error for way in range(len(FAMILIES))]
        body.append((spread, weights, f"{auc:g}", *shown))
        if spread == "unequal" and weights == "unit":
            design = f"4 equal groups of 10 to 80 positives, {spread} spread, AUC {auc:g}"
            found.append(Found("`group_gaps`: family error", design, shown[3], shown[1]))
    audits = RandomSegments(5, 1500, 0.95, "unit", "unequal", 0.15)
    tables = simulation.run(
        audits, partial(_gaps_of_ways, ways=(("rest", "score"), ("rest", "logit-t")))
    )
    new, old = (family_error(tables.filter(way=way)).family_error for way in (0, 1))
    design = "5 segments of 1,500 rows, 15 % positive, unequal spread, AUC 0.95"
    found.append(Found("null audit: family error", design, old, new))
    return Section(
        "Gaps of AUCs: family error",
        "Share of replicates in which any test of four equal groups of 10, 20, 40 and 80 "
        "positives, with three negatives to each, is significant after Holm's method: against "
        "the rest, or against the largest group, by name.",
        Table(
            (
                "spread",
                "weights",
                "AUC",
                "score, rest",
                "score, largest",
                "logit-t, rest",
                "logit-t, largest",
            ),
            body,
        ),
        found,
    )


def overall(simulation: Simulation) -> Section:
    """Coverage of gaps to all rows, and how often interval and test contradict each other."""
    ways: tuple[tuple[object, GapMethod], ...] = (
        ("overall", "score"),
        ("overall", "logit-t"),
    )
    body, found = [], []
    for spread, weights in KINDS:
        tables = simulation.run(
            Groups(SIZES, AUCS[-1], weights, spread), partial(_gaps_of_ways, ways=ways)
        )
        spanned = {}
        for way, (reference, method) in enumerate(ways):
            own = tables.filter(way=way, metric="auc")
            covered = [
                coverage(each, 0.0, "gap_low", "gap_high") for _, each in own.group_by(SEGMENT)
            ]
            outside = (own["gap_low"] > 0) | (own["gap_high"] < 0)
            contradict = share((own["p_value"] < SIGNIFICANCE) != outside)
            least = min(covered, key=lambda measure: measure.value)
            spanned[way] = spans(covered)
            body.append(
                (
                    spread,
                    weights,
                    f"{reference!r}, {method}",
                    least.coverage,
                    spanned[way],
                    family_error(own).family_error,
                    f"{contradict.value:.3f}",
                )
            )
        if spread == "unequal":
            design = f"AUC {AUCS[-1]:g}, {spread} spread, {weights} weights"
            found.append(
                Found('`reference="overall"`: coverage by group', design, spanned[1], spanned[0])
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
                "reference, method",
                "least coverage",
                "coverage",
                "family error",
                "contradictions",
            ),
            body,
        ),
        found,
    )


def offset(simulation: Simulation) -> Section:
    """Gaps of groups when the scores of another group are higher."""
    ways: tuple[tuple[object, GapMethod], ...] = (("rest", "score"),)
    body = []
    for n_pos, n_neg in ((100, 300), (300, 900)):
        setting = Groups([(n_pos, n_neg)] * 3, 0.75, "unit", offsets=OFFSETS)
        tables = simulation.run(setting, partial(_gaps_of_ways, ways=ways))
        cells = []
        for way in range(len(ways)):
            own = tables.filter(way=way, metric="auc")
            others = own.filter(pl.col(SEGMENT).cast(pl.Int64) < LARGEST - 1)
            gap = mean(others["gap"].to_numpy())
            median = float(np.nanmedian(others["p_value"].to_numpy()))
            error = family_error(own)
            cells.append((f"{gap.value:+.3f}", f"{median:.2g}", error.family_error))
        size = f"{n_pos}/{n_neg}"
        body += [
            (size, repr(reference), *shown)
            for (reference, _), shown in zip(ways, cells, strict=True)
        ]
    return Section(
        "One group that scores higher",
        "Three groups with one and the same ROC curve (AUC 0.75), of which one scores 2 higher: "
        "mean gap and median p-value of the two others, and family error of all three.",
        Table(("size", "reference", "gap of the others", "p-value", "family error"), body),
        [],
    )


def _gaps_of_ways(frame: pl.DataFrame, ways: tuple[tuple[object, GapMethod], ...]) -> pl.DataFrame:
    """Gaps of the same rows to several references, by several methods."""
    return pl.concat(
        gaps(frame, reference, method).with_columns(way=pl.lit(way))
        for way, (reference, method) in enumerate(ways)
    )
