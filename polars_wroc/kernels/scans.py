"""Walks along sorted rows: sums over each group, points of its curve, weights around each row.

With the weights before each block and the totals of the groups, each block is walked by itself.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, cast

import numpy as np

from polars_wroc.kernels import CLASS_SUMS, CURVE_SUMS, DIFFERENCE_SUMS
from polars_wroc.kernels.blocks import (
    ONE_GROUP,
    Blocks,
    ClassWeights,
    Groups,
    RowGroups,
    class_weights,
)
from polars_wroc.kernels.compiling import ONE, TWO, ZERO, U, inlined, kernel, run, shares
from polars_wroc.kernels.sorting import Array, SortedRows

OWN_SUMS = 2 * len(CLASS_SUMS) + len(CURVE_SUMS)
# Where the sums of the negatives begin, and those of the curve.
_NEG, _CURVE = U(len(CLASS_SUMS)), U(2 * len(CLASS_SUMS))
_THREE, _FOUR, _FIVE, _SIX, _SEVEN, _EIGHT = U(3), U(4), U(5), U(6), U(7), U(8)
_Around: TypeAlias = tuple[Array, Array, Array, Array]
# What positions on a curve are rounded to, and more than that changes a length.
_DIGITS, _NEAR = 1e9, 1e-8


class Points(NamedTuple):
    """Points of curves: partition and group, last row, and cumulative weights of both classes."""

    partitions: Array
    groups: Array
    rows: Array
    weights: Array


def walk(
    rows: SortedRows,
    blocks: Blocks,
    groups: Groups = ONE_GROUP,
    *,
    parts: int = 0,
) -> tuple[Array, Points]:
    """Return the sums of each block and group, and points of the curve of each group.

    There are `OWN_SUMS` sums. The length of each curve, measured as fpr + tpr, is cut into
    ``parts`` of equal length; the points are the first and the last of each part in each block.
    """
    sums = np.zeros((len(blocks), groups.size, OWN_SUMS))
    weights = class_weights(rows, blocks, groups)
    places = _places(weights, parts)
    each_group = [weights.before.reshape(-1), weights.totals.reshape(-1), sums.reshape(-1)]
    written = places.of_part_0, places.rows, places.weights
    arrays = [*each_group, *(each.reshape(-1) for each in written)]
    given = rows.keys, rows.signed, groups.of_rows(rows), blocks.cuts, parts
    blocks.run(lambda a, b: _walk(*given, a, b, *arrays))
    return sums, _points(blocks, groups, places)


def sums_of_partitions(blocks: Blocks, sums: Array) -> Array:
    """Add up the sums of the blocks of each partition that has rows; the last are distances."""
    if not len(blocks):
        return sums
    table: Array = np.add.reduceat(sums, blocks.begins)
    table[..., -1] = np.maximum.reduceat(sums[..., -1], blocks.begins)
    return table


def weights_around(rows: SortedRows, blocks: Blocks) -> _Around:
    """Cumulative weights of both classes, before and after all rows that tie with a row.

    They are those before and after for positives, then for negatives; they never fall along a
    group.
    """
    around = cast("_Around", tuple(np.empty(len(rows.keys)) for _ in range(4)))
    before = class_weights(rows, blocks).before[:, 0]
    blocks.run(lambda a, b: _place(rows.keys, rows.signed, blocks.cuts, before, a, b, around))
    return around


class _Places(NamedTuple):
    """Places for the points of the parts that each group has in each block.

    ``of_part_0`` is the place that part 0 has or would have; ``owners`` are the blocks and groups
    of the places. A place is for the first and the last point of a part: the number of rows up to
    it, or 0, and the cumulative weights of both classes.
    """

    of_part_0: Array
    owners: Array
    rows: Array
    weights: Array


def _places(weights: ClassWeights, parts: int) -> _Places:
    counts = np.zeros(weights.before.shape[:2], np.int64)
    begin = counts
    if parts:
        ends = np.stack([weights.before, weights.before + weights.inside])
        with np.errstate(invalid="ignore"):
            lengths = np.nan_to_num(ends / weights.totals).sum(-1) / 2 * parts
        # One more on each side, whatever the rounding.
        begin = np.floor(lengths[0]).astype(np.int64) - 1
        counts = np.ceil(lengths[1]).astype(np.int64) + 2 - begin
    starts = (counts.cumsum() - counts.reshape(-1)).reshape(counts.shape)
    owners = np.repeat(np.arange(counts.size), counts.reshape(-1))
    rows, cumulative = np.zeros((len(owners), 2), np.uint64), np.empty((len(owners), 4))
    return _Places(starts - begin, owners, rows, cumulative)


def _points(blocks: Blocks, groups: Groups, places: _Places) -> Points:
    taken = places.rows > 0
    # A point alone is both.
    taken[:, 1] &= places.rows[:, 0] != places.rows[:, 1]
    block, group = np.divmod(places.owners[np.nonzero(taken)[0]], groups.size)
    weights = places.weights.reshape(-1, 2, 2)[taken]
    return Points(blocks.partitions[block], group, places.rows[taken] - ONE, weights)


@inlined
def _add_row(sums: Array, at: np.uint64, w: float, squared: float, unit: float) -> None:
    sums[at] += 1.0
    sums[at + ONE] += w
    sums[at + TWO] += squared
    sums[at + _THREE] += squared * unit


@inlined
def _add_placed(sums: Array, at: np.uint64, w: float, squared: float, placement: float) -> None:
    sums[at + _FOUR] += w * placement
    sums[at + _FIVE] += squared * placement
    sums[at + _SIX] += squared * placement * placement


@inlined
def _part(tp: float, fp: float, positives: float, negatives: float, parts: int) -> int:
    """Number the part of a curve that a point is in."""
    length = (tp / positives if positives > 0.0 else 0.0) + (
        fp / negatives if negatives > 0.0 else 0.0
    )
    # Rounded as in the plan that thins curves.
    number = np.ceil(np.rint(length / 2.0 * parts * _DIGITS) / _DIGITS)
    return int(min(max(number, 1.0), float(parts)))


@inlined
def _ranked(tp: float, dp: float, dn: float, positives: float) -> float:
    """Return what the rows of one score, of weights dp and dn, add to ``ranked``."""
    return dn * ((tp + dp / 2.0) / positives)


@inlined
def _precision(tp: float, fp: float, dp: float, dn: float) -> float:
    """Return what they add to ``precision``."""
    selected = tp + dp + fp + dn
    return dp * ((tp + dp) / (selected if selected > 0.0 else 1.0))


@inlined
def _distance(tp: float, fp: float, positives: float, negatives: float) -> float:
    return abs(tp / positives - fp / negatives)


@inlined
def _write_point(
    rows: Array, weights: Array, at: np.uint64, row: np.uint64, tp: float, fp: float
) -> None:
    rows[at] = row
    weights[at * TWO], weights[at * TWO + ONE] = tp, fp


@kernel
def _walk(
    keys: Array,
    signed: Array,
    of_rows: RowGroups,
    cuts: Array,
    parts: int,
    a: int,
    b: int,
    before: Array,
    totals: Array,
    sums: Array,
    of_part_0: Array,
    point_rows: Array,
    point_weights: Array,
) -> None:
    """Add up the rows of each block, and write the points of the curves.

    The placement value of a positive is the share of the negatives above it, and of a negative
    that of the positives below it; tied rows count half.
    """
    codes, group_of, groups = of_rows
    one_group, width = len(group_of) == 0, U(OWN_SUMS)
    # Of each group, in one cache line: the weights of both classes above, their totals, the inverse
    # totals, about the largest distance, and about the length of the curve where a part ends.
    state = np.empty(groups * _EIGHT)
    # Of each group: the place of its part, and the number of rows up to its last tie, or 0.
    place_of, last = np.zeros(groups, np.uint64), np.zeros(groups, np.uint64)
    # In a tie: its groups, and the sums of w and w u of both classes of each.
    touched, tie = np.empty(groups, np.uint64), np.zeros(groups * _FOUR)
    for t in range(U(a), U(b)):
        of_block = t * groups * TWO
        for j in range(groups):
            s, g = j * _EIGHT, U(j)
            last[g] = ZERO
            for side in range(TWO):
                total = totals[of_block + g * TWO + side]
                state[s + side] = before[of_block + g * TWO + side]
                state[s + TWO + side] = total
                state[s + _FOUR + side] = 1.0 / total if total > 0.0 else 0.0
            state[s + _SIX], state[s + _SEVEN] = -1.0, 0.0
        i, end = cuts[t], cuts[t + ONE]
        while i < end:
            key, size = keys[i], ZERO
            x = y = xu = yu = 0.0
            alone = i + ONE == end or keys[i + ONE] != key
            while True:
                g = ZERO if one_group else U(group_of[codes[i]])
                if g < groups:
                    at, w = (t * groups + g) * width, float(signed[i])
                    unit = abs(w)
                    of_tie = g * _FOUR
                    if alone or tie[of_tie] + tie[of_tie + ONE] == 0.0:
                        touched[size] = g
                        size += ONE
                    if w > 0.0:
                        _add_row(sums, at, w, w * unit, unit)
                        x += w
                        xu += w * unit
                        if not alone:
                            tie[of_tie] += w
                            tie[of_tie + TWO] += w * unit
                    else:
                        w = -w
                        _add_row(sums, at + _NEG, w, w * unit, unit)
                        y += w
                        yu += w * unit
                        if not alone:
                            tie[of_tie + ONE] += w
                            tie[of_tie + _THREE] += w * unit
                i += ONE
                if alone or i == end or keys[i] != key:
                    break
            for k in range(size):
                g = touched[k]
                of_tie = g * _FOUR
                dp, dn, dpu, dnu = x, y, xu, yu
                if not alone:
                    dp, dn = tie[of_tie], tie[of_tie + ONE]
                    dpu, dnu = tie[of_tie + TWO], tie[of_tie + _THREE]
                    tie[of_tie] = tie[of_tie + ONE] = 0.0
                    tie[of_tie + TWO] = tie[of_tie + _THREE] = 0.0
                s = g * _EIGHT
                tp, fp = state[s], state[s + ONE]
                positives, negatives = state[s + TWO], state[s + _THREE]
                at = (t * groups + g) * width
                above_own, below_own = fp + dn / 2.0, positives - (tp + dp / 2.0)
                if dp > 0.0:
                    _add_placed(sums, at, dp, dpu, above_own / negatives)
                    sums[at + _CURVE + ONE] += _precision(tp, fp, dp, dn)
                if dn > 0.0:
                    _add_placed(sums, at + _NEG, dn, dnu, below_own / positives)
                    sums[at + _CURVE] += _ranked(tp, dp, dn, positives)
                tp += dp
                fp += dn
                tpr, fpr = tp * state[s + _FOUR], fp * state[s + _FIVE]
                if abs(tpr - fpr) > state[s + _SIX]:
                    state[s + _SIX] = abs(tpr - fpr)
                    sums[at + _CURVE + TWO] = _distance(tp, fp, positives, negatives)
                if parts > 0:
                    if tpr + fpr >= state[s + _SEVEN]:
                        part = _part(tp, fp, positives, negatives, parts)
                        place = U(of_part_0[t * groups + g] + part)
                        if last[g] == ZERO or place != place_of[g]:
                            if last[g] > ZERO:
                                _write_point(
                                    point_rows, point_weights, place_of[g] * TWO + ONE, last[g],
                                    state[s], state[s + ONE],
                                )  # fmt: skip
                            _write_point(point_rows, point_weights, place * TWO, i, tp, fp)
                            place_of[g] = place
                        # Somewhat less, as it is rounded.
                        end_of_part = 2.0 * part / parts - _NEAR
                        state[s + _SEVEN] = end_of_part if part < parts else np.inf
                    last[g] = i
                state[s], state[s + ONE] = tp, fp
        for j in range(groups if parts > 0 else ZERO):
            s, g = j * _EIGHT, U(j)
            if last[g] > ZERO:
                _write_point(
                    point_rows, point_weights, place_of[g] * TWO + ONE, last[g],
                    state[s], state[s + ONE],
                )  # fmt: skip


@kernel
def _place(
    keys: Array, signed: Array, cuts: Array, before: Array, a: int, b: int, around: _Around
) -> None:
    """Write the cumulative weights before and after the ties of each row.

    Weights are added up within the block, as for the weights of blocks, and then to those before
    it: a block ends with the very sum with which the next one begins.
    """
    tp_before, tp_after, fp_before, fp_after = around
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


def walk_differences(rows: SortedRows, scores: Array, tolerance: float) -> Array:
    """Add up scores less labels along the rows of each partition.

    Return for each partition `DIFFERENCE_SUMS`. The ``scores`` are those of the keys. Sums that
    differ by less than the ``tolerance`` times the weight are equal.
    """
    partitions = len(rows.starts) - 1
    sums = np.full((partitions, len(DIFFERENCE_SUMS)), np.nan)
    arrays = rows.keys, scores, rows.signed, rows.starts, tolerance
    run(
        lambda a, b: _add_differences(*arrays, a, b, sums),
        shares(partitions, len(rows.keys)),
    )
    return sums


@kernel
def _add_differences(
    keys: Array,
    scores: Array,
    signed: Array,
    starts: Array,
    tolerance: float,
    a: int,
    b: int,
    sums: Array,
) -> None:
    """Walk along each partition twice: for the highest and lowest sum, and for their places."""
    for t in range(U(a), U(b)):
        lowest = highest = near = 0.0
        for again in range(2):
            i, end = starts[t], starts[t + ONE]
            positives = impossible = weight = of_positives = expected = squares = 0.0
            residuals = distinct = variance = squared = total = low = high = 0.0
            # The sums at the last extreme, which may be the beginning, and the next row.
            is_high = highest - near <= 0.0
            seen = again == 1 and (is_high or lowest + near >= 0.0)
            place, total0, weight0, positives0, variance0 = i, 0.0, 0.0, 0.0, 0.0
            width = np.inf
            while i < end:
                key, score = keys[i], scores[i]
                up, down, up_squares, down_squares = 0.0, 0.0, 0.0, 0.0
                while True:
                    w = float(signed[i])
                    x, y = max(w, 0.0), max(-w, 0.0)
                    up += x
                    down += y
                    up_squares += x * x
                    down_squares += y * y
                    positives += 1.0 if w > 0.0 else 0.0
                    if (score == 0.0 and w > 0.0) or (score == 1.0 and w < 0.0):
                        impossible += 1.0
                    i += ONE
                    if i == end or keys[i] != key:
                        break
                both, rest = up_squares + down_squares, 1.0 - score
                own = both * score * rest
                distinct += 1.0
                weight += up + down
                of_positives += up
                expected += (up + down) * score
                squares += both
                residuals += up_squares * rest * rest + down_squares * score * score
                variance += own
                squared += own * own
                total += (up + down) * score - up
                low, high = min(low, total), max(high, total)
                if again == 1 and (total >= highest - near or total <= lowest + near):
                    other = total >= highest - near
                    # The shortest interval, then that of the lowest scores.
                    if seen and other != is_high and scores[place] - score <= width:
                        width = scores[place] - score
                        sums[t, U(11)], sums[t, U(12)] = score, scores[place]
                        sums[t, U(13)], sums[t, U(14)] = total - total0, weight - weight0
                        sums[t, U(15)] = of_positives - positives0
                        sums[t, U(16)] = variance - variance0
                    seen, is_high, place = True, other, i
                    total0, weight0 = total, weight
                    positives0, variance0 = of_positives, variance
            lowest, highest, near = low, high, tolerance * weight
            row = (
                positives, impossible, weight, expected, squares, residuals,
                distinct, variance, squared, low, high,
            )  # fmt: skip
            for j in range(U(len(row))):
                sums[t, j] = row[j]
