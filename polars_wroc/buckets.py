"""Groups of rows: their numbers, and partitions into groups, score ranges or both.

A partition is a counting sort. Rows are counted in chunks, then each chunk writes its rows to their
places. `move_to_buckets` keeps the order of the rows of a bucket, so the result does not depend on
the number of threads or on their scheduling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints
from polars_wroc.threads import map_in_threads

Codes = NDArray[np.uint16]
# With more buckets, a chunk holds too few rows of each to be efficient.
MOST_BUCKETS = 1 << 12
_CHUNK_ROWS, _ROWS_OF_A_BUCKET = 1 << 18, 16
# Rows of a range, which fit into the processor's cache
_ROWS_OF_A_RANGE = 1 << 13
# Arrays of at least this many rows are sorted by radix.
_RADIX_ROWS, _MOST_CODE = 1 << 10, (1 << 16) - 1
_SAMPLED_ROWS = 1 << 14
_CELLS = 1 << 12
# Scores beyond these quantiles of a sample fall into the outermost ranges.
_QUANTILES = (0.001, 0.999)
# From here on, several whole numbers round to the same float.
EXACT_FLOATS = 2.0**53
# Groups that fit into numbers of 8 and of 16 bits.
_MOST_SMALL, _MOST_RADIX = 1 << 8, 1 << 16


@dataclass(frozen=True)
class ScoreRanges:
    """Ranges of scores with about equally many rows, numbered from the highest scores down.

    Scores from ``low`` on are cut into cells of equal width. ``scale`` is the number of cells per
    unit of score, and ``range_of_cell`` maps each cell to its range.
    """

    number: int
    low: float
    scale: float
    range_of_cell: Codes

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, score: Array, number: int) -> ScoreRanges:
        """Return at most ``number`` ranges, estimated from a sample of the scores."""
        sample = score[:: max(1, len(score) // _SAMPLED_ROWS)]
        sample = sample[np.isfinite(sample)]
        low, high = np.quantile(sample, _QUANTILES) if len(sample) else np.zeros(2)
        scale = (_CELLS - 1) / (high - low)
        if not 0 < scale < np.inf:
            return cls(1, 0.0, 0.0, np.zeros(_CELLS, np.uint16))
        cells = np.clip((sample - low) * scale, 0, _CELLS - 1).astype(np.intp)
        at_or_below = np.bincount(cells, minlength=_CELLS).cumsum() - 1
        ranges = (number - 1) - at_or_below * number // len(sample)
        return cls(
            number, float(low), float(scale), np.clip(ranges, 0, number - 1).astype(np.uint16)
        )

    @np.errstate(all="ignore")
    def find(self, score: Array) -> Codes:
        """Return the number of each score's range."""
        cell = score - self.low
        cell *= self.scale
        # An infinite score times a scale of 0 is undefined.
        np.nan_to_num(cell, copy=False)
        np.clip(cell, 0, _CELLS - 1, out=cell)
        return self.range_of_cell[cell.astype(np.intp)]


def count_codes(codes: Codes, number: int) -> Ints:
    """Return the number of rows with each code."""
    parts = _cut_chunks(len(codes), number)
    return np.asarray(_count_chunks(codes, number, parts).sum(axis=0))


class BucketRows(NamedTuple):
    """Rows of buckets, which are contiguous.

    ``starts`` are the places of the first rows of the buckets, followed by the number of rows.
    ``places`` are the original places of the rows.
    """

    starts: Ints
    places: Ints
    columns: Sequence[NDArray[Any]]


def move_to_buckets(codes: Codes, number: int, columns: Sequence[NDArray[Any]]) -> BucketRows:
    """Return the rows by bucket; ``codes`` are the buckets of the rows, in range(number)."""
    height = len(codes)
    parts = _cut_chunks(height, number)
    counts = _count_chunks(codes, number, parts)
    starts = np.append(0, counts.sum(axis=0).cumsum())
    # The place of the first row of each bucket in each chunk.
    first = starts[:-1] + counts.cumsum(axis=0) - counts
    places: Ints = np.empty(height, _find_place_type(height))
    moved = [np.empty(height, values.dtype) for values in columns]

    def move(chunk: int) -> None:
        part, sizes = parts[chunk], counts[chunk]
        order = np.argsort(codes[part], kind="stable")
        to = np.empty(len(order), np.intp)
        # The distance that the rows of each bucket move from their places in the order
        distance = first[chunk] - (sizes.cumsum() - sizes)
        to[order] = np.arange(len(order)) + np.repeat(distance, sizes)
        places[to] = np.arange(part.start, part.stop)
        for values, target in zip(columns, moved, strict=True):
            target[to] = values[part]

    map_in_threads(move, range(len(parts)))
    return BucketRows(starts, places, moved)


