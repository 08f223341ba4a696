"""Limits of the largest gap when all groups are alike."""

from __future__ import annotations

from functools import partial

import polars as pl
from designs import RandomSegments, Weights
from simulation import Simulation, largest_gaps
from tables import Found, Measure, Section, Table, share

GROUPS = (2, 3, 5, 10, 20)
# Rows of a group on average, share of positives, and a threshold that selects a fifth of the rows.
ROWS, POSITIVES, AUC, THRESHOLD = 100, 0.3, 0.8, 1.3
METRICS = ("demographic_parity_difference", "equalized_odds_difference", "auc_difference")
GATED = "demographic_parity_ratio"
FOUR_FIFTHS = 0.8
LIMITS = {"picked": "ci", "joint": "joint"}


def largest(simulation: Simulation) -> Section:
    """How often limits exclude equality, or say that the four-fifths rule is surely failed."""
    body, found = [], []
    kinds: tuple[Weights, ...] = ("unit", "lognormal")
    for weights in kinds:
        for count in GROUPS:
            setting = RandomSegments(count, count * ROWS, AUC, weights, "equal", POSITIVES)
            table = simulation.run(setting, partial(largest_gaps, threshold=THRESHOLD))
            excluded = {
                (metric, kind): excludes_equality(table, metric, column)
                for metric in METRICS
                for kind, column in LIMITS.items()
            }
            gate = {
                kind: share(table.filter(metric=GATED)[f"{column}_high"] < FOUR_FIFTHS)
                for kind, column in LIMITS.items()
            }
            shown = [measure.family_error for measure in (*excluded.values(), *gate.values())]
            body.append((weights, str(count), *shown))
            if weights == "unit":
                found += _found(count, excluded, gate)
    columns = [f"{_short(metric)}, {kind}" for metric in METRICS for kind in LIMITS]
    gates = [f"gate, {kind}" for kind in LIMITS]
    return Section(
        "Largest gap of groups that are all alike",
        f"Groups of {ROWS} rows on average, {POSITIVES:.0%} of them positive, with an AUC of "
        f"{AUC:g}; about a fifth is selected. Share of replicates whose limits of "
        "`fairness` exclude equality: those of the picked pair (`ci_low`) and those of all pairs "
        "(`joint_low`). "
        f"*gate*: `{GATED}_high<{FOUR_FIFTHS:g}`, by `ci_high` and by `joint_high`, which the "
        "gate of an audit reads.",
        Table(("weights", "groups", *columns, *gates), body),
        found,
    )


def excludes_equality(table: pl.DataFrame, metric: str, limits: str) -> Measure:
    """Share of replicates whose lower limit of a difference is above 0."""
    return share(table.filter(metric=metric)[f"{limits}_low"] > 0)


def _short(metric: str) -> str:
    return metric.removesuffix("_difference").replace("_", " ")


def _found(
    count: int, excluded: dict[tuple[str, str], Measure], gate: dict[str, Measure]
) -> list[Found]:
    design = f"{count} equal groups of {ROWS} rows"
    measures = {
        "`fairness`, demographic parity: excludes equality": {
            kind: excluded[METRICS[0], kind] for kind in LIMITS
        },
        "gate `demographic_parity_ratio_high<0.8`: fails": gate,
    }
    return [
        Found(where, design, of_limits["picked"].family_error, of_limits["joint"].family_error)
        for where, of_limits in measures.items()
    ]
