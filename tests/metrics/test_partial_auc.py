"""Partial areas: against scikit-learn, fine grids and formulas written out row by row."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from partial_areas import summarise_area
from polars.testing import assert_frame_equal
from scipy import special, stats
from sklearn.metrics import roc_auc_score, roc_curve
from sweeps import sweep

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]
Range: TypeAlias = tuple[float, float]

GRID = (np.arange(200_000) + 0.5) / 200_000
BASELINES = ("random", "trivial")
AREAS = ["area", "max_area", "chance_area", "ratio", "corrected"]
SEVEN = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
        "y": [1, 0, 1, 0, 1, 0, 0],
        "w": [1, 2, 1, 1, 2, 1, 1],
    }
)
PERFECT = pl.DataFrame({"y": [1, 1, 0, 0, 0], "s": [5, 4, 3, 2, 1], "w": [1, 2, 1, 4, 1]})
TIED = PERFECT.with_columns(s=pl.lit(1))
ONE_CLASS = PERFECT.with_columns(y=pl.lit(1))
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(1, 5)), min_size=4, max_size=30
).filter(lambda rows: len({y for y, _, _ in rows}) == 2)


def frame_of(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["y", "s", "w"], orient="row")


def sample(seed: int, levels: int = 7, rows: int = 40) -> pl.DataFrame:
    """Weighted rows with tied scores."""
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 3 == 0
    s = np.round(levels / 4 * (random.normal(size=rows) + y))
    return pl.DataFrame({"y": y, "s": s, "w": random.lognormal(size=rows)})


def vertices(frame: pl.DataFrame) -> tuple[Floats, Floats]:
    columns = (frame[name].to_numpy() for name in ("y", "s"))
    fpr, tpr, _ = roc_curve(*columns, sample_weight=frame["w"].to_numpy(), drop_intermediate=False)
    return fpr, tpr


def height(frame: pl.DataFrame) -> Floats:
    """The true positive rate of the curve at each point of the grid."""
    fpr, tpr = vertices(frame)
    left = np.searchsorted(fpr, GRID, side="right") - 1
    slope = (tpr[left + 1] - tpr[left]) / (fpr[left + 1] - fpr[left])
    height: Floats = tpr[left] + (GRID - fpr[left]) * slope
    return height


def partial(frame: pl.DataFrame, **options: Any) -> float:
    value: float = frame.select(wroc.partial_auc("y", "s", weight="w", **options)).item()
    return value


def cost(frame: pl.DataFrame, **options: Any) -> dict[str, float]:
    areas = frame.select(wroc.cost_partial_auc("y", "s", weight="w", **options))
    return areas.unnest("cost_partial_auc").row(0, named=True)


def interval(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    return summarise_area(frame, **({"weight": "w"} | options)).row(0, named=True)


def prevalence_of(frame: pl.DataFrame) -> float:
    share: float = frame.select((pl.col("w") * pl.col("y")).sum() / pl.col("w").sum()).item()
    return share


def line(cost_fn: float, prevalence: float, baseline: str, x: Floats) -> Floats:
    """The points that cost what the baseline costs, where that is above 0."""
    slope = (1 - cost_fn) * (1 - prevalence) / (cost_fn * prevalence)
    through = prevalence + slope * (x - prevalence)
    if baseline == "trivial":
        through = slope * x if slope >= 1 else 1 - slope * (1 - x)
    clipped: Floats = np.maximum(through, 0)
    return clipped


def test_worked_partial_areas() -> None:
    assert partial(SEVEN, fpr=(0, 0.5)) == pytest.approx(0.13125)
    assert partial(SEVEN, fpr=(0, 0.5), standardize=True) == pytest.approx(0.5083, abs=5e-5)
    assert partial(SEVEN, tpr=(0.5, 1)) == pytest.approx(0.2)
    assert partial(SEVEN, fpr=(0, 0.6), tpr=(0.5, 1)) == pytest.approx(0)


@given(rows=ROWS, b=st.floats(0.01, 0.99))
def test_standardized_area_is_scikit_learns(rows: list[tuple[int, int, int]], b: float) -> None:
    frame = frame_of(rows)
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    expected = roc_auc_score(y, s, sample_weight=w, max_fpr=b)
    assert partial(frame, fpr=(0, b), standardize=True) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", sweep(range(4), fast=2))
@pytest.mark.parametrize("fpr", [(0.0, 1.0), (0.0, 0.2), (0.15, 0.55), (0.7, 1.0)])
@pytest.mark.parametrize("tpr", [(0.0, 1.0), (0.0, 0.6), (0.35, 0.8), (0.8, 1.0)])
def test_area_is_the_integral_over_a_fine_grid(seed: int, fpr: Range, tpr: Range) -> None:
    frame = sample(seed)
    inside = (fpr[0] < GRID) & (fpr[1] > GRID)
    above = np.clip(height(frame), *tpr) - tpr[0]
    expected = (above * inside).mean()
    assert partial(frame, fpr=fpr, tpr=tpr) == pytest.approx(expected, abs=1e-4)
    if fpr == (0, 1):
        assert partial(frame, tpr=tpr) == pytest.approx(expected, abs=1e-4)
    if tpr == (0, 1):
        assert partial(frame, fpr=fpr) == pytest.approx(expected, abs=1e-4)


@given(rows=ROWS, ends=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)))
def test_areas_of_adjacent_ranges_add_up(
    rows: list[tuple[int, int, int]], ends: tuple[float, float]
) -> None:
    a, b = sorted(ends)
    if a == b:
        return
    frame = frame_of(rows)
    for rate in ("fpr", "tpr"):
        parts = partial(frame, **{rate: (0, a)}) + partial(frame, **{rate: (a, b)})
        assert parts == pytest.approx(partial(frame, **{rate: (0, b)}), abs=1e-12)


@given(rows=ROWS)
def test_whole_range_is_the_auc(rows: list[tuple[int, int, int]]) -> None:
    frame = frame_of(rows)
    auc = frame.select(wroc.roc_auc("y", "s", weight="w")).item()
    for options in ({"fpr": (0, 1)}, {"tpr": (0, 1)}, {"fpr": (0, 1), "tpr": (0, 1)}):
        for standardize in (False, True, "mean"):
            found = partial(frame, **options, standardize=standardize)
            assert found == pytest.approx(auc, abs=1e-12)


RANGES: list[dict[str, Range]] = [
    {"fpr": (0, 0.3)},
    {"fpr": (0.2, 0.6)},
    {"tpr": (0.5, 1)},
    {"tpr": (0.2, 0.4)},
    {"fpr": (0.1, 0.8), "tpr": (0.3, 0.9)},
]


@pytest.mark.parametrize("ranges", RANGES)
def test_perfect_score_is_1_and_the_diagonal_one_half(ranges: dict[str, Range]) -> None:
    assert partial(PERFECT, **ranges, standardize=True) == pytest.approx(1)
    assert partial(PERFECT, **ranges, standardize="mean") == pytest.approx(1)
    assert partial(PERFECT, **ranges) == pytest.approx(
        math.prod(high - low for low, high in ranges.values())
    )
    assert partial(TIED, **ranges, standardize=True) == pytest.approx(0.5)


@pytest.mark.parametrize("ends", [(0.0, 0.4), (0.2, 0.6), (0.7, 1.0)])
@pytest.mark.parametrize("rate", ["fpr", "tpr"])
def test_standardized_areas_are_mcclishs_of_any_range(ends: Range, rate: str) -> None:
    """As in pROC: also for ranges that do not start at 0, and of the true positive rate."""
    low, high = ends
    for seed in range(3):
        frame = sample(seed)
        if rate == "fpr":
            area = (height(frame) * ((low < GRID) & (high > GRID))).mean()
            least = (high**2 - low**2) / 2
        else:
            area = (np.clip(height(frame), low, high) - low).mean()
            least = (high - low) - (high**2 - low**2) / 2
        most = high - low
        found = partial(frame, **{rate: ends}, standardize=True)
        assert found == pytest.approx((1 + (area - least) / (most - least)) / 2, abs=1e-3)
        assert partial(frame, **{rate: ends}, standardize="mean") == pytest.approx(
            area / most, abs=1e-3
        )


def test_standardized_area_under_the_diagonal_may_be_negative() -> None:
    inverted = PERFECT.with_columns(s=-pl.col("s"))
    # The area is 0, of 0.1 at most and 0.095 by chance.
    found = partial(inverted, fpr=(0.9, 1.0), standardize=True)
    assert found == pytest.approx((1 - 0.095 / 0.005) / 2, abs=1e-12)


@pytest.mark.parametrize("fpr", [(0.5, 0.8), (0.8, 1.0)])
def test_no_standardized_area_where_chance_has_all_of_it(fpr: Range) -> None:
    for frame in (PERFECT, TIED, sample(1)):
        assert partial(frame, fpr=fpr, tpr=(0.2, 0.5), standardize=True) is None
        assert partial(frame, fpr=fpr, tpr=(0.2, 0.5), standardize="mean") is not None


def test_one_class_has_no_areas() -> None:
    for frame in (ONE_CLASS, PERFECT.clear(), PERFECT.with_columns(w=pl.col("w") * pl.col("y"))):
        for ranges in RANGES:
            assert partial(frame, **ranges) is None
        for options in ({}, {"prevalence": 0.3}, {"baseline": "trivial"}):
            for cost_fn in (0, 0.3, 1):
                assert set(cost(frame, cost_fn=cost_fn, **options).values()) == {None}
        found = interval(frame, fpr=(0, 0.5))
        assert found["partial_auc"] is found["partial_auc_se"] is found["partial_auc_low"] is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fpr": (0.5, 0.5)}, ValueError, "must rise"),
        ({"tpr": (0.5, 0.2)}, ValueError, "must rise"),
        ({"fpr": (-0.1, 0.5)}, ValueError, "fpr"),
        ({"tpr": (0.5, 1.1)}, ValueError, "tpr"),
        ({}, ValueError, "found neither"),
        ({"fpr": 0.5}, TypeError, "range"),
        ({"fpr": (0, 0.5, 1)}, TypeError, "range"),
    ],
)
def test_ranges_are_checked(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wroc.partial_auc("y", "s", **options)
    with pytest.raises(error, match=message):
        wroc.PartialAUC(**options)


def test_unknown_options_are_rejected() -> None:
    for standardize in ("McClish", 2, None):
        bad: Any = standardize
        with pytest.raises(ValueError, match="standardize"):
            wroc.partial_auc("y", "s", fpr=(0, 0.5), standardize=bad)
    other: Any = "best"
    with pytest.raises(ValueError, match="baseline"):
        wroc.cost_partial_auc("y", "s", cost_fn=0.5, baseline=other)
    for costs in ({}, {"cost_fn": 1.5}, {"cost_fn": 0, "cost_fp": 0}, {"cost_fp": -1}):
        with pytest.raises(ValueError, match="cost_f"):
            wroc.cost_partial_auc("y", "s", **costs)


@pytest.mark.parametrize(
    ("baseline", "cost_fn", "expected"),
    [
        ("random", 0.5, (0.09938, 0.48889, 0.01975)),
        ("random", 0.7, (0.14781, 0.52579, 0.07165)),
        ("random", 5 / 9, (0.11125, 0.5, 0)),
        ("trivial", 0.3, (0.01071, 0.17143, 0)),
        ("trivial", 0.7, (0.04286, 0.26786, 0)),
    ],
)
def test_worked_cost_areas(
    baseline: str, cost_fn: float, expected: tuple[float, float, float]
) -> None:
    found = cost(SEVEN, cost_fn=cost_fn, baseline=baseline)
    assert [found[name] for name in AREAS[:3]] == pytest.approx(expected, abs=6e-6)
    area, most, chance = (found[name] for name in AREAS[:3])
    assert found["ratio"] == pytest.approx(area / most)
    assert found["corrected"] == pytest.approx((area - chance) / (most - chance))


@pytest.mark.parametrize("cost_fn", [0, 1])
def test_no_shares_of_an_area_where_a_perfect_score_has_none(cost_fn: float) -> None:
    # One decision for everybody costs nothing.
    found = cost(SEVEN, cost_fn=cost_fn, baseline="trivial")
    assert [found[name] for name in AREAS] == [0, 0, 0, None, None]


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("cost_fn", [0.02, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("prevalence", sweep([None, 0.05, 0.4, 0.8], fast=[0.05]))
def test_cost_areas_are_integrals_over_a_fine_grid(
    baseline: str, cost_fn: float, prevalence: float | None
) -> None:
    for seed in range(3):
        frame = sample(seed)
        share = prevalence_of(frame) if prevalence is None else prevalence
        below = line(cost_fn, share, baseline, GRID)
        found = cost(frame, cost_fn=cost_fn, baseline=baseline, prevalence=prevalence)
        curves = {"area": height(frame), "max_area": np.ones_like(GRID), "chance_area": GRID}
        for name, curve in curves.items():
            expected = np.maximum(curve - below, 0).mean()
            assert found[name] == pytest.approx(expected, abs=1e-4)


def exact_area(m: Fraction, meets: Fraction) -> Fraction:
    """Area under the curve of `SEVEN` and above max(0, a line of slope m), in exact numbers."""
    corners = [(0, 0), (0, 5), (8, 5), (12, 10), (12, 20), (20, 20)]
    total = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise((Fraction(x, 20), Fraction(y, 20)) for x, y in corners):
        if x0 == x1:
            continue

        def heights(
            x: Fraction, straight: tuple[Fraction, ...] = (x0, y0, x1, y1)
        ) -> list[Fraction]:
            """How high the curve is above 0, how high above the line, and the line above 0."""
            x0, y0, x1, y1 = straight
            y, line = y0 + (x - x0) * (y1 - y0) / (x1 - x0), meets + m * (x - meets)
            return [y, y - line, line]

        ends = zip(heights(x0), heights(x1), strict=True)
        cuts = {x0 + (x1 - x0) * u / (u - v) for u, v in ends if u * v < 0} | {x0, x1}
        for left, right in pairwise(sorted(cuts)):
            worth = [max(min(heights(x)[:2]), Fraction(0)) for x in (left, right)]
            total += (right - left) * sum(worth) / 2
    return total


@pytest.mark.parametrize("baseline", sweep(BASELINES))
@pytest.mark.parametrize("slope", [1e-9, 1e-4, 0.1, 0.8, 1.0, 1.25, 7.0, 1e4, 1e9])
def test_cost_areas_are_exact_at_any_slope(baseline: str, slope: float) -> None:
    by_costs: list[dict[str, float]] = [
        {"cost_fn": 1, "cost_fp": slope * share / (1 - share), "prevalence": share}
        for share in (0.05, 0.5, 0.8)
    ]
    by_prevalence = [
        {"cost_fn": ratio, "cost_fp": 1, "prevalence": 1 / (1 + slope * ratio)}
        for ratio in (0.5, 1.0, 3.0)
    ]
    for options in [*by_costs, *by_prevalence]:
        gain, loss, share = (Fraction(options[k]) for k in ("cost_fn", "cost_fp", "prevalence"))
        m = loss * (1 - share) / (gain * share)
        half = Fraction(1, 2)
        if baseline == "random":
            meets = share
            most = share + (half - share) / m if m >= 1 else 1 - share - m * (half - share)
            chance = share**2 * (1 - 1 / m) / 2 if m >= 1 else (1 - share) ** 2 * (1 - m) / 2
        else:
            meets, most, chance = Fraction(m < 1), min(m, 1 / m) / 2, Fraction(0)
        found = cost(SEVEN, baseline=baseline, **options)
        expected = [float(v) for v in (exact_area(m, meets), most, chance)]
        assert [found[name] for name in AREAS[:3]] == pytest.approx(expected, rel=0, abs=1e-12)


def test_only_the_ratio_of_costs_matters() -> None:
    frame = sample(4)
    expected = pytest.approx(cost(frame, cost_fn=0.75), abs=1e-12)
    for fn, fp in ((3, 1), (0.75, 0.25), (3e-200, 1e-200), (3e200, 1e200), (None, 0.25)):
        assert cost(frame, cost_fn=fn, cost_fp=fp) == expected
    assert cost(frame, cost_fn=0.7)["area"] != pytest.approx(cost(frame, cost_fn=0.75)["area"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_fn": 0, "cost_fp": 0}, r"^`cost_fn` and `cost_fp` must not both be 0; found 0 and"),
        ({}, r"^`cost_fn` or `cost_fp` must be given; found neither$"),
        ({"fpr": (0.5, 0.2)}, r"^`fpr` must rise from a lower .*; found \(0.5, 0.2\)$"),
        ({"tpr": (0.5, 0.5)}, r"^`tpr` must rise from a lower .*; found \(0.5, 0.5\)$"),
        ({"fpr": (-0.1, 0.5)}, r"^`fpr` must lie between 0 and 1; found -0.1$"),
    ],
)
def test_errors_name_the_rule_and_the_value(options: dict[str, Any], message: str) -> None:
    measure: Any = wroc.partial_auc if {"fpr", "tpr"} & set(options) else wroc.cost_partial_auc
    with pytest.raises(ValueError, match=message):
        measure("y", "s", **options)


@pytest.mark.parametrize("baseline", BASELINES)
def test_cost_areas_at_the_ends(baseline: str) -> None:
    for cost_fn in (0.0, 0.1, 0.625, 0.9, 1.0):
        perfect = cost(PERFECT, cost_fn=cost_fn, baseline=baseline, prevalence=0.3)
        assert perfect["area"] == pytest.approx(perfect["max_area"], abs=1e-12)
        tied = cost(TIED, cost_fn=cost_fn, baseline=baseline, prevalence=0.3)
        assert tied["area"] == pytest.approx(tied["chance_area"], abs=1e-12)
    nothing = baseline == "trivial"
    # A line of slope 0 or infinity.
    frame = sample(2)
    share = prevalence_of(frame)
    found = cost(frame, cost_fn=0, baseline=baseline)
    expected = 0 if nothing else partial(frame, fpr=(0, share))
    assert found["area"] == pytest.approx(expected, abs=1e-12)
    assert (found["ratio"] is None) == (found["corrected"] is None) == nothing
    found = cost(frame, cost_fn=1, baseline=baseline)
    expected = 0 if nothing else partial(frame, fpr=(0, 1), tpr=(share, 1))
    assert found["area"] == pytest.approx(expected, abs=1e-12)


def at_vertices(frame: pl.DataFrame, cost_fn: float) -> float:
    """The trapezoid rule at the curve's vertices, which misses crossings between them."""
    fpr, tpr = vertices(frame)
    useful = np.maximum(tpr - line(cost_fn, prevalence_of(frame), "random", fpr), 0)
    return float((np.diff(fpr) * (useful[1:] + useful[:-1]) / 2).sum())


