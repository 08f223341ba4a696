"""Sorted rows, and the cumulative weights of both classes along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import PlannedRows, class_weights
from polars_wroc.structs import as_struct, element_field

TP, FP, POSITIVES, NEGATIVES = "__tp", "__fp", "__positives", "__negatives"

ENDS_TIE = "__ends_tie"
_TP_SUM, _FP_SUM = "__tp_sum", "__fp_sum"


def cumulated_list(rows: pl.Expr, carried: Sequence[str] = ()) -> pl.Expr:
    """Sort each list of rows by descending score and accumulate the weights of each class."""
    descending = pl.element().sort_by(element_field(SCORE), descending=True)
    sums = cumulative_sums(element_field(SCORE), element_field(WEIGHT))
    columns = {name: element_field(name) for name in carried}
    columns |= {TP: sums.tp, FP: sums.fp, ENDS_TIE: sums.ends_tie}
    return rows.list.eval(descending).list.eval(as_struct(columns))


def by_descending_score(rows: PlannedRows, score: str = SCORE) -> pl.LazyFrame:
    """Sort rows for `with_window_sums`.

    Missing rows, which have a null score, come first: their point is the origin, where nothing is
    predicted positive. Ties keep the order of the frame, which makes the rounding of cumulative
    sums and random draws reproducible.
    """
    return rows.frame.sort(score, descending=True, nulls_last=False, maintain_order=True)


def window_sums() -> CumulativeSums:
    """Return the cumulative sums in the columns that `with_window_sums` adds."""
    # Fields name the sums: an expression in a window is computed at each of its mentions.
    return CumulativeSums(*(pl.field(name) for name in (_TP_SUM, _FP_SUM, ENDS_TIE)))


def with_window_sums(
    sorted_rows: pl.LazyFrame,
    keys: Sequence[str],
    signed_weight: pl.Expr,
    columns: dict[str, pl.Expr],
    score: str = SCORE,
) -> pl.LazyFrame:
    """Add ``columns`` of `window_sums` and the totals of both classes to sorted rows."""
    sums = cumulative_sums(pl.col(score), signed_weight.fill_null(0.0))
    named = as_struct({_TP_SUM: sums.tp, _FP_SUM: sums.fp, ENDS_TIE: sums.ends_tie})
    # In the struct the totals are full columns. A division by a broadcast value is rounded
    # differently, and equal rates might differ in the last digit.
    totals = {POSITIVES: pl.field(_TP_SUM).last(), NEGATIVES: pl.field(_FP_SUM).last()}
    added = columns | totals
    curve = named.struct.with_fields(**added)
    if keys:
        # One window of a struct: each column that a window returns costs a scatter of all rows.
        curve = curve.over(keys)
    handed_back = sorted_rows.with_columns(curve.alias("__curve"))
    return handed_back.with_columns(pl.col("__curve").struct.field(*added)).drop("__curve")


class CumulativeSums(NamedTuple):
    """Along sorted rows: cumulative sums of the weights of each class, and ends of ties."""

    tp: pl.Expr
    fp: pl.Expr
    ends_tie: pl.Expr


def cumulative_sums(score: pl.Expr, signed_weight: pl.Expr) -> CumulativeSums:
    """Accumulate the weights of sorted rows; null scores tie with each other."""
    pos, neg = class_weights(signed_weight)
    ends_tie = score.ne_missing(score.shift(1)).shift(-1, fill_value=True)
    return CumulativeSums(pos.cum_sum(), neg.cum_sum(), ends_tie)
