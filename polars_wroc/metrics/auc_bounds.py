"""Bounds of a curve and its AUC where only bins of scores are known.

Rows in a bin with several scores may be in any order. If all its negatives rank first, the curve
runs along the bottom of the bin's rectangle and then up; if they rank last, along its top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SEVERAL_SCORES
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics import formulas
from polars_wroc.ranking.curve import Curve
from polars_wroc.ranking.placements import row_curve
from polars_wroc.ranking.reduce_placed import reduce_placed

AUC_BOUNDS = ("auc_low", "auc_high")

_POINT = "__point"


class CurveBounds(NamedTuple):
    """The lowest and the highest curve."""

    low: Curve
    high: Curve


def curve_bounds(curve: Curve, *, over_tpr: bool = False) -> CurveBounds:
    """Bound the curve of `row_curve`, for areas over the fpr or the tpr."""
    several = pl.when(SEVERAL_SCORES)
    if over_tpr:
        return CurveBounds(
            low=replace(curve, fpr_before=several.then(curve.fpr).otherwise(curve.fpr_before)),
            high=replace(curve, fpr=several.then(curve.fpr_before).otherwise(curve.fpr)),
        )
    return CurveBounds(
        low=replace(curve, tpr=several.then(curve.tpr_before).otherwise(curve.tpr)),
        high=replace(curve, tpr_before=several.then(curve.tpr).otherwise(curve.tpr_before)),
    )


def with_corners(curve: pl.LazyFrame, keys: Sequence[str]) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the lowest and the highest curve, with a corner point for each bin."""
    fpr, tpr = pl.col("fpr"), pl.col("tpr")
    corners = (
        pl.struct(fpr, tpr.shift(1)),
        pl.struct(fpr.shift(1), tpr),
    )
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
    return {name: formulas.roc_auc(bound) for name, bound in bounds}


def auc_bounds(rows: Rows) -> pl.LazyFrame:
    """Return the bounds of the AUC of each group."""
    return reduce_placed(rows, lambda placed: placed.aggregate(auc_bound_sums()))
