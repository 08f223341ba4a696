"""Pool rows in bins by the compiled engine while they come in batches."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_wroc.counts.binning import Cutting
from polars_wroc.inputs.columns import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    WEIGHT,
    ZERO_LABEL,
)
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.compiling import U
from polars_wroc.kernels.pooling import OTHERS, ZEROS, Batch, Cells, PoolTable
from polars_wroc.plans.config import When, run
from polars_wroc.plans.queries import (
    NoBatchesError,
    batches,
    collect,
    require_one_negative_label,
    with_categories,
)
from polars_wroc.ranking.numbered_rows import BatchGroups, array_of

# Rows of a batch.
_ROWS = 1 << 18


def pool_batches(rows: Rows, when: When, cutting: Cutting, plan: pl.LazyFrame) -> pl.LazyFrame:
    """Do what a plan does that pools rows, in memory for one batch and the pools.

    Rows that share a cell share a bin of the plan; bins may have several cells.
    """
    schema = plan.collect_schema()

    def table() -> pl.DataFrame:
        try:
            return _pooled(rows, cutting).select(schema.names()).cast(schema)
        except NoBatchesError:
            return collect(plan)

    return run(when, table, schema)


def _pooled(rows: Rows, cutting: Cutting) -> pl.DataFrame:
    score_type = rows.frame.collect_schema()[SCORE]
    cuts = array_of(pl.Series(cutting.cuts, dtype=pl.Float64))
    cells = Cells(U(cutting.last_bits), *cutting.mirror, cuts)
    frame = with_categories(rows.frame, rows.keys)
    groups = BatchGroups(frame.select(rows.keys).collect_schema())
    pools = PoolTable(cells, array_of(_score(pl.Series([], dtype=score_type))).dtype)
    for batch in batches(frame, _ROWS):
        numbers, found = groups.number(batch)
        signed = batch[WEIGHT].fill_null(0)
        if signed.dtype != pl.Int8:
            signed = signed.cast(pl.Float64)
        zeros = array_of(batch[ZERO_LABEL].fill_null(value=False)) if ZERO_LABEL in batch else None
        score = array_of(_score(batch[SCORE]))
        pools.add(Batch(score, array_of(signed), zeros, numbers, found), len(groups))
    mixed = bool((pools.marks == OTHERS | ZEROS).any())
    require_one_negative_label(zeros=mixed, minuses=mixed)
    return pl.concat([_rows(pools, groups), _missing_rows(pools, groups)], how="diagonal")


def _rows(table: PoolTable, groups: BatchGroups) -> pl.DataFrame:
    """Return a row for each pool."""
    pools = table.pools()
    weight, squares, cubes = pools.sums
    columns = {
        ZERO_LABEL: pools.negative & (table.marks[pools.groups] == ZEROS),
        SCORE: pools.low,
        SCORE_HIGH: pools.high,
        WEIGHT: np.where(pools.negative, -weight, weight),
        ROW_SQUARES: squares,
        ROW_CUBES: cubes,
        ROW_COUNT: pools.rows.astype(np.int64),
    }
    return groups.with_keys(pools.groups, pl.DataFrame(columns))


def _missing_rows(table: PoolTable, groups: BatchGroups) -> pl.DataFrame:
    """Return a row for the missing rows of each group that has any."""
    some = np.flatnonzero(table.missing)
    return groups.with_keys(some, pl.DataFrame({ROW_COUNT: table.missing[some]}))


def _score(column: pl.Series) -> pl.Series:
    """Return scores in a type of 64 bits that kernels know, and any for missing rows."""
    if column.null_count():
        column = column.fill_null(0)
    if column.dtype in (pl.Int64, pl.UInt64):
        return column
    return column.cast(pl.Float64)
