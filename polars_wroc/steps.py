"""The engine: rows of segments are sorted by score, pooled into steps and reduced to sums.

A step stands for all rows of a segment that have the same score. Steps are made of rows, of counts
by score, or of bins. Large segments are cut into blocks whose temporary arrays fit into the
processor's cache. Blocks depend only on the data and are added up in a fixed order, so results have
the same bits with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints, Mask, cumulate
from polars_wroc.threads import ResultT, map_in_threads

_BLOCK_ROWS = 1 << 16

# The float type of the scores that were given.
FloatType: TypeAlias = type[np.floating[Any]]


def round_to_type(threshold: Array | float, score_type: FloatType) -> Array:
    """Return thresholds rounded to the type of the given scores, for comparisons.

    A score of 0.7 that was read as Float32 is less than 0.7 as Float64.
    """
    # A threshold beyond the largest number of the type becomes infinite.
    with np.errstate(over="ignore"):
        return np.asarray(threshold, np.float64).astype(score_type).astype(np.float64)


class RowCounts(NamedTuple):
    """The number of rows that each row stands for, and sums of squared and cubed weights."""

    n: Array
    squares: Array
    cubes: Array

    def at(self, places: Ints | Mask | slice) -> RowCounts:
        """Return the counts of some rows."""
        return RowCounts(*(values[places] for values in self))


class RowPowers(NamedTuple):
    """The number of rows that each row stands for, and sums of weights and squared weights."""

    n: Array
    weight: Array
    squares: Array


class ScoreBins(NamedTuple):
    """The highest score in the bin of each row, and whether rows of the bin differ in score."""

    high: Array
    several: Mask

    def at(self, places: Ints | Mask | slice) -> ScoreBins:
        """Return the bins of some rows."""
        return ScoreBins(self.high[places], self.several[places])

    def merge_scores(self, low: Array) -> ScoreBins:
        """Return the bins of merged groups: those with two ends may have several scores.

        ``low`` is the lowest score in the bin of each row, the same in all groups, like ``high``.
        """
        return ScoreBins(self.high, low < self.high)


@dataclass(frozen=True)
class SegmentRows:
    """Complete rows, segment by segment.

    ``starts`` are the places of the first rows of the segments, followed by the number of rows.
    ``weight`` is negative in rows of negatives. ``order`` has the original places of the rows, and
    ``missing`` the number of incomplete rows of each segment. ``outside`` are weights of rows in
    other ranges of scores: see `OutsideWeights`. ``in_order`` says that the rows of each segment
    are already sorted by descending score. Scores were given as numbers of the ``score_type``.
    """

    segments: pl.DataFrame
    starts: Ints
    order: Ints
    score: Array
    weight: Array
    missing: Ints
    counts: RowCounts | None = None
    bins: ScoreBins | None = None
    outside: OutsideWeights | None = None
    in_order: bool = False
    score_type: FloatType = np.float64

    @property
    def number(self) -> int:
        """The number of segments."""
        return len(self.starts) - 1

    @property
    def segment(self) -> Ints:
        """The number of each row's segment."""
        return np.repeat(np.arange(self.number), np.diff(self.starts))

    @property
    def powers(self) -> RowPowers:
        """The number of rows that each row stands for, and sums of powers of their weights."""
        weight = np.abs(self.weight)
        return RowPowers(self.n, weight, weight**2 if self.counts is None else self.counts.squares)

    @property
    def cubes(self) -> Array:
        """The sum of the cubed weights of the rows that each row stands for."""
        if self.counts is not None:
            return self.counts.cubes
        weight = np.abs(self.weight)
        return weight * weight * weight

    @property
    def n(self) -> Array:
        """The number of rows that each row stands for."""
        return np.ones(len(self.weight)) if self.counts is None else self.counts.n

    def spread(self, values: Array) -> Array:
        """Return the values of segments, repeated for each of their rows; a single one is not."""
        if values.shape[-1] == 1:
            return values
        return np.repeat(values, np.diff(self.starts), axis=-1)

    def total(self, values: Array) -> Array:
        """Return the sum of values of rows in each segment, along the last axis."""
        return add_up(values, self.starts)

    def move(self, places: Ints | Mask | slice) -> SegmentRows:
        """Return the rows at some places, with ``starts`` that the caller has to replace."""
        return replace(
            self,
            order=self.order[places],
            score=self.score[places],
            weight=self.weight[places],
            counts=None if self.counts is None else self.counts.at(places),
            bins=None if self.bins is None else self.bins.at(places),
            outside=None,
        )

    def between(self, first: int, stop: int) -> SegmentRows:
        """Return the rows of some consecutive segments."""
        return replace(
            self.move(slice(self.starts[first], self.starts[stop])),
            segments=self.segments[first:stop],
            starts=self.starts[first : stop + 1] - self.starts[first],
            missing=self.missing[first:stop],
            outside=None if self.outside is None else self.outside.between(first, stop),
        )

    def at(self, taken: Mask) -> SegmentRows:
        """Return some of the rows of each segment, as segments of these rows only."""
        starts = np.append(0, taken.cumsum())[self.starts]
        return replace(self.move(taken), starts=starts)


