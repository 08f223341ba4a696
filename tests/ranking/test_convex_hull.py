"""The hull of a curve: against other hulls, isotonic regression and integrals over all costs."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal
from processes import PLAIN
from scipy import stats
from scipy.spatial import ConvexHull
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Density: TypeAlias = Literal["beta22", "hmeasure"]
Floats: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = tuple[int, float, int]

DENSITIES: list[Density] = ["beta22", "hmeasure"]
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


def sample(seed: int, prevalence: float = 0.3, rows: int = 60) -> pl.DataFrame:
    """Weighted rows with tied scores, of which the positives weigh a given share."""
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    w = random.lognormal(size=rows)
    for label, share in ((1, prevalence), (0, 1 - prevalence)):
        w[y == label] *= share / w[y == label].sum()
    return pl.DataFrame({"y": y, "s": np.round(random.normal(size=rows) + y, 1), "w": w})


def hull_auc(frame: pl.DataFrame) -> float:
    value: float = frame.select(wroc.roc_hull_auc("y", "s", weight="w")).item()
    return value


def auc(frame: pl.DataFrame) -> float:
    value: float = frame.select(wroc.roc_auc("y", "s", weight="w")).item()
    return value


def h_measure(frame: pl.DataFrame, density: Density = "beta22") -> float:
    value: float = frame.select(wroc.h_measure("y", "s", weight="w", density=density)).item()
    return value


def path(frame: pl.DataFrame) -> Iterator[tuple[Fraction, Fraction]]:
    """Exact cumulative weights: of the negatives and of the positives."""
    fp = tp = Fraction(0)
    yield fp, tp
    rows = frame.filter(pl.col("w") > 0).sort("s", descending=True)
    ends = rows["s"].ne_missing(rows["s"].shift(-1))
    for y, w, ends_tie in zip(rows["y"], rows["w"], ends, strict=True):
        if y:
            tp += Fraction(w)
        else:
            fp += Fraction(w)
        if ends_tie:
            yield fp, tp


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


def test_worked_values(seven: pl.DataFrame) -> None:
    # The corners (0, 0), (0, 1), (3, 4) and (5, 4), in weight.
    assert hull_auc(seven) == pytest.approx((3 * 2.5 + 2 * 4) / 20, abs=1e-12)
    assert h_measure(seven) == pytest.approx(0.32333, abs=5e-6)


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
    "tiny beside huge": np.tile([[1e-300, 0.0], [1e9, 1.0], [0.0, 1e-300]], (500, 1)),
    "huge, then tiny": [(1e-300, 1e9), (1e-300, 1e-300), (1e9, 1e-300), (1e-300, 1e-300)],
    "one score": [(2.0, 3.0)],
}


@pytest.mark.parametrize("name", CURVES)
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


@pytest.mark.parametrize("seed", range(6))
def test_random_walks_of_many_scores(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = random.lognormal(sigma=seed, size=(3000, 2)) * (random.random((3000, 2)) < 0.7)
    frame = curve_of(steps)
    assert hull_auc(frame) == pytest.approx(exact_hull_auc(frame), abs=1e-12)


def loss_over_costs(frame: pl.DataFrame, density: Density) -> float:
    """The H-measure as one integral over a grid that is fine at both ends."""
    logit = np.linspace(-40, 40, 100_001)
    # The two costs of an error, each without the rounding of 1 - the other.
    cost, rest = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    fp, tp = (np.array(v, dtype=float) for v in zip(*path(frame), strict=True))
    negatives, positives = fp[-1], tp[-1]
    prevalence = positives / (positives + negatives)
    second = 2 if density == "beta22" else 1 / prevalence
    share = stats.beta.pdf(cost, 2, second) * cost * rest
    best = np.full_like(cost, np.inf)
    for false_pos, true_pos in zip(fp, tp, strict=True):
        best = np.minimum(best, cost * false_pos + rest * (positives - true_pos))
    without = np.minimum(cost * negatives, rest * positives)
    return float(1 - (best * share).sum() / (without * share).sum())


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("prevalence", [1e-4, 0.02, 0.3, 0.5, 0.9, 1 - 1e-4])
def test_h_measure_is_the_loss_averaged_over_costs(density: Density, prevalence: float) -> None:
    for seed in range(3):
        frame = sample(seed, prevalence)
        expected = loss_over_costs(frame, density)
        assert 0 < expected < 1
        assert h_measure(frame, density) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("prevalence", [1e-4, 0.3, 1 - 1e-4])
def test_perfect_and_useless_scores(density: Density, prevalence: float) -> None:
    frame = sample(1, prevalence)
    assert h_measure(frame.with_columns(s="y"), density) == pytest.approx(1, abs=1e-6)
    assert h_measure(frame.with_columns(s=1), density) == pytest.approx(0, abs=1e-6)
    assert h_measure(frame.with_columns(s=-pl.col("y")), density) == pytest.approx(0, abs=1e-6)


def test_unknown_density() -> None:
    other: Any = "beta"
    with pytest.raises(
        ValueError, match=r"^`density` must be one of 'beta22', 'hmeasure'; found 'beta'$"
    ):
        wroc.h_measure("y", "s", density=other)


MEASURES = [
    wroc.roc_hull_auc("y", "s", weight="w"),
    wroc.h_measure("y", "s", weight="w"),
    wroc.h_measure("y", "s", weight="w", density="hmeasure").alias("h"),
]


def test_groups_are_as_if_alone(people: pl.DataFrame, engine: Engine) -> None:
    groups = [people.with_columns(pl.col("g") + str(k), pl.col("w") + k) for k in range(12)]
    alien = pl.DataFrame(
        {
            "g": ["d1", "d1", "d1", "d1", "one class", "nobody"],
            "y": [True, False, None, True, True, False],
            "s": [float("nan"), 99.0, 99.0, None, 1.0, 1.0],
            "w": [1.0, 0.0, 1.0, 1.0, 1.0, 0.0],
        }
    )
    rows = pl.concat([*groups, alien], how="diagonal").sample(fraction=1, shuffle=True, seed=1)
    found = rows.lazy().group_by("g").agg(MEASURES).sort("g").collect(engine=engine)
    parts = pl.concat(groups).partition_by("g", as_dict=True)
    alone = [parts[key].select(pl.lit(key[0]).alias("g"), *MEASURES) for key in sorted(parts)]
    names = ["one class", "nobody"]
    known = found.filter(~pl.col("g").is_in(names))
    assert_frame_equal(known, pl.concat(alone), abs_tol=1e-12)
    others = found.filter(pl.col("g").is_in(names))
    assert others.select(pl.exclude("g")).rows() == [(None,) * 3] * 2
    windows = rows.lazy().select("g", *(one.over("g") for one in MEASURES)).unique().sort("g")
    assert_frame_equal(windows.collect(engine=engine), found, abs_tol=1e-12)


def test_no_rows_and_bad_rows(people: pl.DataFrame, engine: Engine) -> None:
    none = people.lazy().clear()
    assert none.select(MEASURES).collect(engine=engine).row(0) == (None,) * 3
    assert none.group_by("g").agg(MEASURES).collect(engine=engine).is_empty()
    with pytest.raises(InvalidOperationError, match="`weight` must be finite and zero or more"):
        people.lazy().with_columns(w=pl.lit(-1)).select(MEASURES).collect(engine=engine)


def test_plan_can_be_shipped(people: pl.DataFrame, tmp_path: Path, engine: Engine) -> None:
    plan = people.lazy().group_by("g").agg(MEASURES).sort("g")
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    assert_frame_equal(shipped.collect(engine=engine), plan.collect(), rel_tol=1e-12)
    (tmp_path / "plan").write_bytes(plan.serialize())
    # Where nothing of this package was imported.
    code = "import polars, sys; polars.LazyFrame.deserialize(sys.argv[1]).collect().write_csv()"
    call = [sys.executable, "-c", code, str(tmp_path / "plan")]
    subprocess.run(call, env=PLAIN, check=True)  # noqa: S603