@pytest.mark.parametrize("cost_fn", [0.1, 0.4, 0.8])
def test_trapezoids_at_vertices_need_many_scores(cost_fn: float) -> None:
    many = sample(3, levels=100_000, rows=6000)
    exact = cost(many, cost_fn=cost_fn)["area"]
    assert exact == pytest.approx(at_vertices(many, cost_fn), abs=1e-3)


def test_trapezoids_at_vertices_are_wrong_with_few_scores() -> None:
    few = sample(3, levels=2, rows=6000)
    below = line(0.1, prevalence_of(few), "random", GRID)
    exact = np.maximum(height(few) - below, 0).mean()
    assert cost(few, cost_fn=0.1)["area"] == pytest.approx(exact, abs=1e-5)
    assert abs(at_vertices(few, 0.1) - exact) > 0.01


def test_groups_are_measured_one_by_one(people: pl.DataFrame) -> None:
    measures = [
        wroc.partial_auc("y", "s", fpr=(0, 0.3), weight="w"),
        wroc.cost_partial_auc("y", "s", cost_fn=0.3, weight="w"),
    ]
    found = people.lazy().group_by("g").agg(measures).sort("g").collect()
    parts = people.partition_by("g", as_dict=True)
    alone = [parts[key].select(pl.lit(key[0]).alias("g"), *measures) for key in sorted(parts)]
    assert_frame_equal(found, pl.concat(alone), abs_tol=1e-12)


