"""The upper convex hull of confusion curves: the thresholds that are best at some cost.

No window function computes a hull, since how far it must look back depends on the data. So this
is a Python function inside the query, like `equal_rates`: passes over whole columns drop points
below the line between their neighbours until a pass drops few, then a stack takes the remaining
points one by one.
"""

from __future__ import annotations

import polars as pl

from polars_wroc.plans.steps import as_struct
from polars_wroc.ranking.cumulative_sums import FP, TP

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
