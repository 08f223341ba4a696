"""Blocks of sorted rows, and the weights of each group in and before them.

The rows of a *partition* follow one another by descending score. They are one group, or each row
carries a code that tells its group. Partitions are cut into blocks of some thousand rows, at the
end of a tie, by the rows alone. Sums are added within blocks and then over blocks, which keeps them
exact to some 1e-15, and makes them the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from polars_wroc.kernels.compiling import ONE, TWO, U, kernel
from polars_wroc.kernels.sorting import Array, SortedRows
from polars_wroc.kernels.threads import run, shares

# Rows of a block, and for each group: so many that sums take less memory than rows.
_BLOCK, _ROWS_PER_GROUP = 1 << 15, 32


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
        for a, b in pairwise(np.append(self.begins, len(self))):
            if b > a + 1:
                sums[a + 1 : b] = values[a : b - 1].cumsum(0)
        return sums

    def totals(self, values: Array) -> Array:
        """Add up the values of all blocks of the partition, for each of them."""
        if not len(self):
            return values
        sizes = np.diff(np.append(self.begins, len(self)))
        return np.repeat(np.add.reduceat(values, self.begins), sizes, axis=0)


class Groups(NamedTuple):
    """The groups of each partition: how many, and the group of each code.

    A row whose group is ``size`` is left out. Without codes there is one group.
    """

    size: int = 1
    of_code: Array = np.zeros(0, np.uint32)

    def codes_of(self, rows: SortedRows) -> tuple[Array, Array, np.uint64]:
        """Return the codes of rows, the group of each, and the number of groups, for kernels."""
        codes = rows.carried
        if codes is None or not len(self.of_code):
            codes = np.zeros(0, np.uint16 if codes is None else codes.dtype)
        return codes, self.of_code, U(self.size)


ONE_GROUP = Groups()


class ClassWeights(NamedTuple):
    """Weights of both classes of each group: before each block, in it, and in its partition."""

    before: Array
    inside: Array
    totals: Array


def cut_blocks(rows: SortedRows, groups: int = 1) -> Blocks:
    """Cut partitions of so many groups into blocks."""
    if not len(rows.keys):
        none = np.zeros(0, np.int64)
        return Blocks(np.zeros(1, np.uint64), none, none)
    size = max(_BLOCK, _ROWS_PER_GROUP * groups)
    starts = rows.starts
    # The last block may be half as large again.
    large = np.flatnonzero(np.diff(starts.astype(np.int64)) > size + size // 2)
    inside = [_cuts_inside(rows.keys, int(starts[p]), int(starts[p + 1]), size) for p in large]
    cuts = np.unique(np.concatenate([starts, *inside]).astype(np.uint64))
    partitions = np.searchsorted(starts, cuts[:-1], side="right") - 1
    return Blocks(cuts, partitions, np.flatnonzero(np.diff(partitions, prepend=-1)))


def class_weights(rows: SortedRows, blocks: Blocks, groups: Groups = ONE_GROUP) -> ClassWeights:
    """Add up the weights of each group."""
    weights = np.zeros((len(blocks), groups.size, 2))
    flat, codes = weights.reshape(-1), groups.codes_of(rows)
    blocks.run(lambda a, b: _class_weights(rows.signed, *codes, blocks.cuts, a, b, flat))
    return ClassWeights(blocks.before(weights), weights, blocks.totals(weights))


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
def _class_weights(
    signed: Array,
    codes: Array,
    group_of: Array,
    groups: np.uint64,
    cuts: Array,
    a: int,
    b: int,
    weights: Array,
) -> None:
    """Add up the weights of both classes in each block."""
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
                at = (t * groups + g) * TWO
                x = float(signed[i])
                if x > 0.0:
                    weights[at] += x
                else:
                    weights[at + ONE] -= x
