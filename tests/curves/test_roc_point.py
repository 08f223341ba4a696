"""Rates at rates: against plain interpolation and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import (
    FRAMES,
    WEIGHT_TYPES,
    Pair,
    Roc,
    beyond_all,
    binormal,
    mover,
    pointwise,
    roc_of,
    true_tpr,
    weight_as,
)
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc


def pointwise_turned(roc: Roc, tpr: float, fpr: float, level: float = 0.95) -> Pair:
    """Interval of the false positive rate at a true positive rate."""
    of_tpr, of_fpr = roc.rates_at(fpr, tpr, before=False)
    low, high = of_tpr.limits(level)
    moved = roc.fpr_at(low), roc.fpr_at(high)
    lower, upper = mover(fpr, of_fpr.limits(level), moved)
    return lower, (1.0 if beyond_all(1 - tpr, 1 / of_tpr.limit_sizes()[1], level) else upper)


LIMITED = ["fpr", "tpr", "tpr_low", "tpr_high"]
RATES = st.integers(0, 16).map(lambda k: k / 16)


def test_seven_rows_have_the_worked_points(seven: pl.DataFrame) -> None:
    found = wroc.roc_point(seven, "y", "s", weight="w", fpr=0.3)
    assert found.columns == ["fpr", "tpr", "tpr_low", "tpr_high", "one_sided"]
    # With 3.57 negatives 0.7**3.57 = 0.28 is the probability that none is above the threshold.
    assert found.row(0) == pytest.approx((0.3, 0.25, 0, 1.0, True))


@pytest.mark.parametrize(
    ("negatives", "level", "first"),
    [
        # The smallest rate, in thousandths, with (1 - rate)**negatives of at most (1 - level) / 2.
        (45, 0.95, 79),
        (100, 0.95, 37),
        (100, 0.8, 23),
        (2000, 0.95, 2),
    ],
)
def test_interval_is_one_sided_where_too_few_negatives_are_above(
    negatives: int, level: float, first: int
) -> None:
    rows = pl.DataFrame({"y": [0] * negatives + [1] * 60, "s": [*range(negatives)] + [10**6] * 60})
    rates = [k / 1000 for k in range(100)]
    found = wroc.roc_point(rows, "y", "s", fpr=rates, level=level)
    assert found["one_sided"].to_list() == [rate < first / 1000 - 1e-9 for rate in rates]
    # All positives are above all negatives: both limits are Wilson's, where there are two.
    low = stats.binomtest(60, 60).proportion_ci(level, "wilson").low
    expected = [0 if one else low for one in found["one_sided"]]
    assert found["tpr_low"].to_list() == pytest.approx(expected)
    assert found["tpr_high"].to_list() == [1.0] * 100
    other = rows.select(y=1 - pl.col("y"), s=-pl.col("s"))
    turned = wroc.roc_point(other, "y", "s", tpr=[1 - rate for rate in rates], level=level)
    assert turned["one_sided"].to_list() == found["one_sided"].to_list()[::-1]
    assert turned["fpr_high"].to_list() == pytest.approx([1 - x for x in expected[::-1]])


@given(FRAMES, st.lists(RATES, min_size=1, max_size=4), st.sampled_from(WEIGHT_TYPES))
def test_tpr_at_a_given_fpr_follows_its_definition(
    frame: pl.DataFrame, rates: list[float], weight_type: Any
) -> None:
    table = wroc.roc_point(frame, "y", "s", weight=weight_as("w", weight_type), fpr=rates)
    roc = roc_of(frame, weight_type)
    expected = []
    for fpr in sorted(set(rates)):
        tpr = roc.tpr_at(fpr)
        expected.append((fpr, tpr, *pointwise(roc, fpr, tpr)))
    assert table.select(LIMITED).to_numpy() == pytest.approx(np.array(expected), abs=1e-9)
    beyond = [beyond_all(fpr, roc.negatives, 0.95) for fpr in table["fpr"]]
    assert table["one_sided"].to_list() == beyond


@given(FRAMES, st.lists(RATES, min_size=1, max_size=4), st.floats(0.3, 0.999))
def test_fpr_at_a_given_tpr_follows_its_definition(
    frame: pl.DataFrame, rates: list[float], level: float
) -> None:
    table = wroc.roc_point(frame, "y", "s", weight="w", tpr=rates, level=level)
    assert table.columns == ["tpr", "fpr", "fpr_low", "fpr_high", "one_sided"]
    roc = roc_of(frame)
    expected = []
    for tpr in sorted(set(rates)):
        fpr = roc.fpr_at(tpr)
        expected.append((tpr, fpr, *pointwise_turned(roc, tpr, fpr, level)))
    found = table.drop("one_sided").to_numpy()
    assert found == pytest.approx(np.array(expected), abs=1e-9)


@given(FRAMES, st.lists(RATES, min_size=1, max_size=4))
def test_exchanged_classes_and_negated_scores_mirror_the_curve(
    frame: pl.DataFrame, rates: list[float]
) -> None:
    """A point (x, y) of one curve is the point (1 - y, 1 - x) of the other."""
    other = frame.with_columns(y=1 - pl.col("y"), s=-pl.col("s"))
    mirrored = [1 - rate for rate in rates]
    found = wroc.roc_point(frame, "y", "s", weight="w", fpr=rates)
    expected = wroc.roc_point(other, "y", "s", weight="w", tpr=mirrored).reverse()
    columns = ["tpr", "fpr", "fpr_high", "fpr_low"]
    mirror = 1 - expected.select(columns).to_numpy()
    assert found.select(LIMITED).to_numpy() == pytest.approx(mirror, abs=1e-9)
    assert found["one_sided"].to_list() == expected["one_sided"].to_list()


@given(FRAMES)
def test_ends_of_the_curve(frame: pl.DataFrame) -> None:
    """At a rate of 1 the other is certain; at 0 it is what one class has beyond the other."""
    roc = roc_of(frame)
    above, below = roc.tpr[roc.fpr == 0].max(), roc.fpr[roc.tpr == 1].min()
    start, end = wroc.roc_point(frame, "y", "s", weight="w", fpr=[0, 1]).rows(named=True)
    assert start["tpr"] == pytest.approx(above)
    assert (end["fpr"], end["tpr"], end["tpr_high"]) == (1, 1, 1)
    start, end = wroc.roc_point(frame, "y", "s", weight="w", tpr=[0, 1]).rows(named=True)
    assert (start["tpr"], start["fpr"], start["fpr_low"]) == (0, 0, 0)
    assert end["fpr"] == pytest.approx(below)


def test_step_is_read_at_its_better_end() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4, 3, 2, 1]})
    assert wroc.roc_point(frame, "y", "s", fpr=[0, 0.5])["tpr"].to_list() == [0.5, 1]
    assert wroc.roc_point(frame, "y", "s", tpr=[0.5, 1])["fpr"].to_list() == [0, 0.5]


@pytest.mark.parametrize("unit", [0.1, 0.7, 1 / 3])
def test_step_is_found_whatever_the_unit_of_the_weights(unit: float) -> None:
    frame = pl.DataFrame({"y": [1, 0] * 10, "s": range(20, 0, -1)})
    rates = [0.3, 0.6, 0.7]
    for weight in (None, pl.lit(unit)):
        of_tpr = wroc.roc_point(frame, "y", "s", fpr=rates, weight=weight)
        of_fpr = wroc.roc_point(frame, "y", "s", tpr=rates, weight=weight)
        assert of_tpr["tpr"].to_list() == pytest.approx([0.4, 0.7, 0.8])
        assert of_fpr["fpr"].to_list() == pytest.approx([0.2, 0.5, 0.6])


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (0.5, [0.5]),
        (1, [1.0]),
        ([0.5, 0.1, 0.5], [0.1, 0.5]),
        ((0, 1, 0.0), [0.0, 1.0]),
        (range(2), [0.0, 1.0]),
    ],
)
def test_rates_are_sorted_and_each_is_there_once(
    seven: pl.DataFrame, rates: Any, expected: list[float]
) -> None:
    assert wroc.roc_point(seven, "y", "s", fpr=rates)["fpr"].to_list() == expected
    assert wroc.roc_point(seven, "y", "s", tpr=rates)["tpr"].to_list() == expected


def test_points_of_groups(
    grouped: pl.DataFrame, named_groups: dict[str | None, pl.DataFrame]
) -> None:
    rates = [0.05, 0.3, 0.7]
    options: dict[str, Any] = {"weight": "w", "by": "g"}
    of_tpr = wroc.roc_point(grouped.lazy(), "y", "s", fpr=rates, **options)
    of_fpr = wroc.roc_point(grouped.lazy(), "y", "s", tpr=rates, **options)
    found, turned = (plan.collect() for plan in (of_tpr, of_fpr))
    assert found.select("g", "fpr").rows() == [
        (key, rate) for key in named_groups for rate in rates
    ]
    for i, frame in enumerate(named_groups.values()):
        roc = roc_of(frame)
        for j, rate in enumerate(rates):
            tpr, fpr = roc.tpr_at(rate), roc.fpr_at(rate)
            row = tpr, *pointwise(roc, rate, tpr)
            assert found.row(3 * i + j)[2:-1] == pytest.approx(row, abs=1e-9)
            row = fpr, *pointwise_turned(roc, rate, fpr)
            assert turned.row(3 * i + j)[2:-1] == pytest.approx(row, abs=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_points_of_one_class_are_null(grouped: pl.DataFrame, label: int) -> None:
    frame = grouped.filter((pl.col("g") != "b") | (pl.col("y") == label))
    plan = wroc.roc_point(frame.lazy(), "y", "s", weight="w", by="g", fpr=[0.2, 1])
    table = plan.collect()
    assert table.filter(g="b").rows() == [("b", rate, *[None] * 4) for rate in (0.2, 1)]
    alone = wroc.roc_point(frame.filter(g="c"), "y", "s", weight="w", fpr=[0.2, 1])
    assert_frame_equal(table.filter(g="c").drop("g"), alone, rel_tol=1e-12)


def test_rates_at_a_point_are_those_of_the_band(grouped: pl.DataFrame) -> None:
    band = wroc.roc_curve(grouped, "y", "s", by="g", band="pointwise", level=0.8)
    tops = band.group_by("g", "fpr", maintain_order=True).last().filter(g="a")
    rates = tops["fpr"].to_list()
    points = wroc.roc_point(grouped.filter(g="a"), "y", "s", fpr=rates, level=0.8)
    assert_frame_equal(points, tops.select(points.columns), abs_tol=1e-12)


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        (1.01, ValueError, "must lie between 0 and 1; found 1.01"),
        (-0.1, ValueError, "must lie between 0 and 1; found -0.1"),
        ([0.1, 95], ValueError, "must lie between 0 and 1; found 95"),
        (float("nan"), ValueError, "must lie between 0 and 1; found nan"),
        ([], ValueError, "must hold at least one number; found none"),
        ("0.1", TypeError, "must be a number or several of them; found '0.1'"),
        (["0.1"], TypeError, "must be a number; found '0.1'"),
        ([None], TypeError, "must be a number; found None"),
        (True, TypeError, "must be a number; found True"),
    ],
)
def test_rates_that_are_none(
    seven: pl.DataFrame, rates: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"`fpr` {message}"):
        wroc.roc_point(seven.lazy(), "y", "s", fpr=rates)
    with pytest.raises(error, match=f"`tpr` {message}"):
        wroc.roc_point(seven.lazy(), "y", "s", tpr=rates)


@pytest.mark.parametrize("weight", [None, "w"])
def test_interval_of_a_rate_covers_the_truth(weight: str | None) -> None:
    frame = binormal(400, 50, 100, seed=11)
    table = wroc.roc_point(frame, "y", "s", weight=weight, by="g", fpr=0.1)
    inside = table["tpr_low"].le(true_tpr(0.1)) & table["tpr_high"].ge(true_tpr(0.1))
    assert 0.90 <= inside.mean() <= 1.0
    width = table["tpr_high"] - table["tpr_low"]
    assert width.median() < 0.5  # type: ignore[operator]


@pytest.mark.parametrize("fpr", [0, 0.001, 0.005, 0.02])
def test_interval_near_fpr_0_covers_the_truth(fpr: float) -> None:
    frame = binormal(300, 50, 150, seed=13)
    table = wroc.roc_point(frame, "y", "s", by="g", fpr=fpr)
    inside = table["tpr_low"].le(true_tpr(fpr)) & table["tpr_high"].ge(true_tpr(fpr))
    # Two-sided intervals cover it in 0.10, 0.42, 0.84 and 0.92 of these samples.
    assert inside.mean() >= 0.97


@pytest.mark.parametrize(
    ("rates", "found"), [({}, "none"), ({"fpr": 0, "tpr": 1}, "`fpr` and `tpr`")]
)
def test_one_kind_of_rate_is_given(rates: dict[str, Any], found: str) -> None:
    frame = pl.DataFrame({"y": [1, 0], "s": [0.9, 0.1]})
    with pytest.raises(ValueError, match=f"one of `fpr` and `tpr` must be .*; found {found}$"):
        wroc.roc_point(frame, "y", "s", **rates)
