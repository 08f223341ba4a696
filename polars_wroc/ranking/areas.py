"""Areas under parts of a ROC curve, as exact integrals over its straight pieces.

A piece runs from the rates before a score to the rates at it. A vertical piece has no width and
adds no area, so that steps and ties need no special case.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import polars as pl

from polars_wroc.plans.steps import Fields, let
from polars_wroc.ranking.curve import Curve

Range: TypeAlias = tuple[float, float]

WHOLE_RANGE: Range = (0.0, 1.0)


class LinePieces(NamedTuple):
    """Straight pieces of a curve, from (x0, y0) to (x1, y1)."""

    x0: pl.Expr
    y0: pl.Expr
    x1: pl.Expr
    y1: pl.Expr

    def turned(self) -> LinePieces:
        """Rotate the unit square, so that the area right of the curve is the area below it."""
        return LinePieces(self.y0, 1 - self.x0, self.y1, 1 - self.x1)


def pieces(curve: Curve) -> LinePieces:
    """Straight pieces of a ROC curve: true against false positive rates."""
    return LinePieces(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)


def areas_between(pieces: LinePieces, between: Range) -> pl.Expr:
    """Area under each piece between two values of x."""
    if between == WHOLE_RANGE:
        return (pieces.x1 - pieces.x0) * (pieces.y0 + pieces.y1) / 2

    def at_middle(field: Fields) -> pl.Expr:
        left, right = field("left"), field("right")
        return (right - left) * _height(field, (left + right) / 2)

    return let(_cut(pieces, between), at_middle)


def areas_in_rectangle(pieces: LinePieces, x: Range, y: Range) -> pl.Expr:
    """Area under each piece within a rectangle."""
    low, high = y

    def ends(field: Fields) -> pl.Expr:
        left, right = field("left"), field("right")
        part = {
            "width": right - left,
            "start": _height(field, left) - low,
            "end": _height(field, right) - low,
        }
        return let(part, within)

    def within(field: Fields) -> pl.Expr:
        def above(height: float) -> pl.Expr:
            return areas_above_zero(field("width"), field("start") - height, field("end") - height)

        return above(0.0) if high == 1 else above(0.0) - above(high - low)

    return let(_cut(pieces, x), ends)


def _cut(pieces: LinePieces, between: Range) -> dict[str, pl.Expr]:
    """Clip each piece to a range of x (``left``, ``right``); keep its start and slope."""
    x0, y0, x1, y1 = pieces
    return {
        "x0": x0,
        "y0": y0,
        "slope": (y1 - y0) / (x1 - x0),
        "left": x0.clip(*between),
        "right": x1.clip(*between),
    }


def _height(cut: Fields, x: pl.Expr) -> pl.Expr:
    """Height of each piece at x; NaN where it has no width."""
    return cut("y0") + (x - cut("x0")) * cut("slope")


def areas_above_zero(width: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Area between each piece and zero, where the piece is above it, from its end heights."""
    above = start.clip(lower_bound=0.0) + end.clip(lower_bound=0.0)
    # A piece that crosses zero is above it for a part of its width.
    return width * above.pow(2) / (start.abs() + end.abs()) / 2


def total(curve: Curve, areas: pl.Expr) -> pl.Expr:
    """Sum the areas of a curve's pieces; NaN, of a piece without width, counts as 0."""
    shares = let({"area": areas * curve.share}, lambda field: field("area").fill_nan(0.0))
    return curve.if_both_classes(shares.sum())
