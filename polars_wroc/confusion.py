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

import polars as pl

from polars_wroc.inputs import SCORE, WEIGHT
from polars_wroc.rows import Rows
from polars_wroc.staged import as_struct

_TP, _FP, _DP, _DN = "__tp", "__fp", "__dp", "__dn"
_POSITIVES, _NEGATIVES = "__positives", "__negatives"
_DP2, _DN2 = "__dp2", "__dn2"
# Cumulative sums of the weights and of their powers, for each class.
_SUMS = {1: (_TP, _FP), 2: ("__tp2", "__fp2"), 3: ("__tp3", "__fp3")}
_LAST = "__last"
_ON_CURVE = pl.col(_DP).is_not_null()

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
    two totals, which are the last cumulative sums, so that the curve ends at exactly (1, 1).
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
    steps = _windowed(Rows(marked, rows.keys)).filter(_ON_CURVE)
    curve = frame_curve()
    return rows.arrange(
        steps.select(
            *rows.keys,
            pl.col(SCORE).cast(pl.Float64).fill_null(float("inf")).alias("threshold"),
            curve.tp.alias("tp"),
            curve.fp.alias("fp"),
            (pl.col(_POSITIVES) - curve.tp).alias("fn"),
            (pl.col(_NEGATIVES) - curve.fp).alias("tn"),
            _POSITIVES,
            _NEGATIVES,
        )
    )


def totals() -> tuple[pl.Expr, pl.Expr]:
    """Refer to the weight of each class, on every row of what `curve_frame` lays out."""
    return pl.col(_POSITIVES), pl.col(_NEGATIVES)


def fold_frame(
    rows: Rows, formulas: Callable[[Curve], dict[str, pl.Expr]], *, powers: bool = False
) -> pl.LazyFrame:
    """Reduce each group to ``formulas`` of its curve, as a plan that streams and spills.

    The formulas may also aggregate the columns of ``rows``.
    """
    aggregates = formulas(frame_curve(powers=powers))
    on_curve = _ON_CURVE & pl.col(SCORE).is_not_null()
    # Other rows stay, to be counted, but are no part of the curve.
    columns = [_TP, _FP, _DP, _DN, *([_DP2, _DN2] if powers else [])]
    steps = _windowed(rows, powers=powers).with_columns(
        pl.when(on_curve).then(pl.col(name)).alias(name) for name in columns
    )
    if not rows.keys:
        return steps.select(**aggregates)
    return rows.arrange(steps.group_by(rows.keys).agg(**aggregates))


def _windowed(rows: Rows, *, powers: bool = False) -> pl.LazyFrame:
    """Add the curve's columns to the rows; masses stand on the last row of each tie only.

    Missing rows have a null score. They sort first, so that the place where nothing is
    predicted positive is theirs.
    """
    weights = _class_weights(rows.observations.signed_weight.fill_null(0.0))
    tp, fp = (weight.cum_sum() for weight in weights)
    last = _ends_tie(pl.col(SCORE))

    def mass(cumulative: pl.Expr) -> pl.Expr:
        before = pl.when(last).then(cumulative).shift(1).forward_fill()
        return pl.when(last).then(cumulative - before.fill_null(0.0))

    # One window: each column that it hands back costs a scatter of all rows.
    columns = {
        _TP: tp,
        _FP: fp,
        _DP: mass(tp),
        _DN: mass(fp),
        _POSITIVES: tp.last(),
        _NEGATIVES: fp.last(),
    }
    if powers:
        columns |= {
            name: mass(_power(weight, 2).cum_sum())
            for name, weight in zip((_DP2, _DN2), weights, strict=True)
        }
    curve = as_struct(columns)
    if rows.keys:
        curve = curve.over(rows.keys)
    ordered = rows.frame.sort(SCORE, descending=True, nulls_last=False)
    return ordered.with_columns(curve.alias("__curve")).unnest("__curve")


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
    return _curve(sums[0][0], sums[0][1], weights[0], weights[1], totals=totals[0])


def frame_curve(*, powers: bool = False) -> Curve:
    """Refer to the columns that `_windowed` adds."""
    totals = pl.col(_POSITIVES), pl.col(_NEGATIVES)
    weights = [
        ClassWeights(
            mass=pl.col(mass),
            mass2=pl.col(mass2 if powers else mass),
            total=total.first(),
            squares=_power(weight, 2).sum() if powers else total.first(),
            cubes=_power(weight, 3).sum() if powers else total.first(),
        )
        for mass, mass2, total, weight in zip(
            (_DP, _DN), (_DP2, _DN2), totals, _class_weights(pl.col(WEIGHT)), strict=True
        )
    ]
    return _curve(pl.col(_TP), pl.col(_FP), weights[0], weights[1], totals=totals)


def _curve(
    tp: pl.Expr,
    fp: pl.Expr,
    pos: ClassWeights,
    neg: ClassWeights,
    *,
    totals: Sequence[pl.Expr],
) -> Curve:
    """Write the rates, with the ``totals`` as they stand beside each score."""
    return Curve(
        tp=tp,
        fp=fp,
        dp=pos.mass,
        dn=neg.mass,
        tpr=tp / totals[0],
        fpr=fp / totals[1],
        tpr_middle=(tp - pos.mass / 2) / totals[0],
        fnr_middle=(totals[0] - tp + pos.mass / 2) / totals[0],
        fpr_middle=(fp - neg.mass / 2) / totals[1],
        positives=pos.total,
        negatives=neg.total,
        pos=pos,
        neg=neg,
    )
