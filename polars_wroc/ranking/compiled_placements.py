"""Rows placed by the compiled engine: in memory, group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Self

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.blocks import cut_blocks
from polars_wroc.kernels.scans import weights_around
from polars_wroc.kernels.sorting import Array, SortedRows
from polars_wroc.plans.config import run
from polars_wroc.plans.queries import aggregate, collect
from polars_wroc.ranking.numbered_rows import NumberedRows, number_groups, number_rows
from polars_wroc.ranking.sorting import (
    FP,
    FP_BEFORE,
    NEGATIVES,
    POSITIVES,
    TP,
    TP_BEFORE,
    PlacedRows,
    Reduce,
)

_NUMBER = "__number"
_AROUND = (TP_BEFORE, TP, FP_BEFORE, FP)
_TOTALS = (POSITIVES, NEGATIVES)
# Not each number of a group with a cluster has rows: a sum for each may take so much memory.
_FEW_NUMBERS, _NUMBERS_PER_ROW = 1 << 16, 4


class CompiledPlacedRows(PlacedRows):
    """Placed rows in memory.

    Their key, if any, is the number of the group, which rises along the rows, and `CLUSTER` is
    a number that each cluster of a group has to itself.
    """

    def with_cluster_sums(self, values: dict[str, pl.Expr]) -> Self:
        """Add to each row the sums of the ``values`` over its cluster."""
        floats = {name: value.cast(pl.Float64) for name, value in values.items()}
        added = self.frame.with_columns(**floats)
        add_up = partial(_sums_of_clusters, names=[*values])
        return replace(self, frame=added.map_batches(add_up, schema=added.collect_schema()))

    def aggregate(self, sums: dict[str, pl.Expr], within: Sequence[str] = ()) -> pl.LazyFrame:
        """Aggregate each group, or each value of the columns ``within`` it."""
        # Groups that are known to be contiguous are added up in the order of their rows, so that
        # the bits are the same each time.
        rising = self.frame.with_columns(pl.col(self.keys).set_sorted())
        return aggregate(rising, [*self.keys, *within], sums)


def _sums_of_clusters(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace values by their sums over clusters: several times faster than windows."""
    numbers = frame[CLUSTER].fill_null(0).to_numpy()
    columns = []
    for name in names:
        # In the order of the rows, so that the bits are the same each time.
        sums = np.bincount(numbers, frame[name].fill_null(0.0).to_numpy())
        # Whole numbers where there are no rows.
        columns.append(pl.Series(name, sums.astype(np.float64, copy=False)[numbers]))
    return frame.with_columns(columns)


def reduce_compiled(
    rows: Rows, reduce: Reduce, *, with_score: bool, reproducible: bool
) -> pl.LazyFrame:
    """Place rows by their score, and reduce them by an engine of Polars."""
    given = rows.frame.collect_schema()
    types = {**_types_of(rows), **dict.fromkeys((*_AROUND, *_TOTALS), pl.Float64())}
    if with_score:
        types[SCORE] = given[SCORE]

    def table() -> pl.DataFrame:
        numbered = number_rows(rows, rows.keys)
        numbers = numbered.row_numbers() if CLUSTER in types else None
        placed, score_keys = numbered.sorted_by(carried=numbers)
        columns = _placed(placed)
        if with_score:
            columns.append(score_keys.scores(placed.keys))
        return _reduced(numbered, placed, columns, reduce, reproducible=reproducible)

    return _deferred(rows, table, types, reduce)


def _types_of(rows: Rows) -> dict[str, pl.DataType]:
    """Return the types of the number of a group, the weight and the number of a cluster."""
    given = rows.frame.collect_schema()
    types: dict[str, pl.DataType] = {_NUMBER: pl.UInt32()} if rows.keys else {}
    types[WEIGHT] = given[WEIGHT] if given[WEIGHT] == pl.Int8 else pl.Float64()
    if CLUSTER in given:
        types[CLUSTER] = pl.Int64()
    return types


