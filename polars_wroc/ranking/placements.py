"""Placement values in lists: the share of the other class that each row is misranked against."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import class_weights
from polars_wroc.ranking.sorting import ENDS_TIE, FP, TP, cumulated_list
from polars_wroc.structs import as_struct, element_field

# The cumulative weights before the ties of each row, as `TP` and `FP` are after them.
_TP_BEFORE, _FP_BEFORE = "__tp_before", "__fp_before"


class ClassRows(NamedTuple):
    """Rows of one class: weights, 0 for a row of the other class, and placement values."""

    weight: pl.Expr
    placement: pl.Expr


class PlacedRows(NamedTuple):
    """The rows of both classes, and the share of the positives above each row."""

    pos: ClassRows
    neg: ClassRows
    positives_above: pl.Expr


def place_lists(rows: pl.Expr) -> pl.Expr:
    """Return lists of the rows with the fields that `read_placements` refers to."""
    ends_tie = element_field(ENDS_TIE)
    starts_tie = ends_tie.shift(1, fill_value=True)
    columns = {WEIGHT: element_field(WEIGHT)}
    for after, before in ((TP, _TP_BEFORE), (FP, _FP_BEFORE)):
        reached = element_field(after)
        columns[after] = pl.when(ends_tie).then(reached).backward_fill()
        preceding = reached.shift(1, fill_value=0.0)
        columns[before] = pl.when(starts_tie).then(preceding).forward_fill()
    return cumulated_list(rows, [WEIGHT]).list.eval(as_struct(columns))


def read_placements() -> PlacedRows:
    """Return the rows of a list of `place_lists` as expressions; ties count half."""
    # Totals are not fields, which would repeat them for every row of the list.
    positives, negatives = element_field(TP).last(), element_field(FP).last()
    pos_weight, neg_weight = class_weights(element_field(WEIGHT))
    positives_above = (element_field(_TP_BEFORE) + element_field(TP)) / 2
    negatives_above = (element_field(_FP_BEFORE) + element_field(FP)) / 2
    return PlacedRows(
        ClassRows(pos_weight, negatives_above / negatives),
        ClassRows(neg_weight, (positives - positives_above) / positives),
        positives_above / positives,
    )
