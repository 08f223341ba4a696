"""Rows in memory, those of each group one after another.

Along such rows sums and ties need no window, which hands each of its columns back to where the
rows stood, and a group of two rows costs no more than two rows of a large one.
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
# The sums of the weights along a group, and what they come to.
_TOTALS = {TP: POSITIVES, FP: NEGATIVES}


class ContiguousGroups(NamedTuple):
    """Rows whose key, if any, is the number of their group, and the keys that it stands for."""

    rows: Rows
    keys: pl.LazyFrame

    def named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Put the keys in the place of the numbers."""
        if not self.rows.keys:
            return table
        return join_on_keys(table, self.keys, self.rows.keys).drop(self.rows.keys)


def make_contiguous(rows: Rows, beside_weights: Sequence[str]) -> ContiguousGroups:
    """Bring the rows of each group together, in the order that they have.

    Beside their scores and weights stand the columns asked for and the sums of the weights of
    each class along the group, ties not taken together yet.
    """
    there = list(dict.fromkeys([SCORE, WEIGHT, *beside_weights]))
    return _stack_groups(rows, there) if rows.keys else _stack_one_group(rows, there)


def _stack_one_group(rows: Rows, columns: Sequence[str]) -> ContiguousGroups:
    """Do without lists, of which one alone would be added up by one thread."""
    sums = _sums(pl.col(WEIGHT))
    table = collect(rows.frame.select(pl.lit(0, pl.UInt32).alias(_NUMBER), *columns, **sums))
    # Not a scalar, by which the engine would divide in another way.
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
    # In lists, since numbers that the engine takes for sorted are grouped in a slower way.
    numbers = pl.col(_NUMBER).repeat_by(pl.col(SCORE).list.len())
    stacked = groups.lazy().drop(rows.keys).with_columns(numbers)
    table = collect(stacked.explode(_NUMBER, *columns, *sums, empty_as_null=False))
    keys = groups.select(_NUMBER, *rows.keys)
    return ContiguousGroups(Rows(table.lazy(), [_NUMBER], in_order=True), keys.lazy())


def _sums(weight: pl.Expr) -> dict[str, pl.Expr]:
    """Add up the weights of each class along the rows of a group."""
    weights = class_weights(weight.fill_null(0.0))
    return {name: value.cum_sum() for name, value in zip(_TOTALS, weights, strict=True)}


def placements_in_contiguous_groups(stacked: Rows) -> pl.LazyFrame:
    """Do as `add_placements` does, for stacked rows."""
    number, score = pl.col(_NUMBER), pl.col(SCORE)
    first = number.ne_missing(number.shift(1))
    starts = stacked.frame.with_columns(first.alias(_STARTS))
    starts_tie = pl.col(_STARTS) | score.ne_missing(score.shift(1))
    ties = starts.with_columns(starts_tie.shift(-1, fill_value=True).alias(ENDS_TIE))

    def row_before(value: pl.Expr, fill: float) -> pl.Expr:
        return pl.when(_STARTS).then(fill).otherwise(value.shift(1))

    columns = cumulated_around_ties(pl.col(TP), pl.col(FP), pl.col(ENDS_TIE), row_before)
    return ties.with_columns(**columns).drop(_STARTS, ENDS_TIE)
