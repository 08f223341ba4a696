"""Influence of replicate weights on AUCs: one sort, and a cumulative sum for each replicate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, STRATUM
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.inputs.survey_design import Replicates
from polars_wroc.plans.by_keys import aggregate, join_on_keys, over
from polars_wroc.plans.steps import as_struct
from polars_wroc.stats.replicate_variance import (
    in_rows,
    of_full_weights,
    signed_weights,
    with_signed_weights,
)

_ABOVE = "__negatives_above"


def replicate_influences(rows: Rows, design: Replicates, scores: Mapping[str, str]) -> pl.LazyFrame:
    """Compute named influences on the AUC of each segment by a column of scores.

    Null where a replicate has one class only.
    """
    of_scores = [_one_minus_aucs(rows, design, score, name) for name, score in scores.items()]
    unit = [*rows.keys, STRATUM, CLUSTER]
    table = reduce(lambda one, other: join_on_keys(one, other, unit), of_scores)
    differences = {name: of_full_weights(pl.col(name), rows.keys) - pl.col(name) for name in scores}
    return table.with_columns(**differences)


def _one_minus_aucs(rows: Rows, design: Replicates, score: str, name: str) -> pl.LazyFrame:
    """Compute 1 - AUC of each segment with each column of weights."""
    weights = signed_weights(design)
    sums: dict[str, pl.Expr] = {}
    for weight in weights:
        for side, of_row in zip(CLASSES, class_weights(pl.col(weight)), strict=True):
            sums[f"{weight}_{side}"] = of_row.sum()
    # Ties are added up first, so that each score has one place.
    signed = with_signed_weights(rows.frame, design)
    by_score = aggregate(signed, [*rows.keys, score], sums).sort(score, descending=True)
    above = {weight: pl.col(f"{weight}_neg").cum_sum() for weight in weights}
    placed = by_score.with_columns(over(as_struct(above), rows.keys).alias(_ABOVE))
    areas: dict[str, pl.Expr] = {}
    for weight in weights:
        pos, neg = (pl.col(f"{weight}_{side}") for side in CLASSES)
        # Shares of the positives, since products of weights may overflow or underflow.
        misranked = pos / pos.sum() * (pl.col(_ABOVE).struct.field(weight) - neg / 2)
        both = pl.when((pos.sum() > 0) & (neg.sum() > 0))
        area = both.then(misranked.sum() / neg.sum())
        areas[weight] = pl.when(area.is_finite()).then(area)
    table = aggregate(placed, rows.keys, areas)
    return in_rows(table, rows.keys, [{name: pl.col(weight)} for weight in weights])
