"""Sort rows by group and descending score, carrying their weights along.

A pass over the rows finds the range of the scores; a second counts the rows in each of some
thousand parts of this range; a third moves each row, with what it carries, to its part. A part
fits into the cache, where it is divided in the same way until few rows are left. The order is
stable, so that it does not depend on the number of threads.

Scores become unsigned keys that rise as the scores descend: for floats the bits, flipped as
`KeyBits` says; for integers the same, so that no integer goes through a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polars_wroc.kernels.compiling import (
    ONE,
    TWO,
    ZERO,
    U,
    inlined,
    kernel,
    run,
    shares,
    thread_count,
)

Array: TypeAlias = NDArray[Any]
# An array, or None, for which a kernel is compiled without what concerns it.
Carried: TypeAlias = Any

_SIGN_BIT = U(63)
_MINUS_ZERO, _ALL_BITS = U(1 << 63), U(2**64 - 1)
_BELOW_SIGN = _ALL_BITS ^ _MINUS_ZERO
# So few rows are sorted by insertion; a part is divided into at most 2**11 cells.
_FEW, _MOST_CELL_BITS = U(24), U(11)
_MOST_CELLS = 1 << 11
# More cells than one part can leave to be divided further, at all levels together.
_STACK = 1 << 15
# Rows of a part, so that it is sorted in cache, and the most parts of a group.
_ROWS_PER_PART, _MOST_PART_BITS = 4096, 12


class KeyBits(NamedTuple):
    """How the 64 bits of a score become a key.

    A score with the first bit set is flipped by ``of_signed``, any other by ``of_others``; the
    bits of -0.0 first become ``minus_zero``.
    """

    of_signed: np.uint64
    of_others: np.uint64
    minus_zero: np.uint64


FLOAT_BITS = KeyBits(ZERO, _BELOW_SIGN, ZERO)
SIGNED_BITS = KeyBits(_BELOW_SIGN, _BELOW_SIGN, _MINUS_ZERO)
UNSIGNED_BITS = KeyBits(_ALL_BITS, _ALL_BITS, _MINUS_ZERO)


class RowChunk(NamedTuple):
    """A part of the rows: 64 bits of the scores, and weights, negative in negative rows.

    ``codes`` are those of the groups, None if there is one group; ``carried`` is anything else.
    """

    bits: Array
    signed: Array
    codes: Array | None = None
    carried: Array | None = None


class SortedRows(NamedTuple):
    """Rows of each group one after another, by ascending key.

    ``starts`` are the first rows of the groups, and at last the number of rows. ``signed`` are
    the weights, negative in negative rows; ``carried`` is what each row carried, if anything.
    """

    keys: Array
    signed: Array
    carried: Array | None
    starts: Array

    @property
    def sizes(self) -> Array:
        """The number of rows of each group."""
        return np.diff(self.starts.astype(np.int64))


def sort_rows(chunks: Sequence[RowChunk], key_bits: KeyBits, groups: int = 1) -> SortedRows:
    """Sort rows by the code of their group, below ``groups``, and by descending score."""
    rows, types = sum(len(chunk.bits) for chunk in chunks), chunks[0]
    keys, signed = np.empty(rows, np.uint64), np.empty(rows, types.signed.dtype)
    carried = None if types.carried is None else np.empty(rows, types.carried.dtype)
    if not rows:
        return SortedRows(keys, signed, carried, np.zeros(groups + 1, np.uint64))
    # At least 1, so that the shift is less than 64.
    part_bits = max(1, min(_MOST_PART_BITS, (rows // _ROWS_PER_PART // groups).bit_length()))
    # Each thread counts the rows of each part, which takes no more memory than the rows.
    most = max(1, rows // (groups << part_bits))
    threads = _shares_of_threads(chunks, rows, min(thread_count(), most))
    numbers = [(t,) for t in range(len(threads))]
    ranges = run(
        lambda t: [_key_range(chunk.bits, key_bits, a, b) for chunk, a, b in threads[t]], numbers
    )
    low = min(int(own[0]) for share in ranges for own in share)
    high = max(int(own[1]) for share in ranges for own in share)
    part_of = (U(low), U(max(0, (high - low).bit_length() - part_bits)), U(part_bits))
    # Each thread has its own place in each part.
    counts = np.zeros((len(threads), groups << part_bits), np.uint64)

    def count(t: int) -> None:
        for chunk, a, b in threads[t]:
            _count(chunk.bits, key_bits, chunk.codes, a, b, *part_of, counts[t])

    def scatter(t: int) -> None:
        for chunk, a, b in threads[t]:
            _scatter(*chunk, key_bits, a, b, *part_of, places[t], keys, signed, carried)

    run(count, numbers)
    first = np.concatenate([np.zeros(1, np.uint64), counts.sum(0, dtype=np.uint64).cumsum()])
    places = first[:-1] + counts.cumsum(0) - counts
    run(scatter, numbers)
    ends = [b for _, b in shares(rows, rows)]
    at = [0, *np.searchsorted(first, ends).tolist()]
    at[-1] = len(first) - 1
    parts = [(a, b) for a, b in pairwise(at) if a < b]
    run(lambda a, b: _sort_parts(first, a, b, keys, signed, carried), parts)
    return SortedRows(keys, signed, carried, first[:: 1 << part_bits])


def score_bits(keys: Array, key_bits: KeyBits) -> Array:
    """Return the bits of the scores with these keys; those of -0.0 are lost."""
    bits = np.empty_like(keys)
    run(lambda a, b: _unkey(keys, key_bits, a, b, bits), shares(len(keys), len(keys)))
    return bits


def _shares_of_threads(
    chunks: Sequence[RowChunk], rows: int, count: int
) -> list[list[tuple[RowChunk, int, int]]]:
    """Cut the rows into a share for each thread: chunks, and the first and last row of each."""
    cuts = [rows * t // count for t in range(count + 1)]
    threads: list[list[tuple[RowChunk, int, int]]] = [[] for _ in cuts[1:]]
    start = 0
    for chunk in chunks:
        size = len(chunk.bits)
        for share, (first, last) in zip(threads, pairwise(cuts), strict=True):
            a, b = max(first - start, 0), min(last - start, size)
            if a < b:
                share.append((chunk, a, b))
        start += size
    return threads


@inlined
def _key(bits: np.uint64, key_bits: KeyBits) -> np.uint64:
    if bits == _MINUS_ZERO:
        bits = key_bits.minus_zero
    return bits ^ (key_bits.of_signed if bits >> _SIGN_BIT else key_bits.of_others)


@kernel
def _unkey(keys: Array, key_bits: KeyBits, a: int, b: int, bits: Array) -> None:
    """Turn keys back into bits: no flip that both signs do not share changes the sign."""
    for i in range(U(a), U(b)):
        flip = key_bits.of_signed if keys[i] >> _SIGN_BIT else key_bits.of_others
        bits[i] = keys[i] ^ flip


@kernel
def _key_range(bits: Array, key_bits: KeyBits, a: int, b: int) -> tuple[np.uint64, np.uint64]:
    """Return the smallest and the largest key."""
    low, high = ~ZERO, ZERO
    for i in range(U(a), U(b)):
        key = _key(bits[i], key_bits)
        low, high = min(low, key), max(high, key)
    return low, high


@kernel
def _count(
    bits: Array,
    key_bits: KeyBits,
    codes: Carried,
    a: int,
    b: int,
    low: np.uint64,
    shift: np.uint64,
    part_bits: np.uint64,
    counts: Array,
) -> None:
    """Count the rows of each part."""
    for i in range(U(a), U(b)):
        part = (_key(bits[i], key_bits) - low) >> shift
        if codes is not None:
            part += U(codes[i]) << part_bits
        counts[part] += ONE


@kernel
def _scatter(
    bits: Array,
    weights: Array,
    codes: Carried,
    carried: Carried,
    key_bits: KeyBits,
    a: int,
    b: int,
    low: np.uint64,
    shift: np.uint64,
    part_bits: np.uint64,
    places: Array,
    keys: Array,
    signed: Array,
    carried_to: Carried,
) -> None:
    """Move rows to their parts."""
    for i in range(U(a), U(b)):
        key = _key(bits[i], key_bits)
        part = (key - low) >> shift
        if codes is not None:
            part += U(codes[i]) << part_bits
        place = places[part]
        places[part] = place + ONE
        keys[place] = key
        signed[place] = weights[i]
        if carried is not None:
            carried_to[place] = carried[i]


@kernel
def _sort_parts(first: Array, a: int, b: int, keys: Array, signed: Array, carried: Carried) -> None:
    """Sort each part by cells of its own range; large cells wait on a stack to be divided."""
    longest = ZERO
    for part in range(U(a), U(b)):
        longest = max(longest, first[part + ONE] - first[part])
    keys2, signed2 = np.empty(longest, np.uint64), np.empty(longest, signed.dtype)
    carried2: Carried
    if carried is None:
        carried2 = None
    else:
        carried2 = np.empty(longest, carried.dtype)
    ends = np.empty(_MOST_CELLS + 1, np.uint64)
    stack = np.empty(_STACK, np.uint64)
    for part in range(U(a), U(b)):
        stack[ZERO], stack[ONE], top = first[part], first[part + ONE], TWO
        while top > ZERO:
            top -= TWO
            start, stop = stack[top], stack[top + ONE]
            if stop - start <= _FEW:
                for i in range(start, stop):
                    x = ZERO if carried is None else carried[i]
                    _insert(keys, signed, carried, i, start, keys[i], signed[i], x)
                continue
            low, shift, cells = _cells(keys, start, stop)
            if cells == ONE:
                continue
            for c in range(cells + ONE):
                ends[c] = ZERO
            for i in range(start, stop):
                ends[((keys[i] - low) >> shift) + ONE] += ONE
            for c in range(cells):
                ends[c + ONE] += ends[c]
            for i in range(start, stop):
                c = (keys[i] - low) >> shift
                p = ends[c]
                ends[c] = p + ONE
                keys2[p], signed2[p] = keys[i], signed[i]
                if carried is not None:
                    carried2[p] = carried[i]
            begin = ZERO
            for c in range(cells):
                end = ends[c]
                # A cell of a range that is divided no further has one key.
                if shift > ZERO and end - begin > _FEW:
                    stack[top], stack[top + ONE], top = start + begin, start + end, top + TWO
                    lowest = start + end
                else:
                    lowest = start + begin
                for i in range(begin, end):
                    x = ZERO if carried is None else carried2[i]
                    _insert(keys, signed, carried, start + i, lowest, keys2[i], signed2[i], x)
                begin = end


@inlined
def _cells(
    keys: Array, start: np.uint64, stop: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Divide the range of the keys into cells of some four rows: the first key, and their size."""
    low, high = ~ZERO, ZERO
    for i in range(start, stop):
        low, high = min(low, keys[i]), max(high, keys[i])
    bits, shift = TWO, ZERO
    while (stop - start) >> (bits + TWO) > ZERO and bits < _MOST_CELL_BITS:
        bits += ONE
    while (high - low) >> shift >= ONE << bits:
        shift += ONE
    return low, shift, ((high - low) >> shift) + ONE


@inlined
def _insert(
    keys: Array,
    signed: Array,
    carried: Carried,
    at: Any,
    lowest: Any,
    key: Any,
    weight: Any,
    x: Any,
) -> None:
    """Move larger keys up and put a row into their place; equal keys keep their order."""
    while at > lowest and keys[at - ONE] > key:
        keys[at], signed[at] = keys[at - ONE], signed[at - ONE]
        if carried is not None:
            carried[at] = carried[at - ONE]
        at -= ONE
    keys[at], signed[at] = key, weight
    if carried is not None:
        carried[at] = x
