"""Placements: where each row stands among the rows of the other class.

A row's placement is the share of the other class that is ranked on the wrong side of it,
ties counting half: of the negatives above a positive, of the positives below a negative.
Their mean is 1 - AUC and their spread is its variance, so that everything
about the uncertainty of an area starts from these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.rows import class_weights
from polars_wroc.plans.steps import Fields, as_struct
from polars_wroc.ranking.confusion_curve import Curve
from polars_wroc.ranking.cumulative_sums import (
    ENDS_TIE,
    FP,
    NEGATIVES,
    POSITIVES,
    TP,
    cumulated_list,
    row_before,
    window_sums,
    with_window_sums,
)

# Weights around a row, as columns: see `RankWeights`.
MISRANKED, AHEAD, TIED = "__misranked", "__ahead", "__tied"
_TP_BEFORE, _FP_BEFORE = "__tp_before", "__fp_before"


class ClassRows(NamedTuple):
    """The rows of one class: their weights, 0 for a row of the other, and placements."""

    weight: pl.Expr
    placement: pl.Expr


class Placements(NamedTuple):
    """The rows of both classes."""

    pos: ClassRows
    neg: ClassRows


@dataclass(frozen=True)
class RowCurve(Curve):
    """A confusion curve of one step for each row, with the placements of the rows.

    Rows with one score share the place before and after them all, so that sums over rows
    are sums over scores.
    """

    placements: Placements

    @property
    def one_minus_auc(self) -> pl.Expr:
        """1 - AUC: the mean placement of the positives."""
        weight, placement = self.placements.pos
        return self.if_both_classes((weight * placement).sum()) / self.positives


def add_placements(
    sorted_rows: pl.LazyFrame, keys: Sequence[str], signed_weight: pl.Expr, *, score: str = SCORE
) -> pl.LazyFrame:
    """Add to rows in descending order what `row_curve` refers to, as a plan that streams."""
    columns = cumulated_around_ties(*window_sums())
    return with_window_sums(sorted_rows, keys, signed_weight, columns, score)


def with_placements_among(
    sorted_rows: pl.LazyFrame, keys: Sequence[str], weights: pl.Expr, columns: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Place the rows with these weights among those with the same keys; keep only ``columns``."""
    before = sorted_rows.collect_schema().names()
    return add_placements(sorted_rows, keys, weights).select(*before, **columns)


def with_rank_weights(placed: pl.LazyFrame) -> pl.LazyFrame:
    """Add `MISRANKED`, `AHEAD` and `TIED` to rows that have been placed."""
    around = rank_weights()
    columns = {MISRANKED: around.misranked, AHEAD: around.ahead, TIED: around.tied_own}
    return placed.with_columns(**columns)


def placements_in_lists(rows: pl.Expr, *carried: str) -> pl.Expr:
    """Lay out what `list_row_curve` refers to, and what stands ``beside`` it, for each list."""
    field = pl.element().struct.field
    tp, fp = field(TP), field(FP)
    columns = {name: field(name) for name in (*carried, WEIGHT)}
    columns |= cumulated_around_ties(tp, fp, field(ENDS_TIE))
    return cumulated_list(rows, (*carried, WEIGHT)).list.eval(as_struct(columns))


