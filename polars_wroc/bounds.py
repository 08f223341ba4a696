"""What a curve may be where only bins of scores are known: never below one curve or above another.

Rows in a bin with several scores may be in any order. If all its negatives come first the curve
runs along the bottom of the bin's rectangle and then up, and along its top if they come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_wroc import metrics
from polars_wroc.confusion import Curve
from polars_wroc.inputs import SCORE, SCORE_HIGH
from polars_wroc.placements import place, row_curve
from polars_wroc.rows import Rows

AUC_BOUNDS = ("auc_low", "auc_high")


class CurveBounds(NamedTuple):
    """The lowest and the highest curve, for areas over false positive rates."""

    low: Curve
    high: Curve


def curve_bounds(curve: Curve) -> CurveBounds:
    """Bound the curve of rows that have been placed."""
    several = pl.when(pl.col(SCORE) < pl.col(SCORE_HIGH))
    return CurveBounds(
        low=replace(curve, tpr=several.then(curve.tpr_before).otherwise(curve.tpr)),
        high=replace(curve, tpr_before=several.then(curve.tpr).otherwise(curve.tpr_before)),
    )


def auc_bound_sums() -> dict[str, pl.Expr]:
    """Aggregate the placed rows of a group to what its AUC is between."""
    bounds = zip(AUC_BOUNDS, curve_bounds(row_curve()), strict=True)
    return {name: metrics.roc_auc(bound) for name, bound in bounds}


def auc_bounds(rows: Rows) -> pl.LazyFrame:
    """Lay out what the AUC of each group is between."""
    return rows.arrange(rows.reduce(place(rows), auc_bound_sums()))
