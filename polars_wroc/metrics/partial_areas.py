"""Partial AUCs of segments, with standard errors and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polars_wroc.arrays import TOLERANCE, Array, Ints
from polars_wroc.metrics.auc_sums import placement_influences
from polars_wroc.metrics.partial_auc import PartialAUC
from polars_wroc.ranking.curve import WHOLE_RANGE, Range
from polars_wroc.rows import Rows, replicate_rows
from polars_wroc.stats.aucs import Auc
from polars_wroc.stats.designs import Influence, replicate_influence
from polars_wroc.stats.partial_aucs import PartialArea
from polars_wroc.steps import SegmentRows, Steps, add_up, descend, find_steps, pool_steps


class Pieces(NamedTuple):
    """Straight pieces of curves, from (x0, y0) to (x1, y1): one for each step."""

    x0: Array
    y0: Array
    x1: Array
    y1: Array

    def turn(self) -> Pieces:
        """Rotate the unit square, so that the area right of the curve is the area below it."""
        return Pieces(self.y0, 1 - self.x0, self.y1, 1 - self.x1)

    def reverse(self) -> Pieces:
        """Return the curve of exchanged classes and negated scores."""
        return Pieces(1 - self.y1, 1 - self.x1, 1 - self.y0, 1 - self.x0)


@dataclass(frozen=True)
class Curves:
    """The curves of all segments with rows."""

    steps: Steps
    pieces: Pieces
    # The numbers of the segments that have rows.
    filled: Ints
    number: int

    def to_segments(self, values: Array) -> Array:
        """Return values for all segments: NaN for those without rows."""
        found = np.full((*values.shape[:-1], self.number), np.nan)
        found[..., self.filled] = values
        return found


def draw_curves(rows: SegmentRows) -> Curves:
    """Return the curves of all segments."""
    pooled = pool_steps(rows)
    filled = np.flatnonzero(np.diff(pooled.starts) > 0)
    totals = add_up(pooled.w, pooled.starts)[:, filled]
    score, n, w, w2, w3, starts, several = pooled
    steps = Steps(score, n, w, w2, w3, starts[filled], np.zeros_like(totals), totals, several)
    return Curves(steps, _pieces(steps), filled, rows.number)


def _pieces(steps: Steps) -> Pieces:
    rates = steps.weights_reached / steps.spread(steps.totals)
    before = np.zeros_like(rates)
    before[:, 1:] = rates[:, :-1]
    before[:, steps.starts] = 0.0
    return Pieces(before[1], before[0], rates[1], rates[0])


def measure_area(curves: Curves, area: PartialAUC) -> Array:
    """Return the area of each segment, not standardized; NaN where a class has no weight."""
    return _add_areas(curves, curves.pieces, area)


def bound_area(curves: Curves, area: PartialAUC) -> tuple[Array, Array]:
    """Return bounds of the area of each segment if rows stand for bins of scores."""
    several, pieces = curves.steps.several, curves.pieces
    if several is None:
        value = measure_area(curves, area)
        return value, value
    x0, y0, x1, y1 = pieces
    if area.fpr is None:
        least = pieces._replace(x0=np.where(several, x1, x0))
        largest = pieces._replace(x1=np.where(several, x0, x1))
    else:
        least = pieces._replace(y1=np.where(several, y0, y1))
        largest = pieces._replace(y0=np.where(several, y1, y0))
    return _add_areas(curves, least, area), _add_areas(curves, largest, area)


def _add_areas(curves: Curves, pieces: Pieces, area: PartialAUC) -> Array:
    if area.fpr is None:
        assert area.tpr is not None
        parts = _areas_between(pieces.turn(), area.tpr)
    elif area.tpr is None:
        parts = _areas_between(pieces, area.fpr)
    else:
        parts = _areas_in_rectangle(pieces, area.fpr, area.tpr)
    return curves.to_segments(curves.steps.total(parts) + _without_class(curves))


def _without_class(curves: Curves) -> Array:
    """Return NaN for segments in which a class has no weight, else 0."""
    return np.where((curves.steps.totals > 0).all(axis=0), 0.0, np.nan)


def _areas_between(pieces: Pieces, between: Range) -> Array:
    """Return the area under each piece between two values of x."""
    left, right = np.clip(pieces.x0, *between), np.clip(pieces.x1, *between)
    middle = _height_of_pieces(pieces, (left + right) / 2)
    return np.where(right > left, (right - left) * middle, 0.0)


def _areas_in_rectangle(pieces: Pieces, x: Range, y: Range) -> Array:
    """Return the area under each piece within a rectangle."""
    left, right = np.clip(pieces.x0, *x), np.clip(pieces.x1, *x)
    start, end = _height_of_pieces(pieces, left), _height_of_pieces(pieces, right)
    above_low, above_high = (
        _areas_above_zero(right - left, start - height, end - height) for height in y
    )
    return np.where(right > left, above_low - above_high, 0.0)


def _height_of_pieces(pieces: Pieces, x: Array) -> Array:
    slope = (pieces.y1 - pieces.y0) / (pieces.x1 - pieces.x0)
    return np.asarray(pieces.y0 + (x - pieces.x0) * slope)


def _areas_above_zero(width: Array, start: Array, end: Array) -> Array:
    """Return the area between each piece and zero, where the piece is above it."""
    above = np.maximum(start, 0.0) + np.maximum(end, 0.0)
    # A piece that crosses zero is above it for a part of its width.
    return np.where(above > 0, width * above**2 / (np.abs(start) + np.abs(end)) / 2, 0.0)


@dataclass(frozen=True)
class AreaPlacements:
    """Placement values of an area over the range of one rate: 1 less a row's share of the area.

    The means of both classes are 1 less the area, as a share of the area of a perfect score.
    ``inside`` holds what score-type limits need of the class of the rate.
    """

    values: Array
    inside: Array


def place_in_area(curves: Curves, area: PartialAUC) -> AreaPlacements:
    """Return the placement values of both classes at each step.

    A range of true positive rates becomes a range of false positive rates on the curve of exchanged
    classes and negated scores.
    """
    if area.tpr is None:
        assert area.fpr is not None
        pieces, (a, b) = curves.pieces, area.fpr
    else:
        pieces, (a, b) = curves.pieces.reverse(), (1 - area.tpr[1], 1 - area.tpr[0])
    # gamma+ = G+_b - G+_a - A and gamma- = G-_b - G-_a - A (He and Escobar 2008)
    upward = _area_beside(pieces, b) - _area_beside(pieces, a)
    across = _area_passed(curves, pieces, b) - _area_passed(curves, pieces, a)
    passed = _passed_part(pieces, b)
    if area.tpr is None:
        values, inside = np.stack([upward, across]), passed
    else:
        values = np.stack([across, upward])
        inside = passed * ((1 - pieces.y0) - (pieces.y1 - pieces.y0) * passed / 2)
    return AreaPlacements(1 - values / (b - a), inside)


def _area_beside(pieces: Pieces, c: float) -> Array:
    """Return G+_c: the contribution to the area up to c of a row that moves the curve up."""
    reach, width = c - pieces.x0, pieces.x1 - pieces.x0
    # c - (x0 + x1) / 2 where x1 <= c, 0 where x0 >= c, else (c - x0)^2 / 2h
    inside = reach**2 / (2 * width)
    return np.where(reach >= width, reach - width / 2, np.where(reach > 0, inside, 0.0))


def _area_passed(curves: Curves, pieces: Pieces, c: float) -> Array:
    """Return G-_c: the contribution to the area up to c of a row that moves the curve right."""
    f = _passed_part(pieces, c)
    height = curves.steps.spread(_height_at(curves, pieces, c))
    # G-_c = f (y0 + (y1 - y0) f / 2 - R(c)) + c R(c)
    rise = pieces.y1 - pieces.y0
    return np.asarray(f * (pieces.y0 + rise * f / 2 - height) + c * height)


def _passed_part(pieces: Pieces, c: float) -> Array:
    """Return the part of each piece that is left of c; 0 for a vertical piece."""
    width = pieces.x1 - pieces.x0
    # f = clip((c - x0) / h, 0, 1) with the width h of the piece
    return np.where(width > 0, np.clip((c - pieces.x0) / width, 0.0, 1.0), 0.0)


def _height_at(curves: Curves, pieces: Pieces, c: float) -> Array:
    """Return R(c), the height of each curve at c; the top of a vertical piece there."""
    within = np.where(pieces.x0 <= c + TOLERANCE, _height_of_pieces(pieces, np.array(c)), 0.0)
    reached = np.where(pieces.x1 <= c + TOLERANCE, pieces.y1, within)
    return curves.steps.largest(reached)


def estimate_area(
    curves: Curves, area: PartialAUC, variance: Array | None = None, df: Array | float = np.inf
) -> PartialArea:
    """Return areas over the range of one rate, as shares of a perfect score's area, for limits."""
    steps, placed = curves.steps, place_in_area(curves, area)
    x = placed.values
    side = 0 if area.fpr is None else 1
    weight = steps.total(steps.w)
    complement = steps.total(steps.w[0] * x[0]) / weight[0] + _without_class(curves)
    # An empty or a full area is exactly 0 or 1, although it is a difference of two sums.
    complement = np.where(complement <= TOLERANCE, 0.0, complement)
    complement = np.where(complement >= 1 - TOLERANCE, 1.0, complement)
    complement = curves.to_segments(complement)
    auc = Auc.from_sums(
        1 - complement,
        complement,
        rows=curves.to_segments(steps.total(steps.n)),
        weight=curves.to_segments(weight),
        squares=curves.to_segments(steps.total(steps.w2)),
        cubes=curves.to_segments(steps.total(steps.w3)),
        first=curves.to_segments(steps.total(steps.w2 * x)),
        second=curves.to_segments(steps.total(steps.w2 * x**2)),
    )
    shares = steps.w2[side] / steps.spread(weight)[side] ** 2
    return PartialArea(
        replace(auc, design_variance=variance, df=df),
        "tpr" if area.fpr is None else "fpr",
        *(area.tpr or area.fpr or WHOLE_RANGE),
        first=curves.to_segments(steps.total(shares * placed.inside)),
        second=curves.to_segments(steps.total(shares * placed.inside**2)),
    )


def area_influences(rows: Rows, segments: SegmentRows, area: PartialAUC) -> Influence:
    """Return the influences of sampling units on areas, as shares of a perfect score's area."""
    sample = rows.sample
    assert sample is not None
    if sample.replicates is not None:
        reweighted = replicate_rows(sample, segments)
        shares = [measure_area(draw_curves(each), area) / area.largest for each in reweighted]
        return replicate_influence(np.stack(shares))
    descending = descend(segments)
    side = (descending.weight < 0).astype(np.intp)
    firsts, _ = find_steps(descending)
    step = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(side)))
    placed = place_in_area(draw_curves(descending), area).values[side, step]
    return placement_influences(sample, descending, placed)
