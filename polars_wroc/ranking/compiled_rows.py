"""Rows that kernels sort and walk along: packed in batches, sorted, and resampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.kernels import AREA_SUMS, BIN, MOMENTS, compiling
from polars_wroc.kernels.across import (
    RankedRows,
    class_sizes,
    measure,
    mirrored,
    placements_across,
    ranked,
)
from polars_wroc.kernels.blocks import (
    ONE_GROUP,
    Blocks,
    ClassWeights,
    Groups,
    class_weights,
    cut_blocks,
    cut_logits,
    moments_of_logits,
    unranked_sums,
)
from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.scans import Points, sums_of_partitions, walk
from polars_wroc.kernels.sorting import Array, RowChunk, SortedRows, sort_rows
from polars_wroc.plans.config import When, run
from polars_wroc.plans.queries import collect, join_on_keys
from polars_wroc.ranking.numbered_rows import (
    BatchGroups,
    GroupNumbers,
    ScoreKeys,
    fits_in_64_bits,
    in_64_bits,
    number_groups,
    number_rows,
    row_chunks,
)
from polars_wroc.ranking.placements import (
    DECIDED_SUMS,
    MISSING_ROWS,
    WALK_SUMS,
    walk_sum,
)
from polars_wroc.ranking.sorting import FP, NEGATIVES, POSITIVES, TP

# Before the names of the keys of positives.
OF_POSITIVES = "__positives_of_"


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

    def sort(self, parts: int) -> CompiledRows:
        """Sort the rows of each partition, and forget those that were packed."""
        missing = np.zeros((len(self._partitions), len(self._codes)), np.int64)
        for groups, rows in self._missing:
            np.add.at(missing, tuple(groups.T), rows)
        # Later batches may have brought groups with larger numbers.
        chunks = [
            chunk._replace(
                codes=self._partitions.in_one_type(chunk.codes),
                carried=self._codes.in_one_type(chunk.carried),
            )
            for chunk in self._chunks
        ]
        self._chunks = []
        return CompiledRows(
            partitions=self._partitions.without_rows(),
            codes=self._codes.without_rows(),
            sorted_rows=sort_rows(chunks, self._score_keys.key_bits, len(self._partitions)),
            score_keys=self._score_keys,
            missing=missing,
            parts=parts,
        )

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


class Walked(NamedTuple):
    """Sums of each group of each partition, and points of its curve.

    Sums have the keys, `MISSING_ROWS` and `WALK_SUMS`; points the keys, `SCORE`, `TP`, `FP`,
    `POSITIVES` and `NEGATIVES`.
    """

    sums: pl.DataFrame
    points: pl.DataFrame


@dataclass(frozen=True)
class CompiledRows:
    """Sorted rows that have a label, score and weight, and numbers of rows that do not.

    Each partition is sorted by itself; its rows carry the codes of their groups, if there are any.
    """

    partitions: GroupNumbers
    codes: GroupNumbers
    sorted_rows: SortedRows
    score_keys: ScoreKeys
    # For each partition and code.
    missing: Array
    # Curves have points at both ends of each of so many parts.
    parts: int = 0
    # Of the sorted rows, if it was asked for.
    clusters: pl.Series | None = None

    @cached_property
    def blocks(self) -> Blocks:
        """The rows cut into blocks."""
        return cut_blocks(self.sorted_rows, self.codes.size)

    @cached_property
    def _overall(self) -> tuple[Array, Points]:
        """The walk in which a partition is one group."""
        return self._walk(ONE_GROUP)

    @cached_property
    def _code_keys(self) -> pl.DataFrame:
        """The keys of each code."""
        return pl.DataFrame(self.codes.key_values(np.arange(self.codes.size)))

    @property
    def partition_keys(self) -> pl.DataFrame:
        """The keys of each partition."""
        keys = self.partitions.key_values(np.arange(self.partitions.size))
        return pl.DataFrame(keys) if keys else pl.DataFrame(height=1)

    def rows_of_partitions(self) -> pl.DataFrame:
        """Return the rows with the keys of their partitions, `SCORE` and `WEIGHT`."""
        partitions = np.repeat(np.arange(self.partitions.size), self.sorted_rows.sizes)
        keys = self.partitions.key_values(partitions)
        score = self.score_keys.scores(self.sorted_rows.keys)
        return pl.DataFrame([*keys, score, pl.Series(WEIGHT, self.sorted_rows.signed)])

    def rows_of(self, groups: pl.DataFrame | None) -> pl.DataFrame:
        """Return the rows of the groups of these keys, or all, with all keys."""
        every = np.indices((self.partitions.size, self.codes.size)).reshape(2, -1)
        wanted = np.ones((self.partitions.size, self.codes.size), bool)
        if groups is not None:
            known = pl.DataFrame(self._keys(self.codes, *every)).with_row_index(MISSING_ROWS)
            there = join_on_keys(known.lazy(), groups.lazy(), groups.columns, how="inner")
            wanted[:] = False
            wanted.reshape(-1)[collect(there)[MISSING_ROWS].to_numpy()] = True
        partitions = np.repeat(np.arange(self.partitions.size), self.sorted_rows.sizes)
        codes = self.sorted_rows.carried
        codes = np.zeros(len(partitions), np.uint8) if codes is None else codes
        taken = np.flatnonzero(wanted[partitions, codes])
        score = self.score_keys.scores(self.sorted_rows.keys[taken])
        weight = pl.Series(WEIGHT, self.sorted_rows.signed[taken]).cast(pl.Float64)
        return pl.DataFrame(
            [*self._keys(self.codes, partitions[taken], codes[taken]), score, weight]
        )

    def logit_bins(self, width: float) -> pl.DataFrame:
        """Add up the `MOMENTS` of the logits of each code in each bin of this width."""
        scores = self.score_keys.scores(self.sorted_rows.keys).cast(pl.Float64).to_numpy()
        starts = self.sorted_rows.starts.astype(np.int64).tolist()
        cut = [cut_logits(scores, *ends, width) for ends in pairwise(starts)]
        bins = np.concatenate(cut, axis=1)
        partitions = np.repeat(np.arange(len(cut)), [each.shape[1] for each in cut])
        groups = ONE_GROUP
        if self.codes.numbers is not None:
            groups = Groups(self.codes.size, np.arange(self.codes.size, dtype=np.uint32))
        parts = []
        for of_bin, code, sums in moments_of_logits(scores, self.sorted_rows, groups, bins, width):
            number = pl.Series(BIN, bins[0, of_bin], nan_to_null=True).cast(pl.Int32)
            keys = self._keys(self.codes, partitions[of_bin], code)
            parts.append(pl.DataFrame([*keys, number, *pl.DataFrame(sums, schema=MOMENTS)]))
        return pl.concat(parts)

    def walk(self, keys: Sequence[str] = ()) -> Walked:
        """Sum the groups of these keys, which are some of those of the codes."""
        numbers = number_groups(self._code_keys, keys)
        if numbers.numbers is None:
            sums, points = self._overall
        else:
            groups = Groups(numbers.size, numbers.numbers.astype(np.uint32))
            sums, points = self._walk(groups)
        every = np.arange(self.partitions.size)
        table = self.of_numbers(sums_of_partitions(self.blocks, sums), every)
        return Walked(self._sums(numbers, table), self._points(numbers, points, table))

    @cached_property
    def ranked(self) -> list[RankedRows]:
        """The rows of each partition with its curve."""
        keys, signed, _, starts = self.sorted_rows
        return [
            ranked(signed[a:b], np.append(keys[a + 1 : b] != keys[a : b - 1], b > a)[: b - a])
            for a, b in pairwise(starts.tolist())
        ]

    def areas(self, keys: Sequence[str]) -> pl.DataFrame:
        """Measure the area between the curves of each group of these keys and of the others.

        A row has the keys and `AREA_SUMS`.
        """
        numbers = number_groups(self._code_keys, keys)
        tables = []
        for rows, codes in self._ranked_codes():
            groups = codes if numbers.numbers is None else numbers.numbers[codes]
            sizes, cuts = class_sizes(rows, groups, numbers.size), (numbers.size, len(codes))
            tables.append(measure(rows, groups, sizes, compiling.shares(*cuts)))
        # There may be no partitions.
        table = np.array(tables).reshape(len(tables), numbers.size, len(AREA_SUMS))
        there = np.nonzero(table[..., :2].any(-1))
        columns = dict(zip(AREA_SUMS, table[there].T, strict=True))
        return pl.DataFrame([*self._keys(numbers, *there), *pl.DataFrame(columns)])

    def placed_across(self, *, of_rest: bool = False, turned: bool = False) -> pl.DataFrame:
        """Sum the positives of each group, or ``of_rest``, and the negatives of each group.

        A row has the keys of the negatives, those of the positives after `OF_POSITIVES` but for the
        rest, `MISSING_ROWS`, and `WALK_SUMS` without those that rates give. ``turned`` exchanges
        the classes.
        """
        tables = []
        for (signed, ties, _), codes in self._ranked_codes():
            given = signed, ties, codes
            if turned:
                given = -signed[::-1], (ties.max(initial=0) + 1 - ties)[::-1], codes[::-1]
            found = placements_across(*given, self.codes.size, of_rest=of_rest)
            tables.append(mirrored(found) if turned else found)
        groups = self.codes.size, 1 if of_rest else self.codes.size
        table = np.array(tables).reshape(len(tables), *groups, len(WALK_SUMS) - 2)
        sizes = [table[..., WALK_SUMS.index(walk_sum("rows", side))] > 0 for side in CLASSES]
        there = np.nonzero(sizes[0 if turned else 1] if of_rest else sizes[0] | sizes[1])
        unknown = np.zeros((2, len(there[0])))
        columns = dict(zip(WALK_SUMS, [*table[there].T, *unknown], strict=True))
        keys = self._keys(self.codes, *there[:2])
        if not of_rest:
            positives = self.codes.key_values(there[2])
            keys += [key.alias(f"{OF_POSITIVES}{key.name}") for key in positives]
        none = pl.Series(MISSING_ROWS, unknown[0]).cast(pl.Int64)
        return pl.DataFrame([*keys, none, *pl.DataFrame(columns)])

    def _ranked_codes(self) -> Iterator[tuple[RankedRows, Array]]:
        """Pair the ranked rows of each partition with their codes."""
        starts, carried = self.sorted_rows.starts.tolist(), self.sorted_rows.carried
        for rows, (a, b) in zip(self.ranked, pairwise(starts), strict=True):
            yield rows, np.zeros(b - a, np.uint32) if carried is None else carried[a:b]

    def decided_sums(self, first_rejected: Sequence[int] = ()) -> pl.DataFrame:
        """Sum what does not depend on ranks, for each partition and code.

        A row has the keys, `MISSING_ROWS` and `DECIDED_SUMS`: from the first rejected row of the
        partition on, rows are rejected; without such rows, all are.
        """
        blocks = cut_blocks(self.sorted_rows, self.codes.size, first_rejected)
        one_group = self.codes.numbers is None
        each_code = Groups(self.codes.size, np.arange(self.codes.size, dtype=np.uint32))
        keys, values = self.score_keys.key_bits, self.score_keys.values
        sums = unranked_sums(
            self.sorted_rows,
            blocks,
            ONE_GROUP if one_group else each_code,
            keys,
            None if values is None else values.cast(pl.Float64).to_numpy(),
        )
        limits = np.asarray(first_rejected or self.sorted_rows.starts[:-1], np.uint64)
        selected = (blocks.cuts[:-1] < limits[blocks.partitions])[:, None, None]
        table = np.zeros((self.partitions.size, self.codes.size, 2, sums.shape[-1]))
        for side, where in enumerate((selected, ~selected)):
            np.add.at(table[:, :, side], blocks.partitions, np.where(where, sums, 0.0))
        there = (table[..., :2].sum((2, 3)) > 0) | (self.missing > 0)
        sums_of_rows = table[there].reshape(-1, len(DECIDED_SUMS)).T
        names = [MISSING_ROWS, *DECIDED_SUMS]
        columns = dict(zip(names, [self.missing[there], *sums_of_rows], strict=True))
        return pl.DataFrame([*self._keys(self.codes, *np.nonzero(there)), *pl.DataFrame(columns)])

    def first_rejected(self, partition: int, is_selected: Callable[[pl.Series], bool]) -> int:
        """Find the first row of a partition whose score is not selected, unlike all before."""
        low, high = (int(row) for row in self.sorted_rows.starts[partition : partition + 2])
        while low < high:
            middle = (low + high) // 2
            keys = self.sorted_rows.keys[middle : middle + 1]
            if is_selected(self.score_keys.scores(keys)):
                low = middle + 1
            else:
                high = middle
        return low

    @cached_property
    def class_weights(self) -> ClassWeights:
        """The weights of both classes around each block, of partitions of one group."""
        return class_weights(self.sorted_rows, self.blocks)

    def of_numbers(self, sums: Array, numbers: Array) -> Array:
        """Pick the sums of these partitions, 0 where all rows are missing."""
        table = np.zeros((self.partitions.size, *sums.shape[1:]))
        table[self.blocks.partitions[self.blocks.begins]] = sums
        return table[numbers]

    def _walk(self, groups: Groups) -> tuple[Array, Points]:
        return walk(self.sorted_rows, self.blocks, groups, parts=self.parts)

    def _sums(self, numbers: GroupNumbers, table: Array) -> pl.DataFrame:
        missing = np.zeros(table.shape[:2], np.int64)
        of_code = np.zeros(self.codes.size, int) if numbers.numbers is None else numbers.numbers
        np.add.at(missing.T, of_code, self.missing.T)
        rows = [WALK_SUMS.index(walk_sum("rows", side)) for side in CLASSES]
        there = (missing > 0) | (table[..., rows] > 0).any(-1)
        if self.partitions.numbers is None and numbers.numbers is None:
            there[:] = True
        partition, group = np.nonzero(there)
        names = [MISSING_ROWS, *WALK_SUMS]
        columns = dict(zip(names, [missing[there], *table[there].T], strict=False))
        return pl.DataFrame([*self._keys(numbers, partition, group), *pl.DataFrame(columns)])

    def _points(self, numbers: GroupNumbers, points: Points, table: Array) -> pl.DataFrame:
        keys = self._keys(numbers, points.partitions, points.groups)
        weights = [WALK_SUMS.index(walk_sum("weight", side)) for side in CLASSES]
        totals = table[points.partitions, points.groups][:, weights]
        columns = np.hstack([points.weights, totals]).T
        score = self.score_keys.scores(self.sorted_rows.keys[points.rows]).alias(SCORE)
        names = (TP, FP, POSITIVES, NEGATIVES)
        return pl.DataFrame([*keys, score, *map(pl.Series, names, columns)])

    def _keys(self, numbers: GroupNumbers, partition: Array, group: Array) -> list[pl.Series]:
        return [*self.partitions.key_values(partition), *numbers.key_values(group)]


def compiled_sums(rows: Rows, when: When) -> pl.LazyFrame:
    """Sum the rows of each group: its keys, `MISSING_ROWS` and `WALK_SUMS`."""
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, MISSING_ROWS: pl.Int64(), **dict.fromkeys(WALK_SUMS, pl.Float64())}

    def table() -> pl.DataFrame:
        return compile_rows(rows, rows.keys).walk().sums.cast(types)

    return run(when, table, schema)


def compile_rows(
    rows: Rows, partition_keys: Sequence[str], *, clusters: bool = False
) -> CompiledRows:
    """Sort checked rows, each of which is one row; see `CompiledRows` for the options.

    Rows with ``clusters`` are in one group for each partition.
    """
    numbered = number_rows(rows, partition_keys)
    carried = numbered.row_numbers() if clusters else numbered.codes.numbers
    sorted_rows, score_keys = numbered.sorted_by(carried=carried)
    of_rows = None
    if clusters:
        of_rows = numbered.table[CLUSTER].gather(pl.Series(sorted_rows.carried))
    return CompiledRows(
        partitions=numbered.partitions.without_rows(),
        codes=numbered.codes.without_rows(),
        sorted_rows=sorted_rows,
        score_keys=score_keys,
        missing=numbered.missing,
        clusters=of_rows,
    )
