"""Fewer points of confusion curves: the convex hull, and points close to all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_wroc.arrays import Ints
from polars_wroc.queries import over
from polars_wroc.ranking.curve import is_origin
from polars_wroc.ranking.hulls import find_corners
from polars_wroc.ranking.sorting import FP, TP
from polars_wroc.structs import as_struct


def hull_list(curves: pl.Expr) -> pl.Expr:
    """Reduce each list of points of a curve to the corners of its hull.

    Weights become proportions of the total weight. The origin is a corner that is not listed.
    """
    field = pl.element().struct.field
    tp, fp = field(TP), field(FP)
    both = tp.last() + fp.last()
    dtype = pl.List(pl.Struct({TP: pl.Float64, FP: pl.Float64}))
    corners = curves.map_batches(_hulls, return_dtype=dtype, is_elementwise=True)
    return corners.list.eval(as_struct({TP: tp / both, FP: fp / both}))


def _hulls(curves: pl.Series) -> pl.Series:
    listed = pl.DataFrame({"points": curves}).with_row_index("curve")
    points = listed.explode("points", empty_as_null=False, keep_nulls=False).unnest("points")
    corners = points[_corners(points)]
    hulls = corners.group_by("curve", maintain_order=True).agg(points=pl.struct(TP, FP))
    found = listed.select("curve").join(hulls, on="curve", how="left", maintain_order="left")
    return found["points"].alias(curves.name)


def _corners(points: pl.DataFrame) -> Ints:
    """Return the places of the corners of the hull of each ``curve``, whose points are together."""
    curve = points["curve"].to_numpy()
    changes = np.flatnonzero(np.diff(curve)) + 1
    starts = np.concatenate([[0], changes, [len(curve)]]) if len(curve) else np.zeros(1, np.int64)
    tp, fp = (points[name].cast(pl.Float64).to_numpy() for name in (TP, FP))
    with np.errstate(all="ignore"):
        return find_corners(tp, fp, starts)


AUC_CHANGE = "auc_change"
_AREA, _PART_NUMBER, _STARTS, _ENDS = "__area", "__part_number", "__starts", "__ends"


def thin(
    curve: pl.LazyFrame, keys: Sequence[str], max_points: int, position: pl.Expr | None = None
) -> pl.LazyFrame:
    """Keep at most ``max_points`` points of each ROC curve, and add the change of its AUC.

    The curve's length, measured as fpr + tpr, is cut into equal parts, and the first and the last
    point of each part are kept. Between the two, the area changes by less than half of the
    rectangle they span, which bounds the change. The change of an earlier thinning is added.
    ``position`` replaces the measure of length; it rises along the curve from 0 or more to 2.
    """
    names = curve.collect_schema().names()
    whole = curve.with_columns(_area(keys).alias(_AREA))
    if position is None:
        position = pl.col("fpr").fill_null(0.0) + pl.col("tpr").fill_null(0.0)
    kept = _ends_of_parts(whole, keys, position, max_points)
    change = _area(keys) - pl.col(_AREA)
    if AUC_CHANGE in names:
        change += pl.col(AUC_CHANGE)
    return kept.with_columns(change.alias(AUC_CHANGE)).drop(_AREA)


def with_auc(curve: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Add the AUC of each whole curve as ``auc``, even if the curve was thinned."""
    auc = _area(keys)
    if AUC_CHANGE in curve.collect_schema():
        auc -= pl.col(AUC_CHANGE)
    return curve.with_columns(auc.alias("auc"))


def _ends_of_parts(
    curve: pl.LazyFrame, keys: Sequence[str], position: pl.Expr, max_points: int
) -> pl.LazyFrame:
    """Return the first and last point of each of the equal parts of each curve's length."""
    numbered = curve.with_columns(_part(position, max_points).alias(_PART_NUMBER))
    # Curves are contiguous, and rise along their rows.
    columns = [pl.col(name) for name in (*keys, _PART_NUMBER)]
    starts = pl.any_horizontal(column.ne_missing(column.shift(1)) for column in columns)
    marked = numbered.with_columns(starts.alias(_STARTS))
    ends = pl.col(_STARTS).shift(-1, fill_value=True)
    return marked.filter(pl.col(_STARTS) | ends).drop(_PART_NUMBER, _STARTS)


def parts_of_curve(max_points: int) -> int:
    """Return the number of parts whose ends, with the origin, are at most so many points."""
    return (max_points - 1) // 2


def _part(position: pl.Expr, max_points: int) -> pl.Expr:
    """Return the number of the part of a curve that each point is in."""
    parts = parts_of_curve(max_points)
    # Rounded, since the last digits of sums of weights depend on the order of the rows.
    number = (position / 2 * parts).round(9).ceil().clip(1, parts)
    # The origin is a part of its own, so that it shares none with the curve before it.
    return pl.when(~is_origin()).then(number).fill_null(0).cast(pl.Int32)


def _area(keys: Sequence[str]) -> pl.Expr:
    """Area under each of several contiguous curves; null where a class is missing."""
    fpr, tpr = pl.col("fpr"), pl.col("tpr")
    trapezoid = (fpr - fpr.shift(1)) * (tpr + tpr.shift(1)) / 2
    area = pl.when(~is_origin()).then(trapezoid).sum()
    both = fpr.is_not_null() & tpr.is_not_null()
    return pl.when(both).then(over(area, keys))
