"""Checked rows that come in batches, packed into few bytes each, for kernels to sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.sorting import Array, RowChunk, SortedRows, sort_rows
from polars_wroc.ranking.batch_groups import BatchGroups
from polars_wroc.ranking.group_numbers import GroupNumbers
from polars_wroc.ranking.numbered_rows import row_chunks
from polars_wroc.ranking.score_keys import ScoreKeys, fits_in_64_bits, in_64_bits


class PackedRows:
    """The scores, weights and codes of rows that have a label, score and weight.

    Rows are sorted within *partitions*; the groups within a partition have *codes*.
    """

    def __init__(
        self, batches: Iterator[pl.DataFrame], partition_keys: Sequence[str], keys: Sequence[str]
    ) -> None:
        """Pack all rows of one or more batches; ``keys`` are those of partitions and codes."""
        self._chunks: list[RowChunk] = []
        # Pairs of partitions and codes, and the rows of each.
        self._missing: list[tuple[Array, Array]] = []
        code_keys = [key for key in keys if key not in partition_keys]
        first = next(batches)
        self._partitions = BatchGroups(first.select(partition_keys).schema)
        self._codes = BatchGroups(first.select(code_keys).schema)
        if not fits_in_64_bits(first[SCORE].dtype):
            # Scores are numbered, all together.
            first = pl.concat([first, *batches])
        self._pack(first)
        for batch in batches:
            self._pack(batch)

    @property
    def partitions(self) -> GroupNumbers:
        """The partitions, without the numbers of rows."""
        return self._partitions.without_rows()

    @property
    def codes(self) -> GroupNumbers:
        """The codes, without the numbers of rows."""
        return self._codes.without_rows()

    @property
    def missing(self) -> Array:
        """The numbers of rows that lack a label, score or weight, by partition and code."""
        missing = np.zeros((len(self._partitions), len(self._codes)), np.int64)
        for groups, rows in self._missing:
            np.add.at(missing, tuple(groups.T), rows)
        return missing

    def sort(self) -> tuple[SortedRows, ScoreKeys]:
        """Sort the rows of each partition, and forget those that were packed."""
        # Later batches may have brought groups with larger numbers.
        types = [np.min_scalar_type(len(each)) for each in (self._partitions, self._codes)]
        chunks = [
            RowChunk(
                *chunk[:2],
                *(
                    each if each is None else read_only(each.astype(dtype, copy=False))
                    for each, dtype in zip(chunk[2:], types, strict=True)
                ),
            )
            for chunk in self._chunks
        ]
        self._chunks = []
        return sort_rows(chunks, self._score_keys.key_bits, len(self._partitions)), self._score_keys

    def _pack(self, batch: pl.DataFrame) -> None:
        partitions, codes = self._partitions.of_rows(batch), self._codes.of_rows(batch)
        complete = batch[WEIGHT].is_not_null()
        if not complete.all():
            kept = complete.to_numpy()
            left_out = np.zeros((2, (~kept).sum()), np.int64)
            for of_rows, each in zip(left_out, (partitions, codes), strict=True):
                of_rows[:] = 0 if each is None else each[~kept]
            self._missing.append(np.unique(left_out.T, axis=0, return_counts=True))
            partitions, codes = (
                None if each is None else read_only(each[kept]) for each in (partitions, codes)
            )
            batch = batch.filter(complete)
        score, self._score_keys = in_64_bits(batch[SCORE])
        self._chunks += row_chunks(score, batch[WEIGHT], partitions, codes)
