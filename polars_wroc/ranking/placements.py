"""Placement values: the proportion of the other class that is misranked against each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import class_weights
from polars_wroc.plans.structs import Fields, as_struct
from polars_wroc.ranking.curve import Curve
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    FP,
    FP_BEFORE,
    NEGATIVES,
    POSITIVES,
    TP,
    TP_BEFORE,
    cumulated_list,
    row_before,
    window_sums,
    with_window_sums,
)


class ClassRows(NamedTuple):
    """Rows of one class: weights, 0 for a row of the other class, and placement values."""

    weight: pl.Expr
    placement: pl.Expr


class Placements(NamedTuple):
    """Weights and placement values of both classes."""

    pos: ClassRows
    neg: ClassRows


@dataclass(frozen=True, kw_only=True)
class RowCurve(Curve):
    """A confusion curve with one element for each row, and the placement values of the rows.

    Tied rows share the rates before and after the tie, so that sums over rows are sums over
    scores.
    """

    placements: Placements


def add_placements(
    sorted_rows: pl.LazyFrame, keys: Sequence[str], signed_weight: pl.Expr, *, score: str = SCORE
) -> pl.LazyFrame:
    """Add the columns that `row_curve` refers to to sorted rows, in a plan that streams."""
    columns = cumulated_around_ties(*window_sums())
    return with_window_sums(sorted_rows, keys, signed_weight, columns, score)


def placements_in_lists(rows: pl.Expr, *carried: str) -> pl.Expr:
    """Compute the fields that `list_row_curve` refers to for each list; keep the ``carried``."""
    field = pl.element().struct.field
    tp, fp = field(TP), field(FP)
    columns = {name: field(name) for name in (*carried, WEIGHT)}
    columns |= cumulated_around_ties(tp, fp, field(ENDS_TIE))
    return cumulated_list(rows, (*carried, WEIGHT)).list.eval(as_struct(columns))


def row_curve(*, in_range: bool = False) -> RowCurve:
    """Refer to the rows of a frame with the columns of `add_placements`.

    If these are the rows of a range of scores, the totals are still those of all rows.
    """
    curve = _row_curve(pl.col, pl.col(POSITIVES), pl.col(NEGATIVES))
    if not in_range:
        return curve
    positives, negatives = pl.col(POSITIVES).first(), pl.col(NEGATIVES).first()
    return replace(curve, positives=positives, negatives=negatives)


def list_row_curve() -> RowCurve:
    """Refer to the rows of a list with the fields of `placements_in_lists`."""
    # Totals are not fields, which would repeat them for every row of the list.
    field = pl.element().struct.field
    return _row_curve(field, field(TP).last(), field(FP).last())


def _row_curve(field: Fields, positives: pl.Expr, negatives: pl.Expr) -> RowCurve:
    tp, fp, tp_before, fp_before = (field(n) for n in (TP, FP, TP_BEFORE, FP_BEFORE))
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
        # Not the last cumulative sum, so that a ratio of sums of the same terms is exact.
        positives=dp.sum(),
        negatives=dn.sum(),
        placements=Placements(
            pos=ClassRows(dp, above / negatives), neg=ClassRows(dn, below / positives)
        ),
    )


def _misranked(field: Fields, positives: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Weight of the negatives above and of the positives below; ties count half."""
    above = (field(FP_BEFORE) + field(FP)) / 2
    below = positives - (field(TP_BEFORE) + field(TP)) / 2
    return above, below


def cumulated_around_ties(tp: pl.Expr, fp: pl.Expr, ends_tie: pl.Expr) -> dict[str, pl.Expr]:
    """Cumulative weights before and after all rows that tie with a row."""
    starts_tie = row_before(ends_tie, True)  # noqa: FBT003  (the fill value)

    def before(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(starts_tie).then(row_before(cumulative, 0.0)).forward_fill()

    def after(cumulative: pl.Expr) -> pl.Expr:
        return pl.when(ends_tie).then(cumulative).backward_fill()

    return {TP: after(tp), FP: after(fp), TP_BEFORE: before(tp), FP_BEFORE: before(fp)}
