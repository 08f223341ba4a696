"""Rows that the compiled engine sorted: in memory, group by group, by descending score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT, ZERO_LABEL
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    Array,
    KeyBits,
    RowChunk,
    SortedRows,
    score_bits,
    sort_rows,
)
from polars_wroc.kernels.walks import Blocks, blocks_of, sums_of_groups
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import When, run
from polars_wroc.ranking.group_numbers import GroupNumbers, number_groups
from polars_wroc.ranking.walk_sums import MISSING_ROWS, WALK_SUMS


@dataclass(frozen=True)
class CompiledRows:
    """Sorted rows that have a label, score and weight, and numbers of rows that do not."""

    groups: GroupNumbers
    sorted_rows: SortedRows
    blocks: Blocks
    # For each number of a group.
    missing: Array

    def sums(self, *, frequency: bool) -> pl.DataFrame:
        """Sum the rows of each group: see `compiled_sums`."""
        with_rows = self.blocks.groups[self.blocks.begins]
        sums = np.zeros((self.groups.size, len(WALK_SUMS)))
        sums[with_rows] = sums_of_groups(self.sorted_rows, self.blocks, frequency=frequency)
        there = self.missing > 0
        there[with_rows] = True
        if self.groups.numbers is None:
            there[:] = True
        numbers = np.flatnonzero(there)
        columns = {MISSING_ROWS: self.missing[numbers]}
        columns |= dict(zip(WALK_SUMS, sums[numbers].T, strict=True))
        return pl.DataFrame([*self.groups.key_values(numbers), *pl.DataFrame(columns)])


def compiled_sums(rows: Rows, when: When, *, frequency: bool) -> pl.LazyFrame:
    """Sum the rows of each group: its keys, `MISSING_ROWS` and `WALK_SUMS`.

    With ``frequency`` a row is as many observations as its weight says.
    """
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, MISSING_ROWS: pl.Int64(), **dict.fromkeys(WALK_SUMS, pl.Float64())}
    return run(when, lambda: compile_rows(rows).sums(frequency=frequency).cast(types), schema)


def compile_rows(rows: Rows) -> CompiledRows:
    """Sort checked rows, each of which is one row."""
    numbered = number_rows(rows)
    sorted_rows = numbered.sorted_by(keyed(numbered.table[SCORE]))
    return CompiledRows(numbered.groups, sorted_rows, blocks_of(sorted_rows), numbered.missing)


@dataclass(frozen=True)
class NumberedRows:
    """A table of the rows that have a label, score and weight, and the numbers of their groups.

    ``missing`` are the numbers of rows that do not, for each number of a group.
    """

    table: pl.DataFrame
    groups: GroupNumbers
    numbers: Array | None
    missing: Array

    def sorted_by(self, scores: Keyed, carried: Array | None = None) -> SortedRows:
        """Sort the rows of each group; each row carries its element of ``carried``."""
        weight = self.table[WEIGHT]
        if weight.dtype != pl.Int8:
            weight = weight.cast(pl.Float64)
        chunks = _chunks(scores.column, weight, self.numbers, carried)
        return sort_rows(chunks, scores.bits, self.groups.size)

    def groups_there(self) -> Array:
        """Return the numbers of the groups that have rows, in ascending order."""
        there = self.missing > 0
        if self.numbers is None:
            there[:] = True
        else:
            there |= np.bincount(self.numbers, minlength=self.groups.size) > 0
        return np.flatnonzero(there)


def number_rows(rows: Rows) -> NumberedRows:
    """Check and collect rows, each of which is one row, and number their groups."""
    schema = rows.frame.collect_schema()
    # In a plan, several threads do this; a column alone takes one.
    texts = [key for key in rows.keys if schema[key] == pl.String]
    # Categories of their own, which begin at 0 and end with the table.
    categories = pl.Categorical(pl.Categories.random())
    table = collect(rows.frame.with_columns(pl.col(texts).cast(categories)))
    _check_labels(rows, table)
    groups = number_groups(table, rows.keys)
    missing = np.zeros(groups.size, np.int64)
    numbers = groups.numbers
    if table[WEIGHT].null_count():
        complete = table[WEIGHT].is_not_null()
        if numbers is None:
            missing[0] = table[WEIGHT].null_count()
        else:
            kept = complete.to_numpy()
            missing += np.bincount(numbers[~kept], minlength=groups.size)
            numbers = _read_only(numbers[kept])
        table = table.filter(complete)
    return NumberedRows(table, groups, numbers, missing)


def _chunks(
    score: pl.Series, weight: pl.Series, numbers: Array | None, carried: Array | None
) -> list[RowChunk]:
    """Cut the rows as the columns are cut in memory, so that nothing is copied."""
    if score.chunk_lengths() != weight.chunk_lengths():
        score, weight = score.rechunk(), weight.rechunk()
    chunks, start = [], 0
    for scores, weights in zip(score.get_chunks(), weight.get_chunks(), strict=True):
        end = start + len(scores)
        beside = [None if each is None else each[start:end] for each in (numbers, carried)]
        chunks.append(RowChunk(_array(scores).view(np.uint64), _array(weights), *beside))
        start = end
    return chunks


def _check_labels(rows: Rows, table: pl.DataFrame) -> None:
    """Raise if a group has both 0 and -1 as negative labels."""
    if ZERO_LABEL not in table.columns:
        return
    negative = pl.col(WEIGHT) < 0
    kinds = table.select(
        zero=(negative & pl.col(ZERO_LABEL)).any(), minus=(negative & ~pl.col(ZERO_LABEL)).any()
    )
    check = rows.observations.label_check
    if all(kinds.row(0)) and check is not None:
        collect(rows.aggregate(table.lazy(), {ZERO_LABEL: check}))


class Keyed(NamedTuple):
    """Scores of 64 bits, of which no two different ones are equal, and how they become keys."""

    column: pl.Series
    bits: KeyBits
    # Of the scores, and their distinct values where ``column`` holds their ranks.
    dtype: pl.DataType
    values: pl.Series | None = None

    def scores(self, keys: Array, without: Array | None = None) -> pl.Series:
        """Return the scores that have these keys; null at the places ``without`` one."""
        types = {FLOAT_BITS: np.float64, SIGNED_BITS: np.int64, UNSIGNED_BITS: np.uint64}
        found = pl.Series(SCORE, score_bits(keys, self.bits).view(types[self.bits]))
        if without is not None:
            found = found.scatter(without, None)
        if self.values is None:
            return found.cast(self.dtype)
        return self.values.gather(found - 1).alias(SCORE)


def keyed(score: pl.Series) -> Keyed:
    """Prepare scores, none of which is missing, to be sorted."""
    dtype, values = score.dtype, None
    if dtype.is_float():
        return Keyed(score.cast(pl.Float64), FLOAT_BITS, dtype)
    if dtype in (pl.Int128, pl.UInt128) or dtype.is_decimal():
        values, score = score.unique().sort(), score.rank("dense")
    if score.dtype.is_unsigned_integer():
        return Keyed(score.cast(pl.UInt64), UNSIGNED_BITS, dtype, values)
    return Keyed(score.cast(pl.Int64), SIGNED_BITS, dtype, values)


def _array(column: pl.Series) -> Array:
    """Return the values as an array that kernels know as one that they only read."""
    return _read_only(column.to_numpy())


def _read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values