def sort_groups(codes: Codes, number: int, columns: Sequence[NDArray[Any]]) -> BucketRows:
    """Return the rows of each group from the highest value of the first column down.

    ``codes`` are the groups of the rows, in range(number). Equal scores may come in any order.
    """
    score, *_ = columns
    wanted = min(-(-len(score) // _ROWS_OF_A_RANGE), MOST_BUCKETS) // max(number, 1)
    ranges = ScoreRanges.of(score, max(1, wanted))
    buckets = np.empty(len(score), np.uint16)

    def find(part: slice) -> None:
        buckets[part] = codes[part] * np.uint16(ranges.number) + ranges.find(score[part])

    map_in_threads(find, _cut_chunks(len(score), number))
    moved = move_to_buckets(buckets, number * ranges.number, columns)
    _sort_buckets(moved)
    return moved._replace(starts=moved.starts[:: ranges.number])


def _sort_buckets(rows: BucketRows) -> None:
    """Sort the rows of each bucket in place, by descending values of the first column."""

    def sort(ends: tuple[int, int]) -> None:
        part = slice(*ends)
        order = _sort_down(rows.columns[0][part])
        for values in (rows.places, *rows.columns):
            values[part] = values[part][order]

    map_in_threads(sort, [*pairwise(rows.starts.tolist())])


@np.errstate(all="ignore")
def _sort_down(score: Array) -> Ints:
    """Return the places of scores from the highest down.

    Long arrays are radix-sorted on scores rounded to 16 bits, in a third of the time of
    comparisons; rows that share these bits are then sorted exactly.
    """
    if len(score) < _RADIX_ROWS:
        return np.argsort(score)[::-1]
    high = score.max()
    scale = _MOST_CODE / (high - score.min())
    if not 0 < scale < np.inf:
        return np.argsort(score)[::-1]
    code = ((high - score) * scale).astype(np.uint16)
    order = np.argsort(code, kind="stable")
    return _sort_shared(score, order, code[order])


def _sort_shared(score: Array, order: Ints, code: Codes) -> Ints:
    """Sort again the rows that share their code with another."""
    ranked = score[order]
    is_shared = code[1:] == code[:-1]
    if (ranked[1:][is_shared] <= ranked[:-1][is_shared]).all():
        return order
    is_shared = np.append(is_shared, False) | np.append(False, is_shared)
    shared = np.flatnonzero(is_shared)
    order[shared] = order[shared][np.argsort(ranked[shared])[::-1]]
    return order


def sort_into_groups(keys: pl.DataFrame, height: int) -> tuple[pl.DataFrame, Ints, Ints]:
    """Return the sorted groups of rows, where each begins, and the rows group by group."""
    if not keys.width:
        places: Ints = np.arange(height, dtype=_find_place_type(height))
        return pl.DataFrame(), np.array([0, height]), places
    found = _sort_by_radix(keys) if height else None
    if found is not None:
        return found
    names = keys.columns
    groups = keys.lazy().with_row_index("row").group_by(names).agg("row").sort(names).collect()
    lengths = groups["row"].list.len().to_numpy()
    order = groups["row"].explode(empty_as_null=False).to_numpy()
    starts = np.append(0, lengths.cumsum(dtype=np.int64))
    return groups.drop("row"), starts, order.astype(np.int64)


class CodedGroups(NamedTuple):
    """The sorted groups of rows, the number of each row's group, and the rows of each group."""

    keys: pl.DataFrame
    codes: Codes
    sizes: Ints

    @property
    def number(self) -> int:
        """The number of groups."""
        return len(self.sizes)


def _sort_by_radix(keys: pl.DataFrame) -> tuple[pl.DataFrame, Ints, Ints] | None:
    """Return the result of `sort_into_groups` for texts, whole numbers and Booleans; else None.

    Group numbers with few bits are radix-sorted, in half the time of hashes.
    """
    groups = code_groups(keys, keys.height)
    if groups is None:
        return None
    codes = groups.codes
    small = codes.astype(np.uint8) if groups.number <= _MOST_SMALL else codes
    return groups.keys, np.append(0, groups.sizes.cumsum()), np.argsort(small, kind="stable")


def code_groups(keys: pl.DataFrame, height: int) -> CodedGroups | None:
    """Return the groups of texts, whole numbers and Booleans.

    None for other types, or too many groups.
    """
    number = np.zeros(height, np.uint16)
    if not keys.width:
        return CodedGroups(keys, number, np.array([height]))
    values: list[pl.Series] = []
    for column in keys:
        coded = _code_values(column, _MOST_RADIX // math.prod(map(len, values)))
        if coded is None:
            return None
        codes, found = coded
        number = number * np.uint16(len(found)) + codes if values else codes
        values.append(found)
    shape = [*map(len, values)]
    sizes = count_codes(number, math.prod(shape))
    is_there = sizes > 0
    places = np.unravel_index(np.flatnonzero(is_there), shape)
    groups = pl.DataFrame(
        [
            each[place].alias(name)
            for name, each, place in zip(keys.columns, values, places, strict=True)
        ]
    )
    if not is_there.all():
        number = (is_there.cumsum() - 1).astype(np.uint16)[number]
    return CodedGroups(groups, number, sizes[is_there])


def _code_values(column: pl.Series, most: int) -> tuple[NDArray[np.uint16], pl.Series] | None:
    """Return the number of each row's value, and the values in order: null, then all others.

    None for more than ``most`` values, and for types other than texts, whole numbers and Booleans.
    """
    if column.dtype == pl.String:
        return _code_texts(column, most)
    if column.dtype == pl.Boolean:
        coded = _code_values(column.cast(pl.UInt8), most)
        return None if coded is None else (coded[0], coded[1].cast(pl.Boolean))
    if not column.dtype.is_integer() or column.dtype == pl.Int128 or column.null_count():
        return None
    low, high = cast("int", column.min()), cast("int", column.max())
    if high - low + 1 > most or high >= EXACT_FLOATS:
        return None
    # 64 bits, since a difference may exceed the type of the column. NumPy converts a few thousand
    # values at a time, which takes little memory.
    codes, start = np.empty(len(column), np.uint16), 0
    for chunk in column.get_chunks():
        part = codes[start : start + len(chunk)]
        np.subtract(chunk.to_numpy(), low, out=part, dtype=np.int64, casting="unsafe")
        start += len(chunk)
    return codes, pl.int_range(low, high + 1, eager=True).cast(column.dtype)


def _code_texts(column: pl.Series, most: int) -> tuple[NDArray[np.uint16], pl.Series] | None:
    # Categories that belong to the column: from 0 to the end of the table.
    dtype = pl.Categorical(pl.Categories.random())
    coded = column.to_frame().lazy().select(pl.all().cast(dtype)).collect().to_series()
    categories = coded.unique().drop_nulls()
    texts = categories.cast(pl.String)
    if len(texts) + 1 > most:
        return None
    place = np.zeros(len(texts) + 1, np.uint16)
    place[categories.to_physical().to_numpy()] = texts.rank("ordinal").to_numpy()
    codes = place[coded.to_physical().fill_null(len(texts)).to_numpy()]
    return codes, pl.concat([pl.Series([None], dtype=pl.String), texts.sort()])


def number_groups(keys: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """Return the groups of rows, sorted, and the number of each row's group."""
    groups, number = number_in_few_bits(keys)
    return groups, number.astype(np.int64, copy=False)


def number_in_few_bits(keys: pl.DataFrame) -> tuple[pl.DataFrame, Codes | Ints]:
    """Return the result of `number_groups`, with numbers of 16 bits if there are few groups.

    They take a quarter of the memory, but a product of them may overflow.
    """
    coded = code_groups(keys, keys.height) if keys.width and keys.height else None
    if coded is not None:
        return coded.keys, coded.codes
    groups, starts, order = sort_into_groups(keys, keys.height)
    number = np.empty(keys.height, np.int64)
    number[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return groups, number


def _find_place_type(height: int) -> type[np.int32 | np.int64]:
    """Return the smallest type of places for a number of rows."""
    return np.int32 if height <= np.iinfo(np.int32).max else np.int64


def _cut_chunks(height: int, number: int) -> list[slice]:
    """Return the rows of chunks that hold several rows of each of ``number`` buckets on average."""
    size = max(_CHUNK_ROWS, number * _ROWS_OF_A_BUCKET)
    return [slice(start, min(start + size, height)) for start in range(0, height, size)]


def _count_chunks(codes: Codes, number: int, parts: Sequence[slice]) -> Ints:
    counts = np.zeros((len(parts), number), np.int64)

    def count(chunk: int) -> None:
        counts[chunk] = np.bincount(codes[parts[chunk]], minlength=number)

    map_in_threads(count, range(len(parts)))
    return counts
