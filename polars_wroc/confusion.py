"""The confusion curve: what every metric, curve and chart of this package is made of.

Per group it has one row per distinct score, in descending order, with the cumulative
weight ``tp`` of the positives and ``fp`` of the negatives that score at least that much,
and the weights ``dp`` and ``dn`` at exactly that score.

It is laid out in two ways. Inside an expression it is a list per group, which is the
fastest way while the rows fit in memory. In a lazy frame it is a sort and one window,
which the streaming engine can spill to disk. Both hand the same `Curve` of expressions
to the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs import SCORE, WEIGHT
from polars_wroc.rows import Rows
from polars_wroc.staged import as_struct

_TP, _FP, _TP_BEFORE, _FP_BEFORE = "__tp", "__fp", "__tp_before", "__fp_before"
_POSITIVES, _NEGATIVES = "__positives", "__negatives"
# Cumulative sums of the weights and of their powers, for each class.
_SUMS = {1: (_TP, _FP), 2: ("__tp2", "__fp2"), 3: ("__tp3", "__fp3")}
_LAST = "__last"

CURVE_COLUMNS = ("threshold", "tp", "fp", "fn", "tn")


@dataclass(frozen=True)
class ClassWeights:
    """The weights of one class on a confusion curve, as expressions.

    Per distinct score: ``mass``, the sum of the weights there, and ``mass2``, the sum of
    their squares. Per group: the ``total`` and the sums of ``squares`` and ``cubes``. Where
    a curve is laid out without powers, they are those of weights that are all 1.
    """

    mass: pl.Expr
    mass2: pl.Expr
    total: pl.Expr
    squares: pl.Expr
    cubes: pl.Expr


@dataclass(frozen=True)
class Curve:
    """The confusion curve as expressions, in whatever layout it is.

    One value per distinct score: ``tp``, ``fp``, ``dp``, ``dn``, the rates ``tpr`` and
    ``fpr``, and the rates halfway through the tie: ``tpr_middle`` is the share of positives
    above a negative with that score, ``fnr_middle`` the share below, ``fpr_middle`` the share
    of negatives above a positive. One value per group: ``positives`` and ``negatives``, the
    two totals.
    ``pos`` and ``neg`` have the weights of each class with their powers.

    A formula combines per-score values with each other before it aggregates, and totals
    only with aggregates: then it streams. It takes no notice of points without mass.
    """

    tp: pl.Expr
    fp: pl.Expr
    dp: pl.Expr
    dn: pl.Expr
    tpr: pl.Expr
    fpr: pl.Expr
    tpr_middle: pl.Expr
    fnr_middle: pl.Expr
    fpr_middle: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr
    pos: ClassWeights
    neg: ClassWeights

    def if_both_classes(self, value: pl.Expr) -> pl.Expr:
        """Null for a group that lacks a class, or whose weights add up to more than a number."""
        known = [(total > 0) & total.is_finite() for total in (self.positives, self.negatives)]
        return pl.when(known[0] & known[1]).then(value)


def fold(rows: pl.Expr, formula: Callable[[Curve], pl.Expr], *, powers: bool = False) -> pl.Expr:
    """Reduce each list of rows to ``formula`` of its curve."""
    return curve_list(rows, powers=powers).list.agg(formula(list_curve(powers=powers)))


def curve_list(rows: pl.Expr, *, powers: bool = False) -> pl.Expr:
    """Lay out the curve of each list of rows as a list, with or without the weights' powers.

    Each step is a list that is evaluated once, so that a formula may mention a cumulative
    sum as often as it likes: an aggregation would sort and sum again at every mention.
    """
    descending = pl.element().sort_by(_field(SCORE), descending=True)
    weights = _class_weights(_field(WEIGHT))
    sums = {
        name: _power(weight, power).cum_sum()
        for power, names in _SUMS.items()
        for name, weight in zip(names, weights, strict=True)
        if power == 1 or powers
    }
    cumulative = as_struct(sums | {_LAST: _ends_tie(_field(SCORE))})
    distinct = pl.struct(_field(*sums)).filter(_field(_LAST))
    return rows.list.eval(descending).list.eval(cumulative).list.eval(distinct)


def curve_frame(rows: Rows, thresholds: Sequence[float] = ()) -> pl.LazyFrame:
    """Lay out the curve of each group as rows, in descending order of the score.

    The first row of each group is the origin, where nothing is predicted positive.
    ``thresholds`` get a row each whether or not a row of the data scores just that. After
    the keys and `CURVE_COLUMNS` come the columns that `totals` refers to.
    """
    groups = rows.key_values() if rows.keys else pl.LazyFrame({"__group": [0]})
    scores = pl.Series(SCORE, [None, *thresholds], dtype=pl.Float64 if thresholds else pl.Null)
    marks = groups.join(scores.to_frame().lazy(), how="cross").with_columns(
        pl.lit(0, pl.Int8).alias(WEIGHT)
    )
    # A mark weighs nothing: it adds a place on the curve and changes no sum.
    marked = pl.concat(
        [rows.frame, marks.select(*rows.keys, SCORE, WEIGHT)], how="diagonal_relaxed"
    )
    steps = _windowed(Rows(marked, rows.keys), _steps).filter(_LAST)
    return rows.arrange(
        steps.select(
            *rows.keys,
            pl.col(SCORE).cast(pl.Float64).fill_null(float("inf")).alias("threshold"),
            pl.col(_TP).alias("tp"),
            pl.col(_FP).alias("fp"),
            (pl.col(_POSITIVES) - pl.col(_TP)).alias("fn"),
            (pl.col(_NEGATIVES) - pl.col(_FP)).alias("tn"),
            _POSITIVES,
            _NEGATIVES,
        )
    )


def totals() -> tuple[pl.Expr, pl.Expr]:
    """Refer to the weight of each class, on every row of what `curve_frame` lays out."""
    return pl.col(_POSITIVES), pl.col(_NEGATIVES)


def fold_frame(rows: Rows, formulas: Callable[[Curve], dict[str, pl.Expr]]) -> pl.LazyFrame:
    """Reduce each group to ``formulas`` of its curve, as a plan that streams and spills.

    The formulas may also aggregate the columns of ``rows``.
    """
    aggregates = formulas(_row_curve())
    steps = _windowed(rows, _around_ties)
    if not rows.keys:
        return steps.select(**aggregates)
    return rows.arrange(steps.group_by(rows.keys).agg(**aggregates))


def _windowed(rows: Rows, columns: Callable[[_Sums], dict[str, pl.Expr]]) -> pl.LazyFrame:
    """Add columns of the cumulative sums to the rows, sorted by descending score.

    Missing rows have a null score. They sort first, so that the place where nothing is
    predicted positive is theirs.
    """
    weights = _class_weights(rows.observations.signed_weight.fill_null(0.0))
    tp, fp = (weight.cum_sum() for weight in weights)
    # One window: each column that it hands back costs a scatter of all rows.
    curve = as_struct(
        columns(_Sums(tp, fp, _ends_tie(pl.col(SCORE))))
        | {_POSITIVES: tp.last(), _NEGATIVES: fp.last()}
    )
    if rows.keys:
        curve = curve.over(rows.keys)
    ordered = rows.frame.sort(SCORE, descending=True, nulls_last=False)
    return ordered.with_columns(curve.alias("__curve")).unnest("__curve")


class _Sums(NamedTuple):
    tp: pl.Expr
    fp: pl.Expr
    ends_tie: pl.Expr


def _steps(sums: _Sums) -> dict[str, pl.Expr]:
    return {_TP: sums.tp, _FP: sums.fp, _LAST: sums.ends_tie}


def _around_ties(sums: _Sums) -> dict[str, pl.Expr]:
    """Where the curve stands before and after all the rows with a row's score."""
    starts_tie = sums.ends_tie.shift(1, fill_value=True)

    def before(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(starts_tie).then(cumulative.shift(1, fill_value=0.0)).forward_fill()

    def after(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(sums.ends_tie).then(cumulative).backward_fill()

    return {
        _TP: after(sums.tp),
        _FP: after(sums.fp),
        _TP_BEFORE: before(sums.tp),
        _FP_BEFORE: before(sums.fp),
    }


def _class_weights(signed: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    # Each class has its own sum: one minus the other would not be monotone.
    positive, negative = signed.clip(lower_bound=0), (-signed).clip(lower_bound=0)
    return positive.cast(pl.Float64), negative.cast(pl.Float64)


def _power(weight: pl.Expr, power: int) -> pl.Expr:
    # Products are several times faster than the general power.
    product = weight
    for _ in range(power - 1):
        product *= weight
    return product


def _ends_tie(score: pl.Expr) -> pl.Expr:
    """Whether a row is the last of those with its score; nulls tie with each other."""
    return score.ne_missing(score.shift(1)).shift(-1, fill_value=True)


def _field(*names: str) -> pl.Expr:
    return pl.element().struct.field(*names)


def list_curve(*, powers: bool = False) -> Curve:
    """Refer to the fields of what `curve_list` lays out."""
    sums = [[_field(name) for name in _SUMS[power]] for power in ((1, 2, 3) if powers else (1,))]
    masses = [[each - each.shift(1, fill_value=0.0) for each in both] for both in sums[:2]]
    totals = [[each.last() for each in both] for both in sums]
    weights = [
        ClassWeights(
            mass=masses[0][side],
            mass2=masses[-1][side],
            total=totals[0][side],
            squares=totals[len(totals) // 2][side],
            cubes=totals[-1][side],
        )
        for side in (0, 1)
    ]
    tp, fp = sums[0]
    middles = tp - weights[0].mass / 2, fp - weights[1].mass / 2
    return _curve((tp, fp), middles, weights, totals[0])


def _row_curve() -> Curve:
    """Refer to rows among the columns of `_around_ties`: a curve of one step for each row.

    Rows with one score share the place before and after them all, so that sums over rows
    are sums over scores, and the powers of a row's weight are at hand.
    """
    tp, fp, tp_before, fp_before = (pl.col(n) for n in (_TP, _FP, _TP_BEFORE, _FP_BEFORE))
    totals = pl.col(_POSITIVES), pl.col(_NEGATIVES)
    weights = [
        ClassWeights(
            mass=weight,
            mass2=_power(weight, 2),
            # Not the last cumulative sum: ratios of sums of the same terms come out exactly.
            total=weight.sum(),
            squares=_power(weight, 2).sum(),
            cubes=_power(weight, 3).sum(),
        )
        for weight in _class_weights(pl.col(WEIGHT))
    ]
    middles = (tp_before + tp) / 2, (fp_before + fp) / 2
    return _curve((tp, fp), middles, weights, totals)


def _curve(
    sums: tuple[pl.Expr, pl.Expr],
    middles: tuple[pl.Expr, pl.Expr],
    weights: Sequence[ClassWeights],
    totals: Sequence[pl.Expr],
) -> Curve:
    """Write the rates, with the ``totals`` as they stand beside each score."""
    (tp, fp), (pos, neg) = sums, weights
    return Curve(
        tp=tp,
        fp=fp,
        dp=pos.mass,
        dn=neg.mass,
        tpr=tp / totals[0],
        fpr=fp / totals[1],
        tpr_middle=middles[0] / totals[0],
        fnr_middle=(totals[0] - middles[0]) / totals[0],
        fpr_middle=middles[1] / totals[1],
        positives=pos.total,
        negatives=neg.total,
        pos=pos,
        neg=neg,
    )