class OutsideWeights(NamedTuple):
    """Weights of positives and negatives of each segment: above a range of scores, and total."""

    above: Array
    totals: Array

    def between(self, first: int, stop: int) -> OutsideWeights:
        """Return the weights of some consecutive segments."""
        return OutsideWeights(self.above[:, first:stop], self.totals[:, first:stop])


class Steps(NamedTuple):
    """Steps of the curves of some segments, in descending order of the score.

    ``n``, ``w``, ``w2`` and ``w3`` are numbers of rows and sums of powers of their weights, in a
    row of positives and a row of negatives. ``starts`` are the places of the segments' first steps.
    ``above`` are the weights that precede these steps in each segment, and ``totals`` the weights
    of the whole segment, of which these steps may be a part. ``several`` marks bins of several
    scores.
    """

    score: Array
    n: Array
    w: Array
    w2: Array
    w3: Array
    starts: Ints
    above: Array
    totals: Array
    several: Mask | None

    def spread(self, values: Array) -> Array:
        """Return the values of segments, repeated for each of their steps; a single one is not."""
        if values.shape[-1] == 1:
            return values
        return np.repeat(values, np.diff(self.starts, append=len(self.score)), axis=-1)

    def total(self, values: Array) -> Array:
        """Return the sum of values over the steps of each segment."""
        if len(self.starts) == 1:
            return np.asarray(values.sum(axis=-1, keepdims=True))
        return np.asarray(np.add.reduceat(values, self.starts, axis=-1))

    def largest(self, values: Array) -> Array:
        """Return the largest value over the steps of each segment."""
        return np.asarray(np.maximum.reduceat(values, self.starts, axis=-1))

    def cumulate(self, values: Array, above: Array) -> Array:
        """Return the sums of values from the highest score of each segment down to each step.

        ``above`` are the sums that precede these steps in each segment.
        """
        sums = cumulate(values, self.starts)
        if len(self.starts) > 1:
            # Rounding must not take a sum below the value of its own step.
            np.maximum(sums, values, out=sums)
        sums += self.spread(above)
        return sums

    @property
    def weights_reached(self) -> Array:
        """Weights of both classes with the score of the step or a higher one."""
        return self.cumulate(self.w, self.above)


# Sums of segments, keyed by name; the last axis runs over the segments.
Sums: TypeAlias = Mapping[str, Array]
Task: TypeAlias = Callable[[Steps], Sums]


def reduce_steps(rows: SegmentRows, task: Task, *, maxima: frozenset[str] = frozenset()) -> Sums:
    """Return the results of a task on the steps of all segments, added up over blocks.

    Values named in ``maxima``, which must not be negative, are the largest of all blocks instead.
    Segments without rows have sums of 0.
    """
    blocks = map_steps(rows, task) or [(np.zeros(0, np.int64), task(_NO_STEPS))]
    return add_blocks(blocks, rows.number, maxima=maxima)


def map_steps(rows: SegmentRows, task: Callable[[Steps], ResultT]) -> list[tuple[Ints, ResultT]]:
    """Return the results of a task on each block of steps, with the segments' numbers.

    Blocks are in the order of the segments, and run from high to low scores in each.
    """
    batches = _map_batches(rows, lambda batch: [task(steps) for steps in _steps(batch)])
    return [(segments, each) for segments, found in batches for each in found]


def add_blocks(
    blocks: Iterable[tuple[Ints, Sums]], number: int, *, maxima: frozenset[str] = frozenset()
) -> dict[str, Array]:
    """Return the sums of blocks of some segments, added up for each of a number of segments.

    Values named in ``maxima``, which must not be negative, are the largest of all blocks instead.
    Segments without a block have sums of 0.
    """
    sums: dict[str, Array] = {}
    for segments, found in blocks:
        for name, values in found.items():
            if name not in sums:
                sums[name] = np.zeros((*values.shape[:-1], number))
            combine = np.fmax if name in maxima else np.add
            sums[name][..., segments] = combine(sums[name][..., segments], values)
    return sums


