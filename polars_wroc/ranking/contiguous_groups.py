"""Contiguous groups: rows in memory, in which the rows of each group follow one another.

On such rows sums and ties need no window, which would have to restore the order of the rows in
each column, and many small groups cost no more than one large group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.cumulative_sums import ENDS_TIE, FP, NEGATIVES, POSITIVES, TP
from polars_wroc.ranking.placements import cumulated_around_ties

_NUMBER, _STARTS = "__number", "__starts"
# The cumulative weights of each class along a group, and their totals.
_TOTALS = {TP: POSITIVES, FP: NEGATIVES}


class ContiguousGroups(NamedTuple):
    """Rows whose only key, if any, is the number of their group, and the keys of each number."""

    rows: Rows
    keys: pl.LazyFrame

    def named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the group numbers of a table by the keys."""
        if not self.rows.keys:
            return table
        return join_on_keys(table, self.keys, self.rows.keys).drop(self.rows.keys)


def make_contiguous(rows: Rows, columns: Sequence[str]) -> ContiguousGroups:
    """Make the rows of each group contiguous, in their order.

    They have their scores and weights, the other ``columns``, and the cumulative weights
    of each class along the group, row by row: ties are not pooled yet.
    """
    names = list(dict.fromkeys([SCORE, WEIGHT, *columns]))
    return _stack_groups(rows, names) if rows.keys else _stack_one_group(rows, names)


def _stack_one_group(rows: Rows, columns: Sequence[str]) -> ContiguousGroups:
    """Do without lists, since a single list would be summed by one thread."""
    sums = _sums(pl.col(WEIGHT))
    table = collect(rows.frame.select(pl.lit(0, pl.UInt32).alias(_NUMBER), *columns, **sums))
    # Columns, not scalars, since the engine rounds a division by a scalar differently.
    totals = [
        pl.repeat(table[name][-1], table.height).alias(total) for name, total in _TOTALS.items()
    ]
    return ContiguousGroups(
        Rows(table.with_columns(totals).lazy(), [], in_order=True), pl.LazyFrame()
    )


def _stack_groups(rows: Rows, columns: Sequence[str]) -> ContiguousGroups:
    lists = rows.aggregate(rows.frame, {name: pl.col(name).implode() for name in columns})
    sums = {name: pl.col(WEIGHT).list.eval(value) for name, value in _sums(pl.element()).items()}
    totals = {total: pl.col(name).list.last() for name, total in _TOTALS.items()}
    groups = collect(lists.with_columns(**sums).with_columns(**totals).with_row_index(_NUMBER))
    # In lists, since the engine is slower at grouping numbers that it knows to be sorted.
    numbers = pl.col(_NUMBER).repeat_by(pl.col(SCORE).list.len())
    stacked = groups.lazy().drop(rows.keys).with_columns(numbers)
    table = collect(stacked.explode(_NUMBER, *columns, *sums, empty_as_null=False))
    keys = groups.select(_NUMBER, *rows.keys)
    return ContiguousGroups(Rows(table.lazy(), [_NUMBER], in_order=True), keys.lazy())


def _sums(weight: pl.Expr) -> dict[str, pl.Expr]:
    """Accumulate the weights of each class along the rows of a group."""
    weights = class_weights(weight.fill_null(0.0))
    return {name: value.cum_sum() for name, value in zip(_TOTALS, weights, strict=True)}


def placements_in_contiguous_groups(stacked: Rows) -> pl.LazyFrame:
    """Add the columns of `add_placements` to contiguous groups."""
    number, score = pl.col(_NUMBER), pl.col(SCORE)
    first = number.ne_missing(number.shift(1))
    starts = stacked.frame.with_columns(first.alias(_STARTS))
    starts_tie = pl.col(_STARTS) | score.ne_missing(score.shift(1))
    ties = starts.with_columns(starts_tie.shift(-1, fill_value=True).alias(ENDS_TIE))

    def row_before(value: pl.Expr, fill: float) -> pl.Expr:
        return pl.when(_STARTS).then(fill).otherwise(value.shift(1))

    columns = cumulated_around_ties(pl.col(TP), pl.col(FP), pl.col(ENDS_TIE), row_before)
    return ties.with_columns(**columns).drop(_STARTS, ENDS_TIE)
