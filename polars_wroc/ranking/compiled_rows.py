"""Rows that kernels sort and walk along: packed in batches, sorted, and resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.kernels import BIN, MOMENTS, compiling
from polars_wroc.kernels.blocks import (
    ONE_GROUP,
    Blocks,
    ClassWeights,
    Groups,
    class_weights,
    cut_blocks,
    cut_logits,
    moments_of_logits,
    reweighed,
)
from polars_wroc.kernels.scans import Points, rates_of_partitions, sums_of_partitions, walk
from polars_wroc.kernels.sorting import Array, SortedRows
from polars_wroc.plans.config import Progress, When, run
from polars_wroc.plans.queries import collect, join_on_keys
from polars_wroc.ranking.numbered_rows import (
    GroupNumbers,
    ScoreKeys,
    array_of,
    number_groups,
    number_rows,
    partitions_there,
)
from polars_wroc.ranking.placements import (
    MISSING_ROWS,
    RATE_SUMS,
    REPLICATE,
    WALK_SUMS,
    walk_sum,
)
from polars_wroc.ranking.sorting import FP, NEGATIVES, POSITIVES, TP


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


def resampled_sums(
    rows: Rows, when: When, seeds: Sequence[int], limits: Sequence[float] | None
) -> pl.LazyFrame:
    """Sum the rows of each group in each replicate: its keys, `REPLICATE` and `RATE_SUMS`.

    Replicate 0 are the rows themselves. In the others weights are multiplied by what `reweighed`
    makes of the hash of a row's cluster and the ``limits``.
    """
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, REPLICATE: pl.Int64(), **dict.fromkeys(RATE_SUMS, pl.Float64())}
    known = None if limits is None else np.array(limits)

    def table() -> pl.DataFrame:
        return _resample(compile_rows(rows, rows.keys, clusters=True), seeds, known).cast(types)

    return run(when, table, schema)


def _resample(compiled: CompiledRows, seeds: Sequence[int], limits: Array | None) -> pl.DataFrame:
    numbers = partitions_there(compiled.partitions, compiled.sorted_rows, compiled.missing)
    sums = np.empty((1 + len(seeds), len(numbers), len(RATE_SUMS)))
    # Before the threads start, since it uses them too.
    own_weights, clusters = compiled.class_weights, compiled.clusters
    assert clusters is not None

    def replicate(number: int) -> None:
        rows, blocks, weights = compiled.sorted_rows, compiled.blocks, own_weights
        if number:
            # As `bootstrap` does in a plan.
            hashes = array_of(clusters.hash(seeds[number - 1]))
            rows, weights = reweighed(rows, blocks, hashes, limits)
        rates = rates_of_partitions(rows, blocks, weights)
        sums[number] = compiled.of_numbers(rates, numbers)

    with Progress(len(sums), "replicates") as progress:
        compiling.run(replicate, [(number,) for number in range(len(sums))], progress.advance)
    keys = compiled.partitions.key_values(np.tile(numbers, len(sums)))
    replicates = pl.Series(REPLICATE, np.repeat(np.arange(len(sums)), len(numbers)))
    columns = dict(zip(RATE_SUMS, sums.reshape(-1, len(RATE_SUMS)).T, strict=True))
    return pl.DataFrame([*keys, replicates, *pl.DataFrame(columns)])
