"""The area between two ROC curves, exact along every straight piece of both."""

from __future__ import annotations

import polars as pl

# Which of the two curves a point is on.
SIDE = "__side"
_CURVES = {"one": pl.col(SIDE), "other": ~pl.col(SIDE)}


def area_between(points: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """Add up, per group, the distance of two curves over the false positive rates.

    ``points`` has the ``keys``, ``fpr`` and ``tpr`` of both curves, origin included, and
    `SIDE`, which is True for the points of one of them and False for the other. The result has
    the keys and ``area``, for groups with two whole curves only.
    """
    complete = pl.col("fpr", "tpr").is_not_null()
    both = pl.all_horizontal(complete).all() & (pl.col(SIDE).any() & (~pl.col(SIDE)).any())
    known = points.filter(both.over(keys) if keys else both)
    # A curve is vertical where several points share a rate: it comes in low and goes on high.
    tpr = pl.col("tpr")
    places = known.group_by(*keys, "fpr").agg(
        end.alias(_column(name, curve))
        for curve, there in _CURVES.items()
        for name, end in (("low", tpr.filter(there).min()), ("high", tpr.filter(there).max()))
    )
    filled = places.sort(*keys, "fpr").with_columns(
        column for curve in _CURVES for column in _between_points(curve)
    )
    low, high = (
        pl.col(_column(end, "one")) - pl.col(_column(end, "other")) for end in ("low", "high")
    )
    width = pl.col("fpr").shift(-1) - pl.col("fpr")
    # From one group to the next the rate falls from 1 to 0.
    area = pl.when(width > 0).then(width * _mean_distance(high, low.shift(-1))).sum()
    return filled.group_by(keys).agg(area=area) if keys else filled.select(area=area)


def _column(end: str, curve: str) -> str:
    return f"__{end}_{curve}"


def _between_points(curve: str) -> list[pl.Expr]:
    """What a curve has at each rate: on its points, or straight between two of them."""
    low, high = (pl.col(_column(end, curve)) for end in ("low", "high"))
    fpr, there = pl.col("fpr"), low.is_not_null()
    own = pl.when(there).then(fpr)
    start, stop = own.forward_fill(), own.backward_fill()
    before, after = high.forward_fill(), low.backward_fill()
    between = before + (after - before) * (fpr - start) / (stop - start)
    return [
        pl.when(there).then(value).otherwise(between).alias(_column(end, curve))
        for end, value in (("low", low), ("high", high))
    ]


def _mean_distance(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Mean of what lies between zero and a straight line from one height to another."""
    far = start.abs() + end.abs()
    crosses = start * end < 0
    return pl.when(crosses).then((start**2 + end**2) / (2 * far)).otherwise(far / 2)
