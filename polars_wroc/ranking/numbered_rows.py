"""Rows in memory with the numbers of their groups, for kernels to sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT, ZERO_LABEL
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.scans import walk_differences
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
from polars_wroc.plans.config import run
from polars_wroc.plans.queries import collect, join_on_keys, with_categories

_ROW = "__row"
# Of the products of codes many may have no row; at most so many, or one for each four rows.
_FEW_NUMBERS = 1 << 16
_ROWS_PER_NUMBER = 4
# Bytes of an integer of 64 bits.
_LONG = 8


class Codes(NamedTuple):
    """A code for each row, and a row of key columns for each code."""

    codes: Array
    values: pl.DataFrame


class GroupNumbers(NamedTuple):
    """The number of each row's group, None if there is one group; all are below ``size``.

    A number is made up of one code for each of the ``keys``. Some numbers may have no row.
    """

    numbers: Array | None
    size: int
    keys: list[Codes]

    def key_values(self, numbers: Array) -> list[pl.Series]:
        """Return the key columns of these groups, in the order of the keys."""
        columns: list[pl.Series] = []
        for key in reversed(self.keys):
            numbers, codes = np.divmod(numbers, key.values.height)
            columns = [*key.values[codes], *columns]
        return columns

    def of_rows(self, kept: Array) -> GroupNumbers:
        """Keep the numbers of some rows."""
        if self.numbers is None:
            return self
        return self._replace(numbers=read_only(self.numbers[kept]))

    def without_rows(self) -> GroupNumbers:
        """Forget the rows, and keep the groups."""
        keys = [key._replace(codes=key.codes[:0].copy()) for key in self.keys]
        return self._replace(numbers=None if self.numbers is None else keys[0].codes, keys=keys)


def number_groups(table: pl.DataFrame, keys: Sequence[str]) -> GroupNumbers:
    """Number the groups of these keys; null is a value like any other, and all NaN are one."""
    if not keys:
        return GroupNumbers(None, 1, [])
    most = max(_FEW_NUMBERS, table.height // _ROWS_PER_NUMBER)
    coded = [
        _codes_in_range(table[key], most) or _codes_of_groups(table.select(key)) for key in keys
    ]
    count = prod(key.values.height for key in coded)
    if count > most:
        coded = [_codes_of_groups(table.select(keys))]
        count = coded[0].values.height
    # Holds the factors, too, of which one may be the count.
    smallest = np.min_scalar_type(count)
    numbers = coded[0].codes.astype(smallest)
    for key in coded[1:]:
        numbers *= smallest.type(key.values.height)
        numbers += key.codes.astype(smallest, copy=False)
    return GroupNumbers(read_only(numbers), count, coded)


def _codes_in_range(column: pl.Series, most: int) -> Codes | None:
    """Use the values of a column as codes; None unless they are at most so many integers."""
    dtype = column.dtype
    if dtype == pl.Boolean:
        column = column.cast(pl.UInt8)
    category = isinstance(column.dtype, pl.Categorical | pl.Enum)
    integer = column.dtype.is_integer() and column.dtype not in (pl.Int128, pl.UInt128)
    if not (integer or column.dtype.is_temporal() or category):
        return None
    physical = column.to_physical()
    low, high = physical.min(), physical.max()
    if not isinstance(low, int) or not isinstance(high, int):
        low, high = 0, -1
    count = high - low + 1
    if count > most:
        return None
    steps = np.arange(count, dtype=np.uint64 if low > 0 else np.int64)
    values = pl.Series(steps + low, dtype=physical.dtype)
    values = values.cat.to(column.dtype) if category else values.cast(column.dtype)
    values = values.cast(dtype)
    codes = physical.fill_null(low).to_numpy()
    if low:
        # In 64 bits no difference overflows, as there are few.
        codes = codes - low if codes.itemsize == _LONG else np.subtract(codes, low, dtype=np.int64)
    codes = codes.astype(np.min_scalar_type(count))
    if physical.null_count():
        codes[physical.is_null().to_numpy()] = count
        values = values.append(pl.Series([None], dtype=dtype))
    return Codes(codes, pl.DataFrame({column.name: values}))


def _codes_of_groups(keys: pl.DataFrame) -> Codes:
    """Number the groups that there are."""
    rows = keys.lazy().with_row_index(_ROW).group_by(keys.columns).agg(_ROW).collect()
    sizes = rows[_ROW].list.len().to_numpy()
    codes = np.empty(keys.height, np.uint32)
    codes[rows[_ROW].explode().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return Codes(codes, rows.drop(_ROW))


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
        self, score: str = SCORE, carried: Array | None = None
    ) -> tuple[SortedRows, ScoreKeys]:
        """Sort the rows of each partition; each row carries its element of ``carried``."""
        scores, keys = in_64_bits(self.table[score])
        chunks = row_chunks(scores, self.table[WEIGHT], self.partitions.numbers, carried)
        return sort_rows(chunks, keys.key_bits, self.partitions.size), keys

    def row_numbers(self) -> Array:
        """Number the rows, for rows to carry."""
        rows = self.table.height
        # No other types, for which kernels would have to be compiled too.
        return read_only(np.arange(rows, dtype=np.uint32 if rows < _MOST_ROWS else np.uint64))


def partitions_there(partitions: GroupNumbers, sorted_rows: SortedRows, missing: Array) -> Array:
    """Return the numbers of the partitions that have rows, in ascending order."""
    there: Array = (sorted_rows.sizes > 0) | (missing.sum(1) > 0)
    if partitions.numbers is None:
        there[:] = True
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


_GROUP, _PLACE = "__group", "__place"


class BatchGroups:
    """The groups of all batches so far, numbered by their places in the table of their keys."""

    def __init__(self, keys: pl.Schema) -> None:
        self._keys = list(keys)
        self._known = pl.DataFrame(schema=keys)
        # Keys and groups of the previous batch: the next often has the same.
        self._last, self._last_groups = pl.DataFrame(), np.zeros(1, np.int64)

    def __len__(self) -> int:
        return self._known.height if self._keys else 1

    def of_rows(self, batch: pl.DataFrame) -> Array | None:
        """Return the group of each row in few bytes, None without keys."""
        own = number_groups(batch, self._keys)
        if own.numbers is None:
            return None
        there = np.flatnonzero(np.bincount(own.numbers, minlength=own.size))
        groups = np.zeros(own.size, np.int64)
        groups[there] = self._groups(pl.DataFrame(own.key_values(there)))
        return read_only(self._in_few_bytes(groups)[own.numbers])

    def in_one_type(self, groups: Array | None) -> Array | None:
        """Give the groups of an earlier batch the type of those of the last."""
        return None if groups is None else read_only(self._in_few_bytes(groups))

    def without_rows(self) -> GroupNumbers:
        """Return the groups, which batches have numbered."""
        if not self._keys:
            return GroupNumbers(None, 1, [])
        no_rows = np.zeros(0, np.uint8)
        return GroupNumbers(no_rows, len(self), [Codes(no_rows, self._known)])

    def _in_few_bytes(self, groups: Array) -> Array:
        return groups.astype(np.min_scalar_type(len(self)), copy=False)

    def _groups(self, values: pl.DataFrame) -> Array:
        """Return the groups with these keys, and number those that are new."""
        if values.equals(self._last):
            return self._last_groups
        groups = np.full(values.height, -1)
        known, found = self._known.with_row_index(_GROUP), values.with_row_index(_PLACE)
        both = join_on_keys(
            known.lazy(), found.lazy(), self._keys, how="inner", maintain_order="none"
        )
        places = collect(both.select(_GROUP, _PLACE))
        groups[places[_PLACE].to_numpy()] = places[_GROUP].to_numpy()
        new = np.flatnonzero(groups < 0)
        groups[new] = np.arange(self._known.height, self._known.height + len(new))
        self._known = pl.concat([self._known, values[new]])
        self._last, self._last_groups = values, groups
        return groups


@dataclass(frozen=True)
class ScoreKeys:
    """What the keys of scores are made from, and the type of the scores.

    ``values`` are all different scores, in ascending order, if the 64 bits are their numbers.
    """

    key_bits: KeyBits
    dtype: pl.DataType
    values: pl.Series | None = None

    def scores(self, keys: Array, without: Array | None = None) -> pl.Series:
        """Return the scores of keys; null at the places ``without`` one."""
        types = {FLOAT_BITS: np.float64, SIGNED_BITS: np.int64, UNSIGNED_BITS: np.uint64}
        found = score_bits(keys, self.key_bits).view(types[self.key_bits])
        scores = pl.Series(SCORE, found)
        if without is not None:
            scores = scores.scatter(without, None)
        if self.values is None:
            return scores.cast(self.dtype)
        return self.values.gather(scores).alias(SCORE)


def fits_in_64_bits(dtype: pl.DataType) -> bool:
    """Whether each score fits by itself; others have to be numbered all together."""
    return not (dtype in (pl.Int128, pl.UInt128) or dtype.is_decimal())


def in_64_bits(score: pl.Series) -> tuple[pl.Series, ScoreKeys]:
    """Return scores of 64 bits, of which no two different ones are equal, and their keys."""
    dtype = score.dtype
    if dtype.is_float():
        return score.cast(pl.Float64), ScoreKeys(FLOAT_BITS, dtype)
    if not fits_in_64_bits(dtype):
        number = score.rank("dense").cast(pl.UInt64) - 1
        return number, ScoreKeys(UNSIGNED_BITS, dtype, score.unique().sort())
    if dtype.is_unsigned_integer():
        return score.cast(pl.UInt64), ScoreKeys(UNSIGNED_BITS, dtype)
    return score.cast(pl.Int64), ScoreKeys(SIGNED_BITS, dtype)


def compiled_ranges(rows: Rows, names: Sequence[str], tolerance: float) -> pl.LazyFrame:
    """Add up scores less labels along the rows of each group, and pick the largest change.

    Scores that are no probabilities raise. The columns are the numbers of rows and of missing rows,
    and the sums of `walk_differences`, under these ``names``.
    """
    given = rows.frame.collect_schema()
    schema = pl.Schema({key: given[key] for key in rows.keys})
    schema |= dict.fromkeys(names[:2], pl.Int64())
    schema |= dict.fromkeys(names[2:], pl.Float64())

    def table() -> pl.DataFrame:
        numbered = number_rows(rows, rows.keys)
        placed, score_keys = numbered.sorted_by()
        there = partitions_there(numbered.partitions, placed, numbered.missing)
        scores = score_keys.scores(placed.keys).cast(pl.Float64).to_numpy()
        some = placed.sizes > 0
        first, last = placed.starts[:-1][some], placed.starts[1:][some] - np.uint64(1)
        if (scores[first] > 1).any() or (scores[last] < 0).any():
            # Raises its message.
            collect(rows.as_probabilities().frame)
        sums = walk_differences(placed, scores, tolerance)[there]
        columns = [
            *numbered.partitions.key_values(there),
            *(pl.Series(each) for each in (placed.sizes[there], numbered.missing.sum(1)[there])),
            *(pl.Series(column, nan_to_null=True) for column in sums.T),
        ]
        renamed = zip(schema.names(), columns, strict=True)
        return pl.DataFrame([column.alias(name) for name, column in renamed]).cast(schema)

    assert rows.compiled is not None
    return run(rows.compiled, table, schema)