def with_cluster_sums(
    placed: pl.LazyFrame, keys: Sequence[str], sums: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Add ``sums`` over the rows of a cluster to each of them."""
    # Not one struct: for many small clusters plain sums are several times faster.
    return placed.with_columns(
        value.over([*keys, CLUSTER]).alias(name) for name, value in sums.items()
    )


def with_cluster_sums_in_lists(placed: pl.Expr, sums: dict[str, pl.Expr]) -> pl.Expr:
    """Do the same for lists of rows; the sums must not refer to what is one for a whole list."""
    cluster = pl.element().struct.field(CLUSTER)
    of_cluster = {name: value.over(cluster) for name, value in sums.items()}
    return placed.list.eval(pl.element().struct.with_fields(**of_cluster))


def named_in_list(placed: pl.Expr, placements: Placements) -> tuple[pl.Expr, Placements]:
    """Give placements in lists columns of their own, and refer to those."""
    field = pl.element().struct.field
    columns = {
        f"__{side}_{name}": value
        for side, rows in placements._asdict().items()
        for name, value in rows._asdict().items()
    }
    named = placed.list.eval(pl.element().struct.with_fields(**columns))
    fields = iter([field(name) for name in columns])
    return named, Placements(*(ClassRows(next(fields), next(fields)) for _ in placements))


def row_curve() -> RowCurve:
    """Refer to the rows of a frame that have been placed."""
    return _row_curve(pl.col, pl.col(POSITIVES), pl.col(NEGATIVES))


def list_row_curve() -> RowCurve:
    """Refer to the rows of a list that have been placed."""
    # Not columns of totals, which cost the more memory the longer the list.
    field = pl.element().struct.field
    return _row_curve(field, field(TP).last(), field(FP).last())


def _row_curve(field: Fields, positives: pl.Expr, negatives: pl.Expr) -> RowCurve:
    tp, fp, tp_before, fp_before = (field(n) for n in (TP, FP, _TP_BEFORE, _FP_BEFORE))
    dp, dn = class_weights(field(WEIGHT))
    above, below = _misranked(field, positives)
    return RowCurve(
        tp=tp,
        fp=fp,
        dp=dp,
        dn=dn,
        tpr=tp / positives,
        fpr=fp / negatives,
        tpr_before=tp_before / positives,
        fpr_before=fp_before / negatives,
        prevalence=positives / (positives + negatives),
        share=(dp + dn) / ((tp - tp_before) + (fp - fp_before)),
        # Not the last cumulative sum: ratios of sums of the same terms come out exactly.
        positives=dp.sum(),
        negatives=dn.sum(),
        placements=Placements(
            pos=ClassRows(dp, above / negatives), neg=ClassRows(dn, below / positives)
        ),
    )


class RankWeights(NamedTuple):
    """Weights around each row, from the rows that it was placed among.

    ``misranked`` is the weight of the other class on the wrong side of the row, and ``ahead``
    that of its own class on the same side, ties counting half: above a negative, below a
    positive. ``tied_other`` and ``tied_own`` are the weights at just its score.
    """

    misranked: pl.Expr
    ahead: pl.Expr
    tied_other: pl.Expr
    tied_own: pl.Expr


def rank_weights() -> RankWeights:
    """Refer to the weights around rows that have been placed."""
    positive = pl.col(WEIGHT) > 0
    above, below = _misranked(pl.col, pl.col(POSITIVES))
    tied_pos, tied_neg = pl.col(TP) - pl.col(_TP_BEFORE), pl.col(FP) - pl.col(_FP_BEFORE)

    def by_class(of_positive: pl.Expr, of_negative: pl.Expr) -> pl.Expr:
        return pl.when(positive).then(of_positive).otherwise(of_negative)

    return RankWeights(
        misranked=by_class(above, below),
        ahead=by_class(below, above),
        tied_other=by_class(tied_neg, tied_pos),
        tied_own=by_class(tied_pos, tied_neg),
    )


def _misranked(field: Fields, positives: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Weight of the negatives above and of the positives below, ties counting half."""
    above = (field(_FP_BEFORE) + field(FP)) / 2
    below = positives - (field(_TP_BEFORE) + field(TP)) / 2
    return above, below


def cumulated_around_ties(
    tp: pl.Expr,
    fp: pl.Expr,
    ends_tie: pl.Expr,
    row_before: Callable[[pl.Expr, float], pl.Expr] = row_before,
) -> dict[str, pl.Expr]:
    """Where the curve stands before and after all the rows with a row's score."""
    starts_tie = row_before(ends_tie, True)  # noqa: FBT003  (what stands there)

    def before(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(starts_tie).then(row_before(cumulative, 0.0)).forward_fill()

    def after(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(ends_tie).then(cumulative).backward_fill()

    return {TP: after(tp), FP: after(fp), _TP_BEFORE: before(tp), _FP_BEFORE: before(fp)}
