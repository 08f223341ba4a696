"""What a curve may be where only bins of scores are known: never below one curve or above another.

Rows in a bin with several scores may be in any order. If all its negatives come first the curve
runs along the bottom of the bin's rectangle and then up, and along its top if they come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_wroc import metrics
from polars_wroc.confusion import Curve, class_weights
from polars_wroc.inputs import SCORE, SCORE_HIGH, SEVERAL_SCORES, WEIGHT
from polars_wroc.placements import place, row_curve
from polars_wroc.rows import Rows, beside, over, reduce_groups

AUC_BOUNDS = ("auc_low", "auc_high")
# How far bins may move the difference to the rows outside a group, or to another group.
HIDDEN = ("__hidden_rest", "__hidden_group")
_POINT = "__point"
_SEVERAL = "__several"


class CurveBounds(NamedTuple):
    """The lowest and the highest curve."""

    low: Curve
    high: Curve


def curve_bounds(curve: Curve, *, over_tpr: bool = False) -> CurveBounds:
    """Bound the curve of rows that have been placed, for areas over one of the rates."""
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
    """Lay out the lowest and the highest curve, with a corner before each point after a bin."""
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
    """Aggregate the placed rows of a group to what its AUC is between."""
    bounds = zip(AUC_BOUNDS, curve_bounds(row_curve()), strict=True)
    return {name: metrics.roc_auc(bound) for name, bound in bounds}


def auc_bounds(rows: Rows) -> pl.LazyFrame:
    """Lay out what the AUC of each group is between."""
    return rows.arrange(rows.reduce(place(rows), auc_bound_sums()))


def with_hidden_differences(sums: pl.LazyFrame, rows: Rows, apart: Sequence[str]) -> pl.LazyFrame:
    """Add to the sums of groups how far bins may move the difference of two AUCs.

    `HIDDEN` has one column for what holds the rows outside a group and one for another group.
    """
    if not rows.binned:
        return sums
    pos, neg = class_weights(pl.col(WEIGHT).fill_null(0.0))
    several = (pl.col(SCORE) < pl.col(SCORE_HIGH)).any()
    sides = {"__pos": pos.sum(), "__neg": neg.sum()}
    bins = rows.frame.group_by(*rows.keys, SCORE).agg(several.alias(_SEVERAL), **sides)
    everybody = {f"{name}_all": pl.col(name).sum() for name in sides}
    bins = beside(bins, bins.group_by(*apart, SCORE).agg(**everybody), [*apart, SCORE])
    own_pos, own_neg, all_pos, all_neg = (pl.col(name) for name in (*sides, *everybody))
    inside = pl.when(_SEVERAL).then(1.0).otherwise(0.0)
    mixed = all_pos * own_neg + own_pos * all_neg - own_pos * own_neg
    of_group = reduce_groups(
        bins,
        rows.keys,
        {
            "__own": (own_pos * own_neg * inside).sum(),
            "__mixed": (mixed * inside).sum(),
            **{name: pl.col(name).sum() for name in sides},
        },
    )
    pairs = all_pos * all_neg * inside
    of_all = reduce_groups(
        bins.unique([*apart, SCORE]),
        apart,
        {"__whole": pairs.sum(), **{name: pl.col(name).sum() for name in everybody}},
    )
    table = beside(of_group, of_all, apart)
    own = pl.col("__own") / (own_pos * own_neg)
    whole = pl.col("__whole") / (all_pos * all_neg)
    rest = (pl.col("__whole") - pl.col("__mixed")) / ((all_pos - own_pos) * (all_neg - own_neg))
    most = own.fill_nan(None).max()
    hidden = (own + pl.max_horizontal(rest.fill_nan(None), whole), own + over(most, apart))
    columns = {name: value / 2 for name, value in zip(HIDDEN, hidden, strict=True)}
    return beside(sums, table.select(*rows.keys, **columns), rows.keys)


def unless_hidden(gaps: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """Widen intervals by what bins may hide, and test only where the sign of a gap is certain."""
    hidden = HIDDEN[kind == "group"]
    if hidden not in gaps.collect_schema():
        return gaps
    certain = pl.col("auc_gap").abs() > pl.col(hidden)
    return gaps.with_columns(
        (pl.col("auc_gap_low") - pl.col(hidden)).clip(-1.0, 1.0),
        (pl.col("auc_gap_high") + pl.col(hidden)).clip(-1.0, 1.0),
        pl.when(certain).then("auc_gap_p_value").alias("auc_gap_p_value"),
    )
