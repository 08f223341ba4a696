"""Cost curves: against hulls and grids of costs by brute force, and against operating points."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_curve

import polars_wroc as wroc

Row: TypeAlias = tuple[int, float, int]
Exact: TypeAlias = tuple[Fraction, Fraction]

COLUMNS = ["threshold", "fpr", "fnr", "dominated", "best_from", "best_to"]
CELLS = ["tp", "fp", "fn", "tn"]
SCORES = [-math.inf, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, math.inf]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(0, 5)), min_size=2
).filter(lambda rows: {y for y, _, w in rows if w} == {0, 1})
GRID = np.linspace(0, 1, 1001)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    schema = {"y": pl.Int64, "s": pl.Float64, "w": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def points(rows: list[Row]) -> list[Exact]:
    """False positive and false negative rate from the highest threshold down, exactly."""
    there = [row for row in rows if row[2]]
    positives, negatives = (sum(w for y, _, w in there if y == k) for k in (1, 0))
    found = [(Fraction(0), Fraction(1))]
    for cut in sorted({s for _, s, _ in there}, reverse=True):
        fp, fn = (sum(w for y, s, w in there if y == k and (s >= cut) != k) for k in (0, 1))
        found.append((Fraction(fp, negatives), Fraction(fn, positives)))
    return found


def corners(curve: list[Exact]) -> list[bool]:
    """Which points are not on or above the line between any two others, by trying them all."""

    def between(k: int) -> bool:
        x, y = curve[k]
        return any(
            (x1 - x0) * (y - y0) >= (y1 - y0) * (x - x0)
            for x0, y0 in curve[:k]
            for x1, y1 in curve[k + 1 :]
        )

    return [not between(k) for k in range(len(curve))]


def area(curve: pl.DataFrame) -> float:
    """Area under the lowest of all lines, from the ranges of the table."""
    best = curve.filter(~pl.col("dominated"))
    low, high = pl.col("best_from"), pl.col("best_to")
    middle = (low + high) / 2
    cost = pl.col("fpr") * (1 - middle) + pl.col("fnr") * middle
    return float(best.select(((high - low) * cost).sum()).item())


def lowest(curve: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The lowest of all lines on the grid."""
    fpr, fnr = (curve[name].to_numpy()[:, None] for name in ("fpr", "fnr"))
    return np.asarray((fpr * (1 - GRID) + fnr * GRID).min(axis=0))


def test_seven_rows_have_the_worked_cost_curve(seven: pl.DataFrame) -> None:
    curve = wroc.cost_curve(seven, "y", "s", weight="w")
    best = curve.filter(~pl.col("dominated"))
    assert best["threshold"].to_list() == [math.inf, 0.9, 0.6, 0.3]
    expected = {"fpr": [0, 0, 0.6, 1], "fnr": [1, 0.75, 0, 0]}
    expected |= {"best_from": [0, 0, 4 / 9, 1], "best_to": [0, 4 / 9, 1, 1]}
    types = dict.fromkeys(expected, pl.Float64)
    assert_frame_equal(best.select(*expected), pl.DataFrame(expected, types, strict=False))
    assert area(curve) == pytest.approx(1 / 6, abs=1e-12)
    assert lowest(curve)[500] == pytest.approx(0.3, abs=1e-12)


def test_rates_equal_scikit_learn_in_each_group(people: pl.DataFrame) -> None:
    curves = wroc.cost_curve(people, "y", "s", weight="w", by="g")
    for (g,), part in people.group_by("g"):
        fpr, tpr, threshold = roc_curve(
            part["y"], part["s"], sample_weight=part["w"], drop_intermediate=False
        )
        expected = pl.DataFrame({"threshold": threshold, "fpr": fpr, "fnr": 1 - tpr})
        found = curves.filter(g=g).select("threshold", "fpr", "fnr")
        assert_frame_equal(found, expected, abs_tol=1e-12)


@given(rows=ROWS)
def test_dominated_are_all_but_the_corners_of_the_hull(rows: list[Row]) -> None:
    """Both classes weigh a power of two, so that no line is missed by rounding."""
    sums = [sum(w for y, _, w in rows if y == k) for k in (0, 1)]
    rows = rows + [(k, SCORES[3 * k], 2 ** (s + 1).bit_length() - s) for k, s in enumerate(sums)]
    curve = wroc.cost_curve(frame_of(rows), "y", "s", weight="w")
    exact = points(rows)
    expected = [(float(x), float(y)) for x, y in exact]
    assert curve.select("fpr", "fnr").rows() == expected
    assert curve["dominated"].to_list() == [not corner for corner in corners(exact)]


