"""Pool rows by group, cell of scores and class while they come in batches.

A cell is a range of scores whose floats begin with the same bits, or of ``1 - score`` where a
mirror says so. A pool is a record of 64 bytes, a line of the cache. Pools of neighbouring cells are
on one page, and a hash table knows the pages that are in use, so that memory grows with these.
Where most of a page is empty, as in many small groups, each pool becomes a page of its own.

One thread adds the rows, one after another: the sums are the same each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_wroc.kernels.compiling import ONE, TWO, ZERO, U, inlined, kernel
from polars_wroc.kernels.sorting import Array, Carried

# The words of a record: its number of rows, the sums of their weights, of squares and of cubes,
# their lowest and their highest score.
_SUMS, _LOW, _HIGH = U(1), U(4), U(5)
_WORD_BITS, _WORDS, _BYTES = U(3), 8, 64
_POWERS = U(3)
# Rows that are added up before their sum is added to the others, which keeps sums exact.
_BLOCK = U(1 << 12)
# Rows whose addresses are computed together.
_TOGETHER = 1 << 9
# A page has 64 cells with both classes. With more records than that, mostly empty, pools are
# repacked.
_PAGE_BITS, _MOST_RECORDS = 7, 1 << 21
_FIRST_PAGES = 1 << 8
# An entry of the hash table: the address of a page, and its group with its number.
_OF_GROUP, _OF_PAGE = U(32), U((1 << 32) - 1)
# A multiplier that spreads addresses over the table, and how far groups are put aside.
_SPREAD, _ASIDE, _ALL_BITS = U(0x9E3779B97F4A7C15), U(40), 64
# Where a cell says on which side of the mirror its scores are.
_SIDE = U(61)
_BELOW, _MIRRORED, _ABOVE = ONE << _SIDE, TWO << _SIDE, (ONE | TWO) << _SIDE
# Marks of groups that have negatives of either kind.
OTHERS, ZEROS = 1, 2


class Cells(NamedTuple):
    """How scores are cut into cells: those that begin with the same bits, but for the last few.

    From ``mirror_low`` to ``mirror_high`` these are the bits of ``1 - score``. A cell begins at
    each of the ``cuts``, too.
    """

    last_bits: np.uint64
    mirror_low: float
    mirror_high: float
    cuts: Array


class Batch(NamedTuple):
    """Rows: scores, and weights that are negative in negatives and 0 in missing rows.

    ``zeros`` tells negatives of two kinds apart. A row belongs to the group in ``groups`` at its
    number; without numbers all rows belong to the first.
    """

    scores: Array
    signed: Array
    zeros: Array | None
    numbers: Array | None
    groups: Array


class Pools(NamedTuple):
    """Pools in any order: their groups, whether they are negatives, numbers of rows and sums."""

    groups: Array
    negative: Array
    rows: Array
    # Of the weights, of their squares and of their cubes, without signs: a row for each.
    sums: Array
    low: Array
    high: Array


class PoolTable:
    """Sums of pools, which grow with each batch of rows."""

    def __init__(self, cells: Cells, score_type: np.dtype[Any]) -> None:
        self._cells, self._score_type = cells, score_type
        self._pages: int
        # For each group, its rows without a weight, and the marks of its negatives.
        self.missing: Array = np.zeros(1, np.int64)
        self.marks: Array = np.zeros(1, np.uint8)
        self._make(_PAGE_BITS, _FIRST_PAGES)

    def add(self, batch: Batch, groups: int) -> None:
        """Add rows of so many groups, those of earlier batches included."""
        if groups > len(self.missing):
            self.missing = np.append(self.missing, np.zeros(groups, np.int64))
            self.marks = np.append(self.marks, np.zeros(groups, np.uint8))
        start = 0
        while True:
            start, self._pages = _fill(
                *batch,
                *self._cells,
                *self._pages_in_use(),
                U(self._pages),
                U(self._room),
                *self._records(),
                self.missing,
                self.marks,
                start,
            )
            if start == len(batch.scores):
                return
            self._make_room()

    def pools(self) -> Pools:
        """Return the pools that have rows."""
        words, reals, ends, totals = self._records()
        at = np.flatnonzero(words[::_WORDS])
        # Rows without a weight are on the first page.
        at = at[at >> self._page_bits > 0]
        first = at * _WORDS
        entries = self._directory.reshape(-1, 2)
        entries = entries[entries[:, 1] > 0]
        # In the order of the numbers of the pages.
        entries = entries[np.argsort(entries[:, 1] & _OF_PAGE)]
        page = (at >> self._page_bits) - 1
        # The class is the last bit of an address, which is on the page or that of the page.
        negative = at & 1 if self._page_bits else entries[page, 0] & ONE
        sums = [
            reals[first + int(_SUMS) + power] + totals[at * int(_POWERS) + power]
            for power in range(int(_POWERS))
        ]
        return Pools(
            (entries[page, 1] >> _OF_GROUP) // U(len(self._cells.cuts) + 1),
            negative.astype(bool),
            words[first],
            np.array(sums),
            ends[first + int(_LOW)],
            ends[first + int(_HIGH)],
        )

    def _make(self, page_bits: int, room: int) -> None:
        """Make room for so many pages; memory that is not written yet is not taken."""
        self._page_bits, self._room = page_bits, room
        # The first is for rows without a weight.
        self._pages = 1
        # At most half full, or less where it is small.
        self._entry_bits = (room - 1).bit_length() + (3 if page_bits else 1)
        self._directory = np.zeros(2 << self._entry_bits, np.uint64)
        size = _BYTES * room << page_bits
        memory = np.zeros(size + _BYTES, np.uint8)
        # Each record in one line of the cache.
        begin = -memory.ctypes.data % _BYTES
        self._words = memory[begin : begin + size].view(np.uint64)
        self._totals = np.zeros(int(_POWERS) * room << page_bits)

    def _pages_in_use(self) -> tuple[Array, np.uint64, np.uint64]:
        return self._directory, U(_ALL_BITS - self._entry_bits), U(self._page_bits)

    def _records(self) -> tuple[Array, Array, Array, Array]:
        words = self._words
        return words, words.view(np.float64), words.view(self._score_type), self._totals

    def _make_room(self) -> None:
        """Make room for as many pages again, or repack pools if that takes too much memory."""
        old = (self._directory, U(self._page_bits), self._words, self._totals)
        page_bits, room = self._page_bits, 2 * self._room
        pools = int(np.count_nonzero(self._words[::_WORDS]))
        if page_bits and room << page_bits > _MOST_RECORDS and 8 * pools < room << page_bits:
            page_bits, room = 0, 2 << pools.bit_length()
        self._make(page_bits, room)
        self._pages = _move(*old, *self._pages_in_use(), self._words, self._totals)


@inlined
def _entry(directory: Array, shift: np.uint64, address: np.uint64, group: np.uint64) -> np.uint64:
    """Find the entry of a page, or the place for it."""
    last = (U(len(directory)) >> ONE) - ONE
    at = ((address ^ (group << _ASIDE)) * _SPREAD) >> shift
    while directory[at << ONE | ONE] > ZERO and (
        directory[at << ONE] != address or directory[at << ONE | ONE] >> _OF_GROUP != group
    ):
        at = (at + ONE) & last
    return at << ONE


@inlined
def _cell(score: float, last_bits: np.uint64, low: float, high: float) -> np.uint64:
    below, above = score < 0.0, score > high
    mirrored = score >= low and not above
    value = 1.0 - score if mirrored else abs(score)
    side = _BELOW if below else (_ABOVE if above else (_MIRRORED if mirrored else ZERO))
    return (np.float64(value).view(np.uint64) >> last_bits) | side


@kernel
def _fill(
    scores: Array,
    signed: Array,
    zeros: Carried,
    numbers: Carried,
    groups: Array,
    last_bits: np.uint64,
    mirror_low: float,
    mirror_high: float,
    cuts: Array,
    directory: Array,
    shift: np.uint64,
    page_bits: np.uint64,
    pages: np.uint64,
    room: np.uint64,
    words: Array,
    reals: Array,
    ends: Array,
    totals: Array,
    missing: Array,
    marks: Array,
    start: int,
) -> tuple[int, int]:
    """Add rows while there is room; return the first row left, and the number of pages."""
    some_cuts, in_page = U(len(cuts)), (ONE << page_bits) - ONE
    addresses, pools = np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64)
    first, end = U(start), U(len(scores))
    while first < end:
        count = min(U(_TOGETHER), end - first)
        # A loop by itself, in which several rows are computed at a time.
        for j in range(count):
            cell = _cell(float(scores[first + j]), last_bits, mirror_low, mirror_high)
            addresses[j] = (cell << ONE) | U(float(signed[first + j]) < 0.0)
        for j in range(count):
            i = first + j
            group = ZERO if numbers is None else U(groups[numbers[i]])
            w = float(signed[i])
            if w == 0.0:
                missing[group] += 1
                pools[j] = ZERO
                continue
            if zeros is not None and w < 0.0:
                marks[group] |= ZEROS if zeros[i] else OTHERS
            if some_cuts > ZERO:
                group *= some_cuts + ONE
                for c in range(some_cuts):
                    group += U(float(scores[i]) >= cuts[c])
            address = addresses[j] >> page_bits
            entry = _entry(directory, shift, address, group)
            if directory[entry + ONE] == ZERO:
                if pages == room:
                    count, end = U(j), U(i)
                    break
                directory[entry] = address
                directory[entry + ONE] = (group << _OF_GROUP) | pages
                pages += ONE
            page = directory[entry + ONE] & _OF_PAGE
            pools[j] = (page << page_bits) | (addresses[j] & in_page)
        for j in range(count):
            pool, score = pools[j], scores[first + j]
            w = abs(float(signed[first + j]))
            record = pool << _WORD_BITS
            before = words[record]
            if before == ZERO:
                ends[record + _LOW] = ends[record + _HIGH] = score
            elif before % _BLOCK == ZERO:
                for power in range(_POWERS):
                    totals[pool * _POWERS + power] += reals[record + _SUMS + power]
                    reals[record + _SUMS + power] = 0.0
            words[record] = before + ONE
            reals[record + _SUMS] += w
            reals[record + _SUMS + ONE] += w * w
            reals[record + _SUMS + TWO] += w * w * w
            ends[record + _LOW] = min(ends[record + _LOW], score)
            ends[record + _HIGH] = max(ends[record + _HIGH], score)
        first += count
    return int(first), int(pages)


@kernel
def _move(
    directory: Array,
    page_bits: np.uint64,
    words: Array,
    totals: Array,
    new_directory: Array,
    new_shift: np.uint64,
    new_page_bits: np.uint64,
    new_words: Array,
    new_totals: Array,
) -> int:
    """Copy records to larger memory, perhaps to pages of another size; return their number."""
    pages, in_page = ONE, (ONE << new_page_bits) - ONE
    for old in range(U(len(directory)) >> ONE):
        place = directory[old << ONE | ONE]
        if place == ZERO:
            continue
        group, page = place >> _OF_GROUP, place & _OF_PAGE
        for pool in range(page << page_bits, (page + ONE) << page_bits):
            rows = words[pool << _WORD_BITS]
            if rows == ZERO:
                continue
            address = (directory[old << ONE] << page_bits) | (pool & ((ONE << page_bits) - ONE))
            entry = _entry(new_directory, new_shift, address >> new_page_bits, group)
            if new_directory[entry + ONE] == ZERO:
                new_directory[entry] = address >> new_page_bits
                new_directory[entry + ONE] = (group << _OF_GROUP) | pages
                pages += ONE
            new_page = new_directory[entry + ONE] & _OF_PAGE
            new = (new_page << new_page_bits) | (address & in_page)
            for word in range(ONE << _WORD_BITS):
                new_words[(new << _WORD_BITS) + word] = words[(pool << _WORD_BITS) + word]
            # Fewer rows have no totals, whose memory is not taken.
            if rows > _BLOCK:
                for power in range(_POWERS):
                    new_totals[new * _POWERS + power] = totals[pool * _POWERS + power]
    return int(pages)
