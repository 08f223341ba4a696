"""Walks along sorted rows: sums over each group, and cumulative weights around each row.

Rows are cut into blocks of some thousand rows, at the end of a tie, by the rows alone. A first
walk adds up the weights of each block; with the totals of its group and the weights before it, each
block is then walked by itself. Sums are added within blocks and then over blocks, which keeps them
exact to some 1e-15, and makes them the same for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_wroc.kernels.compiling import ONE, ZERO, U, kernel
from polars_wroc.kernels.sorting import Array, SortedRows
from polars_wroc.kernels.sums import CLASS_SUMS, CURVE_SUMS
from polars_wroc.kernels.threads import run, shares

# Rows of a block.
_BLOCK = 1 << 15
# The last block of a group may be half as large again.
_LAST_BLOCK = _BLOCK + _BLOCK // 2

SUMS = 2 * len(CLASS_SUMS) + len(CURVE_SUMS)


class Blocks(NamedTuple):
    """Blocks of rows: the first row of each, its group, and the weights of both classes.

    ``before`` are the weights of its group before the block, ``totals`` those of its whole group.
    ``begins`` is the first block of each group that has rows.
    """

    cuts: Array
    groups: Array
    begins: Array
    before: Array
    totals: Array

    def __len__(self) -> int:
        return len(self.groups)


def blocks_of(rows: SortedRows) -> Blocks:
    """Cut groups into blocks, and add up the weights before each."""
    if not len(rows.keys):
        none, weights = np.zeros(0, np.int64), np.zeros((0, 2))
        return Blocks(np.zeros(1, np.uint64), none, none, weights, weights)
    starts = rows.starts
    large = np.flatnonzero(np.diff(starts.astype(np.int64)) > _LAST_BLOCK)
    inside = [_cuts_inside(rows.keys, int(starts[g]), int(starts[g + 1])) for g in large]
    cuts = np.unique(np.concatenate([starts, *inside]).astype(np.uint64))
    groups = np.searchsorted(starts, cuts[:-1], side="right") - 1
    weights = np.zeros((len(groups), 2))
    _run(lambda a, b: _class_weights(rows.signed, cuts, a, b, weights), len(groups), cuts)
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    before = np.zeros_like(weights)
    # Each group starts from 0: a difference of sums over all groups would lose digits.
    ends = np.append(begins[1:], len(groups))
    for a, b in zip(begins, ends, strict=True):
        if b > a + 1:
            before[a + 1 : b] = weights[a : b - 1].cumsum(0)
    sizes = np.diff(np.append(begins, len(groups)))
    totals = np.repeat(np.add.reduceat(weights, begins), sizes, axis=0)
    return Blocks(cuts, groups, begins, before, totals)


def sums_of_groups(rows: SortedRows, blocks: Blocks, *, frequency: bool) -> Array:
    """Return a row of `SUMS` for each group that has rows.

    With ``frequency`` a row is as many observations as its weight says.
    """
    sums = np.empty((len(blocks), SUMS))
    if not len(blocks):
        return sums
    _run(
        lambda a, b: _walk(
            rows.keys, rows.signed, blocks.cuts, blocks.before, blocks.totals, frequency, a, b, sums
        ),
        len(blocks),
        blocks.cuts,
    )
    table = np.add.reduceat(sums, blocks.begins)
    table[:, -1] = np.maximum.reduceat(sums[:, -1], blocks.begins)
    return table


def weights_around(rows: SortedRows, blocks: Blocks) -> tuple[Array, Array, Array, Array]:
    """Cumulative weights of both classes, before and after all rows that tie with a row.

    They are those before and after for positives, then for negatives; they never fall along a
    group.
    """
    around = tuple(np.empty(len(rows.keys)) for _ in range(4))
    _run(
        lambda a, b: _place(rows.keys, rows.signed, blocks.cuts, blocks.before, a, b, *around),
        len(blocks),
        blocks.cuts,
    )
    return around  # type: ignore[return-value]


def _run(task: Any, blocks: int, cuts: Array) -> None:
    run(task, shares(blocks, int(cuts[-1])))


def _cuts_inside(keys: Array, start: int, stop: int) -> list[int]:
    """Cut a group after so many rows, at the end of a tie."""
    cuts = []
    at = start + _BLOCK
    while at + _BLOCK // 2 < stop:
        at += int(np.searchsorted(keys[at:stop], keys[at - 1], side="right"))
        if at >= stop:
            break
        cuts.append(at)
        at += _BLOCK
    return cuts


@kernel
def _class_weights(signed: Array, cuts: Array, a: int, b: int, weights: Array) -> None:
    """Add up the weights of both classes in each block."""
    for t in range(U(a), U(b)):
        pos, neg = 0.0, 0.0
        for i in range(cuts[t], cuts[t + ONE]):
            x = float(signed[i])
            pos += max(x, 0.0)
            neg += max(-x, 0.0)
        weights[t, ZERO], weights[t, ONE] = pos, neg


@kernel
def _walk(
    keys: Array,
    signed: Array,
    cuts: Array,
    before: Array,
    totals: Array,
    frequency: bool,  # noqa: FBT001  (kernels have no keywords)
    a: int,
    b: int,
    sums: Array,
) -> None:
    """Add up the rows of each block, in the order of `CLASS_SUMS` and `CURVE_SUMS`.

    The placement of a positive is the share of the negatives above it, and of a negative that of
    the positives below it; tied rows count half.
    """
    for t in range(U(a), U(b)):
        tp, fp = before[t, ZERO], before[t, ONE]
        positives, negatives = totals[t, ZERO], totals[t, ONE]
        p_rows = p_weight = p_squares = p_cubes = p_placed = p_first = p_second = 0.0
        n_rows = n_weight = n_squares = n_cubes = n_placed = n_first = n_second = 0.0
        ranked = precision = distance = 0.0
        i, end = cuts[t], cuts[t + ONE]
        while i < end:
            key = keys[i]
            dp = dp_units = 0.0
            dn = dn_units = 0.0
            while True:
                w = float(signed[i])
                if w > 0.0:
                    unit = 1.0 if frequency else w
                    p_rows += 1.0
                    dp += w
                    dp_units += w * unit
                    p_cubes += w * unit * unit
                else:
                    w = -w
                    unit = 1.0 if frequency else w
                    n_rows += 1.0
                    dn += w
                    dn_units += w * unit
                    n_cubes += w * unit * unit
                i += ONE
                if i == end or keys[i] != key:
                    break
            if dp > 0.0:
                placement = (fp + dn / 2.0) / negatives
                p_weight += dp
                p_squares += dp_units
                p_placed += dp * placement
                p_first += dp_units * placement
                p_second += dp_units * placement * placement
                precision += dp * ((tp + dp) / (tp + dp + fp + dn))
            if dn > 0.0:
                above = tp + dp / 2.0
                placement = (positives - above) / positives
                n_weight += dn
                n_squares += dn_units
                n_placed += dn * placement
                n_first += dn_units * placement
                n_second += dn_units * placement * placement
                ranked += dn * (above / positives)
            tp += dp
            fp += dn
            distance = max(distance, abs(tp / positives - fp / negatives))
        of_pos = (p_rows, p_weight, p_squares, p_cubes, p_placed, p_first, p_second)
        of_neg = (n_rows, n_weight, n_squares, n_cubes, n_placed, n_first, n_second)
        row = (*of_pos, *of_neg, ranked, precision, distance)
        for j in range(U(len(row))):
            sums[t, j] = row[j]


@kernel
def _place(
    keys: Array,
    signed: Array,
    cuts: Array,
    before: Array,
    a: int,
    b: int,
    tp_before: Array,
    tp_after: Array,
    fp_before: Array,
    fp_after: Array,
) -> None:
    """Write the cumulative weights before and after the ties of each row.

    Weights are added up within the block, as for the weights of blocks, and then to those before
    it: a block ends with the very sum with which the next one begins.
    """
    for t in range(U(a), U(b)):
        tp_start, fp_start = before[t, ZERO], before[t, ONE]
        tp, fp = 0.0, 0.0
        i, end = cuts[t], cuts[t + ONE]
        while i < end:
            key, first = keys[i], i
            tp0, fp0 = tp_start + tp, fp_start + fp
            while True:
                w = float(signed[i])
                tp += max(w, 0.0)
                fp += max(-w, 0.0)
                i += ONE
                if i == end or keys[i] != key:
                    break
            tp1, fp1 = tp_start + tp, fp_start + fp
            for j in range(first, i):
                tp_before[j], tp_after[j] = tp0, tp1
                fp_before[j], fp_after[j] = fp0, fp1