@given(rows=ROWS)
def test_no_other_line_is_lower_between_the_ends_of_a_range(rows: list[Row]) -> None:
    curve = wroc.cost_curve(frame_of(rows), "y", "s", weight="w")
    least = lowest(curve)
    for fpr, fnr, dominated, low, high in curve.select(COLUMNS[1:]).rows():
        cost = fpr * (1 - GRID) + fnr * GRID
        if dominated:
            assert (low, high) == (None, None)
            # Other lines are as low everywhere.
            others = curve.filter((pl.col("fpr") != fpr) | (pl.col("fnr") != fnr))
            assert (lowest(others) <= cost + 1e-12).all()
            continue
        inside = (low - 1e-9 <= GRID) & (high + 1e-9 >= GRID)
        outside = (low - 1e-9 > GRID) | (high + 1e-9 < GRID)
        assert cost[inside] == pytest.approx(least[inside], abs=1e-9)
        assert (cost[outside] > least[outside]).all()


@given(rows=ROWS)
def test_ranges_follow_each_other_from_0_to_1(rows: list[Row]) -> None:
    curve = wroc.cost_curve(frame_of(rows), "y", "s", weight="w")
    best = curve.filter(~pl.col("dominated"))
    ends = [0.0, *best["best_to"]]
    assert best["best_from"].to_list() == ends[:-1]
    assert ends[-1] == 1.0
    assert all(b - a > -1e-12 for a, b in pairwise(ends))
    assert best["threshold"][0] == math.inf
    assert best["threshold"][-1] == curve["threshold"][-1]


@given(rows=ROWS)
def test_area_is_the_integral_of_the_lowest_line(rows: list[Row]) -> None:
    curve = wroc.cost_curve(frame_of(rows), "y", "s", weight="w")
    assert area(curve) == pytest.approx(np.trapezoid(lowest(curve), GRID), abs=1e-5)


def test_score_that_knows_nothing_costs_the_lesser_of_both_shares() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [1.0] * 4})
    curve = wroc.cost_curve(frame, "y", "s")
    assert area(curve) == 0.25
    assert curve["best_to"].to_list() == [0.5, 1.0]


def test_points_on_a_line_are_dominated_whatever_they_weigh() -> None:
    thirds = pl.DataFrame({"y": [1, 0] * 3, "s": [3, 3, 2, 2, 1, 1]})
    assert wroc.cost_curve(thirds, "y", "s")["dominated"].to_list() == [False, True, True, False]


# Costs.

COSTS: dict[str, dict[str, Any]] = {
    "of the data": {"cost_fn": 3, "cost_fp": 1},
    "one": {"cost_fn": 0.3},
    "the other": {"cost_fp": 0.3},
    "no false negative": {"cost_fn": 0, "cost_fp": 5},
    "no false positive": {"cost_fn": 5, "cost_fp": 0},
    "of another population": {"cost_fn": 2, "cost_fp": 7, "prevalence": 0.2},
    "huge": {"cost_fn": 1e200, "cost_fp": 3e200, "prevalence": 0.7},
}


@pytest.mark.parametrize("name", COSTS)
@given(rows=ROWS)
def test_expected_cost_is_lowest_at_the_operating_point(name: str, rows: list[Row]) -> None:
    options = COSTS[name]
    curve = wroc.cost_curve(frame_of(rows), "y", "s", weight="w", **options)
    assert curve.columns == [*COLUMNS, "expected_cost", *CELLS]
    fn = options.get("cost_fn", 1 - options.get("cost_fp", 0))
    fp = options.get("cost_fp", 1 - fn)
    cells = curve.select(CELLS).row(0, named=True)
    positives, negatives = cells["fn"], cells["tn"]
    share = options.get("prevalence", positives / (positives + negatives))
    worst = fn * share / (fn * share + fp * (1 - share))
    expected = [fn * share * y + fp * (1 - share) * x for x, y in curve.select("fpr", "fnr").rows()]
    assert curve["expected_cost"].to_list() == pytest.approx(expected, abs=1e-12)
    # The first of the best is the one with the highest threshold.
    rule = wroc.rules.least_cost(
        **{name.removeprefix("cost_"): value for name, value in options.items()}
    )
    found = wroc.threshold_metrics(
        frame_of(rows), "y", "s", threshold=rule, per_group=True, level=None, weight="w"
    )
    best = next(
        row for row in curve.rows(named=True) if row["expected_cost"] <= min(expected) + 1e-12
    )
    assert [best[name] for name in ["threshold", *CELLS]] == list(
        found.select("threshold", *CELLS).row(0)
    )
    assert not best["dominated"]
    assert best["best_from"] - 1e-9 <= worst <= best["best_to"] + 1e-9


