"""Intervals of rates at a threshold: against scipy's Wilson interval and its weighted form."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_rates import rate_of
from plain_roc import frame_of, weight_as
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc

Mask: TypeAlias = npt.NDArray[np.bool_]
Pair: TypeAlias = tuple[float | None, float | None]
Row: TypeAlias = tuple[bool, int, int]

RATES = ["tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy"]
LIMITS = [f"{rate}_{end}" for rate in RATES for end in ("low", "high")]
NOTHING: Pair = (None, None)


# Of one class only, too.
FRAMES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=30
).map(frame_of)


def parts(frame: pl.DataFrame, threshold: float) -> dict[str, tuple[Mask, Mask]]:
    """Of each rate the rows that it counts and the other rows that it is a share of."""
    pos = frame["y"].to_numpy() == 1
    selected = frame["s"].to_numpy() >= threshold
    right = pos == selected
    return {
        "tpr": (pos & selected, pos & ~selected),
        "fpr": (~pos & selected, ~pos & ~selected),
        "ppv": (pos & selected, ~pos & selected),
        "npv": (~pos & ~selected, pos & ~selected),
        "selection_rate": (selected, ~selected),
        "accuracy": (right, ~right),
    }


def counted(part: Mask, others: Mask, level: float = 0.95) -> Pair:
    rows, whole = int(part.sum()), int(part.sum() + others.sum())
    if whole == 0:
        return NOTHING
    limits = stats.binomtest(rows, whole).proportion_ci(level, method="wilson")
    return limits.low, limits.high


def weighed(frame: pl.DataFrame, part: Mask, others: Mask, level: float = 0.95) -> Pair:
    """Limits of a weighted rate."""
    w = frame["w"].to_numpy()
    rate = rate_of(w[part], w[others])
    return NOTHING if rate is None else rate.limits(level)


def found_in(row: dict[str, Any], rate: str) -> Pair:
    return row[f"{rate}_low"], row[f"{rate}_high"]


def assert_same(found: Pair, expected: Pair) -> None:
    if expected == NOTHING:
        assert found == NOTHING
    else:
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow(reason="tries many random rows")
@given(FRAMES, st.floats(0.3, 0.999))
def test_counts_give_wilsons_interval(frame: pl.DataFrame, level: float) -> None:
    for weight in (None, wroc.frequency(pl.lit(1))):
        table = wroc.threshold_metrics(frame, "y", "s", level=level, weight=weight, metrics="all")
        for row in table.rows(named=True):
            for rate, (part, others) in parts(frame, row["threshold"]).items():
                assert_same(found_in(row, rate), counted(part, others, level))


@given(FRAMES, st.floats(0.3, 0.999))
def test_weights_give_wilsons_interval_of_the_size_at_the_limit(
    frame: pl.DataFrame, level: float
) -> None:
    table = wroc.threshold_metrics(frame, "y", "s", weight="w", level=level, metrics="all")
    assert table.height == frame["s"].n_unique() + 1
    for row in table.rows(named=True):
        for rate, (part, others) in parts(frame, row["threshold"]).items():
            assert_same(found_in(row, rate), weighed(frame, part, others, level))


@given(FRAMES)
def test_frequencies_are_repeated_rows(frame: pl.DataFrame) -> None:
    times = pl.col("w").cast(pl.Int64)
    repeated = frame.select(pl.col("y", "s").repeat_by(times).explode(empty_as_null=False))
    expected = wroc.threshold_metrics(repeated, "y", "s", level=0.9, metrics="all")
    options: dict[str, Any] = {"weight": wroc.frequency("w"), "level": 0.9}
    found = wroc.threshold_metrics(frame, "y", "s", **options, metrics="all")
    assert_frame_equal(found, expected, abs_tol=1e-12)


@given(FRAMES)
def test_interval_holds_its_rate_also_when_that_is_0_or_1(frame: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(
        frame, "y", "s", weight=pl.col("w") / 7, level=0.5, metrics="all"
    )
    for rate in RATES:
        low, high, value = (table[name] for name in (f"{rate}_low", f"{rate}_high", rate))
        known = value.is_not_null()
        assert_frame_equal(
            table.select(pl.col(f"{rate}_{end}").is_not_null() for end in ("low", "high")),
            pl.DataFrame({f"{rate}_low": known, f"{rate}_high": known}),
        )
        assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()
        assert (low < high).all()
        assert (low.filter(value == 0) == 0).all()
        assert (high.filter(value == 1) == 1).all()


def test_rounding_does_not_keep_0_or_1_out() -> None:
    sizes = pl.DataFrame({"g": range(1, 301)})
    frame = sizes.select("g", y=1, s=pl.lit(1.0).repeat_by("g")).explode("s", empty_as_null=False)
    table = wroc.threshold_metrics(
        frame, "y", "s", by="g", threshold=[2, 1], level=0.95, metrics="all"
    )
    none, everyone = (table.filter(threshold=t) for t in (2, 1))
    assert (none["tpr_low"] == 0).all()
    assert (everyone["tpr_high"] == 1).all()
    assert (everyone["tpr_low"].diff().drop_nulls() > 0).all()


@pytest.mark.parametrize("thresholds", [None, [1.0, 0.25, -9.0, 9.0]])
def test_weighted_groups_on_both_engines(people: pl.DataFrame, thresholds: Any) -> None:
    frame = people.with_columns(g=pl.when(pl.col("g") != "d").then("g"))
    plan = wroc.threshold_metrics(
        frame.lazy(), "y", "s", weight="w", by="g", threshold=thresholds, level=0.9, metrics="all"
    )
    table = plan.collect()
    for key in (None, "a", "b", "c"):
        own = frame.filter(pl.col("g").eq_missing(key))
        rows = table.filter(pl.col("g").eq_missing(key))
        assert rows.height == (len(thresholds) if thresholds else own["s"].n_unique() + 1)
        for row in rows.rows(named=True):
            for rate, (part, others) in parts(own, row["threshold"]).items():
                assert_same(found_in(row, rate), weighed(own, part, others, 0.9))


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize("weight_type", ["probability", "frequency"])
def test_both_forms_agree(people: pl.DataFrame, weight_type: Any) -> None:
    people = people.with_columns(pl.col("w").ceil())
    options: dict[str, Any] = {"weight": weight_as("w", weight_type), "metrics": "all"}
    matrix = wroc.confusion_matrix("y", "s", threshold=pl.col("limit"), **options)
    found = people.lazy().group_by("g").agg(matrix).sort("g").collect()
    for key, struct in found.rows():
        frame = people.filter(g=key)
        limit = frame["limit"][0]
        table = wroc.threshold_metrics(frame, "y", "s", threshold=limit, **options)
        assert set(struct) < set(table.columns)
        expected = table.select([*struct]).row(0)
        assert list(struct.values()) == pytest.approx(list(expected), abs=1e-12)


def test_worked_example(seven: pl.DataFrame) -> None:
    (row,) = wroc.threshold_metrics(
        seven, "y", "s", weight="w", threshold=0.7, level=0.95, metrics="all"
    ).rows(named=True)
    assert row["tpr"] == 0.5
    assert found_in(row, "tpr") == pytest.approx((0.1144, 0.9133), abs=5e-5)


@pytest.mark.parametrize(
    ("outcomes", "weights", "expected"),
    [
        (
            [1, 1, 0, 1, 0, 0, 0, 0],
            [1, 2, 1, 1, 2, 1, 3, 1],
            (0.3333333333, 0.1004816606, 0.7069948337),
        ),
        ([0] * 8, [1, 2, 1, 1, 2, 1, 3, 1], (0, 0, 0.4134902299)),
        ([1] * 3 + [0] * 7, [1] * 10, (0.3, 0.1077912674, 0.6032218525)),
        (
            [1, *[0] * 9],
            [2, 1, 1, 1, 3, 1, 1, 2, 1, 1],
            (0.1428571429, 0.0231347682, 0.5185295779),
        ),
    ],
)
def test_worked_weighted_rates(
    outcomes: list[int], weights: list[int], expected: tuple[float, float, float]
) -> None:
    frame = pl.DataFrame({"y": 1, "s": outcomes, "w": [float(w) for w in weights]})
    table = wroc.threshold_metrics(frame, "y", "s", weight="w", threshold=1, metrics="tpr")
    assert table.select("tpr", "tpr_low", "tpr_high").row(0) == pytest.approx(expected, abs=6e-11)


def test_only_ratios_of_probability_weights_count(people: pl.DataFrame) -> None:
    tables = [
        wroc.threshold_metrics(
            people, "y", "s", weight=pl.col("w") * k, level=0.95, metrics="all"
        ).select(LIMITS)
        for k in (1.0, 1e-9)
    ]
    assert_frame_equal(tables[0], tables[1], abs_tol=1e-9)


def test_limits_follow_their_rate_and_come_only_with_a_level(people: pl.DataFrame) -> None:
    plain = wroc.threshold_metrics(people, "y", "s", by="g", metrics="all", level=None)
    with_limits = wroc.threshold_metrics(people, "y", "s", by="g", level=0.95, metrics="all")
    keys, others = plain.columns[:2], ["tp", "fp", "fn", "tn", "reason"]
    metrics = [name for name in plain.columns if name not in [*keys, *others]]
    ends = ("", "_low", "_high")
    expected = [*keys, *(f"{name}{end}" for name in metrics for end in ends), *others]
    assert with_limits.columns == expected
    assert set(with_limits.drop("g", "reason").dtypes) == {pl.Float64}
    assert_frame_equal(with_limits.select(plain.columns), plain)


def test_rate_of_nothing_is_null() -> None:
    frame = pl.DataFrame({"y": [1, 1], "s": [2.0, 1.0]})
    table = wroc.threshold_metrics(frame, "y", "s", threshold=3, level=0.95, metrics="all")
    row = table.row(0, named=True)
    assert found_in(row, "ppv") == found_in(row, "fpr") == NOTHING
    assert found_in(row, "npv") == found_in(row, "tpr") == found_in(row, "accuracy")
    assert found_in(row, "npv") == pytest.approx(counted(*parts(frame, 3)["npv"]))


def test_predictive_values_of_a_population_at_their_ends() -> None:
    frame = pl.DataFrame({"y": [1] * 5 + [0] * 5, "s": [2.0] * 3 + [1.0] * 2 + [3.0] * 5})
    options: dict[str, Any] = {"level": 0.95, "prevalence": 0.2}
    found = wroc.threshold_metrics(frame, "y", "s", threshold=[3, 2, 4], **options, metrics="all")
    # At 3 all negatives are selected and no positive, at 2 some positives too; at 4 nobody is.
    row = {row["threshold"]: row for row in found.iter_rows(named=True)}
    assert (row[3]["ppv"], row[3]["npv"], row[2]["npv"]) == (0, 0, 0)
    for low, high in (found_in(row[3], "ppv"), found_in(row[3], "npv"), found_in(row[2], "npv")):
        assert low == 0
        assert high is not None
        assert 0 < high < 1
    assert found_in(row[4], "ppv") == NOTHING
