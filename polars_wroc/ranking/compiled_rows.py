"""Rows that the compiled engine sorted: in memory, group by group, by descending score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT, ZERO_LABEL
from polars_wroc.inputs.rows import Rows
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
from polars_wroc.ranking.group_numbers import GroupNumbers, number_groups
from polars_wroc.ranking.walk_sums import MISSING_ROWS, WALK_SUMS

# No numbers of less than 32 bits, for which kernels would have to be compiled, too.
_SMALLEST = 1 << 31


@dataclass(frozen=True)
class CompiledRows:
    """Sorted rows that have a label, score and weight, and numbers of rows that do not."""

    groups: GroupNumbers
    sorted_rows: SortedRows
    blocks: Blocks
    # For each number of a group.
    missing: Array
    # Of the sorted rows, if it was asked for.
    clusters: pl.Series | None = None

    def sums(self, *, frequency: bool) -> pl.DataFrame:
        """Sum the rows of each group: see `compiled_sums`."""
        sums = sums_of_groups(self.sorted_rows, self.blocks, frequency=frequency)
        numbers = self.numbers()
        columns = {MISSING_ROWS: self.missing[numbers]}
        columns |= dict(zip(WALK_SUMS, self.of_numbers(sums, numbers).T, strict=True))
        return pl.DataFrame([*self.groups.key_values(numbers), *pl.DataFrame(columns)])

    def numbers(self) -> Array:
        """Return the numbers of the groups that there are."""
        there = self.missing > 0
        there[self._with_rows] = True
        if self.groups.numbers is None:
            there[:] = True
        return np.flatnonzero(there)

    def of_numbers(self, sums: Array, numbers: Array) -> Array:
        """Pick the sums of these groups, 0 where all rows are missing."""
        table = np.zeros((self.groups.size, sums.shape[1]))
        table[self._with_rows] = sums
        return table[numbers]

    def hashes_of_clusters(self, seed: int) -> Array:
        """Hash the cluster of each row as `bootstrap` does in a plan."""
        assert self.clusters is not None
        return array_of(self.clusters.hash(seed))

    @property
    def _with_rows(self) -> Array:
        return self.blocks.groups[self.blocks.begins]


def compiled_sums(rows: Rows, when: When, *, frequency: bool) -> pl.LazyFrame:
    """Sum the rows of each group: its keys, `MISSING_ROWS` and `WALK_SUMS`.

    With ``frequency`` a row is as many observations as its weight says.
    """
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, MISSING_ROWS: pl.Int64(), **dict.fromkeys(WALK_SUMS, pl.Float64())}
    return run(when, lambda: compile_rows(rows).sums(frequency=frequency).cast(types), schema)


def compile_rows(rows: Rows, *, clusters: bool = False) -> CompiledRows:
    """Sort checked rows, each of which is one row; on demand with their clusters."""
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
    score, key_bits = _in_64_bits(table[SCORE])
    weight = table[WEIGHT]
    if weight.dtype != pl.Int8:
        weight = weight.cast(pl.Float64)
    chunks = _chunks(score, weight, numbers)
    if clusters:
        chunks = _with_row_numbers(chunks)
    sorted_rows = sort_rows(chunks, key_bits, groups.size)
    found = CompiledRows(groups, sorted_rows, blocks_of(sorted_rows), missing)
    if not clusters:
        return found
    return replace(found, clusters=table[CLUSTER].gather(pl.Series(sorted_rows.carried)))


def _with_row_numbers(chunks: Sequence[RowChunk]) -> list[RowChunk]:
    """Let each row carry its number."""
    rows = sum(len(chunk.bits) for chunk in chunks)
    numbers = np.arange(rows, dtype=np.min_scalar_type(rows | _SMALLEST))
    numbered, start = [], 0
    for chunk in chunks:
        own = _read_only(numbers[start : start + len(chunk.bits)])
        numbered.append(chunk._replace(carried=own))
        start += len(chunk.bits)
    return numbered


def _chunks(score: pl.Series, weight: pl.Series, numbers: Array | None) -> list[RowChunk]:
    """Cut the rows as the columns are cut in memory, so that nothing is copied."""
    if score.chunk_lengths() != weight.chunk_lengths():
        score, weight = score.rechunk(), weight.rechunk()
    chunks, start = [], 0
    for scores, weights in zip(score.get_chunks(), weight.get_chunks(), strict=True):
        own = None if numbers is None else numbers[start : start + len(scores)]
        chunks.append(RowChunk(array_of(scores).view(np.uint64), array_of(weights), own))
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


def array_of(column: pl.Series) -> Array:
    """Return the values as an array that kernels know as one that they only read."""
    return _read_only(column.to_numpy())


def _read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values
