"""Checked rows in memory, with the numbers of their groups, for kernels to sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import WEIGHT, ZERO_LABEL
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.sorting import Array, KeyBits, RowChunk, SortedRows, sort_rows
from polars_wroc.plans.by_keys import with_categories
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.group_numbers import GroupNumbers, number_groups

# So many rows have numbers of 32 bits.
_MOST_ROWS = 1 << 32


@dataclass(frozen=True)
class NumberedRows:
    """A table of the rows that have a label, score and weight, and the numbers of their groups.

    Rows are sorted within *partitions*; the groups within a partition have *codes*. ``missing`` are
    the numbers of rows that are not in the table, for each partition and code.
    """

    table: pl.DataFrame
    partitions: GroupNumbers
    codes: GroupNumbers
    missing: Array

    def sorted_by(
        self, score: pl.Series, key_bits: KeyBits, carried: Array | None = None
    ) -> SortedRows:
        """Sort the rows of each partition; each row carries its element of ``carried``."""
        chunks = row_chunks(score, self.table[WEIGHT], self.partitions.numbers, carried)
        return sort_rows(chunks, key_bits, self.partitions.size)

    def row_numbers(self) -> Array:
        """Number the rows, for rows to carry."""
        rows = self.table.height
        # No other types, for which kernels would have to be compiled too.
        return read_only(np.arange(rows, dtype=np.uint32 if rows < _MOST_ROWS else np.uint64))

    def partitions_there(self) -> Array:
        """Return the numbers of the partitions that have rows, in ascending order."""
        there: Array = self.missing.sum(1) > 0
        if self.partitions.numbers is None:
            there[:] = True
        else:
            there |= np.bincount(self.partitions.numbers, minlength=self.partitions.size) > 0
        return np.flatnonzero(there)


def number_rows(rows: Rows, partition_keys: Sequence[str]) -> NumberedRows:
    """Check and collect rows, each of which is one row, and number their groups."""
    table = collect(with_categories(rows.frame, rows.keys))
    _check_labels(rows, table)
    partitions = number_groups(table, partition_keys)
    codes = number_groups(table, [key for key in rows.keys if key not in partition_keys])
    missing = np.zeros((partitions.size, codes.size), np.int64)
    complete = table[WEIGHT].is_not_null()
    if not complete.all():
        kept = complete.to_numpy()
        left_out = np.zeros((~kept).sum(), np.int64)
        at = [0 if each.numbers is None else each.numbers[~kept] for each in (partitions, codes)]
        np.add.at(missing, (at[0] + left_out, at[1] + left_out), 1)
        partitions, codes = (each.of_rows(kept) for each in (partitions, codes))
        table = table.filter(complete)
    return NumberedRows(table, partitions, codes, missing)


def array_of(column: pl.Series) -> Array:
    """Return the values as a read-only array, which kernels are compiled for."""
    return read_only(column.to_numpy())


def row_chunks(
    score: pl.Series, weight: pl.Series, partitions: Array | None, carried: Array | None
) -> list[RowChunk]:
    """Cut rows with scores of 64 bits as the columns are cut in memory: nothing is copied."""
    if weight.dtype != pl.Int8:
        weight = weight.cast(pl.Float64)
    if score.chunk_lengths() != weight.chunk_lengths():
        score, weight = score.rechunk(), weight.rechunk()
    chunks, start = [], 0
    for scores, weights in zip(score.get_chunks(), weight.get_chunks(), strict=True):
        rows = slice(start, start + len(scores))
        of_rows = [None if each is None else each[rows] for each in (partitions, carried)]
        chunks.append(RowChunk(array_of(scores).view(np.uint64), array_of(weights), *of_rows))
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
