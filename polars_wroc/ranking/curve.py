"""The confusion curve: the confusion matrix at every score, from which all metrics are computed.

For each group it has one row per distinct score, in descending order, with the weights ``tp`` of
the positives and ``fp`` of the negatives with at least that score, and the weights ``dp`` and
``dn`` of those with exactly that score.

It has two layouts: a list per group inside an expression; a sort and one window over a lazy frame,
which streams. Formulas are written once, for the same `Curve` of expressions in both.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.inputs.columns import SCORE, SEVERAL_SCORES, WEIGHT
from polars_wroc.inputs.frames import is_moved, precision_of
from polars_wroc.inputs.rows import PlannedRows
from polars_wroc.queries import probability
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    FP,
    NEGATIVES,
    POSITIVES,
    TP,
    by_descending_score,
    cumulated_list,
    window_sums,
    with_window_sums,
)
from polars_wroc.structs import Fields, as_struct, element_field, let

# A column of a plan, or an array; formulas hold for both.
ColumnT = TypeVar("ColumnT", pl.Expr, Array)

CELLS = ("tp", "fp", "fn", "tn")

# Whether the threshold, a float, differs from the score, a whole number, by rounding.
MOVED = "__moved"

# Smaller sums lose digits. The engine divides many values by one by multiplying with its inverse,
# which may overflow.
_LEAST_TOTAL = sys.float_info.min

CURVE_COLUMNS = ("threshold", *CELLS)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The confusion curve as expressions, the same for every layout.

    One value per distinct score: ``tp``, ``fp``, ``dp``, ``dn``, the rates ``tpr`` and
    ``fpr``, the rates above that score as ``tpr_before`` and ``fpr_before``, and the
    ``prevalence`` of the group. One value per group: the totals ``positives`` and ``negatives``.
    The ``score``, checked to be a probability, and the machine ``precision`` of its type are None
    unless a metric uses scores.

    A formula streams if it combines values per score with each other before it aggregates,
    and totals with aggregates only. Points without weight must not change its result.
    """

    tp: pl.Expr
    fp: pl.Expr
    dp: pl.Expr
    dn: pl.Expr
    tpr: pl.Expr
    fpr: pl.Expr
    tpr_before: pl.Expr
    fpr_before: pl.Expr
    prevalence: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr
    score: pl.Expr | None = None
    precision: pl.Expr | None = None

    @property
    def tpr_middle(self) -> pl.Expr:
        """Proportion of positives ranked above a negative with the score; ties count half."""
        return (self.tpr_before + self.tpr) / 2

    def if_both_classes(self, value: pl.Expr) -> pl.Expr:
        """Return the value; null where a class has no weight."""
        return if_both_classes(self.positives, self.negatives, value)


