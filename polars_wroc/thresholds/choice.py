"""Points of confusion curves, and the point of each curve that a rule chooses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.arrays import TOLERANCE, Array, Ints, Mask
from polars_wroc.steps import PooledSteps, SegmentRows, pool_steps
from polars_wroc.threads import map_in_threads
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.rules import Point, Rule

# With fewer rows a sort takes hardly any time.
_MANY_ROWS = 1 << 16
# Temporary arrays of so many rows fit into the processor's cache.
_BLOCK_ROWS = 1 << 16
# The rows sampled to locate a selection rate, and the margin around it.
_SAMPLE, _AROUND = 1 << 14, 0.02


@dataclass(frozen=True)
class CurvePoints:
    """The points of each segment's curve: the origin, then all scores from the highest down.

    ``starts`` are the places of the origins, followed by the number of points. At the origin, where
    the threshold is infinite, no row is selected. ``several`` marks bins of several scores.
    """

    starts: Ints
    threshold: Array
    cells: Cells
    several: Mask | None = None

    @property
    def segment(self) -> Ints:
        """The number of the segment of each point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class CurveWeights(NamedTuple):
    """The points of each segment's curve, as in `CurvePoints`, with their selected weights."""

    starts: Ints
    threshold: Array
    tp: Array
    fp: Array


class Thresholds(NamedTuple):
    """A threshold for each segment, or one for all; NaN where a rule allows none.

    Without ``selects``, no row is selected, not even one with an infinite score.
    """

    value: Array
    selects: Mask


def trace_curves(rows: SegmentRows) -> CurvePoints:
    """Return the points of each segment's curve with their cells."""
    steps = pool_steps(rows)
    starts = _starts_of_points(steps)
    sums = []
    for values in (steps.w, steps.w2, steps.w3, steps.n):
        selected = _cumulate(steps, values)
        rejected = _reach_ends(selected, starts) - selected
        # Below 0 by rounding only
        sums.append(np.concatenate([selected, np.maximum(rejected, 0.0)]))
    several = steps.several
    if several is not None:
        several = np.insert(several, steps.starts[:-1], values=False)
    return CurvePoints(starts, _thresholds_of_points(steps), Cells(*sums), several)


def trace_weights(rows: SegmentRows) -> CurveWeights:
    """Return the points of each segment's curve with the selected weights of both classes."""
    steps = pool_steps(rows)
    tp, fp = _cumulate(steps, steps.w)
    return CurveWeights(_starts_of_points(steps), _thresholds_of_points(steps), tp, fp)


def choose_thresholds(rows: SegmentRows, rule: Rule) -> Thresholds:
    """Return the threshold that a rule chooses for each segment.

    Among thresholds that are equally good up to rounding it is the highest.
    """
    if rule.name == "max_selection_rate" and rows.number == 1 and not rows.in_order:
        found = _search_selection_rate(rows, rule)
        if found is not None:
            return found
    points = trace_weights(rows)
    place = choose_points(points.tp, points.fp, points.starts, rule)
    is_known = place >= 0
    threshold = np.where(is_known, points.threshold[place], np.nan)
    return Thresholds(threshold, is_known & (place > points.starts[:-1]))


def _search_selection_rate(rows: SegmentRows, rule: Rule) -> Thresholds | None:
    """Return the threshold of a selection rate by sorting only the rows near it.

    None for few rows, and if a sample of the rows does not locate the threshold (Floyd and Rivest
    1975, Communications of the ACM 18, 165-172).
    """
    if len(rows.score) < _MANY_ROWS:
        return None
    step = len(rows.score) // _SAMPLE
    sample, weight = rows.score[::step], np.abs(rows.weight[::step])
    order = np.argsort(sample)[::-1]
    sample, share = sample[order], weight[order].cumsum() / weight.sum()
    rate = dict(rule.options)["rate"]
    more, fewer = np.searchsorted(share, [rate + _AROUND, rate - _AROUND])
    # One score higher, since many rows may share a score.
    above = sample[sample > sample[fewer]]
    if more == len(share) or not len(above):
        return None
    near, selected_above, total = _find_rows_between(rows, sample[more], above[-1])
    near = near[np.argsort(rows.score[near])[::-1]]
    score = rows.score[near]
    is_last = np.append(np.diff(score) != 0, [True])
    selected = (selected_above + np.abs(rows.weight[near]).cumsum())[is_last]
    none, totals = np.zeros(len(selected)), np.full(len(selected), total)
    ends = np.array([0, len(selected)])
    place = int(choose_points(selected, none, ends, rule, np.stack([totals, none]))[0])
    # Thresholds below the last of these may be allowed too, and some above the first may be as
    # good.
    is_alone = place > 0 or selected[0] - selected_above > TOLERANCE * total
    if place < 0 or place == len(selected) - 1 or not is_alone:
        return None
    return Thresholds(score[is_last][[place]] + 0.0, np.array([True]))


