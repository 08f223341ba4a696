"""Plans of the sums and columns of a summary, for tables that have it as a part of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_wroc.inputs.columns import SEVERAL_SCORES
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.summary import AUC_BOUNDS
from polars_wroc.ranking.curve import Curve
from polars_wroc.ranking.placements import (
    reduce_placed,
    row_curve,
)

_POINT = "__point"


def curve_bounds(curve: Curve, *, over_tpr: bool = False) -> tuple[Curve, Curve]:
    """Return the lowest and the highest curve within `row_curve`, for areas over the fpr or tpr."""
    several = pl.when(SEVERAL_SCORES)
    if over_tpr:
        low = replace(curve, fpr_before=several.then(curve.fpr).otherwise(curve.fpr_before))
        return low, replace(curve, fpr=several.then(curve.fpr_before).otherwise(curve.fpr))
    low = replace(curve, tpr=several.then(curve.tpr_before).otherwise(curve.tpr))
    return low, replace(curve, tpr_before=several.then(curve.tpr).otherwise(curve.tpr_before))


def with_corners(curve: pl.LazyFrame, keys: Sequence[str]) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the lowest and the highest curve, with a corner point for each bin."""
    fpr, tpr = pl.col("fpr"), pl.col("tpr")
    corners = pl.struct(fpr, tpr.shift(1)), pl.struct(fpr.shift(1), tpr)
    low, high = (
        curve.select(
            *keys,
            pl.concat_list(pl.when(SEVERAL_SCORES).then(corner), pl.struct(fpr, tpr)).alias(_POINT),
        )
        .explode(_POINT, empty_as_null=False)
        .drop_nulls(_POINT)
        .with_columns(pl.col(_POINT).struct.unnest())
        .drop(_POINT)
        for corner in corners
    )
    return low, high


def auc_bound_sums() -> dict[str, pl.Expr]:
    """Aggregations of a group to the bounds of its AUC."""
    bounds = zip(AUC_BOUNDS, curve_bounds(row_curve()), strict=True)
    return {name: registry.roc_auc(bound) for name, bound in bounds}


def auc_bounds(rows: Rows) -> pl.LazyFrame:
    """Return the bounds of the AUC of each group."""
    return reduce_placed(rows, lambda placed: placed.aggregate(auc_bound_sums()))
