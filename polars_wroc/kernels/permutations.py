"""Permute the groups of sorted rows within each class, and measure the area between two curves.

Each row of a class has a random hash. The rows with the smallest hashes go to the first group, as
many as it has in this class, the next ones to the second, and so on. No sort is needed for that:
rows are counted in cells of the range of hashes, and only the rows of cells that two groups share
are put in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_wroc.kernels.compiling import ONE, TWO, ZERO, U, inlined, kernel
from polars_wroc.kernels.sorting import Array

_HASH_BITS = U(64)
# Cells of hashes have some eight rows at least. There are as many as fit into the innermost cache,
# or some for each group, so that few of them are shared.
_ROWS_PER_CELL, _CELL_BITS, _CELLS_PER_GROUP = U(3), U(11), U(16)
# So many terms are added up before their sum is added to the whole, which keeps digits.
_TERMS = U(1 << 12)


@kernel
def deal(hashes: Array, signed: Array, ends: Array, groups: Array) -> None:
    """Write the group of each row, from the hashes of the rows.

    ``signed`` are weights, negative in negative rows; ``ends[c, g]`` are the rows of class c, 1 for
    positives, in the groups up to g.
    """
    rows, count = U(len(hashes)), U(ends.shape[1])
    bits = ONE
    while rows >> (bits + _ROWS_PER_CELL) > ZERO and (
        bits < _CELL_BITS or ONE << bits < _CELLS_PER_GROUP * count
    ):
        bits += ONE
    cells, shift = ONE << bits, _HASH_BITS - bits
    # First the number of rows in each cell of each class, then the rows of the class before it.
    before = np.zeros(TWO * cells, np.uint32)
    for i in range(rows):
        before[(U(signed[i] > 0) << bits) + (hashes[i] >> shift)] += U(1)
    # The group of a cell; none if several share it.
    group_of = np.empty(TWO * cells, groups.dtype)
    shared = ZERO
    for c in range(TWO):
        rank = g = ZERO
        for cell in range(c * cells, (c + ONE) * cells):
            size = U(before[cell])
            before[cell] = rank
            while g < count - ONE and ends[c, g] <= rank:
                g += ONE
            rank += size
            if rank <= ends[c, g]:
                group_of[cell] = g
            else:
                group_of[cell] = count
                shared += size
    left = np.empty(shared, np.uint64)
    found = ZERO
    for i in range(rows):
        groups[i] = group_of[(U(signed[i] > 0) << bits) + (hashes[i] >> shift)]
        if groups[i] == count:
            j = U(found)
            while j > ZERO and _comes_after(hashes, signed, left[j - ONE], i):
                left[j] = left[j - ONE]
                j -= ONE
            left[j] = i
            found += ONE
    last, place, own = ~ZERO, ZERO, ZERO
    for at in range(shared):
        row = left[at]
        side = U(signed[row] > 0)
        here = (side << bits) + (hashes[row] >> shift)
        if here != last:
            last, place, own = here, U(before[here]), ZERO
        while ends[side, own] <= place:
            own += ONE
        groups[row] = own
        place += ONE


@inlined
def _comes_after(hashes: Array, signed: Array, one: Any, other: Any) -> bool:
    """Whether a row comes after a later one by class and hash; equal ones keep their order."""
    if (signed[one] > 0) != (signed[other] > 0):
        return bool(signed[one] > 0)
    return bool(hashes[one] > hashes[other])


@kernel
def measure(
    signed: Array, ends_tie: Array, groups: Array, ends: Array, a: int, b: int, sums: Array
) -> None:
    """Measure the area between the curves of each group and of the other rows, in sorted rows.

    A row of ``sums`` is filled for each group from a to b, in the order of `AREA_SUMS`. Without
    both classes on both sides the area means nothing. Weights are negative in negative rows, and
    ``ends`` are those of `deal`.
    """
    for group in range(U(a), U(b)):
        _measure_one(signed, ends_tie, groups, ends, group, sums)


@inlined
def _measure_one(
    signed: Array, ends_tie: Array, groups: Array, ends: Array, own: Any, sums: Array
) -> None:
    negatives = ends[ZERO, U(ends.shape[1]) - ONE]
    size = ends[ZERO, own] - (ends[ZERO, own - ONE] if own > ZERO else ZERO)
    # Pieces of each curve along which x grows: x at their end, and y at both ends. One place more
    # for each side, into which positives write after its last piece.
    x = np.empty(negatives + TWO, np.float64)
    y0 = np.empty(negatives + TWO, np.float64)
    y1 = np.empty(negatives + TWO, np.float64)
    # The weights so far, and the next piece, of either side.
    tp, fp, piece = np.zeros(2, np.float64), np.zeros(2, np.float64), np.zeros(2, np.uint64)
    piece[ONE] = size + ONE
    i, rows = ZERO, U(len(signed))
    while i < rows:
        if ends_tie[i]:
            # Without a branch: neither class nor side can be foreseen.
            w = float(signed[i])
            side = U(groups[i] != own)
            k, y, last = piece[side], tp[side], fp[side] + max(-w, 0.0)
            x[k], y0[k], y1[k] = last, y, y
            tp[side], fp[side], piece[side] = y + max(w, 0.0), last, k + U(w < 0.0)
            i += ONE
            continue
        tp_own, fp_own, tp_rest, fp_rest = tp[ZERO], fp[ZERO], tp[ONE], fp[ONE]
        while True:
            w = float(signed[i])
            side = U(groups[i] != own)
            tp[side] += max(w, 0.0)
            fp[side] += max(-w, 0.0)
            i += ONE
            if ends_tie[i - ONE]:
                break
        k = piece[ZERO]
        x[k], y0[k], y1[k] = fp[ZERO], tp_own, tp[ZERO]
        piece[ZERO] = k + U(fp[ZERO] > fp_own)
        k = piece[ONE]
        x[k], y0[k], y1[k] = fp[ONE], tp_rest, tp[ONE]
        piece[ONE] = k + U(fp[ONE] > fp_rest)
    _normalise(x, y0, y1, ZERO, piece[ZERO], fp[ZERO], tp[ZERO])
    _normalise(x, y0, y1, size + ONE, piece[ONE], fp[ONE], tp[ONE])
    sums[own, ZERO], sums[own, ONE] = tp[ZERO], fp[ZERO]
    sums[own, TWO], sums[own, U(3)] = tp[ONE], fp[ONE]
    sums[own, U(4)] = _area(x, y0, y1, ZERO, piece[ZERO], size + ONE, piece[ONE])


@inlined
def _normalise(x: Array, y0: Array, y1: Array, a: Any, b: Any, fp: float, tp: float) -> None:
    for i in range(a, b):
        x[i] /= fp
        y0[i] /= tp
        y1[i] /= tp


@inlined
def _area(
    x: Array,
    y0: Array,
    y1: Array,
    i: Any,
    i_end: Any,
    j: Any,
    j_end: Any,
) -> float:
    """Add up the area between two curves, from one end of a piece of either to the next."""
    area = part = start = 0.0
    left = _TERMS
    i_x0 = j_x0 = 0.0
    while i < i_end and j < j_end:
        i_x, j_x = x[i], x[j]
        i_y0, i_y1, j_y0, j_y1 = y0[i], y1[i], y0[j], y1[j]
        stop = min(i_x, j_x)
        if i_y0 == i_y1 and j_y0 == j_y1:
            part += (stop - start) * abs(i_y0 - j_y0)
        elif stop > start:
            first = _height(start, i_x0, i_x, i_y0, i_y1) - _height(start, j_x0, j_x, j_y0, j_y1)
            last = _height(stop, i_x0, i_x, i_y0, i_y1) - _height(stop, j_x0, j_x, j_y0, j_y1)
            total = abs(first) + abs(last)
            if first * last < 0.0:
                part += (stop - start) * ((first * first + last * last) / (2.0 * total))
            else:
                part += (stop - start) * (total / 2.0)
        i_ends, j_ends = i_x <= stop, j_x <= stop
        i_x0 = i_x if i_ends else i_x0
        j_x0 = j_x if j_ends else j_x0
        i += U(i_ends)
        j += U(j_ends)
        start = stop
        left -= ONE
        if left == ZERO:
            area += part
            part, left = 0.0, _TERMS
    return area + part


@inlined
def _height(at: float, x0: float, x1: float, y0: float, y1: float) -> float:
    return y0 + (y1 - y0) * ((at - x0) / (x1 - x0))
