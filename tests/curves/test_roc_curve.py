"""Curves as tables: their points, their order and what thinning may do to them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from conftest import Groups
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn import metrics as sklearn_metrics

import polars_wroc as wroc

INFINITY = float("inf")

# Whole weights, so that collinear points are collinear to the last bit.
ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 12), st.integers(1, 4)), min_size=2, max_size=40
).filter(lambda rows: len({positive for positive, _, _ in rows}) == 2)


def _frame(rows: list[tuple[bool, int, int]]) -> pl.DataFrame:
    schema = {"y": pl.Boolean, "s": pl.Int64, "w": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _area(curve: pl.DataFrame) -> float:
    return float(sklearn_metrics.auc(curve["fpr"], curve["tpr"]))


def test_cells_of_the_weighted_roc_example(weighted_roc: pl.DataFrame) -> None:
    curve = wroc.roc_curve(weighted_roc, "y", "s", weight="w")
    assert curve.drop("fpr", "tpr").rows() == [
        (INFINITY, 0.0, 0.0, 10.0, 2.0),
        (3.0, 1.0, 0.0, 9.0, 2.0),
        (2.0, 1.0, 1.0, 9.0, 1.0),
        (1.0, 10.0, 2.0, 0.0, 0.0),
    ]


@pytest.mark.parametrize(
    "label",
    [pl.col("y"), (pl.col("y") + 1) // 2, pl.col("y") == 1],
    ids=["-1 and 1", "0 and 1", "boolean"],
)
def test_roc_curve_of_the_weighted_roc_example(weighted_roc: pl.DataFrame, label: pl.Expr) -> None:
    curve = wroc.roc_curve(weighted_roc, label, "s", weight="w")
    assert curve.columns == ["threshold", "fpr", "tpr", "tp", "fp", "fn", "tn"]
    points = curve.select("threshold", "fpr", "tpr").rows()
    assert points == [(INFINITY, 0.0, 0.0), (3.0, 0.0, 0.1), (2.0, 0.5, 0.1), (1.0, 1.0, 1.0)]


def test_cells_of_seven_rows_by_hand(seven: pl.DataFrame) -> None:
    curve = wroc.roc_curve(seven, "y", "s", weight="w")
    assert curve["threshold"].to_list() == [INFINITY, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3]
    assert curve["tp"].to_list() == [0, 1, 1, 2, 4, 4, 4]
    assert curve["fp"].to_list() == [0, 0, 2, 3, 3, 4, 5]


@pytest.mark.parametrize("weight", ["w", None], ids=["weighted", "unweighted"])
def test_cells_equal_scikit_learn_in_each_group(
    people: pl.DataFrame, groups: Groups, weight: str | None
) -> None:
    curves = wroc.roc_curve(people, "y", "s", weight=weight, by="g").drop("fpr", "tpr")
    for g, part in groups(people):
        weights = part[weight] if weight else None
        tns, fps, fns, tps, thresholds = sklearn_metrics.confusion_matrix_at_thresholds(
            part["y"], part["s"], sample_weight=weights
        )
        theirs = {"threshold": thresholds, "tp": tps, "fp": fps, "fn": fns, "tn": tns}
        ours = curves.filter(pl.col("g") == g).drop("g")
        expected = pl.DataFrame(theirs).cast(pl.Float64)
        assert ours.height == expected.height + 1
        assert_frame_equal(ours[1:], expected, rel_tol=0.0, abs_tol=1e-10)


def test_roc_curve_equals_scikit_learn_in_each_group(people: pl.DataFrame, groups: Groups) -> None:
    curves = wroc.roc_curve(people, "y", "s", weight="w", by="g")
    for g, part in groups(people):
        fpr, tpr, threshold = sklearn_metrics.roc_curve(
            part["y"], part["s"], sample_weight=part["w"], drop_intermediate=False
        )
        ours = curves.filter(pl.col("g") == g).select("threshold", "fpr", "tpr")
        expected = pl.DataFrame({"threshold": threshold, "fpr": fpr, "tpr": tpr})
        assert_frame_equal(ours, expected, rel_tol=0.0, abs_tol=1e-12)


def test_area_under_the_points_is_the_auc(people: pl.DataFrame) -> None:
    theirs = sklearn_metrics.roc_auc_score(people["y"], people["s"], sample_weight=people["w"])
    curve = wroc.roc_curve(people, "y", "s", weight="w")
    assert _area(curve) == pytest.approx(theirs, abs=1e-12)


def test_curve_is_monotone_and_ends_at_exactly_one() -> None:
    """A hundred thousand weights of 0.1 do not add up to a round number."""
    rows = 100_000
    frame = pl.DataFrame({"y": [True, False] * (rows // 2), "s": range(rows)})
    curve = wroc.roc_curve(frame.with_columns(w=0.1), "y", "s", weight="w")
    assert curve.select("fpr", "tpr").row(-1) == (1.0, 1.0)
    assert curve.select("fn", "tn").row(-1) == (0.0, 0.0)
    assert (curve["fpr"].diff().drop_nulls() >= 0).all()
    assert (curve["tpr"].diff().drop_nulls() >= 0).all()


def test_rows_are_sorted_by_keys_then_descending_threshold(people: pl.DataFrame) -> None:
    scores = [pl.col("s").alias("first"), (-pl.col("s")).alias("earlier")]
    rows = people.with_columns(h=pl.col("w") > 1)
    curve = wroc.roc_curve(rows, "y", scores, weight="w", by=["h", "g"])
    ranked = curve.with_columns(pl.col("model").replace_strict({"first": 0, "earlier": 1}))
    order = ["h", "g", "model", "threshold"]
    assert curve.columns[:4] == order
    assert_frame_equal(ranked, ranked.sort(order, descending=[False, False, False, True]))


@given(ROWS)
def test_drop_collinear_leaves_the_area_unchanged(rows: list[tuple[bool, int, int]]) -> None:
    frame = _frame(rows)
    whole = wroc.roc_curve(frame, "y", "s", weight="w")
    thinned = wroc.roc_curve(frame, "y", "s", weight="w", drop_collinear=True)
    assert _area(thinned) == pytest.approx(_area(whole), abs=1e-12)
    assert set(thinned.rows()) <= set(whole.rows())
    assert thinned.row(0) == whole.row(0)
    assert thinned.row(-1) == whole.row(-1)


@given(ROWS)
def test_drop_collinear_keeps_no_point_between_its_neighbours(
    rows: list[tuple[bool, int, int]],
) -> None:
    curve = wroc.roc_curve(_frame(rows), "y", "s", weight="w", drop_collinear=True)
    points = curve.select("fp", "tp").rows()
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)]
    assert all(a[0] * b[1] != a[1] * b[0] for a, b in pairwise(steps))


def test_drop_collinear_in_each_group_and_with_fractional_weights(
    people: pl.DataFrame, groups: Groups
) -> None:
    whole = wroc.roc_curve(people, "y", "s", weight="w", by="g")
    thinned = wroc.roc_curve(people, "y", "s", weight="w", by="g", drop_collinear=True)
    for g, part in groups(thinned):
        ours, all_points = part, whole.filter(pl.col("g") == g)
        assert _area(ours) == pytest.approx(_area(all_points), abs=1e-12)
        steps = ours.select(pl.col("fp", "tp").diff())[1:]
        flat = [row[0] == 0 for row in steps.rows()]
        steep = [row[1] == 0 for row in steps.rows()]
        assert not any(a and b for a, b in pairwise(flat))
        assert not any(a and b for a, b in pairwise(steep))


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e170])
def test_drop_collinear_does_not_depend_on_the_scale_of_the_weights(scale: float) -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4, 3, 2, 1]}).with_columns(w=scale)
    curve = wroc.roc_curve(frame, "y", "s", weight="w", drop_collinear=True)
    assert curve["threshold"].to_list() == [INFINITY, 4.0, 3.0, 2.0, 1.0]


def test_drop_collinear_keeps_the_corner_at_a_weight_too_small_to_count() -> None:
    """The second row moves the curve by less than a rounding error."""
    frame = pl.DataFrame({"y": [1, 1, 0], "s": [3, 2, 1], "w": [1.0, 1e-20, 1.0]})
    curve = wroc.roc_curve(frame, "y", "s", weight="w", drop_collinear=True)
    assert _area(curve) == 1.0


@pytest.mark.parametrize("drop_collinear", [False, True])
@pytest.mark.parametrize("max_points", [3, 4, 10, 100, 10_000])
def test_max_points_keeps_few_points_and_says_what_that_changes(
    people: pl.DataFrame, groups: Groups, max_points: int, *, drop_collinear: bool
) -> None:
    whole = wroc.roc_curve(people, "y", "s", weight="w", by="g")
    thinned = wroc.roc_curve(
        people, "y", "s", weight="w", by="g", drop_collinear=drop_collinear, max_points=max_points
    )
    assert thinned["g"].unique().sort().to_list() == ["a", "b", "c", "d"]
    for g, part in groups(thinned):
        all_points = whole.filter(pl.col("g") == g)
        assert part.height <= max_points
        ends = part.drop("g", "auc_change")[[0, -1]]
        assert_frame_equal(ends, all_points.drop("g")[[0, -1]], rel_tol=0.0, abs_tol=1e-10)
        change = part["auc_change"].unique().item()
        assert change == pytest.approx(_area(part) - _area(all_points), abs=1e-12)
        assert abs(change) <= 1 / (max_points - 2) + 1e-12


@given(ROWS, st.integers(3, 12))
@example([(False, 0, 1), (False, 0, 1), (False, 1, 1), (False, 1, 1), (True, 1, 1)], 4)
def test_max_points_keeps_points_of_the_curve(
    rows: list[tuple[bool, int, int]], max_points: int
) -> None:
    whole = wroc.roc_curve(_frame(rows), "y", "s", weight="w")
    thinned = wroc.roc_curve(_frame(rows), "y", "s", weight="w", max_points=max_points)
    points = thinned.drop("auc_change")
    assert set(points.rows()) <= set(whole.rows())
    assert points.height <= max_points
    assert {points.row(0), points.row(-1)} == {whole.row(0), whole.row(-1)}
    change = thinned["auc_change"][0]
    assert change == pytest.approx(_area(points) - _area(whole), abs=1e-12)
    assert abs(change) <= 1 / (max_points - 2) + 1e-12


def test_max_points_above_the_number_of_points_keeps_all_points_of_equal_steps() -> None:
    """Every step of this curve is a part of its own."""
    frame = pl.DataFrame({"y": [1, 0] * 4, "s": range(8)})
    whole = wroc.roc_curve(frame, "y", "s")
    thinned = wroc.roc_curve(frame, "y", "s", max_points=9)
    assert_frame_equal(thinned.drop("auc_change"), whole)
    assert thinned["auc_change"].to_list() == [0.0] * 9


@pytest.mark.slow(reason="has a large table")
def test_sums_round_alike_at_each_run_and_in_both_engines() -> None:
    random = np.random.default_rng(3)
    rows = 1_000_000
    frame = pl.LazyFrame(
        {
            "y": random.random(rows) < 0.3,
            "s": random.integers(0, 50, rows),
            "w": random.lognormal(size=rows),
        }
    )
    curve = wroc.roc_curve(frame, "y", "s", weight="w")
    expected = curve.collect()
    for engine in ("streaming", "in-memory", "streaming", "streaming"):
        assert curve.collect(engine=engine).equals(expected)
