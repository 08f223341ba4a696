"""Areas between two ROC curves, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from polars_wroc.stats.curve_areas import RocPieces, area_between, trace_roc

# Weights of rows, negative in rows of negatives, by score from the highest down.
Rows: TypeAlias = list[tuple[int, int]]
Curve: TypeAlias = list[tuple[Fraction, Fraction]]
ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(-5, 5).filter(bool)), max_size=20)


def trace(rows: Rows) -> RocPieces | None:
    step, weight = np.array(sorted(rows), dtype=np.int64).reshape(-1, 2).T
    return trace_roc(weight.astype(np.float64), step)


def corners(rows: Rows) -> Curve:
    """Corners of the ROC curve in exact fractions, one for each distinct score."""
    totals = [Fraction(sum(max(-w, 0) for _, w in rows)), Fraction(sum(max(w, 0) for _, w in rows))]
    x = y = Fraction(0)
    points = [(x, y)]
    for step in sorted({step for step, _ in rows}):
        tied = [w for each, w in rows if each == step]
        x += sum(max(-w, 0) for w in tied)
        y += sum(max(w, 0) for w in tied)
        points.append((x / totals[0], y / totals[1]))
    return points


def height(curve: Curve, x: Fraction) -> Fraction:
    """Height over a place that is under no corner of the curve."""
    (x0, y0), (x1, y1) = next(ends for ends in pairwise(curve) if ends[0][0] < x < ends[1][0])
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def crossings(one: Curve, other: Curve) -> set[Fraction]:
    """Where straight pieces of the two curves cross."""
    places = set()
    for (a0, b0), (a1, b1) in pairwise(one):
        for (c0, d0), (c1, d1) in pairwise(other):
            if a0 < a1 and c0 < c1:
                slopes = (b1 - b0) / (a1 - a0), (d1 - d0) / (c1 - c0)
                if slopes[0] != slopes[1]:
                    x = (d0 - b0 + slopes[0] * a0 - slopes[1] * c0) / (slopes[0] - slopes[1])
                    places |= {x} if max(a0, c0) < x < min(a1, c1) else set()
    return places


def exact_area(one: Curve, other: Curve) -> float:
    """Area between two curves: between corners and crossings the midpoint rule is exact."""
    places = sorted({x for x, _ in one + other} | crossings(one, other))
    area = Fraction(0)
    for start, end in pairwise(places):
        middle = (start + end) / 2
        area += (end - start) * abs(height(one, middle) - height(other, middle))
    return float(area)


# Sloped pieces, which begin at different places and cross
TIED = [(0, 3), (0, -1), (1, 2), (1, -4)]
OTHER_TIED = [(0, 1), (0, -2), (2, 4), (2, -2), (3, 1), (3, -1)]


@example(TIED, OTHER_TIED)
@given(ROWS, ROWS)
def test_areas_are_exact(one: Rows, other: Rows) -> None:
    curves = trace(one), trace(other)
    for rows, curve in zip((one, other), curves, strict=True):
        both = any(w > 0 for _, w in rows) and any(w < 0 for _, w in rows)
        assert (curve is not None) == both
    assume(curves[0] is not None and curves[1] is not None)
    assert curves[0] is not None
    assert curves[1] is not None
    area = area_between(curves[0], curves[1])
    assert area == pytest.approx(exact_area(corners(one), corners(other)), abs=1e-13)
    assert area_between(curves[1], curves[0]) == pytest.approx(area, abs=1e-15)
    assert area_between(curves[0], curves[0]) == 0


def test_curves_at_the_two_ends_are_one_apart() -> None:
    best, worst, tied = trace([(0, 1), (1, -1)]), trace([(1, 1), (0, -1)]), trace([(0, 1), (0, -1)])
    assert best is not None
    assert worst is not None
    assert tied is not None
    assert area_between(best, worst) == 1
    assert area_between(best, tied) == 0.5


@pytest.mark.parametrize("weight", [0.0, 1e-310, 1.7e308])
def test_no_curve_of_weights_whose_sums_are_no_numbers(weight: float) -> None:
    signed = np.array([weight, -weight, weight, -weight])
    with np.errstate(all="ignore"):
        assert trace_roc(signed, np.arange(4)) is None
