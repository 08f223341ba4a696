"""Convex hulls of curves of confusion weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from polars_wroc.arrays import Array, Ints, Mask

# Passes over all points go on while they drop at least this share of them.
_WORTHWHILE = 0.05


def find_corners(fp: Array, tp: Array, starts: Ints) -> Ints:
    """Return the places of the corners of the upper convex hull of each curve, in their order.

    Each curve begins at its origin, and neither of its weights falls along it. ``starts`` are the
    places of the origins, followed by the number of points.
    """
    fp, tp = _scale_curves(fp, starts), _scale_curves(tp, starts)
    is_start = np.zeros(len(fp), dtype=bool)
    is_start[starts[:-1]] = True
    moves = (np.diff(fp, prepend=np.nan) > 0) | (np.diff(tp, prepend=np.nan) > 0)
    places = np.flatnonzero(is_start | moves)
    number = 0
    while len(places) != number:
        number = len(places)
        is_end = np.append(is_start[places][1:], True)
        places = places[_turn_right(fp[places], tp[places]) | is_start[places] | is_end]
        if len(places) > (1 - _WORTHWHILE) * number:
            return _walk_hulls(fp, tp, places, is_start)
    return places


def _scale_curves(weight: Array, starts: Ints) -> Array:
    """Return the weights of each curve, whose total is scaled to about 1 by a power of two.

    Products of weights then do not overflow, and nothing is rounded.
    """
    _, exponent = np.frexp(weight[starts[1:] - 1])
    return np.asarray(np.ldexp(weight, np.repeat(-exponent, np.diff(starts))))


def _turn_right(fp: Array, tp: Array) -> Mask:
    """Return whether the line through the neighbours of each point passes below it.

    A point on or below the line between two others is never a corner.
    """
    run, rise = np.diff(fp, prepend=np.nan), np.diff(tp, prepend=np.nan)
    turns = np.zeros(len(fp), dtype=bool)
    turns[:-1] = run[:-1] * rise[1:] < rise[:-1] * run[1:]
    return turns


def _walk_hulls(fp: Array, tp: Array, places: Ints, is_start: Mask) -> Ints:
    """Return the corners among some points, by a walk along each curve (Andrew, 1979)."""
    begins = np.append(np.flatnonzero(is_start[places]), len(places))
    corners: list[int] = []
    for begin, end in pairwise(begins.tolist()):
        chain: list[int] = []
        for place in places[begin:end].tolist():
            while len(chain) > 1 and not _bends_down(fp, tp, (chain[-2], chain[-1], place)):
                chain.pop()
            chain.append(place)
        corners += chain
    return np.array(corners, dtype=np.int64)


def _bends_down(fp: Array, tp: Array, three: tuple[int, int, int]) -> bool:
    one, two, last = three
    run, rise = fp[two] - fp[one], tp[two] - tp[one]
    next_run, next_rise = fp[last] - fp[two], tp[last] - tp[two]
    return bool(run * next_rise < rise * next_run)
