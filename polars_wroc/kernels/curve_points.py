"""Points of the curves of sorted rows: one for each tie, and an origin for each group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_wroc.kernels.blocks import class_weights, cut_blocks
from polars_wroc.kernels.compiling import ONE, ZERO, U, kernel
from polars_wroc.kernels.sorting import Array, SortedRows


class CurvePoints(NamedTuple):
    """Points of each group: the key of the score, and the weights of both classes up to it.

    ``starts`` are the origins of the groups, whose weights are 0, and at last the number of points.
    """

    keys: Array
    tp: Array
    fp: Array
    starts: Array


def points_of(rows: SortedRows, groups: Array) -> CurvePoints:
    """Return the points of these groups, in their order; all groups with rows are among them."""
    blocks = cut_blocks(rows)
    weights_before = class_weights(rows, blocks).before[:, 0]
    counts = np.zeros(len(blocks), np.int64)
    blocks.run(lambda a, b: _count_ties(rows.keys, blocks.cuts, a, b, counts))
    # The points before each block, and the origins: its own group's and those before.
    before = np.append(0, counts.cumsum())
    first = before[:-1] + np.searchsorted(groups, blocks.partitions, side="right")
    starts = np.append(before[np.searchsorted(blocks.partitions, groups)], before[-1])
    starts += np.append(np.arange(len(groups)), len(groups))
    size = int(starts[-1])
    keys, tp, fp = np.empty(size, np.uint64), np.empty(size), np.empty(size)
    for column in (keys, tp, fp):
        column[starts[:-1]] = 0
    at = first.astype(np.uint64)
    blocks.run(
        lambda a, b: _write(
            rows.keys, rows.signed, blocks.cuts, weights_before, at, a, b, keys, tp, fp
        )
    )
    return CurvePoints(keys, tp, fp, starts)


@kernel
def _count_ties(keys: Array, cuts: Array, a: int, b: int, counts: Array) -> None:
    """Count the distinct keys of each block."""
    for t in range(U(a), U(b)):
        count = 1
        for i in range(cuts[t] + ONE, cuts[t + ONE]):
            count += keys[i] != keys[i - ONE]
        counts[t] = count


@kernel
def _write(
    keys: Array,
    signed: Array,
    cuts: Array,
    before: Array,
    at: Array,
    a: int,
    b: int,
    point_keys: Array,
    tp: Array,
    fp: Array,
) -> None:
    """Write the points of each block, whose weights are those that `weights_around` gives."""
    for t in range(U(a), U(b)):
        p, pos, neg = at[t], 0.0, 0.0
        end = cuts[t + ONE]
        for i in range(cuts[t], end):
            w = float(signed[i])
            pos += max(w, 0.0)
            neg += max(-w, 0.0)
            if i + ONE == end or keys[i + ONE] != keys[i]:
                point_keys[p] = keys[i]
                tp[p], fp[p] = before[t, ZERO] + pos, before[t, ONE] + neg
                p += ONE