def _find_rows_between(rows: SegmentRows, low: float, high: float) -> tuple[Ints, float, float]:
    """Return the rows between two scores, the weight above them, and the total weight."""

    def find(start: int) -> tuple[Ints, float, float]:
        part = slice(start, start + _BLOCK_ROWS)
        score, weight = rows.score[part], np.abs(rows.weight[part])
        is_above = score > high
        places = start + np.flatnonzero((score >= low) & ~is_above)
        # `compress` takes a third of the time of an index.
        above = weight.compress(is_above)
        return places.astype(np.int64, copy=False), above.sum(), weight.sum()

    found = map_in_threads(find, range(0, len(rows.score), _BLOCK_ROWS))
    near, above, total = zip(*found, strict=True)
    return np.concatenate(near), float(np.sum(above)), float(np.sum(total))


def choose_per_group(rows: SegmentRows, rule: Rule, *, per_group: bool) -> Thresholds:
    """Return the threshold that a rule chooses, for each segment or for all rows together."""
    return choose_thresholds(rows if per_group else merge_segments(rows), rule)


def merge_segments(rows: SegmentRows) -> SegmentRows:
    """Return the rows of all segments as one segment."""
    return replace(
        rows,
        segments=pl.DataFrame(),
        starts=rows.starts[[0, -1]],
        missing=rows.missing.sum(keepdims=True),
        in_order=False,
    )


def choose_points(
    tp: Array, fp: Array, starts: Ints, rule: Rule, totals: Array | None = None
) -> Ints:
    """Return the place of the first of the best points of each curve; -1 where none is allowed.

    ``tp`` and ``fp`` are the weights selected at each point. At the last point of a curve all
    weights are selected, unless ``totals`` of both classes are given for each point. ``starts`` are
    the places of the first points, followed by the number of points.
    """
    positives, negatives = (_reach_ends(each, starts) for each in (tp, fp))
    if totals is not None:
        positives, negatives = totals
    point = Point(tp, fp, positives, negatives)
    measures = rule.measures
    allowed = measures.known(point)
    if measures.allowed is not None:
        allowed = allowed & measures.allowed(point)
    best = _mark_best(np.where(allowed, measures.first(point), -np.inf), starts)
    if measures.second is not None:
        best = _mark_best(np.where(best, measures.second(point), -np.inf), starts)
    places = np.flatnonzero(best)
    first = np.append(places, -1)[np.searchsorted(places, starts[:-1])]
    return np.where(first < starts[1:], first, -1)


def _mark_best(values: Array, starts: Ints) -> Mask:
    """Return whether values are the largest of their curve, up to rounding; -inf is not."""
    largest = np.maximum.reduceat(values, starts[:-1])
    is_best = values >= np.repeat(largest, np.diff(starts)) - TOLERANCE
    return is_best & (values > -np.inf)


def _starts_of_points(steps: PooledSteps) -> Ints:
    """Return the places of the origins, which come before the steps of their segment."""
    return steps.starts + np.arange(len(steps.starts))


def _thresholds_of_points(steps: PooledSteps) -> Array:
    # -0.0 becomes 0.0.
    return np.insert(steps.score + 0.0, steps.starts[:-1], np.inf)


def _cumulate(steps: PooledSteps, values: Array) -> Array:
    """Return the sums of values from the origin of each segment to each point."""
    sums = np.insert(values, steps.starts[:-1], 0.0, axis=-1)
    # Each segment by itself, since differences of sums over all segments would lose digits.
    for start, stop in pairwise(_starts_of_points(steps).tolist()):
        np.cumsum(sums[..., start:stop], axis=-1, out=sums[..., start:stop])
    return sums


def _reach_ends(sums: Array, starts: Ints) -> Array:
    """Return for each point the sum at the end of its curve."""
    return np.repeat(sums[..., starts[1:] - 1], np.diff(starts), axis=-1)
