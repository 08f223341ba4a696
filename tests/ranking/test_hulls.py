"""Corners of hulls against SciPy's convex hulls, areas against sums over trapezoids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from polars_wroc.arrays import Array, Ints
from polars_wroc.ranking.hulls import find_corners, is_nowhere_above, measure_areas

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def path(steps: list[tuple[int, int]]) -> tuple[Array, Array]:
    tp, fp = np.cumsum(np.array(steps, dtype=float), axis=0).T
    return tp, fp


def corners_by_scipy(tp: Array, fp: Array) -> set[tuple[float, float]]:
    """Return the corners of the hull of a curve and of all that is below it, but for the ends."""
    points = np.c_[np.append(fp, [0.0, fp[-1]]), np.append(tp, [0.0, 0.0])]
    hull = ConvexHull(points)
    vertices = {(float(x), float(y)) for x, y in points[hull.vertices]}
    return vertices - {(0.0, 0.0), (float(fp[-1]), 0.0)}


@given(STEPS)
def test_corners_are_those_of_scipy(steps: list[tuple[int, int]]) -> None:
    tp, fp = path(steps)
    if tp[-1] == 0 or fp[-1] == 0:
        return
    corners = find_corners(tp, fp, np.array([0, len(tp)]))
    assert len(corners) == len({*corners.tolist()})
    assert {(float(fp[i]), float(tp[i])) for i in corners} == corners_by_scipy(tp, fp)


@given(STEPS, STEPS)
def test_curves_do_not_meet(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    (tp, fp), (tp2, fp2) = path(one), path(other)
    starts = np.array([0, len(tp), len(tp) + len(tp2)])
    found = find_corners(np.append(tp, tp2), np.append(fp, fp2), starts)
    alone = [find_corners(*each, np.array([0, len(each[0])])) for each in ((tp, fp), (tp2, fp2))]
    assert found.tolist() == [*alone[0].tolist(), *(alone[1] + len(tp)).tolist()]


@pytest.mark.parametrize("power", [-1070, -500, 0, 1000])
def test_the_scale_of_the_weights_does_not_matter(power: int) -> None:
    random = np.random.default_rng(4)
    tp, fp = (random.integers(0, 3, 300).cumsum().astype(float) for _ in range(2))
    starts = np.array([0, 300])
    expected = find_corners(tp, fp, starts)
    assert len(expected) > 5
    assert find_corners(np.ldexp(tp, power), fp, starts).tolist() == expected.tolist()


def test_areas_are_those_of_trapezoids() -> None:
    tpr, fpr = np.array([0.5, 1.0, 0.25, 1.0]), np.array([0.25, 1.0, 0.5, 1.0])
    starts = np.array([0, 2, 2, 4])
    areas = measure_areas(tpr, fpr, starts)
    expected = [
        float(np.trapezoid(np.append(0.0, y), np.append(0.0, x)))
        for y, x in ((tpr[:2], fpr[:2]), (tpr[2:], fpr[2:]))
    ]
    assert areas[[0, 2]] == pytest.approx(expected)
    assert np.isnan(areas[1])


def test_a_point_above_an_edge_is_above_the_hull() -> None:
    hull = np.array([0.6, 1.0]), np.array([0.2, 1.0])
    assert is_nowhere_above(np.array([0.5, 1.0]), np.array([0.3, 1.0]), *hull)
    assert not is_nowhere_above(np.array([0.75, 1.0]), np.array([0.4, 1.0]), *hull)


def test_no_curves() -> None:
    none: Array = np.zeros(0)
    starts: Ints = np.zeros(1, np.int64)
    assert find_corners(none, none, starts).tolist() == []
    assert measure_areas(none, none, starts).tolist() == []
