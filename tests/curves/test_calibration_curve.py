"""Calibration in bins: against scikit-learn and the definitions, row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_calibration import error_limits, sample
from polars.testing import assert_frame_equal
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve as learned_curve
from sweeps import sweep

import polars_wroc as wroc

Row: TypeAlias = tuple[bool, float, int]

CURVE = [
    "bin",
    "score_min",
    "score_max",
    "n",
    "weight",
    "mean_score",
    "observed_rate",
    "observed_rate_low",
    "observed_rate_high",
    "mean_calibration_error",
    "mean_calibration_error_low",
    "mean_calibration_error_high",
]
LARGE = "mean_calibration_error"
ERROR = [*CURVE[5:9], LARGE, f"{LARGE}_low", f"{LARGE}_high"]
ERRORS = ["expected_calibration_error", "maximum_calibration_error"]
TABLES: list[Callable[..., pl.DataFrame]] = [wroc.calibration_curve, wroc.calibration_summary]
STRATEGIES = ["uniform", "quantile"]

# Ends of bins, both ends of all, and neighbours that no binary fraction is.
SCORES = [0.0, 0.05, 0.07, 0.1, 0.2, 0.25, 0.29, 0.3, 0.5, 0.57, 0.6, 0.7, 0.9, 1 - 1e-9, 1.0]
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(SCORES), st.integers(0, 4)), min_size=1, max_size=40
)


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    schema = {"y": pl.Boolean, "s": pl.Float64, "w": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def bin_of(score: float, rows: Sequence[Row], bins: int, strategy: str) -> int:
    """The definition of a bin, in exact fractions."""
    if strategy == "uniform":
        return next(k for k in range(1, bins + 1) if score <= k / bins)
    below = sum(w for _, s, w in rows if s < score)
    share = Fraction(below, sum(w for _, _, w in rows))
    return next(k for k in range(1, bins + 1) if share < Fraction(k, bins))


def by_definition(rows: Sequence[Row], bins: int, strategy: str) -> list[dict[str, float]]:
    """Counts, means and rates of each bin."""
    there = [row for row in rows if row[2] > 0]
    members: dict[int, list[Row]] = {}
    for row in there:
        members.setdefault(bin_of(row[1], there, bins, strategy), []).append(row)
    return [
        {
            "bin": number,
            "score_min": min(s for _, s, _ in inside),
            "score_max": max(s for _, s, _ in inside),
            "n": len(inside),
            "weight": (weight := sum(w for _, _, w in inside)),
            "mean_score": (mean := sum(w * s for _, s, w in inside) / weight),
            "observed_rate": (rate := sum(w * y for y, _, w in inside) / weight),
            "mean_calibration_error": mean - rate,
        }
        for number, inside in sorted(members.items())
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(rows=ROWS, bins=st.integers(1, 12))
def test_bins_follow_their_definition(strategy: Any, rows: list[Row], bins: int) -> None:
    options: dict[str, Any] = {"weight": "w", "bins": bins, "strategy": strategy}
    found = wroc.calibration_curve(frame_of(rows), "y", "s", **options)
    expected = by_definition(rows, bins, strategy)
    assert found.height == len(expected)
    for row, numbers in zip(found.rows(named=True), expected, strict=True):
        assert {name: row[name] for name in numbers} == pytest.approx(numbers, abs=1e-12)
        # The limits of the difference are those of the rate.
        for end, other in (("low", "high"), ("high", "low")):
            limit = row["mean_score"] - row[f"observed_rate_{other}"]
            assert row[f"mean_calibration_error_{end}"] == pytest.approx(limit, abs=1e-12)
    table = wroc.calibration_summary(frame_of(rows), "y", "s", **options).row(0, named=True)
    total = sum(each["weight"] for each in expected)
    if total == 0:
        assert set(table.values()) == {0, None}
        return
    far = [abs(each["mean_calibration_error"]) for each in expected]
    mean = sum(each["weight"] * off for each, off in zip(expected, far, strict=True)) / total
    assert [table[name] for name in ERRORS] == pytest.approx([mean, max(far)], abs=1e-12)
    assert table["n"] == sum(each["n"] for each in expected)
    assert abs(table[LARGE]) <= mean + 1e-12


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("bins", [1, 2, 5, 10, 40])
def test_scikit_learn_has_the_same_bins(strategy: Any, digits: int, bins: int) -> None:
    # So many rows that each bin gets as many.
    frame = sample(digits, rows=400, digits=digits)
    rates, means = learned_curve(frame["y"], frame["s"], n_bins=bins, strategy=strategy)
    table = wroc.calibration_curve(frame, "y", "s", bins=bins, strategy=strategy)
    assert table["observed_rate"].to_list() == pytest.approx(rates.tolist(), abs=1e-12)
    assert table["mean_score"].to_list() == pytest.approx(means.tolist(), abs=1e-12)


@pytest.mark.parametrize("bins", [6, 7, 10, 49])
def test_a_score_at_the_upper_end_of_a_bin_is_in_it(bins: int) -> None:
    ends = [k / bins for k in range(1, bins + 1)]
    frame = pl.DataFrame({"y": [True] * bins, "s": ends})
    table = wroc.calibration_curve(frame, "y", "s", bins=bins)
    assert table["score_max"].to_list() == ends


def test_quantiles_put_the_same_weight_into_each_bin() -> None:
    frame = sample(5, rows=4000)
    table = wroc.calibration_curve(frame, "y", "s", weight="w", strategy="quantile", bins=20)
    largest, share = frame["w"].max(), frame["w"].sum() / 20
    assert table["bin"].to_list() == list(range(1, 21))
    assert (table["weight"] - share).abs().max() <= largest  # type: ignore[operator]
    assert (table["score_min"][1:] > table["score_max"][:-1]).all()


def test_the_error_of_a_group_is_that_of_its_curve() -> None:
    frame = sample(3)
    for strategy in STRATEGIES:
        options: dict[str, Any] = {"weight": "w", "by": "g", "strategy": strategy}
        curve = wroc.calibration_curve(frame, "y", "s", **options)
        share = pl.col("weight") / pl.col("weight").sum()
        expected = curve.group_by("g", maintain_order=True).agg(
            (share * pl.col("mean_calibration_error").abs()).sum().alias(ERRORS[0]),
            pl.col("mean_calibration_error").abs().max().alias(ERRORS[1]),
        )
        table = wroc.calibration_summary(frame, "y", "s", **options)
        assert_frame_equal(table.select("g", *ERRORS), expected, abs_tol=1e-12)
        one = wroc.calibration_curve(frame, "y", "s", weight="w", by="g", bins=1)
        names = [name.replace("mean_calibration_error", LARGE) for name in CURVE[5:]]
        assert names == ERROR
        limits = [f"{LARGE}_low", f"{LARGE}_high"]
        of_curve = one.select("g", *CURVE[5:]).rename(dict(zip(CURVE[5:], names, strict=True)))
        found = table.select("g", *ERROR).drop(limits)
        assert_frame_equal(found, of_curve.drop(limits), abs_tol=1e-12)
        for row in table.rows(named=True):
            rows = frame.filter(pl.col("g").eq_missing(row["g"])).drop_nulls(["y", "s", "w"])
            y, s, w = (rows[name].cast(float).to_numpy() for name in ("y", "s", "w"))
            limited = error_limits(y, s, w, float(norm.ppf(0.975)))
            assert [row[name] for name in limits] == pytest.approx(limited, rel=1e-9)


def test_limits_of_mean_errors_contain_those_of_the_ratio_with_uneven_weights() -> None:
    frame = sample(3)
    errors = [f"{LARGE}_low", f"{LARGE}_high"]
    uneven = wroc.calibration_summary(frame, "y", "s", weight="w", by="g")
    by_ratio = (
        uneven["mean_score"] * (1 - uneven["oe_ratio_high"]),
        uneven["mean_score"] * (1 - uneven["oe_ratio_low"]),
    )
    assert (uneven[errors[0]] <= by_ratio[0] + 1e-12).all()
    assert (uneven[errors[1]] >= by_ratio[1] - 1e-12).all()
    # With equal weights the limits have the same distance from the error.
    equal = wroc.calibration_summary(frame, "y", "s", by="g")
    middle = (equal[errors[0]] + equal[errors[1]]) / 2
    assert middle.to_list() == pytest.approx(equal[LARGE].to_list(), abs=1e-12)
    twice = frame.with_columns(w=pl.lit(2.0))
    assert_frame_equal(
        wroc.calibration_summary(twice, "y", "s", weight="w", by="g").select(errors),
        equal.select(errors),
    )


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_limits_without_weights_are_those_of_scipy(level: float) -> None:
    table = wroc.calibration_curve(sample(4), "y", "s", level=level)
    for row in table.rows(named=True):
        successes = round(row["observed_rate"] * row["n"])
        limits = binomtest(successes, row["n"]).proportion_ci(level, "wilson")
        found = row["observed_rate_low"], row["observed_rate_high"]
        assert found == pytest.approx((limits.low, limits.high), abs=1e-12)


def test_limits_with_weights_are_those_of_the_selection_rate() -> None:
    frame = sample(6)
    table = wroc.calibration_summary(frame, "y", "s", weight="w", by="g")
    # The share that a score which is the label selects.
    rates = wroc.threshold_metrics(
        frame.with_columns(t=pl.col("y").cast(pl.Float64)),
        "y",
        "t",
        weight="w",
        by="g",
        threshold=0.5,
        level=0.95,
    )
    for end in ("", "_low", "_high"):
        expected = rates[f"selection_rate{end}"].to_list()
        assert table[f"observed_rate{end}"].to_list() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", sweep(TABLES, fast=2))
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(rows=ROWS)
def test_whole_weights_are_repeated_rows(
    function: Callable[..., Any], strategy: str, rows: list[Row]
) -> None:
    frame = frame_of(rows)
    repeated = frame.select(pl.col("y", "s").repeat_by("w").explode(empty_as_null=False))
    columns = ["mean_score", "observed_rate"]
    columns += ERRORS if function is wroc.calibration_summary else ["bin", "mean_calibration_error"]
    found = function(frame, "y", "s", weight="w", strategy=strategy, bins=7)
    expected = function(repeated, "y", "s", strategy=strategy, bins=7)
    assert_frame_equal(found.select(columns), expected.select(columns), abs_tol=1e-12)


def test_limits_hold_a_calibrated_score() -> None:
    random = np.random.default_rng(11)
    rows, times = 80, 400
    scores = random.random((times, rows))
    frame = pl.DataFrame(
        {
            "g": np.repeat(np.arange(times), rows),
            "y": (random.random((times, rows)) < scores).ravel(),
            "s": scores.ravel(),
            "w": random.choice([1.0, 2.0], times * rows),
        }
    )
    bins = wroc.calibration_curve(frame, "y", "s", weight="w", by="g", bins=4)
    held = (bins["mean_calibration_error_low"] <= 0) & (bins["mean_calibration_error_high"] >= 0)
    assert 0.94 < held.mean() < 0.97  # type: ignore[operator]
    table = wroc.calibration_summary(frame, "y", "s", weight="w", by="g")
    held = (table[f"{LARGE}_low"] <= 0) & (table[f"{LARGE}_high"] >= 0)
    assert held.mean() >= 0.95  # type: ignore[operator]
    off = wroc.calibration_summary(
        frame.with_columns(pl.col("s").sqrt()), "y", "s", weight="w", bins=4
    )
    assert off[f"{LARGE}_low"][0] > 0.1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_undefined_is_null(strategy: Any) -> None:
    nothing = pl.lit(None, pl.Float64)
    frame = sample(7).with_columns(s=pl.when(pl.col("g") != "b").then("s").otherwise(nothing))
    options: dict[str, Any] = {"weight": "w", "by": "g", "strategy": strategy}
    assert wroc.calibration_curve(frame, "y", "s", **options)["g"].unique().sort().to_list() == [
        "a",
        "c",
    ]
    table = wroc.calibration_summary(frame, "y", "s", **options)
    counts, values = table.select("g", "n", "n_pos").row(1), table.select(pl.col(pl.Float64)).row(1)
    assert (*counts, {*values}) == ("b", 0, 0, {None})
    empty = frame.clear()
    assert wroc.calibration_curve(empty, "y", "s", strategy=strategy).height == 0
    assert wroc.calibration_summary(empty, "y", "s", strategy=strategy).row(0) == (
        *[None] * 25,
        *[0] * 5,
        None,
    )
    assert wroc.calibration_summary(empty, "y", "s", **options).height == 0
    huge = frame.with_columns(w=1e308)
    for function in TABLES:
        row = function(huge, "y", "s", weight="w", strategy=strategy, bins=1).row(0, named=True)
        known = {"bin", "score_min", "score_max", "n", "n_pos", "n_missing"}
        known |= {"n_extreme", "n_impossible"}
        assert {value for name, value in row.items() if name not in known} == {None}


def test_no_error_where_weights_underflow_or_overflow() -> None:
    frame = pl.DataFrame({"y": [0, 1, 1], "s": [0.1, 0.6, 0.7]})
    for weight in ([5e-324] * 3, [1.0, 1e308, 1e308]):
        table = wroc.calibration_summary(
            frame.with_columns(w=pl.Series(weight)), "y", "s", weight="w"
        )
        assert table.select(ERRORS).row(0) == (None, None)


@pytest.mark.parametrize("function", TABLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_class_and_integer_scores(function: Callable[..., Any], strategy: str) -> None:
    frame = pl.DataFrame({"y": [1, 1, 1], "s": [0, 1, 1]})
    row = function(frame, "y", "s", strategy=strategy, bins=1).row(0, named=True)
    assert row["observed_rate"] == row["observed_rate_high"] == 1
    assert 0 < row["observed_rate_low"] < 1
    assert row["mean_score"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("function", TABLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_calibration_curve_refuses_wrong_bins_and_scores(
    function: Callable[..., Any], strategy: str
) -> None:
    frame = sample(8)
    for bad in (1.5, -0.1, math.inf):
        off = frame.with_columns(s=pl.when(pl.int_range(pl.len()) == 3).then(bad).otherwise("s"))
        with pytest.raises(ValueError, match=f"`score` must be a probability.*{bad}"):
            function(off, "y", "s", by="g", strategy=strategy)
    with pytest.raises(ValueError, match=r"`by` must not take .* found 'mean_score'"):
        function(frame.rename({"g": "mean_score"}), "y", "s", by="mean_score")
    mixed = frame.with_columns(y=pl.when("y").then(1).otherwise(pl.int_range(pl.len()) % 2 - 1))
    with pytest.raises(ValueError, match="`label` must hold 0 and 1"):
        function(mixed, "y", "s", by="g", strategy=strategy)
