"""Variance of the AUC from replicate weights: one sort, and a cumulative sum for each replicate."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import aggregate, over
from polars_wroc.plans.checks import require_at_collect
from polars_wroc.plans.steps import as_struct
from polars_wroc.stats.design_variance import DESIGN_DF, SEGMENT_DF

# Of a segment: how many replicates have no AUC.
UNKNOWN = "__unknown_replicates"
_FULL = "__full"


def replicate_variances(rows: Rows, variance: str) -> pl.LazyFrame:
    """Compute the ``variance`` of the AUC of each segment; null if a replicate has one class."""
    assert rows.replicates is not None
    names, factors, df, _ = rows.replicates
    aucs = _one_minus_aucs(rows, [_FULL, *names])
    terms = [
        factor * (pl.col(name) - pl.col(_FULL)) ** 2
        for name, factor in zip(names, factors, strict=True)
    ]
    unknown = pl.sum_horizontal(pl.col(name).is_null() for name in names).cast(pl.Int64)
    known = pl.when(pl.all_horizontal(pl.col(name).is_not_null() for name in (_FULL, *names)))
    return aucs.select(
        *rows.keys,
        known.then(pl.sum_horizontal(terms)).alias(variance),
        unknown.alias(UNKNOWN),
        pl.lit(df, pl.Int64).alias(DESIGN_DF),
        pl.lit(None, pl.Int64).alias(SEGMENT_DF),
    )


def _one_minus_aucs(rows: Rows, names: list[str]) -> pl.LazyFrame:
    """Compute 1 - AUC of each segment with each column of weights."""
    assert rows.replicates is not None
    positive = pl.col(WEIGHT) > 0
    sums: dict[str, pl.Expr] = {}
    for name in names:
        of_row = pl.col(name).cast(pl.Float64)
        sums[_of(name, "pos")] = pl.when(positive).then(of_row).otherwise(0.0).sum()
        sums[_of(name, "neg")] = pl.when(positive).then(0.0).otherwise(of_row).sum()
    # Ties are added up first, so that each score has one place.
    checked = map(_not_null, rows.replicates.columns, rows.replicates.shown)
    complete = rows.frame.filter(pl.col(WEIGHT).is_not_null()).with_columns(
        pl.col(WEIGHT).abs().alias(_FULL), *checked
    )
    by_score = aggregate(complete, [*rows.keys, SCORE], sums).sort(SCORE, descending=True)
    above = {name: pl.col(_of(name, "neg")).cum_sum() for name in names}
    placed = by_score.with_columns(over(as_struct(above), rows.keys).alias("__above"))
    areas: dict[str, pl.Expr] = {}
    for name in names:
        pos, neg = (pl.col(_of(name, side)) for side in ("pos", "neg"))
        # Shares of the positives, since products of weights may overflow or underflow.
        misranked = pos / pos.sum() * (pl.col("__above").struct.field(name) - neg / 2)
        both = pl.when((pos.sum() > 0) & (neg.sum() > 0))
        area = both.then(misranked.sum() / neg.sum())
        areas[name] = pl.when(area.is_finite()).then(area)
    return aggregate(placed, rows.keys, areas)


def _not_null(name: str, shown: str) -> pl.Expr:
    rule = f"`replicate_weights` must not be null in complete rows; {shown} holds null"
    known = require_at_collect(pl.col(name).is_not_null(), rule)
    return pl.when(known).then(name).alias(name)


def _of(name: str, side: str) -> str:
    return f"{name}_{side}"