def test_rows_that_are_not_there_and_infinite_scores(people: pl.DataFrame) -> None:
    measures = [
        wroc.partial_auc("y", "s", fpr=(0.1, 0.3), weight="w"),
        wroc.partial_auc("y", "s", tpr=(0.5, 1), weight="w").alias("tpr"),
        wroc.partial_auc("y", "s", fpr=(0, 0.5), tpr=(0.2, 1), weight="w").alias("two-way"),
        wroc.cost_partial_auc("y", "s", cost_fn=0.3, weight="w"),
    ]
    gone = pl.DataFrame(
        {
            "g": ["a"] * 5 + ["one class"],
            "y": [True, False, None, True, False, True],
            "s": [99.0, 0.5, 99.0, None, float("nan"), 1.0],
            "w": [0.0, None, 1.0, 1.0, 1.0, 1.0],
        }
    )
    low, high = pl.col("s").min(), pl.col("s").max()
    infinite = (pl.col("s") == high).cast(pl.Int8) - (pl.col("s") == low).cast(pl.Int8)
    ends = pl.when(infinite != 0).then(infinite * float("inf")).otherwise("s")
    rows = pl.concat([gone, people.with_columns(s=ends)], how="diagonal").lazy()
    found = rows.group_by("g").agg(measures).sort("g").collect()
    expected = people.group_by("g").agg(measures).sort("g")
    assert_frame_equal(found.filter(pl.col("g") != "one class"), expected, abs_tol=1e-12)
    areas = found.filter(pl.col("g") == "one class").drop("g").unnest("cost_partial_auc")
    assert areas.row(0) == (None,) * 8


