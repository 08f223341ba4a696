"""Fewer points of confusion curves: the convex hull, and points close enough to all."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.plans.formulas import as_struct
from polars_wroc.plans.queries import over
from polars_wroc.ranking.curve import is_origin
from polars_wroc.ranking.sorting import FP, TP

# After a pass that drops a smaller proportion of the points than this, no other pass follows.
_WORTHWHILE = 0.1
_PLACE = "__place"


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


def on_hull(origin: pl.Expr, tp: pl.Expr, fp: pl.Expr) -> pl.Expr:
    """Mark the points that are corners of the hull of their curve; curves are contiguous."""
    points = as_struct({"curve": origin.cum_sum(), TP: tp, FP: fp, "origin": origin})
    return points.map_batches(_marks, return_dtype=pl.Boolean)


def _hulls(curves: pl.Series) -> pl.Series:
    listed = pl.DataFrame({"points": curves}).with_row_index("curve")
    points = listed.explode("points", empty_as_null=False, keep_nulls=False).unnest("points")
    hulls = _corners(points.select("curve", TP, FP)).group_by("curve").agg(points=pl.struct(TP, FP))
    found = listed.select("curve").join(hulls, on="curve", how="left", maintain_order="left")
    return found["points"].alias(curves.name)


def _marks(points: pl.Series) -> pl.Series:
    numbered = points.struct.unnest().with_row_index("place")
    corners = _corners(numbered.filter(~pl.col("origin")))["place"]
    marked = pl.col("origin") | pl.col("place").is_in(corners.implode())
    return numbered.select(marked).to_series()


def _corners(points: pl.DataFrame) -> pl.DataFrame:
    """Keep the corners of the hull of each ``curve``, which starts at the origin.

    A point on or below the line between two others is never a corner, so that all such points
    can be dropped at once.
    """
    places = points.with_row_index(_PLACE)
    left = _scaled(places.filter(_moves()))
    while True:
        kept = left.filter(_turns_right())
        if kept.height >= (1 - _WORTHWHILE) * left.height:
            few = kept if kept.height == left.height else _corners_of_few(kept)
            return points[few[_PLACE]]
        left = kept


def _scaled(points: pl.DataFrame) -> pl.DataFrame:
    """Scale the weights of each class of each curve to about 1: products do not overflow.

    Scaling the weights of a class does not change the corners, and powers of two do not round.
    """
    totals = points.select(pl.col(TP, FP).filter(_is_last()))
    known = (pl.all() > 0) & pl.all().is_finite()
    exponents = totals.select(pl.when(known).then(pl.all().log(2).floor()).fill_null(0.0))
    scales = exponents.select(pl.lit(2.0).pow((-pl.all()).clip(-1022, 1023)).name.keep())
    of_curve = points["curve"].rle_id()
    return points.with_columns(points[name] * scales[name].gather(of_curve) for name in (TP, FP))


def _moves() -> pl.Expr:
    """Whether a point differs from the one before it; a corner does."""
    run, rise = (pl.col(weight) - _before(weight) for weight in (FP, TP))
    return (run > 0) | (rise > 0)


def _turns_right() -> pl.Expr:
    """Whether the line through a point's neighbours passes below it; true of the last point."""
    run, rise = (pl.col(weight) - _before(weight) for weight in (FP, TP))
    next_run, next_rise = (pl.col(weight).shift(-1) - pl.col(weight) for weight in (FP, TP))
    return _is_last() | (run * next_rise < rise * next_run)


def _is_last() -> pl.Expr:
    return pl.col("curve").ne_missing(pl.col("curve").shift(-1))


def _before(weight: str) -> pl.Expr:
    same = pl.col("curve") == pl.col("curve").shift(1)
    return pl.when(same).then(pl.col(weight).shift(1)).otherwise(0.0)


def _corners_of_few(points: pl.DataFrame) -> pl.DataFrame:
    corners: list[int] = []
    chain: list[tuple[int, float, float]] = []
    of_chain = None
    for place, curve, fp, tp in points.select("curve", FP, TP).with_row_index().rows():
        if curve != of_chain:
            corners += [corner for corner, _, _ in chain]
            chain, of_chain = [], curve
        while chain and not _bends_down(chain, fp, tp):
            chain.pop()
        chain.append((place, fp, tp))
    return points[corners + [corner for corner, _, _ in chain]]


def _bends_down(chain: list[tuple[int, float, float]], fp: float, tp: float) -> bool:
    _, last_fp, last_tp = chain[-1]
    _, before_fp, before_tp = chain[-2] if chain[1:] else (0, 0.0, 0.0)
    return (last_fp - before_fp) * (tp - last_tp) < (last_tp - before_tp) * (fp - last_fp)


AUC_CHANGE = "auc_change"
_AREA, _PART, _STARTS, _ENDS = "__area", "__part", "__starts", "__ends"


def thin(
    curve: pl.LazyFrame, keys: Sequence[str], max_points: int, position: pl.Expr | None = None
) -> pl.LazyFrame:
    """Keep at most ``max_points`` points of each ROC curve, and add the change of its AUC.

    The curve's length, measured as fpr + tpr, is cut into equal parts, and the first and the
    last point in each are kept. Between the two the area changes by less than half of the
    rectangle that they span, which bounds the change. That of an earlier thinning is added.
    ``position`` measures the length otherwise; it rises along the curve from 0 or more to 2.
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
    """Add the AUC of each whole curve as ``auc``, also where the curve was thinned."""
    auc = _area(keys)
    if AUC_CHANGE in curve.collect_schema():
        auc -= pl.col(AUC_CHANGE)
    return curve.with_columns(auc.alias("auc"))


def _ends_of_parts(
    curve: pl.LazyFrame, keys: Sequence[str], position: pl.Expr, max_points: int
) -> pl.LazyFrame:
    """Cut each curve into equal parts of its length; keep the first and last point of each."""
    numbered = curve.with_columns(_part(position, max_points).alias(_PART))
    # Curves are contiguous, and each rises along its rows.
    columns = [pl.col(name) for name in (*keys, _PART)]
    starts = pl.any_horizontal(column.ne_missing(column.shift(1)) for column in columns)
    marked = numbered.with_columns(starts.alias(_STARTS))
    ends = pl.col(_STARTS).shift(-1, fill_value=True)
    return marked.filter(pl.col(_STARTS) | ends).drop(_PART, _STARTS)


def parts_of_curve(max_points: int) -> int:
    """Into how many parts a curve is cut, so that their ends and the origin are so many points."""
    return (max_points - 1) // 2


def _part(position: pl.Expr, max_points: int) -> pl.Expr:
    """Number the part of a curve that a point is in."""
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
