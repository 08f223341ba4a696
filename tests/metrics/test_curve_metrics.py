"""Precision-recall area, equal error rate, and several metrics of one curve for one sort."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeAlias, get_args

import numpy as np
import polars as pl
import pytest
from calls import one_metric
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from queries import LOSSES
from scipy import integrate, optimize
from sklearn.metrics import average_precision_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.typing import MetricName

Row: TypeAlias = tuple[int, float, int]
Point: TypeAlias = tuple[float, float]

# The scores here are no probabilities.
NAMES: list[MetricName] = [name for name in get_args(MetricName) if name not in LOSSES]
AREAS: dict[str, dict[str, Any]] = {
    "early": {"fpr": (0.0, 0.3)},
    "standardized": {"fpr": (0.1, 0.6), "standardize": True},
    "late": {"tpr": (0.5, 1.0), "standardize": "mean"},
    "two-way": {"fpr": (0.0, 0.4), "tpr": (0.3, 1.0), "standardize": True},
}
COSTS: dict[str, dict[str, Any]] = {
    "area": {"cost_fn": 0.3},
    "max_area": {"cost_fn": 2.0, "cost_fp": 1.0, "value": "max_area"},
    "chance_area": {"cost_fp": 0.2, "value": "chance_area"},
    "ratio": {"cost_fn": 0.7, "prevalence": 0.1, "value": "ratio"},
    "corrected": {"cost_fn": 0.4, "baseline": "trivial", "value": "corrected"},
}
EVERYTHING: dict[str, Any] = {
    **{name: name for name in NAMES},
    **{name: wroc.PartialAUC(**options) for name, options in AREAS.items()},
    **{name: wroc.CostPartialAUC(**options) for name, options in COSTS.items()},
}
SCORES = [-1.5, 0.0, 0.5, 1.0, 2.0, float("inf"), float("-inf")]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(1, 5)), min_size=2
).filter(lambda rows: len({y for y, _, _ in rows}) == 2)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["y", "s", "w"], orient="row")


def alone() -> dict[str, pl.Expr]:
    """Each metric of EVERYTHING as the function that gives it by itself."""
    found: dict[str, pl.Expr]
    found = {name: one_metric(name, weight="w") for name in NAMES}
    for name, options in AREAS.items():
        found[name] = wroc.partial_auc("y", "s", weight="w", **options)
    for name, options in COSTS.items():
        rest = {option: value for option, value in options.items() if option != "value"}
        areas = wroc.cost_partial_auc("y", "s", weight="w", **rest)
        found[name] = areas.struct.field(options.get("value", "area"))
    return found


def one(frame: pl.DataFrame, name: str) -> float:
    value: float = frame.select(one_metric(name, weight="w")).item()
    return value


def together(metrics: Any = EVERYTHING) -> pl.Expr:
    return wroc.curve_metrics("y", "s", metrics=metrics, weight="w")


def steps(rows: list[Row]) -> Iterator[tuple[Point, Point]]:
    """Weights above each score, negatives first, and at least as high as it."""
    for score in sorted({s for _, s, _ in rows}, reverse=True):
        above, upto = (
            (
                float(
                    sum(w for y, s, w in rows if y == 0 and (s > score or (ties and s == score)))
                ),
                float(
                    sum(w for y, s, w in rows if y == 1 and (s > score or (ties and s == score)))
                ),
            )
            for ties in (False, True)
        )
        yield above, upto


def test_worked_values(seven: pl.DataFrame) -> None:
    assert one(seven, "pr_auc") == pytest.approx(0.59072, abs=5e-6)
    assert one(seven, "equal_error_rate") == pytest.approx(5 / 9, abs=1e-12)


@given(rows=ROWS)
def test_pr_auc_is_the_integral_of_precision_along_the_curve(rows: list[Row]) -> None:
    expected = 0.0
    for (fp, tp), (next_fp, next_tp) in steps(rows):
        run, rise = next_fp - fp, next_tp - tp

        def precision(t: float, at: Point = (fp, tp), by: Point = (run, rise)) -> float:
            return (at[1] + t * by[1]) / (sum(at) + t * sum(by))

        area, _ = integrate.quad(precision, 0, 1, epsabs=1e-12)
        expected += rise * area
    expected /= sum(w for y, _, w in rows if y == 1)
    assert one(frame_of(rows), "pr_auc") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_pr_auc_is_the_average_precision_of_ties_that_are_split(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    y, s = np.repeat([1, 0], 7), np.tile(np.arange(7.0), 2)
    w = numbers.lognormal(size=14) * (numbers.random(14) < 0.8)
    parts = 4000
    split = np.tile(np.arange(parts) / parts / 2, 14) + np.repeat(s, parts)
    fine = average_precision_score(
        np.repeat(y, parts), split, sample_weight=np.repeat(w, parts) / parts
    )
    frame = pl.DataFrame({"y": y, "s": s, "w": w})
    assert one(frame, "pr_auc") == pytest.approx(fine, abs=1e-3)


@given(rows=ROWS)
def test_equal_error_rate_is_where_the_curve_meets_the_falling_diagonal(rows: list[Row]) -> None:
    curve = [(0.0, 0.0), *(upto for _, upto in steps(rows))]
    fpr, tpr = (np.array(weights) / weights[-1] for weights in zip(*curve, strict=True))
    places = np.arange(len(curve))

    def excess(place: float) -> float:
        return float(1 - np.interp(place, places, tpr) - np.interp(place, places, fpr))

    expected = np.interp(optimize.brentq(excess, 0, places[-1], xtol=1e-14), places, fpr)
    assert one(frame_of(rows), "equal_error_rate") == pytest.approx(expected, abs=1e-11)


def test_perfect_useless_and_inverted_scores() -> None:
    perfect = pl.DataFrame({"y": [1, 1, 0, 0], "s": [4, 3, 2, 1], "w": [1.0, 2.0, 4.0, 5.0]})
    assert one(perfect, "pr_auc") == pytest.approx(1, abs=1e-12)
    assert one(perfect, "equal_error_rate") == 0
    useless = perfect.with_columns(s=1)
    assert one(useless, "pr_auc") == pytest.approx(0.25, abs=1e-12)
    assert one(useless, "equal_error_rate") == pytest.approx(0.5, abs=1e-12)
    inverted = perfect.with_columns(s=-pl.col("s"))
    # The least that a prevalence of a quarter allows.
    assert one(inverted, "pr_auc") == pytest.approx(1 + 3 * np.log(0.75), abs=1e-12)
    assert one(inverted, "equal_error_rate") == 1


@pytest.mark.parametrize("scale", [1.0, 1e-17])
def test_rounding_leaves_areas_between_0_and_1(scale: float) -> None:
    numbers = np.random.default_rng(1)
    rows = 100
    # Perfect scores have areas of 1; where nearly all weight is above the positives, nearly 0.
    order = np.arange(2 * rows) if scale == 1 else np.arange(2 * rows)[::-1]
    random = [
        pl.DataFrame(
            {
                "group": group,
                "y": order >= rows,
                "s": np.arange(2 * rows),
                "w": numbers.lognormal(sigma=2, size=2 * rows) * np.where(order < rows, 1, scale),
            }
        )
        for group in range(60)
    ]
    areas = pl.concat(random).group_by("group").agg(m=together(["roc_auc", "pr_auc"])).unnest("m")
    within = areas.select(pl.col("roc_auc", "pr_auc").is_between(0, 1).all())
    assert within.row(0) == (True, True)


@given(rows=ROWS)
def test_metrics_together_are_those_alone(rows: list[Row]) -> None:
    frame = frame_of(rows)
    found = frame.select(together()).unnest("curve_metrics")
    assert_frame_equal(found, frame.select(**alone()), abs_tol=1e-12, rel_tol=0)
    assert found.columns == list(EVERYTHING)


def test_metrics_together_in_groups(people: pl.DataFrame) -> None:
    alien = pl.DataFrame({"g": ["one class", "nobody", "nobody"], "y": [True, True, False]})
    none = pl.DataFrame({"g": ["d"] * 4, "y": [None, True, False, True]}).with_columns(
        s=pl.Series([9.0, None, float("nan"), 9.0]), w=pl.Series([1.0, 1.0, 1.0, None])
    )
    alien = alien.with_columns(s=1.0, w=pl.Series([1.0, 0.0, 0.0]))
    rows = pl.concat([people, alien, none], how="diagonal")
    found = rows.lazy().group_by("g").agg(together()).collect().sort("g")
    expected = people.group_by("g").agg(**alone()).sort("g")
    known = found.filter(pl.col("g").str.len_chars() == 1).unnest("curve_metrics")
    assert_frame_equal(known, expected, abs_tol=1e-12, rel_tol=1e-12)
    others = found.filter(pl.col("g").str.len_chars() > 1).unnest("curve_metrics").drop("g")
    assert others.height == 2
    assert set(others.transpose().to_series(0)) == set(others.transpose().to_series(1)) == {None}
    windows = rows.lazy().select("g", together().over("g")).unique().collect()
    assert_frame_equal(windows.sort("g"), found, rel_tol=1e-12)
    assert rows.clear().select(**alone()).row(0) == (None,) * len(EVERYTHING)


@pytest.mark.parametrize("metrics", [NAMES, NAMES[3], tuple(NAMES[1:3]), {"a": "ks", "": "gini"}])
def test_fields_have_the_names_that_were_names_for(seven: pl.DataFrame, metrics: Any) -> None:
    fields = seven.select(together(metrics)).unnest("curve_metrics")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    assert fields.schema == dict.fromkeys(names, pl.Float64)
    score: Any = pl.col("s")
    plan = seven.lazy().select(score.wroc.curve_metrics("y", metrics=metrics, weight="w"))
    assert_frame_equal(plan.unnest("curve_metrics").collect(), fields)


def test_one_area_has_the_name_of_its_function(seven: pl.DataFrame) -> None:
    areas: list[tuple[str, Any]] = [
        ("partial_auc", wroc.PartialAUC(fpr=(0, 0.5))),
        ("cost_partial_auc", wroc.CostPartialAUC(cost_fn=0.5)),
    ]
    values: dict[str, float] = {}
    for name, area in areas:
        values |= seven.select(together(area)).item()
        table = wroc.bootstrap(seven, "y", "s", metrics=area, weight="w", resamples=2)
        assert table["metric"].to_list() == [name]
        assert table["value"].item() == pytest.approx(values[name], abs=1e-12)
    assert list(values) == ["partial_auc", "cost_partial_auc"]
    assert values["partial_auc"] == pytest.approx(0.13125)
    assert values["cost_partial_auc"] == pytest.approx(0.09938, abs=5e-6)


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ("nope", ValueError, r"^`metrics` must be one of roc_auc, .*; found 'nope'$"),
        (["ks", "nope"], ValueError, r"^`metrics` must be one of .*; found 'nope'$"),
        ({"a": "nope"}, ValueError, r"^`metrics` must be one of .*; found 'nope'$"),
        ({"a": None}, TypeError, r"^`metrics` must hold names of metrics, .*; found None of"),
        (
            {"a": len},
            TypeError,
            r"^`metrics` must hold names of metrics, .*; found a value of type builtin",
        ),
        (["ks", "ks"], ValueError, r"several different ones; found \['ks', 'ks'\]$"),
        ([], ValueError, r"^`metrics` must hold one metric or several different ones; found \[\]$"),
        ({}, ValueError, r"^`metrics` must hold one metric or several different ones; found {}$"),
        ({"__a": "ks"}, ValueError, r"names that do not start with two underscores; found '__a'$"),
        ({1: "ks"}, ValueError, r"^`metrics` must have names .*; found 1$"),
        (1, TypeError, r"^`metrics` must be the name .* several of them; found 1 of type int$"),
        ({"ks"}, TypeError, r"^`metrics` must be the name .*; found {'ks'} of type set$"),
    ],
)
def test_metrics_are_checked(
    seven: pl.DataFrame, metrics: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        together(metrics)
    with pytest.raises(error, match=message):
        wroc.bootstrap(seven, "y", "s", metrics=metrics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^`fpr` or `tpr` must be a range, .*; found neither$"),
        ({"fpr": (0.5, 0.2)}, r"^`fpr` must rise .*; found \(0.5, 0.2\)$"),
        ({"tpr": (0, 2)}, r"^`tpr` must lie between 0 and 1; found 2$"),
        ({"tpr": 1}, r"^`tpr` must be a range .*; found 1 of type int$"),
        ({"fpr": (0, 1), "standardize": "max"}, r"^`standardize` must be True, .*; found 'max'$"),
        ({"cost_fn": None}, r"^`cost_fn` or `cost_fp` must be given; found neither$"),
        ({"cost_fn": 1.5}, r"^`cost_fn` must be at most 1 .*; found 1.5$"),
    ],
)
def test_areas_are_checked(options: dict[str, Any], message: str) -> None:
    area: Any = wroc.CostPartialAUC if "cost_fn" in options else wroc.PartialAUC
    with pytest.raises((TypeError, ValueError), match=message):
        area(**options)


def test_first_replicate_is_the_expression(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"metrics": EVERYTHING, "weight": "w", "by": "g", "resamples": 2}
    table = wroc.bootstrap(people.lazy(), "y", "s", **options, replicates=True).collect()
    found = table.filter(replicate=0).drop("replicate")
    expected = people.group_by("g").agg(**alone()).sort("g")
    assert_frame_equal(found, expected, abs_tol=1e-12, rel_tol=1e-12)


@pytest.mark.parametrize("seed", sweep([3, 8]))
def test_replicates_are_expressions_of_other_weights(people: pl.DataFrame, seed: int) -> None:
    options: dict[str, Any] = {"resamples": 2, "seed": seed, "multiplier": "gamma"}
    table = wroc.bootstrap(
        people, "y", "s", metrics=EVERYTHING, weight="w", **options, replicates=True
    )
    draws = random.Random(seed)  # noqa: S311
    numbered = people.sort("y", "w", "s").with_row_index("number")
    hashes = [numbered["number"].hash(draws.getrandbits(63)) for _ in range(2)]
    shares = [each.cast(pl.Float64).to_numpy() / 2.0**64 for each in hashes]
    weights = [numbered["w"], *(numbered["w"] * -np.log(share) for share in shares)]
    again = [numbered.with_columns(each).select(**alone()) for each in weights]
    assert_frame_equal(table.drop("replicate"), pl.concat(again), abs_tol=1e-12, rel_tol=1e-12)