def worth(at: Range, segments: tuple[Floats, ...], end: float) -> tuple[float, float]:
    """What a row on one segment gives to the area from 0 to an end, by its class."""
    x0, y0, x1, y1 = segments
    steps = [s for s in zip(x0, y0, x1, y1, strict=True) if s[0] <= end + 1e-12]
    reach = max(
        b if c <= end + 1e-12 else y + (end - a) / (c - a) * (b - y) for a, y, c, b in steps
    )
    here = [s for s in zip(x0, y0, x1, y1, strict=True) if (s[0], s[1]) == at]
    a, y, c, b = here[0]
    upward = np.maximum(end - np.linspace(a, c, 20_001), 0)
    passed = min(max((end - a) / (c - a), 0), 1) if c > a else 0.0
    along = passed * (y + (b - y) * passed / 2 - reach) + end * reach
    return float((upward[1:] + upward[:-1]).mean() / 2), along


def placements(frame: pl.DataFrame, ends: Range) -> tuple[list[float], list[float]]:
    """The worths of the positives and of the negatives, row by row."""
    columns = (frame[name].to_numpy() for name in ("y", "s", "w"))
    y, s, w = columns
    rates = [[w[(y == k) & (s > t)].sum() / w[y == k].sum() for t in s] for k in (0, 1)]
    upto = [[w[(y == k) & (s >= t)].sum() / w[y == k].sum() for t in s] for k in (0, 1)]
    pieces = tuple(np.array(v) for v in (*rates, *upto))
    by_row = [
        np.subtract(worth(at, pieces, ends[1]), worth(at, pieces, ends[0]))
        for at in zip(*rates, strict=True)
    ]
    pos, neg = ([float(v[1 - k]) for v, c in zip(by_row, y, strict=True) if c == k] for k in (1, 0))
    return pos, neg