def test_costs_per_row_are_counted_row_by_row(seven: pl.DataFrame) -> None:
    curve = wroc.cost_curve(seven, "y", "s", weight="w", cost_fn=7, cost_fp=3)
    cells = (7 * curve["fn"] + 3 * curve["fp"]) / 9
    assert curve["expected_cost"].to_list() == pytest.approx(cells.to_list(), abs=1e-12)
    assert curve.filter(threshold=0.6)["expected_cost"].item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_fn": 0, "cost_fp": 0}, r"^`cost_fn` and `cost_fp` must not both be 0; found 0 "),
        ({"cost_fn": 1.5}, r"^`cost_fn` must be at most 1 .*; found 1.5$"),
        (
            {"prevalence": 0.5},
            r"^`prevalence` must be None without `cost_fn` or `cost_fp`; found 0.5$",
        ),
    ],
)
def test_costs_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.cost_curve(frame_of([]), "y", "s", **options)


# Groups, several scores and both engines.


def test_groups_and_scores_are_as_if_alone(messy: pl.DataFrame) -> None:
    rows = messy
    scores = [pl.col("s").alias("later"), (-pl.col("s")).alias("earlier")]
    options: dict[str, Any] = {"weight": "w", "cost_fn": 0.3, "prevalence": 0.2}
    lazy = wroc.cost_curve(rows.lazy(), "y", scores, by="g", **options)
    found = lazy.collect()
    alone = [
        wroc.cost_curve(rows.filter(pl.col("g").eq_missing(g)), "y", score, **options).select(
            pl.lit(g, pl.String).alias("g"), pl.lit(model).alias("model"), pl.all()
        )
        for g in (None, "a", "b", "c", "d", "one")
        for model, score in zip(("later", "earlier"), scores, strict=True)
    ]
    assert_frame_equal(found, pl.concat(alone), abs_tol=1e-12)
    names = ["g", "model", *COLUMNS, "expected_cost", *CELLS]
    texts = {"g": pl.String, "model": pl.String, "dominated": pl.Boolean}
    assert found.schema == {name: texts.get(name, pl.Float64) for name in names}
    assert found.columns == names
    one = found.filter(g="one", model="later")
    unknown = one.select(*COLUMNS[1:], "expected_cost")
    assert unknown.null_count().row(0) == (3,) * 6
    assert one["tp"].to_list() == [0.0, 1.0, 2.0]


def test_no_rows_have_an_origin_without_costs(people: pl.DataFrame) -> None:
    none = people.lazy().clear()
    found = wroc.cost_curve(none, "y", "s", weight="w", by="g").collect()
    assert (found.height, found.columns) == (0, ["g", *COLUMNS, *CELLS])
    origin = wroc.cost_curve(none, "y", "s", cost_fn=0.5).collect()
    assert origin.row(0) == (math.inf, *[None] * 6, 0.0, 0.0, 0.0, 0.0)


# Powers of two, which round nothing: a third of a weight might bend a straight line.
POWERS = st.integers(-1000, 900)


@given(one=ROWS, other=ROWS, powers=st.tuples(POWERS, POWERS))
def test_scale_of_the_weights_of_each_group_does_not_matter(
    one: list[Row], other: list[Row], powers: tuple[int, int]
) -> None:
    groups = [frame_of(rows).with_columns(g=pl.lit(k)) for k, rows in enumerate((one, other))]
    scaled = [
        group.with_columns(pl.col("w") * math.ldexp(1.0, power))
        for group, power in zip(groups, powers, strict=True)
    ]
    found, expected = (
        wroc.cost_curve(pl.concat(parts), "y", "s", weight="w", by="g").select("g", *COLUMNS)
        for parts in (scaled, groups)
    )
    assert_frame_equal(found, expected, abs_tol=1e-15)


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e307])
def test_weights_at_the_ends_of_what_there_is(weight: float) -> None:
    rows = frame_of([(1, 4.0, 1), (0, 3.0, 1), (1, 2.0, 1), (0, 1.0, 1)])
    found = wroc.cost_curve(rows.with_columns(w=pl.lit(weight)), "y", "s", weight="w")
    assert found["dominated"].to_list() == [False, False, True, False, False]