def map_segments(rows: SegmentRows, work: Callable[[SegmentRows], ResultT]) -> list[ResultT]:
    """Return the results of ``work`` on groups of consecutive segments, in order.

    Groups are cut at about every block of rows, so arrays with a value for each row are small and
    fast, unless a segment is large.
    """
    cuts = np.searchsorted(rows.starts, np.arange(0, len(rows.score), _BLOCK_ROWS))
    ends = np.unique(np.concatenate([[0, rows.number], cuts]))
    if len(ends) <= 2:  # noqa: PLR2004
        return [work(rows)]

    def run(part: tuple[int, int]) -> ResultT:
        # Threads do not inherit how NumPy treats infinite and undefined numbers.
        with np.errstate(all="ignore"):
            return work(rows.between(*part))

    return map_in_threads(run, [*pairwise(ends.tolist())], fewest=2)


class PooledSteps(NamedTuple):
    """All steps of the curves of segments, in descending order of the score.

    ``n``, ``w``, ``w2``, ``w3`` and ``several`` are as in `Steps`. The steps of segment i, possibly
    none, are at ``starts[i]:starts[i + 1]``.
    """

    score: Array
    n: Array
    w: Array
    w2: Array
    w3: Array
    starts: Ints
    several: Mask | None = None


def pool_steps(rows: SegmentRows) -> PooledSteps:
    """Return the steps of all segments, segment by segment."""

    def find(steps: Steps) -> tuple[NDArray[Any], ...]:
        values = (steps.score, steps.n, steps.w, steps.w2, steps.w3)
        if rows.bins is None:
            return values
        return (*values, np.zeros(0, bool) if steps.several is None else steps.several)

    (score, n, w, w2, w3, *several), starts = join_values(rows, find)
    return PooledSteps(score, n, w, w2, w3, starts, *several)


def join_values(
    rows: SegmentRows, find: Callable[[Steps], tuple[NDArray[Any], ...]]
) -> tuple[list[NDArray[Any]], Ints]:
    """Return values of the steps of all segments, joined, and the ``starts`` of `PooledSteps`.

    ``find`` returns values of some steps, which run along the last axis.
    """
    number = np.zeros(rows.number, np.int64)
    blocks = []
    for segments, (found, lengths) in map_steps(
        rows, lambda steps: (find(steps), np.diff(steps.starts, append=len(steps.score)))
    ):
        number[segments] += lengths
        blocks.append(found)
    joined = [
        np.concatenate(each, axis=-1) for each in zip(*blocks or [find(_NO_STEPS)], strict=True)
    ]
    return joined, np.append(0, number.cumsum())


def place_rows(rows: SegmentRows) -> Array:
    """Return the placement value of each row: the share of the other class on its wrong side.

    This is the share of negatives with a higher score for a positive, and the share of positives
    with a lower score for a negative; ties count half. NaN where a segment has rows of only one
    class.
    """

    def place(batch: _Batch) -> Array:
        placed = np.empty(len(batch.score))
        start = 0
        for steps, is_new in _marked_steps(batch):
            stop = start + len(is_new)
            places = batch.places(start, stop)
            side = (batch.weight[places] < 0).astype(np.intp)
            placed[places] = placements(steps)[side, is_new.cumsum() - 1]
            start = stop
        return placed

    found = _map_batches(rows, place)
    return np.concatenate([values for _, values in found]) if found else np.zeros(0)


def descend(rows: SegmentRows) -> SegmentRows:
    """Return the rows of each segment in descending order of the score."""
    if rows.in_order:
        return rows

    def find_order(batch: _Batch) -> Ints:
        assert batch.order is not None
        return batch.order

    found = _map_batches(rows, find_order)
    if not found:
        return replace(rows, in_order=True)
    places = np.concatenate([rows.starts[segments[0]] + order for segments, order in found])
    return replace(rows.move(places), in_order=True, outside=rows.outside)


class StepPlaces(NamedTuple):
    """The places of the steps of rows that descend within each segment.

    ``firsts`` are the places of the first rows of the steps, and ``starts`` the places of the first
    steps of the segments, which may have none, followed by the number of steps.
    """

    firsts: Ints
    starts: Ints