def variance(frame: pl.DataFrame, ends: Range) -> float:
    total = 0.0
    for of_class, y in zip(placements(frame, ends), (1, 0), strict=True):
        share = frame.filter(pl.col("y") == y)["w"].to_numpy()
        share = share / share.sum()
        base = (share**2).sum()
        factor = base / (base - 2 * (share**3).sum() + base**2)
        values = np.array(of_class)
        total += factor * (share**2 * (values - (share * values).sum()) ** 2).sum()
    return total


@pytest.mark.parametrize(
    "ends", sweep([(0.0, 0.3), (0.1, 0.4), (0.25, 1.0), (0.0, 1.0)], tuples=True)
)
def test_variance_is_that_of_the_linearised_area(ends: Range) -> None:
    for seed in range(3):
        frame = sample(seed).with_columns(pl.col("y").cast(pl.Int64))
        found = interval(frame, fpr=ends)
        assert found["partial_auc_se"] ** 2 == pytest.approx(variance(frame, ends), rel=1e-6)
        assert found["partial_auc"] == pytest.approx(partial(frame, fpr=ends), abs=1e-12)
        turned = frame.with_columns(y=1 - pl.col("y"), s=-pl.col("s"))
        by_tpr = interval(turned, tpr=(1 - ends[1], 1 - ends[0]))
        assert by_tpr["partial_auc_se"] == pytest.approx(found["partial_auc_se"], rel=1e-9)


