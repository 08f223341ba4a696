"""Each group against the rest: against scikit-learn on the rows, and exact geometry."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mpf, workdps
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.groups import subgroup_auc as subgroups

Engine: TypeAlias = Any
Curve: TypeAlias = list[tuple[Fraction, Fraction]]

SAMPLES = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
MEANS = [f"{name}_mean" for name in SAMPLES]
COLUMNS = [
    *(f"{name}{end}" for name in SAMPLES for end in ("", "_low", "_high")),
    "abroca",
    *MEANS,
    "final_score",
]


def samples_of(frame: pl.DataFrame, group: pl.Expr) -> dict[str, pl.DataFrame]:
    """The rows of each AUC: within the group, and two that cross its border."""
    positive = pl.col("y").cast(pl.Boolean)
    return {
        "subgroup_auc": frame.filter(group),
        "bpsn_auc": frame.filter((positive & ~group) | (~positive & group)),
        "bnsp_auc": frame.filter((positive & group) | (~positive & ~group)),
    }


def learned(rows: pl.DataFrame) -> float | None:
    """AUC by scikit-learn, which leaves out rows without weight."""
    rows = rows.drop_nulls(["s", "y", "w"]).filter(pl.col("w") > 0)
    if rows["y"].n_unique() < 2:
        return None
    return float(roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"]))


def curve_of(rows: pl.DataFrame) -> Curve:
    """Corners of the ROC curve in exact fractions, one for each distinct score."""
    totals = {0: Fraction(0), 1: Fraction(0)}
    points = [(Fraction(0), Fraction(0))]
    listed = [(s, int(y), Fraction(w)) for s, y, w in rows.select("s", "y", "w").rows()]
    for score in sorted({s for s, _, _ in listed}, reverse=True):
        for s, y, w in listed:
            totals[y] += w if s == score else 0
        points.append((totals[0], totals[1]))
    return [(x / totals[0], y / totals[1]) for x, y in points]


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


def distance(one: Curve, other: Curve) -> float:
    """Area between two curves: between corners and crossings the midpoint rule is exact."""
    places = sorted({x for x, _ in one + other} | crossings(one, other))
    area = Fraction(0)
    for start, end in pairwise(places):
        middle = (start + end) / 2
        area += (end - start) * abs(height(one, middle) - height(other, middle))
    return float(area)


def mean_of(values: Sequence[float], power: float) -> float:
    """Mean of a power of the values, as a value again."""
    array = np.array(values)
    if power == 0:
        return float(np.prod(array) ** (1 / len(array)))
    return float(np.mean(array**power) ** (1 / power))


FRAMES = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 6), st.integers(1, 5)),
    min_size=10,
    max_size=40,
).map(lambda rows: pl.DataFrame(rows, ["g", "y", "s", "w"], orient="row"))


@given(FRAMES)
def test_areas_follow_their_definition(frame: pl.DataFrame) -> None:
    assume(frame["y"].n_unique() == 2)
    table = wroc.subgroup_auc(frame, "y", "s", weight="w", by="g")
    for row in table.rows(named=True):
        group = pl.col("g") == row["g"]
        parts = samples_of(frame, group)
        for name, rows in parts.items():
            assert row[name] == pytest.approx(learned(rows))
        rest = frame.filter(~group)
        if learned(parts["subgroup_auc"]) is None or learned(rest) is None:
            assert row["abroca"] is None
            continue
        exact = distance(curve_of(parts["subgroup_auc"]), curve_of(rest))
        assert row["abroca"] == pytest.approx(exact, abs=1e-12)
        gap = learned(parts["subgroup_auc"]) - learned(rest)  # type: ignore[operator]
        assert row["abroca"] >= abs(gap) - 1e-12


@pytest.mark.slow
def test_weighted_groups_on_both_engines(people: pl.DataFrame, engine: Engine) -> None:
    table = wroc.subgroup_auc(people.lazy(), "y", "s", weight="w", by="g").collect(engine=engine)
    assert table.columns == ["g", *COLUMNS]
    assert set(table.dtypes[1:]) == {pl.Float64}
    assert table["g"].to_list() == ["a", "b", "c", "d"]
    for row in table.rows(named=True):
        group = pl.col("g") == row["g"]
        for name, rows in samples_of(people, group).items():
            assert row[name] == pytest.approx(learned(rows), rel=1e-10)
        curves = (curve_of(people.filter(there)) for there in (group, ~group))
        assert row["abroca"] == pytest.approx(distance(*curves), abs=1e-12)


@pytest.mark.parametrize("method", ["logit"])
def test_intervals_are_those_of_the_summary(people: pl.DataFrame, method: Any) -> None:
    options: dict[str, Any] = {"weight": "w", "method": method, "level": 0.9}
    table = wroc.subgroup_auc(people, "y", "s", by="g", **options)
    for row in table.rows(named=True):
        for name, rows in samples_of(people, pl.col("g") == row["g"]).items():
            summary = wroc.summary(rows, "y", "s", **options)
            limits = row[f"{name}_low"], row[f"{name}_high"]
            assert limits == pytest.approx(summary.select("auc_low", "auc_high").row(0))


def test_frequencies_are_repeated_rows(people: pl.DataFrame) -> None:
    counted = people.with_columns(w=pl.col("w").ceil())
    times = pl.col("w").cast(pl.Int64)
    rows = counted.select(pl.exclude("w").repeat_by(times).explode(empty_as_null=False))
    found = wroc.subgroup_auc(counted, "y", "s", weight=wroc.frequency("w"), by="g")
    assert_frame_equal(found, wroc.subgroup_auc(rows, "y", "s", by="g"), rel_tol=1e-9)


def test_worked_example(seven: pl.DataFrame) -> None:
    frame = seven.with_columns(g=pl.Series(list("abaabab")))
    table = wroc.subgroup_auc(frame, "y", "s", weight="w", by="g")
    assert table["subgroup_auc"].to_list() == pytest.approx([0.875, 1 / 3])
    assert table["bnsp_auc"].to_list() == pytest.approx([2 / 3, 0.5])
    assert table["bpsn_auc"].to_list() == pytest.approx([0.5, 2 / 3])
    assert table["abroca"].to_list() == pytest.approx([0.54167] * 2, abs=1e-5)
    curves = [curve_of(frame.filter(g=g)) for g in "ab"]
    assert table["abroca"][0] == pytest.approx(distance(*curves), abs=1e-15)


def test_two_groups_are_equally_far_from_each_other(people: pl.DataFrame) -> None:
    two = people.filter(pl.col("g").is_in(["a", "b"]))
    far = wroc.subgroup_auc(two, "y", "s", weight="w", by="g")["abroca"]
    assert far[0] == pytest.approx(far[1], abs=1e-14)
    assert far[0] > 0


def test_equal_curves_are_not_apart(people: pl.DataFrame) -> None:
    # Neither the weight of a group nor the scale of its scores matters.
    other = people.with_columns(g=pl.lit("z"), w=pl.col("w") * 8, s=pl.col("s").exp())
    frame = pl.concat([people.with_columns(g=pl.lit("a")), other])
    table = wroc.subgroup_auc(frame, "y", "s", weight="w", by="g")
    assert table["abroca"].to_list() == pytest.approx([0, 0], abs=1e-13)
    assert table["bpsn_auc"][0] != pytest.approx(table["bpsn_auc"][1])


def test_curves_at_the_two_ends_are_one_apart() -> None:
    frame = pl.DataFrame({"g": list("aabb"), "y": [1, 0, 1, 0], "s": [2.0, 1.0, 1.0, 2.0]})
    assert wroc.subgroup_auc(frame, "y", "s", by="g")["abroca"].to_list() == [1.0, 1.0]
    tied = frame.with_columns(s=pl.when(g="b").then(0.0).otherwise("s"))
    assert wroc.subgroup_auc(tied, "y", "s", by="g")["abroca"].to_list() == [0.5, 0.5]


@pytest.mark.parametrize("power", sweep([-5.0, -1, 0, 1, 2.5, -20], fast=2))
def test_means_follow_their_definition(people: pl.DataFrame, power: float) -> None:
    table = wroc.subgroup_auc(people, "y", "s", weight="w", by="g", power=power)
    expected = []
    for name, column in zip(SAMPLES, MEANS, strict=True):
        expected.append(mean_of(table[name].to_list(), power))
        assert table[column].to_list() == pytest.approx([expected[-1]] * 4, rel=1e-10)
    score = (learned(people) + sum(expected)) / 4  # type: ignore[operator]
    assert table["final_score"].to_list() == pytest.approx([score] * 4, rel=1e-10)
    if power == -5:
        assert_frame_equal(table, wroc.subgroup_auc(people, "y", "s", weight="w", by="g"))


@pytest.mark.parametrize(
    "power", sweep([-1e300, -1e4, -700, 700, 1e4, 1e300, 1e-9, -1e-17], fast=3)
)
def test_means_of_powers_beyond_numbers(people: pl.DataFrame, power: float) -> None:
    table = wroc.subgroup_auc(people, "y", "s", weight="w", by="g", power=power)
    for name, column in zip(SAMPLES, MEANS, strict=True):
        with workdps(400):
            values = [mpf(value) for value in table[name]]
            powers = [value ** mpf(power) for value in values]
            expected = float((sum(powers) / len(powers)) ** (1 / mpf(power)))
        assert table[column].to_list() == pytest.approx([expected] * 4, rel=1e-8)


def test_only_the_extreme_counts_with_a_power_beyond_numbers() -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        aucs = pl.DataFrame({"auc": [None, *random.random(4)]})
        means = aucs.select(
            low=subgroups._mean(pl.col("auc"), -1e300), high=subgroups._mean(pl.col("auc"), 1e300)
        )
        extremes = aucs.select(low=pl.col("auc").min(), high=pl.col("auc").max())
        assert_frame_equal(means, extremes)


@pytest.mark.parametrize("power", [math.inf, -math.inf, math.nan])
def test_power_that_is_no_finite_number(people: pl.DataFrame, power: float) -> None:
    with pytest.raises(ValueError, match=f"^`power` must be a finite number; found {power}$"):
        wroc.subgroup_auc(people, "y", "s", by="g", power=power)


def test_mean_by_hand() -> None:
    # AUCs of .5 and .9: by the power -5 their mean is .5685.
    a = pl.DataFrame({"y": [1, 0], "s": [1.0, 1.0]}).with_columns(g=pl.lit("a"))
    b = pl.DataFrame({"y": [1] + [0] * 10, "s": [1.5, 2.0, *[1.0] * 9]})
    frame = pl.concat([a, b.with_columns(g=pl.lit("b"))])
    table = wroc.subgroup_auc(frame, "y", "s", by="g")
    assert table["subgroup_auc"].to_list() == pytest.approx([0.5, 0.9])
    assert table["subgroup_auc_mean"][0] == pytest.approx(0.5685, abs=5e-5)


def test_what_is_undefined_is_left_out_of_the_means(people: pl.DataFrame) -> None:
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    table = wroc.subgroup_auc(frame, "y", "s", weight="w", by="g")
    row = table.row(2, named=True)
    assert [row[name] for name in (*SAMPLES[:2], "abroca")] == [None] * 3
    assert row["bnsp_auc"] == pytest.approx(
        learned(samples_of(frame, pl.col("g") == "c")["bnsp_auc"])
    )
    for name, column in zip(SAMPLES, MEANS, strict=True):
        known = table[name].drop_nulls().to_list()
        assert len(known) == (4 if name == "bnsp_auc" else 3)
        assert row[column] == pytest.approx(mean_of(known, -5))
    score = (learned(frame) + sum(row[name] for name in MEANS)) / 4
    assert row["final_score"] == pytest.approx(score)


def test_means_with_an_auc_of_zero() -> None:
    frame = pl.DataFrame({"g": list("aabb"), "y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    for power in (-5, 0):
        table = wroc.subgroup_auc(frame, "y", "s", by="g", power=power)
        assert table.select(MEANS).row(0) == (1.0, 0.0, 0.0)
        assert table["final_score"][0] == pytest.approx((0.75 + 1) / 4)
    # By a positive power it is less than their mean, but not zero.
    table = wroc.subgroup_auc(frame, "y", "s", by="g", power=0.5)
    assert table.select(MEANS).row(0) == pytest.approx((1.0, 0.25, 0.25))


def test_a_single_group_has_no_border(people: pl.DataFrame) -> None:
    row = wroc.subgroup_auc(people.filter(g="a"), "y", "s", weight="w", by="g").row(0, named=True)
    assert row["subgroup_auc"] == pytest.approx(learned(people.filter(g="a")))
    assert [row[name] for name in ("bpsn_auc", "bnsp_auc", "abroca", "final_score")] == [None] * 4


def test_null_and_several_columns_and_rows_that_miss_something(people: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    frame = people.with_columns(
        h=pl.when(place % 3 > 0).then(place % 3),
        s=pl.when(place % 7 > 0).then("s"),
        w=pl.when(place % 11 > 0).then("w").otherwise(0.0),
    )
    table = wroc.subgroup_auc(frame, "y", "s", weight="w", by=["g", "h"])
    assert table.select("g", "h").rows() == [(g, h) for g in "abcd" for h in (None, 1, 2)]
    for row in table.rows(named=True):
        group = (pl.col("g") == row["g"]) & pl.col("h").eq_missing(row["h"])
        for name, rows in samples_of(frame, group).items():
            assert row[name] == pytest.approx(learned(rows))


@pytest.mark.plans
def test_plan_can_be_shipped(people: pl.DataFrame, engine: Engine) -> None:
    plan = wroc.subgroup_auc(people.lazy(), "y", "s", weight="w", by="g")
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    expected = wroc.subgroup_auc(people, "y", "s", weight="w", by="g")
    assert_frame_equal(shipped.collect(engine=engine), expected, rel_tol=1e-12)


def test_models_are_measured_each_for_itself(people: pl.DataFrame, engine: Engine) -> None:
    models = people.with_columns(r=pl.when(pl.int_range(pl.len()) % 7 > 0).then(-pl.col("s")))
    plan = wroc.subgroup_auc(models.lazy(), "y", ["s", "r"], weight="w", by="g")
    table = plan.collect(engine=engine)
    assert table["model"].to_list() == ["s", "r"] * 4
    for model in ("s", "r"):
        alone = models.select("g", "y", "w", s=model)
        expected = wroc.subgroup_auc(alone, "y", "s", weight="w", by="g")
        assert_frame_equal(table.filter(model=model).drop("model"), expected, rel_tol=1e-9)


def test_options_are_checked(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`by` must name the groups to compare"):
        wroc.subgroup_auc(people, "y", "s", by=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`power`"):
        wroc.subgroup_auc(people, "y", "s", by="g", power=float("nan"))