def find_steps(rows: SegmentRows) -> StepPlaces:
    """Return the places of the steps of rows that descend within each segment."""
    is_new = find_changes(rows.score)
    is_new[rows.starts[:-1][np.diff(rows.starts) > 0]] = True
    firsts = np.flatnonzero(is_new)
    return StepPlaces(firsts, np.searchsorted(firsts, rows.starts))


def placements(steps: Steps) -> Array:
    """Return the placement values of both classes at each step."""
    with np.errstate(invalid="ignore", divide="ignore"):
        halfway = (steps.weights_reached - steps.w / 2) / steps.spread(steps.totals)
    positive, negative = halfway
    return np.stack([negative, 1 - positive])


def add_up(values: Array, starts: Ints) -> Array:
    """Return the sums of values between starts, along the last axis; 0 where none is between."""
    filled = np.flatnonzero(np.diff(starts) > 0)
    sums = np.zeros((*values.shape[:-1], len(starts) - 1))
    if len(filled):
        sums[..., filled] = np.add.reduceat(values, starts[filled], axis=-1)
    return sums


def find_changes(values: Array | Ints) -> Mask:
    """Return whether each value differs from the value before it; the first one does."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


class _Batch(NamedTuple):
    """Rows of some segments, and their order: by segment, then by descending score.

    ``order`` is None if the rows are sorted already.
    """

    score: Array
    weight: Array
    counts: RowCounts | None
    bins: ScoreBins | None
    starts: Ints
    order: Ints | None
    above: Array
    totals: Array

    def places(self, start: int, stop: int) -> Ints | slice:
        """Return the places of some consecutive rows of the order."""
        return slice(start, stop) if self.order is None else self.order[start:stop]


class _Part(NamedTuple):
    """Rows that are measured together: of some whole segments, or a block of a large segment.

    ``starts`` are the places of the first rows of the segments, followed by the end of the last.
    """

    segments: Ints
    starts: Ints

    @property
    def rows(self) -> slice:
        """The places of the rows."""
        return slice(self.starts[0], self.starts[-1])


def _map_batches(
    rows: SegmentRows, work: Callable[[_Batch], ResultT]
) -> list[tuple[Ints, ResultT]]:
    """Return the results of ``work`` on each batch of segments, with the segments' numbers.

    A large segment whose rows are in order has several batches, from high to low scores.
    """
    parts = _cut_parts(rows)
    above, totals = _weigh_parts(rows, parts)

    def run(place: int) -> tuple[Ints, ResultT]:
        part = parts[place]
        # Threads do not inherit how NumPy treats infinite and undefined numbers.
        with np.errstate(all="ignore"):
            batch = _sort_batch(rows, part, above[place], totals[:, part.segments])
            return part.segments, work(batch)

    return map_in_threads(run, range(len(parts)), fewest=2)


def _cut_parts(rows: SegmentRows) -> list[_Part]:
    filled = np.flatnonzero(np.diff(rows.starts) > 0)
    starts = np.append(rows.starts[filled], len(rows.score))
    parts = []
    for first, stop in _cut_batches(starts):
        segments, ends = filled[first:stop], starts[first : stop + 1]
        if rows.in_order and len(segments) == 1:
            blocks = pairwise(_cut_blocks(rows.score[slice(*ends)]))
            parts += [_Part(segments, ends[0] + np.array(block)) for block in blocks]
        else:
            parts.append(_Part(segments, ends))
    return parts


def _weigh_parts(rows: SegmentRows, parts: Sequence[_Part]) -> tuple[list[Array], Array]:
    """Return the weights of both classes above each part of its segments, and those of segments."""

    def weigh(part: _Part) -> Array:
        weight, begins = rows.weight[part.rows], part.starts[:-1] - part.starts[0]
        with np.errstate(all="ignore"):
            return np.add.reduceat(_split_classes(weight), begins, axis=-1)

    above, totals = [], np.zeros((2, rows.number))
    for part, weights in zip(parts, map_in_threads(weigh, parts, fewest=2), strict=True):
        above.append(totals[:, part.segments])
        totals[:, part.segments] += weights
    if rows.outside is None:
        return above, totals
    outside = [rows.outside.above[:, part.segments] for part in parts]
    return [one + other for one, other in zip(outside, above, strict=True)], rows.outside.totals


def _cut_batches(starts: Ints) -> list[tuple[int, int]]:
    """Return batches: small segments up to about a block of rows, or one large segment."""
    # The first segments at or after a multiple of the block size, so also those after large ones
    cuts = np.searchsorted(starts, np.arange(0, starts[-1], _BLOCK_ROWS))
    large = np.flatnonzero(np.diff(starts) > _BLOCK_ROWS)
    ends = np.unique(np.concatenate([cuts, large, [len(starts) - 1]]))
    return list(pairwise(ends.tolist()))


def _cut_blocks(score: Array) -> list[int]:
    """Return the bounds of blocks of sorted rows, of which 0 is the first."""
    ends = [0]
    while ends[-1] < len(score):
        ends.append(_end_of_block(score, ends[-1]))
    return ends


def _sort_batch(rows: SegmentRows, part: _Part, above: Array, totals: Array) -> _Batch:
    score, weight = rows.score[part.rows], rows.weight[part.rows]
    begins = part.starts - part.starts[0]
    order = None if rows.in_order else np.argsort(score)[::-1]
    if order is not None and len(part.segments) > 1:
        # At most a block of rows are the first of their segments, so the numbers of segments fit
        # into 16 bits, which NumPy sorts by radix.
        segment = np.repeat(np.arange(len(part.segments), dtype=np.uint16), np.diff(begins))
        order = order[np.argsort(segment[order], kind="stable")]
    counts = None if rows.counts is None else rows.counts.at(part.rows)
    bins = None if rows.bins is None else rows.bins.at(part.rows)
    return _Batch(score, weight, counts, bins, begins, order, above, totals)


def _steps(batch: _Batch) -> Iterator[Steps]:
    for steps, _ in _marked_steps(batch):
        yield steps


def _marked_steps(batch: _Batch) -> Iterator[tuple[Steps, Mask]]:
    """Yield the steps of each block of a batch, and whether its sorted rows begin a step."""
    score = batch.score if batch.order is None else batch.score[batch.order]
    above, start = batch.above, 0
    while start < len(score):
        stop = _end_of_block(score, start) if len(batch.starts) == 2 else len(score)  # noqa: PLR2004
        steps, is_new = _pool(batch, score[start:stop], batch.places(start, stop), above)
        yield steps, is_new
        above, start = above + steps.total(steps.w), stop


def _end_of_block(score: Array, start: int) -> int:
    """Return where a block of sorted rows ends; rows of the same score stay together."""
    stop = start + _BLOCK_ROWS
    if stop >= len(score):
        return len(score)
    # A reversed view, since NumPy searches in ascending order.
    return len(score) - int(np.searchsorted(score[::-1], score[stop - 1], side="left"))


def _pool(batch: _Batch, score: Array, places: Ints | slice, above: Array) -> tuple[Steps, Mask]:
    """Return pooled rows of the same score, and whether each sorted row begins a step."""
    signed = batch.weight[places]
    w = _split_classes(signed)
    if batch.counts is None:
        w2 = w * w
        sums = [(w > 0).astype(np.float64), w, w2, w2 * w]
    else:
        is_side = np.stack([signed > 0, signed < 0])
        n, squares, cubes = (values * is_side for values in batch.counts.at(places))
        sums = [n, w, squares, cubes]
    several = None if batch.bins is None else batch.bins.several[places]
    starts = batch.starts[:-1] if len(batch.starts) > 2 else np.zeros(1, np.intp)  # noqa: PLR2004
    is_new = find_changes(score)
    is_new[starts] = True
    if not is_new.all():
        firsts = np.flatnonzero(is_new)
        starts, score = np.searchsorted(firsts, starts), score[firsts]
        sums = [np.add.reduceat(each, firsts, axis=-1) for each in sums]
        several = None if several is None else np.logical_or.reduceat(several, firsts)
    n, w, w2, w3 = sums
    return Steps(score, n, w, w2, w3, starts, above, batch.totals, several), is_new


def _split_classes(signed: Array) -> Array:
    """Return unsigned weights, in a row for positives and a row for negatives."""
    w = np.stack([signed, -signed])
    return np.maximum(w, 0.0, out=w)


_NO_STEPS = Steps(
    score=np.zeros(0),
    n=np.zeros((2, 0)),
    w=np.zeros((2, 0)),
    w2=np.zeros((2, 0)),
    w3=np.zeros((2, 0)),
    starts=np.zeros(0, np.intp),
    above=np.zeros((2, 0)),
    totals=np.zeros((2, 0)),
    several=None,
)
