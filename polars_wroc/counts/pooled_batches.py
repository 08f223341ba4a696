"""Rows pooled by their keys and bins: by Polars, or in arrays while batches of them are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from polars_wroc.arrays import Ints
from polars_wroc.buckets import number_groups
from polars_wroc.inputs.columns import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    WEIGHT,
)
from polars_wroc.queries import NoBatchesError, batches, collect

BIN, POSITIVE = "__bin", "__positive"
_SUMS = (WEIGHT, ROW_SQUARES, ROW_CUBES, ROW_COUNT)
_BATCH_ROWS = 1 << 20
# So many pooled rows are pooled again: memory must not grow with the rows.
_MOST_ROWS = 1 << 22
# Negatives, positives and rows without a class.
_CLASSES, _NO_CLASS = 3, 2


def pool_rows(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Pool the rows of a class that share their keys and their bin."""
    weight = pl.col(WEIGHT)
    return rows.group_by(*keys, BIN, POSITIVE).agg(
        pl.col(SCORE).min(),
        pl.col(SCORE_HIGH).max(),
        # Null for missing rows, where a sum would be 0.
        pl.when(pl.col(POSITIVE).first().is_not_null()).then(weight.sum()),
        pl.col(ROW_SQUARES, ROW_CUBES, ROW_COUNT).sum(),
    )


def pool_in_arrays(
    rows: pl.LazyFrame, keys: Sequence[str], added: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    """Pool rows as `pool_rows` does when the plan is collected, which may leave equal ones apart.

    The plan has no columns that follow from its others, which are ``added`` before Polars pools.
    With few groups, arrays of a cell for each group and bin take half the time of a hash of keys.
    """
    schema = rows.collect_schema()

    def pool_by_hash(some: pl.LazyFrame) -> pl.LazyFrame:
        return pool_rows(some.with_columns(**added), keys)

    def pool() -> pl.DataFrame:
        try:
            return _pool_batches(batches(rows, _BATCH_ROWS), schema, keys, pool_by_hash)
        except NoBatchesError:
            return collect(pool_by_hash(rows))

    plan = pool_by_hash(rows)
    if schema[SCORE] not in (pl.Float32, pl.Float64):
        return plan
    return pl.defer(pool, schema=plan.collect_schema())


# Powers of weights may overflow or underflow.
@np.errstate(all="ignore")
def _pool_batches(
    handed: Iterator[pl.DataFrame],
    schema: pl.Schema,
    keys: Sequence[str],
    pool_by_hash: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> pl.DataFrame:
    """Return the pooled rows of all batches, by a hash of keys once cells are too many."""
    none = collect(pool_by_hash(pl.LazyFrame(schema=schema)))
    pooled = [none]
    for batch in handed:
        cells = _Cells.of(batch, keys)
        if cells.number > batch.height:
            others = chain([batch], handed)
            source = register_io_source(lambda *_: others, schema=schema)  # noqa: B023
            pooled.append(collect(pool_by_hash(source)))
            break
        pooled.append(cells.pool(batch).select(none.columns).cast(none.schema))
        if sum(each.height for each in pooled) > _MOST_ROWS:
            together = pool_rows(pl.concat(pooled).lazy(), keys)
            pooled = [collect(together, reproducible=True)]
    return pl.concat(pooled)


class _Cells(NamedTuple):
    """The table of cells of a batch, by group, bin from the ``first`` on, and class."""

    groups: pl.DataFrame
    group: Ints
    first: int
    bins: int

    @classmethod
    def of(cls, batch: pl.DataFrame, keys: Sequence[str]) -> _Cells:
        """Return the table of cells that a batch needs."""
        groups, group = batch.select(keys), np.zeros(batch.height, np.int64)
        if keys:
            groups, group = number_groups(groups)
        low, high = (cast("int | None", end) for end in (batch[BIN].min(), batch[BIN].max()))
        first, last = low or 0, high or 0
        return cls(groups, group, first, last - first + 1)

    @property
    def number(self) -> int:
        """How many cells there are."""
        return max(self.groups.height, 1) * self.bins * _CLASSES

    def pool(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Return a row for each cell that has rows."""
        score, weight = batch[SCORE].to_numpy(), batch[WEIGHT].to_numpy()
        # In place, since new arrays of this size take longer than the arithmetic.
        cell = self.group * self.bins
        cell += _to_array(batch[BIN], self.first)
        cell -= self.first
        cell *= _CLASSES
        cell += weight > 0
        cell[np.isnan(weight)] += _NO_CLASS
        lowest = np.full(self.number, np.inf, score.dtype)
        highest = np.full(self.number, -np.inf, score.dtype)
        np.minimum.at(lowest, cell, score)
        np.maximum.at(highest, cell, score)
        filled = np.flatnonzero(np.bincount(cell, minlength=self.number))
        sums = {
            name: np.bincount(cell, values, self.number)[filled]
            for name, values in _find_sums(batch).items()
        }
        pooled = pl.DataFrame(
            {
                BIN: self.first + filled // _CLASSES % self.bins,
                POSITIVE: filled % _CLASSES == 1,
                SCORE: lowest[filled],
                SCORE_HIGH: highest[filled],
                **sums,
            }
        )
        # Rows of no class have no score and no weight.
        has_class = pl.lit(pl.Series(filled % _CLASSES != _NO_CLASS))
        known = pl.when(has_class).then(pl.col(BIN, POSITIVE, SCORE, SCORE_HIGH, WEIGHT))
        pooled = pooled.with_columns(known)
        if not self.groups.width:
            return pooled
        return self.groups[filled // (self.bins * _CLASSES)].hstack(pooled)


def _find_sums(batch: pl.DataFrame) -> dict[str, NDArray[Any] | None]:
    """Return what each row adds to sums; None counts it."""
    if ROW_COUNT in batch.columns:
        return {name: _to_array(batch[name], 0) for name in _SUMS}
    weight = _to_array(batch[WEIGHT], 0)
    squares = weight * weight
    cubes = np.abs(weight)
    cubes *= squares
    return {WEIGHT: weight, ROW_SQUARES: squares, ROW_CUBES: cubes, ROW_COUNT: None}


def _to_array(values: pl.Series, null: float) -> NDArray[Any]:
    # Without nulls they are not copied.
    return (values.fill_null(null) if values.null_count() else values).to_numpy()
