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

_TP, _FP, _DP, _DN = "__tp", "__fp", "__dp", "__dn"
_POSITIVES, _NEGATIVES = "__positives", "__negatives"
_LAST = "__last"

CURVE_COLUMNS = ("threshold", "tp", "fp", "fn", "tn")


@dataclass(frozen=True)
class Curve:
    """The confusion curve as expressions, in whatever layout it is.

    One value per distinct score: ``tp``, ``fp``, ``dp``, ``dn``, the rates ``tpr`` and
    ``fpr``, and ``tpr_middle`` and ``fpr_middle``, the rates halfway through the
    tie, which are the placements of a negative and of a positive with that score. One value
    per group: ``positives`` and ``negatives``, the two totals, which are the last cumulative
    sums, so that the curve ends at exactly (1, 1).

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
    fpr_middle: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr

    def if_both_classes(self, value: pl.Expr) -> pl.Expr:
        """Null for a group that lacks a class, or whose weights add up to more than a number."""
        known = [(total > 0) & total.is_finite() for total in (self.positives, self.negatives)]
        return pl.when(known[0] & known[1]).then(value)


def fold(rows: pl.Expr, formula: Callable[[Curve], pl.Expr]) -> pl.Expr:
    """Reduce each list of rows to ``formula`` of its curve.

    Each step is a list that is evaluated once, so that a formula may mention a cumulative
    sum as often as it likes: an aggregation would sort and sum again at every mention.
    """
    descending = pl.element().sort_by(_field(SCORE), descending=True)
    positive, negative = _class_weights(_field(WEIGHT))
    cumulative = pl.struct(
        positive.cum_sum().alias(_TP),
        negative.cum_sum().alias(_FP),
        _ends_tie(_field(SCORE)).alias(_LAST),
    )
    distinct = pl.struct(_field(_TP, _FP)).filter(_field(_LAST))
    curve = rows.list.eval(descending).list.eval(cumulative).list.eval(distinct)
    return curve.list.agg(formula(_list_curve()))


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
    steps = _windowed(Rows(marked, rows.keys)).filter(_LAST)
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


def fold_frame(rows: Rows, formulas: Callable[[Curve], dict[str, pl.Expr]]) -> pl.LazyFrame:
    """Reduce each group to ``formulas`` of its curve, as a plan that streams and spills.

    The formulas may also aggregate the columns of ``rows``.
    """
    aggregates = formulas(frame_curve())
    on_curve = pl.col(_LAST) & pl.col(SCORE).is_not_null()
    # Other rows stay, to be counted, but are no part of the curve.
    steps = _windowed(rows).with_columns(
        pl.when(on_curve).then(pl.col(name)).alias(name) for name in (_TP, _FP, _DP, _DN)
    )
    if not rows.keys:
        return steps.select(**aggregates)
    return rows.arrange(steps.group_by(rows.keys).agg(**aggregates))


def _windowed(rows: Rows) -> pl.LazyFrame:
    """Add the curve's columns to the rows; they hold on the last row of each tie.

    Missing rows have a null score. They sort first, so that the place where nothing is
    predicted positive is theirs.
    """
    weight = rows.observations.signed_weight.fill_null(0.0)
    positive, negative = _class_weights(weight)
    tp, fp = positive.cum_sum(), negative.cum_sum()
    last = _ends_tie(pl.col(SCORE))

    def before_tie(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(last).then(cumulative).shift(1).forward_fill()

    # One window: each column that it hands back costs a scatter of all rows.
    columns = pl.struct(
        tp.alias(_TP),
        fp.alias(_FP),
        before_tie(tp).alias(_DP),
        before_tie(fp).alias(_DN),
        tp.last().alias(_POSITIVES),
        fp.last().alias(_NEGATIVES),
        last.alias(_LAST),
    )
    if rows.keys:
        columns = columns.over(rows.keys)
    return (
        rows.frame.sort(SCORE, descending=True, nulls_last=False)
        .with_columns(columns.alias("__curve"))
        .unnest("__curve")
        .with_columns(
            (pl.col(_TP) - pl.col(_DP).fill_null(0.0)).alias(_DP),
            (pl.col(_FP) - pl.col(_DN).fill_null(0.0)).alias(_DN),
        )
    )


def _class_weights(signed: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    # Each class has its own sum: one minus the other would not be monotone.
    positive, negative = signed.clip(lower_bound=0), (-signed).clip(lower_bound=0)
    return positive.cast(pl.Float64), negative.cast(pl.Float64)


def _ends_tie(score: pl.Expr) -> pl.Expr:
    """Whether a row is the last of those with its score; nulls tie with each other."""
    return score.ne_missing(score.shift(1)).shift(-1, fill_value=True)


def _field(*names: str) -> pl.Expr:
    return pl.element().struct.field(*names)


def _list_curve() -> Curve:
    """Refer to the fields of the list that `fold` makes."""
    tp, fp = _field(_TP), _field(_FP)
    masses = (sums - sums.shift(1, fill_value=0.0) for sums in (tp, fp))
    totals = tp.last(), fp.last()
    return _curve(tp, fp, *masses, per_score=totals, per_group=totals)


def frame_curve() -> Curve:
    """Refer to the columns that `_windowed` adds."""
    columns = (pl.col(name) for name in (_TP, _FP, _DP, _DN))
    totals = pl.col(_POSITIVES), pl.col(_NEGATIVES)
    return _curve(*columns, per_score=totals, per_group=(totals[0].first(), totals[1].first()))


def _curve(
    tp: pl.Expr,
    fp: pl.Expr,
    dp: pl.Expr,
    dn: pl.Expr,
    *,
    per_score: tuple[pl.Expr, pl.Expr],
    per_group: tuple[pl.Expr, pl.Expr],
) -> Curve:
    return Curve(
        tp=tp,
        fp=fp,
        dp=dp,
        dn=dn,
        tpr=tp / per_score[0],
        fpr=fp / per_score[1],
        tpr_middle=(tp - dp / 2) / per_score[0],
        fpr_middle=(fp - dn / 2) / per_score[1],
        positives=per_group[0],
        negatives=per_group[1],
    )
