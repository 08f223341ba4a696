"""Convex hulls of ROC curves, and the areas below curves.

Points of a curve are the weights of positives and of negatives with at least each score, or both
rates there. They rise along the curve from the origin, which need not be one of the points.
"""

from __future__ import annotations

import numpy as np

from polars_wroc.arrays import TOLERANCE, Array, Ints, Mask

# No pass follows a pass that drops a smaller proportion of the points than this.
_WORTHWHILE = 0.1
# Powers of two beyond this have no inverse that is a float.
_MOST_EXPONENT = 1022


def find_corners(tp: Array, fp: Array, starts: Ints) -> Ints:
    """Return the places of the points that are corners of the hull of their curve, in order.

    ``starts`` are the places of the first points of the curves, followed by the number of points.
    The origin is a corner of each curve, but not among these.
    """
    curve = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    tp, fp = (_scale_to_one(weight, starts) for weight in (tp, fp))
    left = np.flatnonzero(_moves(tp, fp, curve))
    while True:
        # A point on or below the line between two others is never a corner, so that all such
        # points can be dropped at once.
        corners = left[_turns_right(tp[left], fp[left], curve[left])]
        if len(corners) >= (1 - _WORTHWHILE) * len(left):
            break
        left = corners
    if len(corners) == len(left):
        return corners
    return _find_corners_of_few(corners, tp, fp, curve)


def find_differences(values: Array, starts: Ints) -> Array:
    """Return each value of a curve minus the value before it; 0 comes before the first."""
    return values - _shift(values, starts)


def measure_areas(tpr: Array, fpr: Array, starts: Ints) -> Array:
    """Return the area below each curve of rates, from the origin on."""
    area = find_differences(fpr, starts) * (tpr + _shift(tpr, starts)) / 2
    filled = np.flatnonzero(np.diff(starts) > 0)
    areas = np.full(len(starts) - 1, np.nan)
    if len(filled):
        areas[filled] = np.add.reduceat(area, starts[filled])
    return areas


def is_nowhere_above(tpr: Array, fpr: Array, hull_tpr: Array, hull_fpr: Array) -> bool:
    """Return whether no point is above a hull, given its corners after the origin."""
    start = np.array([0, len(hull_tpr)])
    # Heights above the line of each edge, times its width: a hull is below all its lines.
    run, rise = find_differences(hull_fpr, start), find_differences(hull_tpr, start)
    height = run * np.subtract.outer(tpr, hull_tpr) - rise * np.subtract.outer(fpr, hull_fpr)
    return bool((height <= TOLERANCE).all())


def is_smaller(area: float, other: float) -> bool:
    """Return whether an area is smaller than another one by more than rounding."""
    return area < other - TOLERANCE


def _scale_to_one(weight: Array, starts: Ints) -> Array:
    """Scale the weights of each curve to about 1, so that products neither over- nor underflow.

    The scale of a class does not change the corners, and powers of two do not round.
    """
    lengths = np.diff(starts)
    total = np.zeros(len(lengths))
    total[lengths > 0] = weight[starts[1:][lengths > 0] - 1]
    is_known = (total > 0) & np.isfinite(total)
    exponent = np.frexp(np.where(is_known, total, 1.0))[1] - 1
    scale = np.ldexp(1.0, -np.clip(exponent, -_MOST_EXPONENT, _MOST_EXPONENT))
    return np.asarray(weight * np.repeat(scale, lengths))


def _shift(values: Array, starts: Ints) -> Array:
    """Return the values before each point of its curve: 0 before the first."""
    before = np.empty_like(values)
    before[1:] = values[:-1]
    before[starts[:-1][np.diff(starts) > 0]] = 0.0
    return before


def _steps_of(tp: Array, fp: Array, curve: Ints) -> tuple[Array, Array, Mask]:
    """Return each point's distance from the point before it, and whether it is the last one."""
    is_first = np.ones(len(curve), dtype=bool)
    is_first[1:] = curve[1:] != curve[:-1]
    starts = np.append(np.flatnonzero(is_first), len(curve))
    is_last = np.zeros(len(curve), dtype=bool)
    is_last[starts[1:] - 1] = True
    return find_differences(fp, starts), find_differences(tp, starts), is_last


def _moves(tp: Array, fp: Array, curve: Ints) -> Mask:
    """Return whether each point differs from the one before it; a corner does."""
    run, rise, _ = _steps_of(tp, fp, curve)
    return np.asarray((run > 0) | (rise > 0))


def _turns_right(tp: Array, fp: Array, curve: Ints) -> Mask:
    """Return whether each point is above the line through its neighbours; true if it is last."""
    run, rise, is_last = _steps_of(tp, fp, curve)
    turns = np.array(is_last)
    turns[:-1] |= run[:-1] * rise[1:] < rise[:-1] * run[1:]
    return turns


def _find_corners_of_few(places: Ints, tp: Array, fp: Array, curve: Ints) -> Ints:
    """Return the corners among some points, which are added one by one (Andrew's algorithm)."""
    corners: list[int] = []
    chain: list[tuple[int, float, float]] = []
    of_chain = -1
    points = zip(
        places.tolist(),
        curve[places].tolist(),
        tp[places].tolist(),
        fp[places].tolist(),
        strict=True,
    )
    for place, number, y, x in points:
        if number != of_chain:
            corners += [corner for corner, _, _ in chain]
            chain, of_chain = [], number
        while chain and not _bends_down(chain, y, x):
            chain.pop()
        chain.append((place, y, x))
    corners += [corner for corner, _, _ in chain]
    return np.array(corners, dtype=np.int64)


def _bends_down(chain: list[tuple[int, float, float]], y: float, x: float) -> bool:
    """Return whether a curve bends down at the last point of a chain, if one more follows."""
    _, last_y, last_x = chain[-1]
    _, before_y, before_x = chain[-2] if len(chain) > 1 else (0, 0.0, 0.0)
    return (last_x - before_x) * (y - last_y) < (last_y - before_y) * (x - last_x)
