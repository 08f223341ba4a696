"""The hull of a curve: against other hulls and isotonic regression."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hulls import DENSITIES, h_measure, hull_auc, path
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = tuple[int, float, int]
SCORES = [-2.0, -1.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, float("inf"), float("-inf")]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(1, 5)), min_size=4
).filter(lambda rows: len({y for y, _, _ in rows}) == 2)

# Weights of the negatives and of the positives at each score, from the highest.
Steps: TypeAlias = list[tuple[float, float]]


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["y", "s", "w"], orient="row")


def curve_of(steps: Steps | Floats) -> pl.DataFrame:
    """Two rows for each score, one of each class."""
    by_class = np.asarray(steps, dtype=float)
    places = -np.arange(len(by_class), dtype=float)
    return pl.DataFrame(
        {
            "y": np.repeat([0, 1], len(by_class)),
            "s": np.tile(places, 2),
            "w": by_class.T.ravel(),
        }
    )


def auc(frame: pl.DataFrame) -> float:
    value: float = frame.select(wroc.roc_auc("y", "s", weight="w")).item()
    return value


def exact_hull_auc(frame: pl.DataFrame) -> float:
    """The monotone chain in exact numbers, and the area under it."""
    chain: list[tuple[Fraction, Fraction]] = []
    for x, y in path(frame):
        while chain[1:]:
            (x0, y0), (x1, y1) = chain[-2:]
            if (x1 - x0) * (y - y1) < (y1 - y0) * (x - x1):
                break
            chain.pop()
        chain.append((x, y))
    areas = ((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(chain))
    area = sum(areas, start=Fraction(0))
    return float(area / (chain[-1][0] * chain[-1][1]))


@given(rows=ROWS)
def test_hull_is_the_exact_one_and_that_of_scipy(rows: list[Row]) -> None:
    frame = frame_of(rows)
    found = hull_auc(frame)
    assert found == pytest.approx(exact_hull_auc(frame), abs=1e-12)
    points = np.array([[float(x), float(y)] for x, y in path(frame)])
    points = np.vstack([points / points[-1], [[1, 0]]])
    # In two dimensions the volume is the area.
    assert found == pytest.approx(ConvexHull(points).volume, abs=1e-12)


@given(rows=ROWS)
def test_hull_is_the_curve_of_the_calibrated_score(rows: list[Row]) -> None:
    frame = frame_of(rows).with_columns(pl.col("s").rank("dense"))
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    calibrated = IsotonicRegression().fit(s, y, sample_weight=w).predict(s).round(9)
    expected = roc_auc_score(y, calibrated, sample_weight=w)
    assert hull_auc(frame) == pytest.approx(expected, abs=1e-12)


@given(rows=ROWS, scale=st.sampled_from([1e-200, 0.1, 1e9]))
def test_hull_is_above_the_curve_and_depends_on_the_order_alone(
    rows: list[Row], scale: float
) -> None:
    frame = frame_of(rows)
    found = hull_auc(frame)
    assert found >= max(auc(frame), 0.5) - 1e-12
    for other in (
        frame.with_columns(pl.col("s").arctan()),
        frame.with_columns(pl.col("s").rank("dense")),
        frame.sort("w"),
        frame.select(pl.exclude("w").repeat_by("w").explode()).with_columns(w=1),
        frame.with_columns(pl.col("w") * scale),
        frame.with_columns(y=1 - pl.col("y"), s=-pl.col("s")),
    ):
        assert hull_auc(other) == pytest.approx(found, abs=1e-12)
    for density in DENSITIES:
        order = frame.with_columns(s=pl.col("s").rank("dense") * 3, w=pl.col("w") * scale)
        assert h_measure(order, density) == pytest.approx(h_measure(frame, density), abs=1e-12)


LONG = 5_000
PLACES = np.arange(LONG, dtype=float)
ONES = np.ones(LONG)
ARC = np.column_stack([PLACES + 1, LONG - PLACES])

CURVES: dict[str, Steps | Floats] = {
    "all inverted": [(1.0, 0.0)] * LONG + [(0.0, 1.0)] * LONG,
    "convex": ARC[::-1],
    "staircase": np.tile([[1.0, 0.0], [0.0, 1.0]], (50_000, 1)),
    "upper staircase": np.tile([[0.0, 1.0], [1.0, 0.0]], (50_000, 1)),
    "collinear": np.column_stack([ONES, 2 * ONES]),
    "collinear but for one": np.vstack([[1.0, 3.0], np.column_stack([ONES, 2 * ONES])]),
    # An end so high that it hides one corner of the arc after the other.
    "cascade": np.vstack([ARC, [1.0, 1e13]]),
    "cascade that stops": np.vstack([ARC, [float(LONG), LONG * 2.0]]),
    # A start so flat that it goes only when all else has.
    "flat start": np.vstack([[LONG**2 * 1.0, 0.0], ARC]),
    "arcs under an arc": np.vstack([ARC[::40] * k for k in (1.0, 2.0, 3.0)]),
    "tiny and huge": np.tile([[1e-300, 0.0], [1e9, 1.0], [0.0, 1e-300]], (500, 1)),
    "huge, then tiny": [(1e-300, 1e9), (1e-300, 1e-300), (1e9, 1e-300), (1e-300, 1e-300)],
    "one score": [(2.0, 3.0)],
}


LONGEST = {"staircase", "upper staircase", "cascade"}


@pytest.mark.parametrize("name", sweep(CURVES, fast=sorted(CURVES.keys() - LONGEST)))
def test_adversarial_curves(name: str) -> None:
    frame = curve_of(CURVES[name])
    found = hull_auc(frame)
    if name in ("all inverted", "convex", "collinear", "one score"):
        assert found == pytest.approx(0.5, abs=1e-12)
    assert found == pytest.approx(exact_hull_auc(frame), abs=1e-12)
    assert 0 <= h_measure(frame) <= 1


def test_hull_of_a_concave_curve_is_the_curve() -> None:
    frame = curve_of(ARC)
    assert hull_auc(frame) == pytest.approx(auc(frame), abs=1e-12)
    assert hull_auc(frame) > 0.8


@pytest.mark.parametrize("seed", sweep(range(6), fast=3))
def test_random_walks_of_many_scores(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = random.lognormal(sigma=seed, size=(3000, 2)) * (random.random((3000, 2)) < 0.7)
    frame = curve_of(steps)
    assert hull_auc(frame) == pytest.approx(exact_hull_auc(frame), abs=1e-12)
