"""Compare each group with all others: permuted groups, areas between curves, and placements.

To permute groups within a class, each row has a random hash. The rows with the smallest hashes go
to the first group, as many as it has in this class, the next ones to the second, and so on. No sort
is needed for that: rows are counted in cells of the range of hashes, and only the rows of cells
that two groups share are put in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polars_wroc.kernels import CLASS_SUMS
from polars_wroc.kernels.compiling import ONE, TWO, ZERO, U, inlined, kernel, read_only, run, shares
from polars_wroc.kernels.sorting import Array

_HASH_BITS = U(64)
# Cells of hashes have some eight rows at least. There are as many as fit into the innermost cache,
# or some for each group, so that few of them are shared.
_ROWS_PER_CELL, _CELL_BITS, _CELLS_PER_GROUP = U(3), U(11), U(16)
# So many terms are added up before their sum is added to the whole, which keeps digits.
_TERMS = U(1 << 12)
# A rest with a smaller share of a class is added up by itself: a difference would lose digits.
_LEAST_REST = 1 / 64
# Of two groups each is the rest of the other: the same sums, with the sides exchanged.
_PAIR, _EXCHANGED = 2, [2, 3, 0, 1, 4]
# Places in `CLASS_SUMS`; the powers of weights are 0 and 3.
_POWERS = np.array([0, 3])
_WEIGHT, _PLACEMENTS = CLASS_SUMS.index("weight"), CLASS_SUMS.index("placements")
_EIGHT = U(8)
# So many ties have numbers of 32 bits.
_MOST = (1 << 32) - 1


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


class WholeCurve(NamedTuple):
    """The curve of all rows: the shares of both classes up to each tie, and the area below.

    They begin at the origin. ``totals`` are the weights of positives and of negatives.
    """

    tp: Array
    fp: Array
    area: Array
    totals: Array


class OwnCurves(NamedTuple):
    """Points of the curves of groups: the numbers of their ties, and the weights up to them."""

    ties: Array
    tp: Array
    fp: Array


class RankedRows(NamedTuple):
    """Signed weights of sorted rows, the numbers of their ties from 1 on, and their curve."""

    signed: Array
    ties: Array
    whole: WholeCurve


def ranked(signed: Array, ends_tie: Array) -> RankedRows:
    """Number the ties of sorted rows, of which each last row ends one."""
    ties = (ends_tie.cumsum() - ends_tie + 1).astype(np.uint32 if len(signed) < _MOST else U)
    # One type each, so that kernels are compiled once.
    signed = read_only(signed.astype(np.float64))
    return RankedRows(signed, read_only(ties), _whole_curve(signed, ties))


def class_sizes(rows: RankedRows, groups: Array, count: int) -> Array:
    """Count the negatives and the positives of each group."""
    positive = rows.signed > 0
    return np.stack([np.bincount(groups[positive == c], minlength=count) for c in (False, True)])


def measure(
    rows: RankedRows, groups: Array, sizes: Array, cuts: Sequence[tuple[int, int]]
) -> Array:
    """Measure the area between the curves of each group and of the other rows.

    A row of the result has the `AREA_SUMS` of a group. ``sizes`` are those of `class_sizes`, and
    the ``cuts`` are shares of the groups for threads. Without both classes on both sides the area
    means nothing.
    """
    signed, ties, whole = rows
    sums = np.zeros((sizes.shape[1], 5))
    of_groups = sizes.sum(0)
    starts = (of_groups.cumsum() - of_groups).astype(np.uint64)
    ends, own = starts.copy(), OwnCurves(np.empty_like(ties), *np.empty((2, len(signed))))
    _group_points(signed, ties, read_only(groups.astype(np.uint32)), starts, ends, own)
    last = (ends[of_groups > 0] - ONE).astype(np.int64)
    sums[of_groups > 0, 0], sums[of_groups > 0, 1] = own.tp[last], own.fp[last]
    # Totals that overflow have no area.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        sums[:, 2:4] = whole.totals - sums[:, :2]
        of_whole = 1.0 / whole.totals
    rows_of_class: Array = sizes.sum(1, keepdims=True)
    defined = np.flipud((sizes > 0) & (sizes < rows_of_class))
    both: Array = np.all(defined, axis=0)
    # A difference of weights would not be exactly 0.
    sums[:, 2:4] *= defined.T
    small: Array = np.any(sums[:, 2:4] < _LEAST_REST * whole.totals, axis=1)
    small |= not np.isfinite(of_whole).all()

    def of_some(a: int, b: int) -> None:
        for g in (a + np.flatnonzero(both[a:b])).tolist():
            rest, inverse = whole, of_whole
            if small[g]:
                rest = _whole_curve(read_only(np.where(groups == g, 0.0, signed)), ties)
                sums[g, 2:4], inverse = rest.totals, np.zeros(2)
            sums[g, 4] = _area(rest, own, starts[g], ends[g], *inverse.tolist())

    if len(sums) == _PAIR:
        of_some(0, 1)
        sums[1] = sums[0, _EXCHANGED]
    else:
        run(of_some, cuts)
    return sums


def _whole_curve(signed: Array, ties: Array) -> WholeCurve:
    tp, fp, area = (np.zeros(int(ties[-1]) + 1 if len(ties) else 1) for _ in range(3))
    totals = np.zeros(2)
    _curve(signed, ties, tp, fp, area, totals)
    return WholeCurve(tp, fp, area, totals)


@kernel
def _curve(signed: Array, ties: Array, tp: Array, fp: Array, area: Array, totals: Array) -> None:
    """Write the points of a curve and the area up to each, as shares of the totals."""
    whole_tp = whole_fp = whole_area = part_tp = part_fp = part_area = 0.0
    for i in range(U(len(signed))):
        w = signed[i]
        part_tp += max(w, 0.0)
        part_fp += max(-w, 0.0)
        tp[ties[i]], fp[ties[i]] = whole_tp + part_tp, whole_fp + part_fp
        if i % _TERMS == ZERO:
            whole_tp, whole_fp, part_tp, part_fp = whole_tp + part_tp, whole_fp + part_fp, 0.0, 0.0
    last = U(len(tp)) - ONE
    totals[ZERO], totals[ONE] = tp[last], fp[last]
    for k in range(ONE, last + ONE):
        tp[k], fp[k] = tp[k] / totals[ZERO], fp[k] / totals[ONE]
        part_area += (fp[k] - fp[k - ONE]) * (tp[k - ONE] + (tp[k] - tp[k - ONE]) / 2.0)
        area[k] = whole_area + part_area
        if k % _TERMS == ZERO:
            whole_area, part_area = whole_area + part_area, 0.0


@kernel
def _group_points(
    signed: Array, ties: Array, groups: Array, starts: Array, ends: Array, own: OwnCurves
) -> None:
    """Write the points of the curve of each group: its ties, and the weights up to them.

    They begin at the start of the group, which is in ``ends`` too, and end at what this becomes.
    """
    points, tp, fp = own
    count = U(len(starts))
    size = max(_TERMS, count)
    whole, part = np.zeros(TWO * count), np.zeros(TWO * count)
    left = size
    for i in range(U(len(signed))):
        w, tie, g = signed[i], ties[i], U(groups[i])
        part[g * TWO] += max(w, 0.0)
        part[g * TWO + ONE] += max(-w, 0.0)
        at = ends[g]
        at -= U(at > starts[g] and points[at - ONE] == tie)
        points[at] = tie
        tp[at] = whole[g * TWO] + part[g * TWO]
        fp[at] = whole[g * TWO + ONE] + part[g * TWO + ONE]
        ends[g] = at + ONE
        left -= ONE
        if left == ZERO:
            for j in range(TWO * count):
                whole[j] += part[j]
                part[j] = 0.0
            left = size


@kernel
def _area(
    whole: WholeCurve, group: OwnCurves, i: Any, end: Any, of_tp: float, of_fp: float
) -> float:
    """Measure the area between the curve of a group, from point i to the end, and of the rest.

    The rest is the whole curve less the group, whose weights become shares of the whole by the
    factors ``of_tp`` and ``of_fp``. Along a piece of the group's curve the area below the rest is
    a difference of areas, unless both may cross: then each piece of the rest is looked at.
    """
    (tp, fp, area, _), (points, own_tp, own_fp) = whole, group
    last = U(len(tp)) - ONE
    own_pos, own_neg = own_tp[end - ONE], own_fp[end - ONE]
    pos, neg = 1.0 - own_pos * of_tp, 1.0 - own_neg * of_fp
    # The rest up to the tie k, after the points of the group up to q, and the area below it.
    k, q, gone_tp, gone_fp, below = ZERO, i, 0.0, 0.0, 0.0
    # Where the last piece ended: both coordinates of the group, and those and the area of the rest.
    x0 = y0 = at0 = h0 = below0 = 0.0
    total = part = 0.0
    while i < end:
        x1, y1 = own_fp[i] / own_neg, own_tp[i] / own_pos
        i += ONE
        if i % _TERMS == ZERO:
            total, part = total + part, 0.0
        if x1 <= x0:
            y0 = y1
            continue
        first, first_q, first_tp, first_fp = k, q, gone_tp, gone_fp
        at1 = x1 * neg
        while True:
            tie = U(points[q]) if q < end else last + ONE
            stop = tie - ONE
            reached = q == end or (stop > k and fp[stop] - gone_fp >= at1)
            if reached:
                stop = min(_last_before(fp, k, stop, at1 + gone_fp), last - ONE)
                tie, next_tp, next_fp = stop + ONE, gone_tp, gone_fp
            else:
                next_tp, next_fp = own_tp[q] * of_tp, own_fp[q] * of_fp
            below += (area[stop] - area[k]) - gone_tp * (fp[stop] - fp[k])
            k = stop
            f0, t0 = fp[k] - gone_fp, tp[k] - gone_tp
            f1, t1 = fp[tie] - next_fp, tp[tie] - next_tp
            if reached or f1 >= at1:
                break
            below += (f1 - f0) * (t0 + (t1 - t0) / 2.0)
            k, q, gone_tp, gone_fp = tie, q + ONE, next_tp, next_fp
        h1 = t0 + (t1 - t0) * min((at1 - f0) / (f1 - f0), 1.0) if f1 > f0 else t0
        below1 = below + (at1 - f0) * (t0 + (h1 - t0) / 2.0)
        own = (x1 - x0) * (y0 + (y1 - y0) / 2.0)
        rest = (below1 - below0) / (pos * neg)
        if h0 >= y1 * pos:
            part += rest - own
        elif h1 <= y0 * pos:
            part += own - rest
        else:
            at, k0 = at0, first
            while at < at1:
                tie = k0 + ONE
                next_q, next_tp, next_fp = first_q, first_tp, first_fp
                if first_q < end and points[first_q] == tie:
                    next_q = first_q + ONE
                    next_tp, next_fp = own_tp[first_q] * of_tp, own_fp[first_q] * of_fp
                if tie > last:
                    break
                f0, t0 = fp[k0] - first_fp, tp[k0] - first_tp
                f1, t1 = fp[tie] - next_fp, tp[tie] - next_tp
                to = min(f1, at1)
                if to > at:
                    slope, own_slope = (t1 - t0) / (f1 - f0) / pos, (y1 - y0) / (at1 - at0)
                    start = t0 / pos + (at - f0) * slope - (y0 + (at - at0) * own_slope)
                    stop_at = t0 / pos + (to - f0) * slope - (y0 + (to - at0) * own_slope)
                    far = abs(start) + abs(stop_at)
                    if start * stop_at < 0.0:
                        far = (start * start + stop_at * stop_at) / far
                    part += (to - at) / neg * (far / 2.0)
                    at = to
                k0, first_q, first_tp, first_fp = tie, next_q, next_tp, next_fp
        x0, y0, at0, h0, below0 = x1, y1, at1, h1, below1
    return float(total + part)


@inlined
def _last_before(fp: Array, low: Any, stop: Any, limit: float) -> Any:
    """Find the last tie from ``low`` on at which less than the limit is reached, before stop."""
    step, high = ONE, low + ONE
    while high < stop and fp[high] < limit:
        low, step = high, step * TWO
        high = min(low + step, stop)
    while high - low > ONE:
        middle = (low + high) >> ONE
        if fp[middle] < limit:
            low = middle
        else:
            high = middle
    return low


class OfClass(NamedTuple):
    """Sorted rows of a class: weights, ties, and the group of each or where each group begins."""

    weights: Array
    ties: Array
    groups: Array

    @classmethod
    def of(cls, rows: Array, signed: Array, ties: Array, groups: Array) -> OfClass:
        """Take these rows, in arrays of one type each, so that kernels are compiled once."""
        weights, of_ties = np.abs(signed[rows]).astype(np.float64), ties[rows].astype(np.uint32)
        return cls(read_only(weights), read_only(of_ties), read_only(groups))


def placements_across(
    signed: Array, ties: Array, groups: Array, count: int, *, of_rest: bool
) -> Array:
    """Sum the placement values of positives and of the negatives of each group, among each other.

    The first axis are the groups of the negatives. The second are those of the positives, or it is
    the rest, which are all other groups. The third has `CLASS_SUMS` of both classes, and
    ``ranked``. Rows are sorted, and their ``ties`` numbered.
    """
    others, own = np.flatnonzero(signed > 0), np.flatnonzero(signed < 0)
    own = own[np.argsort(groups[own], kind="stable")]
    starts = np.searchsorted(groups[own], np.arange(count + 1)).astype(np.uint64)
    sums = np.zeros((count, 1 if of_rest else count, 2 * len(CLASS_SUMS) + 1))
    positives = OfClass.of(others, signed, ties, groups[others].astype(np.uint32))
    negatives = OfClass.of(own, signed, ties, starts)
    given = positives, negatives, of_rest
    run(lambda a, b: _across(*given, a, b, sums), shares(count, count * len(signed)))
    sizes = [
        _powers(groups[rows], weights, count)
        for rows, weights in ((others, positives.weights), (own, negatives.weights))
    ]
    # Without differences, which would lose digits.
    none = np.zeros((1, len(_POWERS)))
    first, last = (np.cumsum([*none, *each[:-1]], 0) for each in (sizes[0], sizes[0][::-1]))
    sums[..., _POWERS] = (first + last[::-1])[:, None] if of_rest else sizes[0]
    sums[..., _POWERS + len(CLASS_SUMS)] = sizes[1][:, None]
    return sums


def mirrored(sums: Array) -> Array:
    """Exchange the classes in sums of rows whose weights and order were reversed."""
    width = len(CLASS_SUMS)
    others, own = sums[..., :width], sums[..., width:-1]
    ranked_weight = others[..., _WEIGHT] - others[..., _PLACEMENTS]
    return np.concatenate([own, others, ranked_weight[..., None]], axis=-1)


def _powers(groups: Array, weights: Array, count: int) -> Array:
    """Sum powers 0 and 3 of the weights of each group."""
    with np.errstate(over="ignore"):
        powers = (np.ones_like(weights), weights * weights * weights)
    return np.stack([np.bincount(groups, power, minlength=count) for power in powers], axis=-1)


@kernel
def _across(
    positives: OfClass, negatives: OfClass, of_rest: Any, a: Any, b: Any, sums: Array
) -> None:
    """Fill the sums of the groups of the negatives from a to b, but for rows and cubes.

    Between two negatives of the group all positives have the same placement value.
    """
    own_weights, own_ties, starts = negatives
    classes = U(sums.shape[1])
    # Of the positives since the last negative: w and w w.
    new, new_squares = np.zeros(classes), np.zeros(classes)
    totals = np.ones(classes)
    # Sums so far without the last terms, and the last terms: of positives w, w w and the last three
    # of `CLASS_SUMS`, then these three of negatives.
    whole, part = np.zeros((_EIGHT, classes)), np.zeros((_EIGHT, classes))
    for own in range(U(a), U(b)):
        if of_rest and starts[own] == starts[own + ONE]:
            continue
        own_total = 1.0
        # The first time for the totals, which are then the very sums that rows are placed among.
        for _ in range(TWO):
            whole[:] = 0.0
            part[:] = 0.0
            fp = last_fp = squares = last_squares = 0.0
            i, j, left = ZERO, starts[own], _TERMS
            while True:
                ended = j == starts[own + ONE]
                tie = U(own_ties[j]) if not ended else ~ZERO
                i = _add_up_to(positives, i, tie, own, of_rest, new, new_squares)
                _place(new, new_squares, (fp + last_fp) / own_total, part)
                if ended:
                    break
                dn = dnu = 0.0
                while j < starts[own + ONE] and own_ties[j] == tie:
                    dn += own_weights[j]
                    dnu += own_weights[j] * own_weights[j]
                    j += ONE
                i = _add_up_to(positives, i, tie + ONE, own, of_rest, new, new_squares)
                for c in range(classes):
                    tp = whole[ZERO, c] + part[ZERO, c] + new[c] / 2.0
                    below = (totals[c] - tp) / totals[c]
                    part[U(5), c] += dn * below
                    part[U(6), c] += dnu * below
                    part[U(7), c] += dnu * below * below
                _place(new, new_squares, (fp + last_fp + dn / 2.0) / own_total, part)
                last_fp += dn
                last_squares += dnu
                left -= ONE
                if left == ZERO:
                    whole += part
                    part[:] = 0.0
                    fp, squares = fp + last_fp, squares + last_squares
                    last_fp, last_squares, left = 0.0, 0.0, _TERMS
            whole += part
            fp, squares = fp + last_fp, squares + last_squares
            own_total = fp
            for c in range(classes):
                totals[c] = whole[ZERO, c]
        for c in range(classes):
            for k in range(TWO):
                sums[own, c, k + ONE] = whole[k, c]
            for k in range(U(3)):
                sums[own, c, k + U(4)] = whole[k + TWO, c]
                sums[own, c, k + U(11)] = whole[k + U(5), c]
            sums[own, c, U(8)], sums[own, c, U(9)] = fp, squares
            sums[own, c, U(14)] = fp - whole[U(5), c]


@inlined
def _add_up_to(
    positives: OfClass, i: Any, tie: Any, own: Any, of_rest: Any, new: Array, new_squares: Array
) -> Any:
    """Add the weights of the positives from i on before a tie; return the next of them."""
    weights, ties, groups = positives
    while i < U(len(weights)) and U(ties[i]) < tie:
        w, g = weights[i], U(groups[i])
        if of_rest:
            w, g = 0.0 if g == own else w, ZERO
        new[g] += w
        new_squares[g] += w * w
        i += ONE
    return i


@inlined
def _place(new: Array, new_squares: Array, share: float, part: Array) -> None:
    """Add new positives, whose placement value is the share, and forget them."""
    for c in range(U(len(new))):
        w, squares = new[c], new_squares[c]
        part[ZERO, c] += w
        part[ONE, c] += squares
        part[TWO, c] += w * share
        part[U(3), c] += squares * share
        part[U(4), c] += squares * share * share
        new[c] = new_squares[c] = 0.0
