"""Corners of convex hulls, compared with SciPy's and by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.hulls import find_corners


def curve(seed: int, number: int) -> tuple[Array, Array]:
    """Cumulative weights of both classes from the origin; some steps have no weight."""
    random = np.random.default_rng(seed)
    weight = random.gamma(1.0, 1.0, number) * random.choice([0.0, 1.0, 1.0], number)
    is_positive = random.random(number) < 0.4
    is_positive[:2], weight[:2] = (True, False), 1.0
    sums = [np.append(0.0, np.cumsum(weight * side)) for side in (~is_positive, is_positive)]
    return sums[0], sums[1]


def points_of(places: Ints, fp: Array, tp: Array) -> set[tuple[float, float]]:
    return {(round(fp[place], 9), round(tp[place], 9)) for place in places}


@pytest.mark.parametrize("number", [2, 5, 50, 3_000])
@pytest.mark.parametrize("seed", range(5))
def test_corners_are_the_vertices_of_the_hull_by_scipy(number: int, seed: int) -> None:
    fp, tp = curve(seed, number)
    corners = find_corners(fp, tp, np.array([0, number + 1]))
    # The corner below the curve closes the region.
    hull = ConvexHull(np.c_[np.append(fp, fp[-1]), np.append(tp, 0.0)])
    vertices = [place for place in hull.vertices if place <= number]
    expected = points_of(np.array(vertices), fp, tp) - {(round(fp[-1], 9), 0.0)}
    assert points_of(corners, fp, tp) == expected
    assert (np.diff(corners) > 0).all()


def test_curves_of_any_weight_are_as_if_alone() -> None:
    curves = [curve(seed, number) for seed, number in ((1, 40), (2, 3), (3, 700))]
    scales = 1e-200, 1.0, 1e200
    starts = np.cumsum([0, *(len(fp) for fp, _ in curves)])
    fp, tp = (
        np.concatenate([each[side] * scale for each, scale in zip(curves, scales, strict=True)])
        for side in (0, 1)
    )
    expected = [
        find_corners(*each, np.array([0, len(each[0])])) + start
        for each, start in zip(curves, starts, strict=False)
    ]
    np.testing.assert_array_equal(find_corners(fp, tp, starts), np.concatenate(expected))


def test_points_on_a_line_are_no_corners() -> None:
    line = np.arange(5.0)
    np.testing.assert_array_equal(find_corners(line, line, np.array([0, 5])), [0, 4])


def test_without_curves_there_are_no_corners() -> None:
    none = np.zeros(0)
    assert find_corners(none, none, np.array([0])).shape == (0,)