def test_limits_on_the_logit_of_the_share_of_a_perfect_scores_area() -> None:
    found = interval(sample(0), fpr=(0.1, 0.4), method="logit")
    share, se = found["partial_auc"] / 0.3, found["partial_auc_se"] / 0.3
    logit = stats.norm(special.logit(share), se / (share * (1 - share)))
    expected = 0.3 * special.expit(logit.interval(0.95))
    assert [found["partial_auc_low"], found["partial_auc_high"]] == pytest.approx(
        list(expected), rel=1e-9
    )


# Rows whose area is 0, and would be 9e-17 by rounding.
EMPTY_AREA = [
    *[(0, 1, 4), (0, 1, 5), (0, 1, 2), (0, 2, 1)],
    *[(1, 0, 5), (1, 2, 1), (1, 2, 2), (1, 2, 2)],
]


@pytest.mark.slow(reason="tries many random rows")
@given(rows=ROWS)
@example(rows=EMPTY_AREA)
def test_intervals_agree_with_their_special_cases(rows: list[tuple[int, int, int]]) -> None:
    frame = frame_of(rows).with_row_index("c")
    auc = frame.select(wroc.roc_auc_ci("y", "s", weight="w")).item()
    for whole in ({"fpr": (0, 1)}, {"tpr": (0, 1)}):
        assert interval(frame, **whole)["partial_auc_se"] == pytest.approx(auc["auc_se"], abs=1e-12)
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode())
    for ranges in ({"fpr": (0.1, 0.4)}, {"tpr": (0.5, 0.9), "method": "logit"}):
        counted = interval(frame, weight=wroc.frequency("w"), **ranges)
        expected = interval(repeated, weight=None, **ranges)
        assert [counted[k] for k in ("partial_auc", "partial_auc_se", "partial_auc_low")] == [
            pytest.approx(expected[k], abs=1e-9)
            for k in ("partial_auc", "partial_auc_se", "partial_auc_low")
        ]
        clustered = interval(frame, design="c", **ranges)["partial_auc_se"]
        assert clustered == pytest.approx(interval(frame, **ranges)["partial_auc_se"], abs=1e-9)


def test_no_interval_without_a_variance() -> None:
    for frame in (PERFECT, TIED, ONE_CLASS):
        found = interval(frame, fpr=(0, 0.5))
        assert found["partial_auc_low"] is found["partial_auc_high"] is None


def test_interval_holds_its_level() -> None:
    random = np.random.default_rng(8)
    y = np.tile(np.arange(260) < 60, 300)
    frame = pl.DataFrame(
        {"g": np.repeat(np.arange(300), 260), "y": y, "s": random.normal(size=y.size) + y}
    )
    x = (np.arange(10_000) + 0.5) / 10_000 * 0.3
    expected = 0.3 * stats.norm.sf(stats.norm.isf(x) - 1).mean()
    inside = summarise_area(frame, by="g", fpr=(0, 0.3)).select(
        pl.lit(expected).is_between("partial_auc_low", "partial_auc_high").mean()
    )
    assert 0.90 <= inside.item() <= 0.99
