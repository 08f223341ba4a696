"""The confusion curve: what every metric, curve and chart of this package is made of.

Per group it has one row per distinct score, in descending order, with the cumulative
weight ``tp`` of the positives and ``fp`` of the negatives that score at least that much,
and the weights ``dp`` and ``dn`` at exactly that score.

It is laid out in three ways. Inside an expression it is a list per group. In a lazy frame it is
a sort and one window, which streams. An audit stacks groups in memory: see `contiguous_groups`.
All hand the same `Curve` of expressions to the same formulas.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.columns import SCORE, SEVERAL_SCORES, WEIGHT, Typed
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.score_types import beside_thresholds, is_moved
from polars_wroc.ranking.cumulative_sums import (
    ENDS_TIE,
    FP,
    NEGATIVES,
    POSITIVES,
    TP,
    _field,
    by_descending_score,
    cumulated_list,
    window_sums,
    with_window_sums,
)

# The same of the squared weights.
TP_SQUARES, FP_SQUARES = "__tp_squares", "__fp_squares"
POSITIVES_SQUARES, NEGATIVES_SQUARES = "__positives_squares", "__negatives_squares"
_SQUARES = (TP_SQUARES, FP_SQUARES, POSITIVES_SQUARES, NEGATIVES_SQUARES)

# Whether the threshold, which is a float, is another number than the score.
MOVED = "__moved"

# Sums of smaller numbers lose digits, and 1 divided by such a sum, with which the engine multiplies
# where one value divides many, may be no number.
_LEAST_TOTAL = sys.float_info.min

CURVE_COLUMNS = ("threshold", "tp", "fp", "fn", "tn")


@dataclass(frozen=True)
class Curve:
    """The confusion curve as expressions, in whatever layout it is.

    One value per distinct score: ``tp``, ``fp``, ``dp``, ``dn``, the rates ``tpr`` and
    ``fpr``, the same before the score as ``tpr_before`` and ``fpr_before``, and the
    ``prevalence`` of the group. Where several elements have the score in common, ``share``
    is how much of it one of them stands for; elsewhere it is 1. One value per group:
    ``positives`` and ``negatives``, the two totals.

    A formula combines per-score values with each other before it aggregates, and totals
    only with aggregates: then it streams. It takes no notice of points without mass.
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
    share: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr

    @property
    def tpr_middle(self) -> pl.Expr:
        """Share of positives above a negative with the score, ties counting half."""
        return (self.tpr_before + self.tpr) / 2

    def if_both_classes(self, value: pl.Expr) -> pl.Expr:
        """Null for a group that lacks a class."""
        return if_both_classes(self.positives, self.negatives, value)


