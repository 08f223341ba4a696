"""Placement values: the proportion of the other class that is misranked against each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.kernels import CLASS_SUMS, CURVE_SUMS, UNRANKED_SUMS
from polars_wroc.plans.formulas import Fields, as_struct
from polars_wroc.ranking.curve import Curve, if_both_classes
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    FP,
    FP_BEFORE,
    NEGATIVES,
    POSITIVES,
    TP,
    TP_BEFORE,
    PlacedRows,
    Reduce,
    by_descending_score,
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

    @property
    def one_minus_auc(self) -> pl.Expr:
        """1 - AUC, the mean placement value of the positives."""
        weight, placement = self.placements.pos
        return self.if_both_classes((weight * placement).sum()) / self.positives


def add_placements(
    sorted_rows: pl.LazyFrame, keys: Sequence[str], signed_weight: pl.Expr, *, score: str = SCORE
) -> pl.LazyFrame:
    """Add the columns that `row_curve` refers to to sorted rows, in a plan that streams."""
    columns = cumulated_around_ties(*window_sums())
    return with_window_sums(sorted_rows, keys, signed_weight, columns, score)


def with_placements_among(
    sorted_rows: pl.LazyFrame, keys: Sequence[str], weights: pl.Expr, columns: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Add ``columns`` of placements, computed with these weights among rows with the same keys."""
    before = sorted_rows.collect_schema().names()
    return add_placements(sorted_rows, keys, weights).select(*before, **columns)


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


def misranked() -> pl.Expr:
    """Weight of the other class that a row with the columns of `add_placements` misranks."""
    above, below = _misranked(pl.col, pl.col(POSITIVES))
    return pl.when(pl.col(WEIGHT) > 0).then(above).otherwise(below)


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


# Number of the rows that lack a label, score or weight.
MISSING_ROWS = "__missing_rows"


def walk_sum(name: str, side: str | None = None) -> str:
    """Name the column of one of the sums over a class, or of `CURVE_SUMS`."""
    return f"__walk_{name}" if side is None else f"__walk_{name}_{side}"


WALK_SUMS = [
    *(walk_sum(name, side) for side in CLASSES for name in CLASS_SUMS),
    *(walk_sum(name) for name in CURVE_SUMS),
]
# Of rows at or above a threshold, and below it.
DECISIONS = ("selected", "rejected")


def decided_sum(decision: str, name: str) -> str:
    """Name the column of one of `UNRANKED_SUMS` over the selected or the rejected rows."""
    return f"__{decision}_{name}"


def over_decisions(name: str) -> pl.Expr:
    """Add up one of `UNRANKED_SUMS` over the selected and the rejected rows."""
    return pl.sum_horizontal(decided_sum(decision, name) for decision in DECISIONS)


DECIDED_SUMS = [decided_sum(decision, name) for decision in DECISIONS for name in UNRANKED_SUMS]


def walked_class_counts() -> dict[str, pl.Expr]:
    """Count the rows of each class, as `Rows.class_counts` does."""
    return {f"n_{side}": pl.col(walk_sum("rows", side)).cast(pl.Int64) for side in CLASSES}


def walked_one_minus_auc() -> pl.Expr:
    """Compute 1 - AUC, the mean placement value of the positives."""
    positives, negatives = (pl.col(walk_sum("weight", side)) for side in CLASSES)
    placements = pl.col(walk_sum("placements", "pos"))
    return if_both_classes(positives, negatives, placements) / positives


def reduce_placed(
    rows: Rows,
    reduce: Reduce,
    *,
    with_score: bool = False,
    reproducible: bool = True,
) -> pl.LazyFrame:
    """Reduce placed rows to a table with the keys and other columns.

    The rows have `WEIGHT`, `CLUSTER` if they had it, and `SCORE` if asked for. Unless it has to be
    ``reproducible`` to the last bit, the compiled engine too lets Polars add up rows in any order,
    which takes two thirds of the time.
    """
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_placements import reduce_compiled  # noqa: PLC0415

        return reduce_compiled(rows, reduce, with_score=with_score, reproducible=reproducible)
    weight = rows.observations.signed_weight
    placed = add_placements(by_descending_score(rows), rows.keys, weight)
    return reduce(PlacedRows(placed, rows.keys))
