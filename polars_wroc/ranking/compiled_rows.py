"""Rows that the compiled engine sorted: in memory, group by group, by descending score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT, ZERO_LABEL
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    Array,
    KeyBits,
    RowChunk,
    SortedRows,
    sort_rows,
)
from polars_wroc.kernels.walks import Blocks, blocks_of, sums_of_groups
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import When, run
from polars_wroc.ranking.group_numbers import GroupNumbers, number_groups, with_categories
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
    table = collect(with_categories(rows.frame, rows.keys))
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
            numbers = read_only(numbers[kept])
        table = table.filter(complete)
    score, key_bits = _in_64_bits(table[SCORE])
    weight = table[WEIGHT]
    if weight.dtype != pl.Int8:
        weight = weight.cast(pl.Float64)
    sorted_rows = sort_rows(_chunks(score, weight, numbers), key_bits, groups.size)
    return CompiledRows(groups, sorted_rows, blocks_of(sorted_rows), missing)


def _chunks(score: pl.Series, weight: pl.Series, numbers: Array | None) -> list[RowChunk]:
    """Cut the rows as the columns are cut in memory, so that nothing is copied."""
    if score.chunk_lengths() != weight.chunk_lengths():
        score, weight = score.rechunk(), weight.rechunk()
    chunks, start = [], 0
    for scores, weights in zip(score.get_chunks(), weight.get_chunks(), strict=True):
        own = None if numbers is None else numbers[start : start + len(scores)]
        chunks.append(RowChunk(_array(scores).view(np.uint64), _array(weights), own))
        start += len(scores)
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


def _in_64_bits(score: pl.Series) -> tuple[pl.Series, KeyBits]:
    """Return scores of 64 bits, of which no two different ones are equal."""
    dtype = score.dtype
    if dtype.is_float():
        return score.cast(pl.Float64), FLOAT_BITS
    if dtype in (pl.Int128, pl.UInt128) or dtype.is_decimal():
        score = score.rank("dense")
    if score.dtype.is_unsigned_integer():
        return score.cast(pl.UInt64), UNSIGNED_BITS
    return score.cast(pl.Int64), SIGNED_BITS


def _array(column: pl.Series) -> Array:
    """Return the values as an array that kernels know as one that they only read."""
    return read_only(column.to_numpy())