def if_both_classes(positives: pl.Expr, negatives: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Null for a group that lacks a class, or whose weights are too small or large to add up."""
    return pl.when(are_both_classes(positives, negatives)).then(value)


def are_both_classes(positives: pl.Expr, negatives: pl.Expr) -> pl.Expr:
    """Whether both classes have weights, and all of them add up to a number."""
    return is_divisor(positives) & is_divisor(negatives) & is_divisor(positives + negatives)


def is_divisor(total: pl.Expr) -> pl.Expr:
    """Whether a sum of weights is neither too small nor too large to be divided by."""
    return (total >= _LEAST_TOTAL) & total.is_finite()


def fold(rows: pl.Expr, formula: Callable[[Curve], pl.Expr]) -> pl.Expr:
    """Reduce each list of rows to ``formula`` of its curve."""
    return curve_list(rows).list.agg(formula(list_curve()))


def curve_list(rows: pl.Expr) -> pl.Expr:
    """Lay out the curve of each list of rows as a list.

    Each step is a list that is evaluated once, so that a formula may mention a cumulative
    sum as often as it likes: an aggregation would sort and sum again at every mention.
    """
    distinct = pl.struct(_field(TP, FP)).filter(_field(ENDS_TIE))
    return cumulated_list(rows).list.eval(distinct)


def list_curve() -> Curve:
    """Refer to the fields of what `curve_list` lays out."""
    tp, fp = _field(TP), _field(FP)
    tp_before, fp_before = (each.shift(1, fill_value=0.0) for each in (tp, fp))
    positives, negatives = tp.last(), fp.last()
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
        share=pl.lit(1.0),
        positives=positives,
        negatives=negatives,
    )


def curve_frame(
    rows: Rows, thresholds: Sequence[float] = (), *, squares: bool = False
) -> pl.LazyFrame:
    """Lay out the curve of each group as rows, in descending order of the score.

    The first row of each group is the origin, where nothing is predicted positive.
    ``thresholds`` get a row each whether or not a row of the data scores just that. After
    the keys and `CURVE_COLUMNS` come the columns that `totals` refers to, and with ``squares``
    `TP_SQUARES`, `FP_SQUARES`, `POSITIVES_SQUARES` and `NEGATIVES_SQUARES`; in bins there is also
    `SEVERAL_SCORES`, and of whole numbers `MOVED`.
    """
    rows = rows.cut_at("thresholds", [pl.lit(threshold) for threshold in thresholds])
    groups = rows.key_values() if rows.keys else pl.LazyFrame({"__group": [0]})
    frame = rows.frame
    if thresholds:
        score = Typed("score", pl.col(SCORE), frame.collect_schema()[SCORE], "the score")
        frame = frame.with_columns(beside_thresholds(score).alias(SCORE))
    scores = pl.Series(SCORE, [None, *thresholds], dtype=pl.Float64 if thresholds else pl.Null)
    marks = groups.join(scores.to_frame().lazy(), how="cross").with_columns(
        pl.lit(0, pl.Int8).alias(WEIGHT)
    )
    # A mark weighs nothing: it adds a place on the curve and changes no sum.
    # The origins come first, so that rows in order stay so.
    marked = pl.concat([marks.select(*rows.keys, SCORE, WEIGHT), frame], how="diagonal_relaxed")
    sums = window_sums()
    columns = {TP: sums.tp, FP: sums.fp, ENDS_TIE: sums.ends_tie}
    if squares:
        squared = [part.cum_sum() for part in class_weights(rows.signed_squares.fill_null(0.0))]
        columns |= dict(zip(_SQUARES, (*squared, *(s.last() for s in squared)), strict=True))

    in_order = rows.in_order and not thresholds
    sorted_rows = by_descending_score(Rows(marked, rows.keys, in_order=in_order))
    weight = rows.observations.signed_weight
    steps = with_window_sums(sorted_rows, rows.keys, weight, columns).filter(ENDS_TIE)
    return rows.sorted_by_keys(
        steps.select(
            *rows.keys,
            threshold_of(pl.col(SCORE)),
            *(value.alias(name) for name, value in cells_of(pl.col(TP), pl.col(FP)).items()),
            POSITIVES,
            NEGATIVES,
            *(_SQUARES if squares else []),
            *([SEVERAL_SCORES] if rows.binned else []),
            *([is_moved(pl.col(SCORE)).alias(MOVED)] if _has_whole(steps) else []),
        )
    )


def _has_whole(frame: pl.LazyFrame) -> bool:
    return frame.collect_schema()[SCORE].is_integer()


def threshold_of(score: pl.Expr) -> pl.Expr:
    """Write the score of a point as a threshold; of the origin, which has none, it is infinite."""
    threshold = score.cast(pl.Float64).fill_null(float("inf"))
    # Scores of 0.0 and -0.0 tie, and either may come first.
    return pl.when(threshold != 0).then(threshold).otherwise(0.0).alias("threshold")


def cells_of(tp: pl.Expr, fp: pl.Expr) -> dict[str, pl.Expr]:
    """Write the confusion matrix of what is predicted positive, beside the `totals`."""
    positives, negatives = totals()
    weights = {"tp": tp, "fp": fp, "fn": positives - tp, "tn": negatives - fp}
    return {name: cell(weight) for name, weight in weights.items()}


def cell(weight: pl.Expr) -> pl.Expr:
    """Write a weight of a confusion matrix: null where it is more than a number."""
    return pl.when(weight.is_finite()).then(weight)


def totals() -> tuple[pl.Expr, pl.Expr]:
    """Refer to the weight of each class, on every row of what `curve_frame` lays out."""
    return pl.col(POSITIVES), pl.col(NEGATIVES)


def squares_of_cells() -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Refer to the squared weights in tp, fp, fn and tn."""
    tp, fp, positives, negatives = (pl.col(name) for name in _SQUARES)
    # A difference of sums may round to less than nothing.
    fn, tn = (
        (total - part).clip(lower_bound=0.0) for total, part in ((positives, tp), (negatives, fp))
    )
    return tp, fp, fn, tn


def is_origin() -> pl.Expr:
    """Whether a row of what `curve_frame` lays out is the first of its curve."""
    # A cell that is more than a number is null.
    return pl.col("tp").eq_missing(0.0) & pl.col("fp").eq_missing(0.0)


CELLS = ("tp", "fp", "fn", "tn")


def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Turn weights into a rate; null where they are none, or too small or large to add up."""
    return pl.when(is_divisor(whole)).then(part / whole)