def _deferred(
    rows: Rows, table: Callable[[], pl.DataFrame], types: dict[str, pl.DataType], reduce: Reduce
) -> pl.LazyFrame:
    """Compute a table of reduced rows when the engine does; placed rows have these types."""
    given = rows.frame.collect_schema()
    reduced = reduce(_in_memory(pl.DataFrame(schema=types))).collect_schema()
    schema = pl.Schema({key: given[key] for key in rows.keys})
    schema |= {name: dtype for name, dtype in reduced.items() if name != _NUMBER}
    assert rows.compiled is not None
    return run(rows.compiled, lambda: table().cast(schema), schema)


def _reduced(
    numbered: NumberedRows,
    placed: SortedRows,
    columns: list[pl.Series],
    reduce: Reduce,
    *,
    reproducible: bool = True,
) -> pl.DataFrame:
    """Reduce columns of sorted rows, and add the keys."""
    if placed.carried is not None and CLUSTER in numbered.table.columns:
        columns = [*columns, _clusters(numbered, placed)]
    frame = pl.DataFrame(columns)
    sizes, missing = placed.sizes, numbered.missing[:, 0]
    if missing.any():
        frame = frame.select(pl.all().gather(_with_gaps(sizes, missing)))
        sizes = sizes + missing
    if numbered.partitions.numbers is None:
        return collect(reduce(_in_memory(frame)), reproducible=reproducible)
    numbers = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    frame = frame.with_columns(pl.Series(_NUMBER, numbers))
    table = collect(reduce(_in_memory(frame)), reproducible=reproducible)
    keys = numbered.partitions.key_values(table[_NUMBER].to_numpy())
    return pl.DataFrame([*keys, *table.drop(_NUMBER)])


def _in_memory(frame: pl.DataFrame) -> CompiledPlacedRows:
    keys = [_NUMBER] if _NUMBER in frame.columns else []
    return CompiledPlacedRows(frame.lazy(), keys)


def _with_gaps(sizes: Array, missing: Array) -> pl.Series:
    """Number sorted rows, with so many nulls before those of each group."""
    rows = int(sizes.sum())
    before = np.repeat(missing.cumsum(), sizes)
    numbers = np.full(rows + int(missing.sum()), -1)
    numbers[np.arange(rows) + before] = np.arange(rows)
    found = pl.Series("row", numbers).to_frame()
    return found.select(pl.when(pl.col("row") >= 0).then("row")).to_series()


def _placed(placed: SortedRows) -> list[pl.Series]:
    """Return the columns that `row_curve` refers to."""
    around = dict(zip(_AROUND, weights_around(placed, cut_blocks(placed)), strict=True))
    sizes = placed.sizes[placed.sizes > 0]
    ends = sizes.cumsum() - 1
    # The last sums, so that the rates end at 1.
    of_rows = {
        total: np.repeat(around[last][ends], sizes)
        for total, last in zip(_TOTALS, (TP, FP), strict=True)
    }
    columns = [pl.Series(name, values) for name, values in (around | of_rows).items()]
    return [pl.Series(WEIGHT, placed.signed), *columns]


def _clusters(numbered: NumberedRows, placed: SortedRows) -> pl.Series:
    """Number the clusters of each group, in the order of sorted rows."""
    partitions, clusters = numbered.partitions, number_groups(numbered.table, [CLUSTER])
    most = max(_FEW_NUMBERS, numbered.table.height * _NUMBERS_PER_ROW)
    few = partitions.numbers is None or partitions.size * clusters.size <= most
    if not few:
        keys = chain.from_iterable(key.values.columns for key in partitions.keys)
        clusters = number_groups(numbered.table, [*keys, CLUSTER])
    assert clusters.numbers is not None
    numbers = clusters.numbers[placed.carried].astype(np.int64)
    if few:
        numbers += clusters.size * np.repeat(np.arange(partitions.size), placed.sizes)
    return pl.Series(CLUSTER, numbers)