def if_both_classes(positives: pl.Expr, negatives: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Return the value; null without both classes, or where weights overflow or underflow."""
    return pl.when(are_both_classes(positives, negatives)).then(value)


def are_both_classes(positives: ColumnT, negatives: ColumnT) -> Any:
    """Whether both classes have weight, and no sum of weights overflows or underflows."""
    return is_divisor(positives) & is_divisor(negatives) & is_divisor(positives + negatives)


def is_divisor(total: ColumnT) -> Any:
    """Whether a sum of weights can be a divisor: not 0, without overflow or underflow."""
    return (total >= _LEAST_TOTAL) & (total < math.inf)


def fold(
    rows: pl.Expr,
    formula: Callable[[Curve], pl.Expr],
    *,
    uses_scores: bool = False,
    shown: str = "the score",
) -> pl.Expr:
    """Reduce each list of rows to ``formula`` of its curve.

    If it ``uses_scores``, scores must be probabilities; messages call them ``shown``.
    """
    curve = list_curve(uses_scores=uses_scores)
    return curve_list(rows, uses_scores=uses_scores, shown=shown).list.agg(formula(curve))


def curve_list(rows: pl.Expr, *, uses_scores: bool = False, shown: str = "the score") -> pl.Expr:
    """Compute the curve of each list of rows as a list.

    Each step is a list that is evaluated once, so a formula may repeat a cumulative sum; an
    aggregate would sort and sum again each time.
    """
    if not uses_scores:
        distinct = pl.struct(element_field(TP, FP)).filter(element_field(ENDS_TIE))
        return cumulated_list(rows).list.eval(distinct)
    # Rows without weight may have any score.
    weighted = rows.list.eval(pl.element().filter(element_field(WEIGHT) != 0))
    columns = {name: element_field(name) for name in (SCORE, TP, FP)}
    point = as_struct(columns | {SCORE: probability("score", columns[SCORE], shown)})
    return cumulated_list(weighted, [SCORE]).list.eval(point.filter(element_field(ENDS_TIE)))


def list_curve(*, uses_scores: bool = False) -> Curve:
    """Return the fields of the lists of `curve_list`."""
    tp, fp = element_field(TP), element_field(FP)
    curve = curve_of_points(tp, fp, tp.last(), fp.last())
    if not uses_scores:
        return curve
    score = element_field(SCORE)
    return replace(curve, score=score.cast(pl.Float64), precision=precision_of(score))


def curve_of_points(tp: pl.Expr, fp: pl.Expr, positives: pl.Expr, negatives: pl.Expr) -> Curve:
    """Return the curve of consecutive points, from their cumulative weights."""
    tp_before, fp_before = (each.shift(1, fill_value=0.0) for each in (tp, fp))
    return Curve(
        tp=tp,
        fp=fp,
        dp=tp - tp_before,
        dn=fp - fp_before,
        tpr=tp / positives,
        fpr=fp / negatives,
        tpr_before=tp_before / positives,
        fpr_before=fp_before / negatives,
        prevalence=positives / (positives + negatives),
        positives=positives,
        negatives=negatives,
    )


def curve_frame(rows: PlannedRows) -> pl.LazyFrame:
    """Compute the curve of each group as rows, in descending order of the score.

    The first row of each group is the origin, where nothing is predicted positive. After the keys
    and `CURVE_COLUMNS` come the columns that `totals` refers to; in bins there is also
    `SEVERAL_SCORES`, for whole numbers, `MOVED`.
    """
    # Origins come first, so sorted rows stay sorted.
    sorted_rows = by_descending_score(PlannedRows(_add_origins(rows), rows.keys))
    sums = window_sums()
    columns = {TP: sums.tp, FP: sums.fp, ENDS_TIE: sums.ends_tie}
    weight = rows.observations.signed_weight
    points = with_window_sums(sorted_rows, rows.keys, weight, columns).filter(ENDS_TIE)
    has_whole_scores = points.collect_schema()[SCORE].is_integer()
    cells = cells_of(pl.col(TP), pl.col(FP), *totals())
    table = points.select(
        *rows.keys,
        threshold_of(pl.col(SCORE)),
        *(value.alias(name) for name, value in cells.items()),
        POSITIVES,
        NEGATIVES,
        *([SEVERAL_SCORES] if rows.is_binned else []),
        *([is_moved(pl.col(SCORE)).alias(MOVED)] if has_whole_scores else []),
    )
    return rows.sorted_by_keys(table)


def _add_origins(rows: PlannedRows) -> pl.LazyFrame:
    """Add a row for the origin of each group, before all others.

    It has no score and a weight of 0: it adds a point to the curve and changes no sum.
    """
    origins = rows.key_values().select(
        *rows.keys, pl.lit(None).alias(SCORE), pl.lit(0, pl.Int8).alias(WEIGHT)
    )
    return pl.concat([origins, rows.frame], how="diagonal_relaxed")


def threshold_of(score: pl.Expr) -> pl.Expr:
    """Return the threshold of the score of a point: infinite for the origin, without score."""
    threshold = score.cast(pl.Float64).fill_null(float("inf"))
    # Scores of 0.0 and -0.0 tie, and either may come first.
    return pl.when(threshold != 0).then(threshold).otherwise(0.0).alias("threshold")


def cells_of(
    tp: pl.Expr, fp: pl.Expr, positives: pl.Expr, negatives: pl.Expr
) -> dict[str, pl.Expr]:
    """Return the confusion matrix, from the weights predicted positive and the class totals."""
    weights = {"tp": tp, "fp": fp, "fn": positives - tp, "tn": negatives - fp}
    return {name: cell(weight) for name, weight in weights.items()}


def cell(weight: pl.Expr) -> pl.Expr:
    """Return a weight of a confusion matrix; null where it overflows."""
    return pl.when(weight.is_finite()).then(weight)


def totals() -> tuple[pl.Expr, pl.Expr]:
    """Return the total weight of each class, on every row of `curve_frame`."""
    return pl.col(POSITIVES), pl.col(NEGATIVES)


def is_origin() -> pl.Expr:
    """Return whether a row of `curve_frame` is the origin, the first row of its curve."""
    # A weight that overflows is null.
    return pl.col("tp").eq_missing(0.0) & pl.col("fp").eq_missing(0.0)


def ratio(part: ColumnT, whole: ColumnT) -> ColumnT:
    """Return a quotient of weights; null where the divisor is 0, overflows or underflows."""
    return defined_where(is_divisor(whole), part / whole)


def defined_where(condition: Any, value: ColumnT) -> ColumnT:
    """Return a value where a condition holds; elsewhere null, or NaN in an array."""
    known: Any = value
    if isinstance(condition, np.ndarray | np.bool_):
        return cast("ColumnT", np.where(condition, known, np.nan))
    return cast("ColumnT", pl.when(condition).then(known))


Range: TypeAlias = tuple[float, float]

WHOLE_RANGE: Range = (0.0, 1.0)


class LinePieces(NamedTuple):
    """Straight pieces of a curve, from (x0, y0) to (x1, y1)."""

    x0: pl.Expr
    y0: pl.Expr
    x1: pl.Expr
    y1: pl.Expr

    def rotate(self) -> LinePieces:
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

    return _cut(pieces, between, at_middle)


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

    return _cut(pieces, x, ends)


def _cut(pieces: LinePieces, between: Range, formula: Callable[[Fields], pl.Expr]) -> pl.Expr:
    """Return a formula of the parts of pieces between two values of x.

    Its fields are the ends of the part (``left``, ``right``), and the start and slope of the piece.
    """

    def clip(field: Fields) -> pl.Expr:
        x0, y0, x1, y1 = map(field, pieces._fields)
        part = {
            "x0": x0,
            "y0": y0,
            "slope": (y1 - y0) / (x1 - x0),
            "left": x0.clip(*between),
            "right": x1.clip(*between),
        }
        return let(part, formula)

    return let(pieces._asdict(), clip)


def _height(cut: Fields, x: pl.Expr) -> pl.Expr:
    """Height of each piece at x; NaN where it has no width."""
    return cut("y0") + (x - cut("x0")) * cut("slope")


def areas_above_zero(width: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Area between each piece and zero, where the piece is above it, from its end heights."""
    above = start.clip(lower_bound=0.0) + end.clip(lower_bound=0.0)
    # A piece that crosses zero is above it for a part of its width.
    return width * above.pow(2) / (start.abs() + end.abs()) / 2


def total(curve: Curve, areas: pl.Expr) -> pl.Expr:
    """Return the sum of the areas of a curve's pieces; NaN, for a piece without width, is 0."""
    known = let({"area": areas}, lambda field: field("area").fill_nan(0.0))
    return curve.if_both_classes(known.sum())
