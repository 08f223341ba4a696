"""Limits of the largest gap when all groups are alike."""

from __future__ import annotations

from functools import partial

import polars as pl
from designs import RandomSegments, Weights
from simulation import Simulation, largest_gaps
from tables import Cell, Measure, Section, Table, share

GROUPS = (2, 3, 5, 10, 20)
# Rows of a group on average, share of positives, and a threshold that selects a fifth of the rows.
ROWS, POSITIVES, AUC, THRESHOLD = 100, 0.3, 0.8, 1.3
METRICS = ("demographic_parity_difference", "equalized_odds_difference", "auc_difference")
GATED = "demographic_parity_ratio"
FOUR_FIFTHS = 0.8


def largest(simulation: Simulation) -> Section:
    """How often limits exclude equality, or are below four fifths as a whole."""
    body: list[tuple[Cell, ...]] = []
    kinds: tuple[Weights, ...] = ("unit", "lognormal")
    for weights in kinds:
        for count in GROUPS:
            setting = RandomSegments(count, count * ROWS, AUC, weights, "equal", POSITIVES)
            table = simulation.run(setting, partial(largest_gaps, threshold=THRESHOLD))
            measures = [excludes_equality(table, metric) for metric in METRICS]
            measures.append(share(table.filter(metric=GATED)["ratio_high"] < FOUR_FIFTHS))
            body.append((weights, str(count), *(each.family_error for each in measures)))
    columns = [_short(metric) for metric in METRICS]
    return Section(
        "Largest gap of groups that are all alike",
        f"Groups of {ROWS} rows on average, {POSITIVES:.0%} of them positive, with an AUC of "
        f"{AUC:g}; about a fifth is selected. The share of replicates in which the limits of "
        "`fairness`, which hold for all pairs of groups, exclude equality. "
        f"*gate*: `{GATED}.ratio_high<{FOUR_FIFTHS:g}`.",
        Table(("weights", "groups", *columns, "gate"), body),
        settings=2,
        promise="joint limits exclude equality in up to 6% of samples of equal groups",
    )


def excludes_equality(table: pl.DataFrame, metric: str) -> Measure:
    """Share of replicates whose lower limit of a difference is above 0."""
    return share(table.filter(metric=metric)["gap_low"] > 0)


def _short(metric: str) -> str:
    return metric.removesuffix("_difference").replace("_", " ")
