"""Blocks of sorted rows, the weights in and before them, and the points of their curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from polars_wroc.kernels import DEGREES, MOMENTS, UNRANKED_SUMS
from polars_wroc.kernels.compiling import ONE, TWO, ZERO, U, kernel, run, shares
from polars_wroc.kernels.sorting import Array, KeyBits, SortedRows

# Rows of a block, and for each group: so many that sums take less memory than rows.
_BLOCK, _ROWS_PER_GROUP = 1 << 15, 32
_WIDTH = len(UNRANKED_SUMS)
# Sums of bins of logits that are in memory at once.
_MOMENTS_AT_ONCE = 1 << 22


class Blocks(NamedTuple):
    """Blocks of rows: the first row of each, and its partition.

    ``begins`` is the first block of each partition that has rows.
    """

    cuts: Array
    partitions: Array
    begins: Array

    def __len__(self) -> int:
        return len(self.partitions)

    def run(self, task: Callable[[int, int], object]) -> None:
        """Call a kernel with shares of the blocks: the first of each, and the end."""
        if len(self):
            run(task, shares(len(self), int(self.cuts[-1])))

    def before(self, values: Array) -> Array:
        """Add up the values of the earlier blocks of the partition."""
        sums = np.zeros_like(values)
        # Each partition starts from 0: a difference of sums over all would lose digits.
        ends = np.append(self.begins[1:], len(self))[: len(self.begins)]
        for several in np.flatnonzero(ends - self.begins > 1):
            a, b = self.begins[several], ends[several]
            sums[a + 1 : b] = values[a : b - 1].cumsum(0)
        return sums

    def totals(self, values: Array) -> Array:
        """Add up the values of all blocks of the partition, for each of them."""
        if not len(self):
            return values
        sizes = np.diff(np.append(self.begins, len(self)))
        return np.repeat(np.add.reduceat(values, self.begins), sizes, axis=0)


class RowGroups(NamedTuple):
    """For kernels: the codes of rows, the group of each code, and the number of groups."""

    codes: Array
    of_code: Array
    size: np.uint64


class Groups(NamedTuple):
    """The groups of each partition: how many, and the group of each code.

    A row whose group is ``size`` is left out. Without codes there is one group.
    """

    size: int = 1
    of_code: Array = np.zeros(0, np.uint32)

    def of_rows(self, rows: SortedRows) -> RowGroups:
        """Say which group each row is in."""
        codes = rows.carried
        if codes is None or not len(self.of_code):
            codes = np.zeros(0, np.uint16 if codes is None else codes.dtype)
        return RowGroups(codes, self.of_code, U(self.size))


ONE_GROUP = Groups()


class ClassWeights(NamedTuple):
    """Weights of both classes of each group: before each block, in it, and in its partition."""

    before: Array
    inside: Array
    totals: Array


def cut_blocks(rows: SortedRows, groups: int = 1, cuts: Sequence[int] = ()) -> Blocks:
    """Cut partitions of so many groups into blocks, at ``cuts`` too."""
    if not len(rows.keys):
        none = np.zeros(0, np.int64)
        return Blocks(np.zeros(1, np.uint64), none, none)
    size = max(_BLOCK, _ROWS_PER_GROUP * groups)
    starts = rows.starts
    # The last block may be half as large again.
    large = np.flatnonzero(np.diff(starts.astype(np.int64)) > size + size // 2)
    inside = [_cuts_inside(rows.keys, int(starts[p]), int(starts[p + 1]), size) for p in large]
    found = np.unique(np.concatenate([starts, cuts, *inside]).astype(np.uint64))
    partitions = np.searchsorted(starts, found[:-1], side="right") - 1
    return Blocks(found, partitions, np.flatnonzero(np.diff(partitions, prepend=-1)))


def class_weights(rows: SortedRows, blocks: Blocks, groups: Groups = ONE_GROUP) -> ClassWeights:
    """Add up the weights of each group."""
    weights = np.zeros((len(blocks), groups.size, 2))
    flat, of_rows = weights.reshape(-1), groups.of_rows(rows)
    blocks.run(lambda a, b: _add_weights(rows.signed, of_rows, blocks.cuts, a, b, flat))
    return around_blocks(blocks, weights)


def around_blocks(blocks: Blocks, weights: Array) -> ClassWeights:
    """Derive from the weights in each block those before it and those of its partition."""
    return ClassWeights(blocks.before(weights), weights, blocks.totals(weights))


def unranked_sums(
    rows: SortedRows, blocks: Blocks, groups: Groups, key_bits: KeyBits, values: Array | None
) -> Array:
    """Add up the `UNRANKED_SUMS` of each block and group.

    The scores are those of the keys, or the ``values`` with the numbers that these stand for.
    """
    sums = np.zeros((len(blocks), groups.size, _WIDTH))
    flat, of_rows = sums.reshape(-1), groups.of_rows(rows)
    scores = np.zeros(0) if values is None else values
    arrays = (rows.keys, key_bits, scores, rows.signed, of_rows, blocks.cuts)
    blocks.run(lambda a, b: _add_classes(*arrays, a, b, flat))
    return sums


def _cuts_inside(keys: Array, start: int, stop: int, size: int) -> list[int]:
    """Cut a partition after so many rows, at the end of a tie."""
    cuts = []
    at = start + size
    while at + size // 2 < stop:
        at += int(np.searchsorted(keys[at:stop], keys[at - 1], side="right"))
        if at >= stop:
            break
        cuts.append(at)
        at += size
    return cuts


@kernel
def _add_weights(
    signed: Array, of_rows: RowGroups, cuts: Array, a: int, b: int, weights: Array
) -> None:
    """Add up the weights of both classes in each block."""
    codes, group_of, groups = of_rows
    for t in range(U(a), U(b)):
        if len(group_of) == 0:
            pos, neg = 0.0, 0.0
            for i in range(cuts[t], cuts[t + ONE]):
                x = float(signed[i])
                pos += max(x, 0.0)
                neg += max(-x, 0.0)
            weights[t * TWO], weights[t * TWO + ONE] = pos, neg
            continue
        for i in range(cuts[t], cuts[t + ONE]):
            g = U(group_of[codes[i]])
            if g < groups:
                x = float(signed[i])
                weights[(t * groups + g) * TWO + (ZERO if x > 0.0 else ONE)] += abs(x)


@kernel
def _add_classes(
    keys: Array,
    key_bits: KeyBits,
    scores: Array,
    signed: Array,
    of_rows: RowGroups,
    cuts: Array,
    a: int,
    b: int,
    sums: Array,
) -> None:
    """Add up `UNRANKED_SUMS` in each block."""
    codes, group_of, groups = of_rows
    is_float, is_unsigned = key_bits.of_signed == ZERO, key_bits.of_signed == ~ZERO
    # The same 64 bits.
    held = np.empty(1, np.uint64)
    as_float, as_integer = held.view(np.float64), held.view(np.int64)
    for t in range(U(a), U(b)):
        for i in range(cuts[t], cuts[t + ONE]):
            g = ZERO if len(group_of) == 0 else U(group_of[codes[i]])
            if g < groups:
                flip = key_bits.of_signed
                if (keys[i] ^ flip) >> U(63) == ZERO:
                    flip = key_bits.of_others
                bits = keys[i] ^ flip
                held[ZERO] = bits
                if len(scores) > 0:
                    score = scores[bits]
                elif is_float:
                    score = as_float[ZERO]
                elif is_unsigned:
                    score = float(bits)
                else:
                    score = float(as_integer[ZERO])
                at = (t * groups + g) * U(_WIDTH)
                x = float(signed[i])
                sums[at + U(10)] += abs(x) * score * score
                sums[at + U(11)] += x * x * score * score
                from_0_to_1 = 0.0 <= score <= 1.0
                sums[at + U(12)] += 0.0 if from_0_to_1 else 1.0
                sums[at + U(13)] += 1.0 if from_0_to_1 and not 0.0 < score < 1.0 else 0.0
                at += ZERO if x > 0.0 else ONE
                sums[at] += abs(x)
                sums[at + TWO] += x * x
                sums[at + U(4)] += 1.0
                sums[at + U(6)] += abs(x) * score
                sums[at + U(8)] += x * x * score


def cut_logits(scores: Array, start: int, stop: int, width: float) -> Array:
    """Cut a partition of descending probabilities into bins of their logits, of this width.

    Return the number of each bin that has rows, its first row and that after its last. The number
    is NaN for infinite logits.
    """
    rising = scores[start:stop][::-1]
    # All finite logits of floats.
    logit_bins = np.arange(np.floor(-745.0 / width), np.ceil(37.0 / width))
    with np.errstate(over="ignore"):
        edges = 1.0 / (1.0 + np.exp(-width * logit_bins))
    # No score of 0 is in a bin.
    edges = np.concatenate([edges.clip(np.nextafter(0.0, 1.0)), [1.0]])
    cuts = np.concatenate([[0], rising.searchsorted(edges), [len(rising)]])
    there = np.flatnonzero(np.diff(cuts))
    numbers = np.concatenate([[np.nan], logit_bins, [np.nan]])
    return np.stack([numbers[there], stop - cuts[there + 1], stop - cuts[there]])


def moments_of_logits(
    scores: Array, rows: SortedRows, groups: Groups, bins: Array, width: float
) -> Iterator[tuple[Array, Array, Array]]:
    """Add up the `MOMENTS` of each bin and group; return some bins at a time, groups, and sums."""
    step = max(1, _MOMENTS_AT_ONCE // (groups.size * len(MOMENTS)))
    middles, cuts = (bins[0] + 0.5) * width, bins[1:].astype(np.uint64)
    arrays = (scores, rows.signed, groups.of_rows(rows), middles, width, cuts[0], cuts[1])
    for first in range(0, len(middles), step):
        last = min(first + step, len(middles))
        table = np.zeros((last - first, groups.size, len(MOMENTS)))
        calls = [(first + a, first + b) for a, b in shares(last - first, len(scores))]
        run(partial(_add_moments, *arrays, first, table.reshape(-1)), calls)
        bin_, group = np.nonzero(table[..., 0] + table[..., DEGREES])
        yield bin_ + first, group, table[bin_, group]


@kernel
def _add_moments(
    scores: Array,
    signed: Array,
    of_rows: RowGroups,
    middles: Array,
    width: float,
    starts: Array,
    stops: Array,
    first: int,
    sums: Array,
    a: int,
    b: int,
) -> None:
    """Add up weights and squares times the Chebyshev polynomials of the place in the bin."""
    codes, group_of, groups = of_rows
    degrees = U(DEGREES)
    for t in range(U(a), U(b)):
        for i in range(starts[t], stops[t]):
            g, w = ZERO if len(group_of) == 0 else U(group_of[codes[i]]), float(signed[i])
            weights = ((t - U(first)) * groups + g) * U(len(MOMENTS))
            weights += ZERO if w > 0.0 else degrees
            squares = weights + TWO * degrees
            score, w, squared = scores[i], abs(w), w * w
            place = (np.log(score / (1.0 - score)) - middles[t]) * (2.0 / width)
            before, last = 1.0, place
            sums[weights] += w
            sums[squares] += squared
            for k in range(ONE, degrees):
                sums[weights + k] += w * last
                sums[squares + k] += squared * last
                before, last = last, 2.0 * place * last - before


# The number of hashes; and how many limits are tried first, as few shares exceed all of them.
