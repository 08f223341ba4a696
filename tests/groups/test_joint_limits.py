"""Limits of the largest gap of all groups, and tests that all are alike: by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from plain_rates import Rate, pair_quantile, rate_of
from plain_roc import ratio_limits, weight_as
from scipy import stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Limited: TypeAlias = tuple[float, float, float]

RATES = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("tpr",),
    "predictive_equality": ("fpr",),
    "predictive_parity": ("ppv",),
    "equalized_odds": ("tpr", "fpr"),
}


def quantile(groups: int, level: float) -> float:
    return float(stats.studentized_range.ppf(level, groups, np.inf)) / math.sqrt(2)


def level_of(z: float) -> float:
    """The level of a single interval with this quantile."""
    return float(2 * stats.norm.cdf(z) - 1)


def share(frame: pl.DataFrame, rate: str) -> Rate | None:
    """A rate; both classes are selected from 0.5 on."""
    among = {
        "selection_rate": pl.lit(value=True),
        "tpr": pl.col("y"),
        "fpr": ~pl.col("y"),
        "ppv": pl.col("s") >= 0.5,
    }[rate]
    counted = pl.col("y") if rate == "ppv" else pl.col("s") >= 0.5
    rows = frame.filter(among).select("w", k=counted)
    return rate_of(*(rows.filter(k=k)["w"].to_numpy() for k in (True, False)))


def limited_pairs(rates: Sequence[Rate], z: float) -> list[tuple[Limited, Limited]]:
    """All pairs of rates, with limits at the quantile of the pair."""
    pairs = []
    for one, other in itertools.permutations(rates, 2):
        t = pair_quantile(z, one, other)
        limits = [(rate.value, *rate.limits(0.95, t)) for rate in (one, other)]
        pairs.append((limits[0], limits[1]))
    return pairs


def largest_difference(pairs: Sequence[tuple[Limited, Limited]]) -> tuple[float, float]:
    low = max(a[0] - b[0] - math.hypot(a[0] - a[1], b[2] - b[0]) for a, b in pairs)
    high = max(a[0] - b[0] + math.hypot(a[2] - a[0], b[0] - b[1]) for a, b in pairs)
    return max(low, 0.0), high


def smallest_ratio(pairs: Sequence[tuple[Limited, Limited]]) -> tuple[float, float]:
    limits = [ratio_limits(*pair) for pair in pairs]
    return min(low for low, _ in limits), min(1.0, *(high for _, high in limits))


def p_alike(shares: Sequence[Rate]) -> float:
    p = np.array([rate.value for rate in shares])
    ends = np.array([rate.shrunk() for rate in shares]).T
    n = 1 / ((1 - p) * ends[0] + p * ends[1])
    mean = (n * p).sum() / n.sum()
    return float(stats.chi2.sf((n * (p - mean) ** 2).sum() / mean / (1 - mean), len(shares) - 1))


def fair(frame: Any, **options: Any) -> Any:
    given = {"weight": "w"} | options
    return wroc.fairness(frame, "y", "s", attributes="g", threshold=0.5, **given, min_rows=0)


def counts(selected: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Groups of so many selected rows of so many, half of them positive."""
    return pl.concat(
        pl.DataFrame(
            {"g": g, "y": [i % 2 == 0 for i in range(n)], "s": [float(i < k) for i in range(n)]}
        )
        for g, (k, n) in selected.items()
    ).with_columns(w=pl.lit(1.0))


def joint(table: pl.DataFrame, metric: str) -> tuple[Any, ...]:
    shown = "ratio" if metric.endswith("_ratio") else "gap"
    return table.filter(metric=metric).select(f"{shown}_low", f"{shown}_high", "p_value").row(0)


def test_three_rates_have_the_worked_joint_limits() -> None:
    table = fair(counts({"a": (30, 100), "b": (15, 100), "c": (24, 100)}))
    gap, ratio = (
        table.filter(metric=f"demographic_parity_{kind}").row(0, named=True)
        for kind in ("difference", "ratio")
    )
    expected = {"gap": 0.15, "gap_low": 0.01104, "gap_high": 0.28267, "p_value": 0.0400}
    assert {name: gap[name] for name in expected} == pytest.approx(expected, abs=5e-5)
    expected = {"ratio": 0.5, "ratio_low": 0.26045, "ratio_high": 0.95327, "p_value": 0.0400}
    assert {name: ratio[name] for name in expected} == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("level", sweep([0.95, 0.8]))
def test_rates_by_brute_force(people: pl.DataFrame, level: float) -> None:
    table = fair(people.lazy(), level=level).collect()
    for criterion, rates in RATES.items():
        alpha = (1 - level) / len(rates)
        z = quantile(4, 1 - alpha)
        gaps, ratios, p_values = [], [], []
        for rate in rates:
            shares = [share(rows, rate) for _, rows in people.group_by("g")]
            known = [each for each in shares if each is not None]
            pairs = limited_pairs(known, z)
            gaps.append(largest_difference(pairs))
            ratios.append(smallest_ratio(pairs))
            p_values.append(p_alike(known))
        p = min(1.0, min(p_values) * len(rates))
        # The worse of both rates.
        expected = (*(max(ends) for ends in zip(*gaps, strict=True)), p)
        assert joint(table, f"{criterion}_difference") == pytest.approx(expected, abs=1e-7)
        if f"{criterion}_ratio" in table["metric"]:
            expected = (*(min(ends) for ends in zip(*ratios, strict=True)), p)
            assert joint(table, f"{criterion}_ratio") == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("weight_type", sweep(["probability", "frequency"]))
def test_aucs_by_brute_force(people: pl.DataFrame, weight_type: Any) -> None:
    frame = people.with_columns(pl.col("w").ceil())
    level = level_of(quantile(4, 0.95))
    options: dict[str, Any] = {"weight": weight_as("w", weight_type)}
    summary = wroc.summary(frame, "y", "s", by="g", level=level, method="score", **options)
    groups = summary.select("auc", "auc_low", "auc_high").rows()
    pairs = list(itertools.permutations(groups, 2))
    expected = (*largest_difference(pairs), None)
    found = joint(fair(frame, **options), "auc_difference")
    assert found[:2] == pytest.approx(expected[:2], abs=1e-7)
    assert found[2] is None


@pytest.mark.parametrize("weight", ["w", None])
def test_two_groups_are_the_pair_itself(people: pl.DataFrame, weight: str | None) -> None:
    two = people.filter(pl.col("g").is_in(["a", "b"]))
    table = fair(two, weight=weight)
    gaps = wide_gaps(two, "y", "s", weight=weight, by="g", threshold=0.5, min_rows=0)
    for criterion, (rate, *others) in RATES.items():
        if others:
            continue
        row = gaps.sort(f"{rate}_gap").row(-1, named=True)
        low, high = (row[f"{rate}_gap_{end}"] for end in ("low", "high"))
        found = joint(table, f"{criterion}_difference")
        # Weighted rates have Welch's degrees of freedom here, and their own in a single gap.
        near = 2e-2 if weight else 1e-8
        assert found[:2] == pytest.approx((max(low, 0.0), high), abs=near)
        # And the test is that of one group against the other, but for Fisher's.
        if not weight and criterion != "equal_opportunity":
            assert found[2] == pytest.approx(row[f"{rate}_gap_p_value"], rel=1e-9)


def test_value_lies_within_and_more_groups_make_the_limits_wider(people: pl.DataFrame) -> None:
    # A copy of a group adds no gap.
    again = pl.concat([people, people.filter(g="b").with_columns(g=pl.lit("e"))])
    shown = [pl.coalesce(f"gap{end}", f"ratio{end}") for end in ("", "_low", "_high")]
    table, wider = (fair(frame).select(shown) for frame in (people, again))
    assert (table["gap_low"] <= table["gap"]).all()
    assert (table["gap"] <= table["gap_high"]).all()
    assert wider["gap"].to_list() == pytest.approx(table["gap"].to_list())
    assert (wider["gap_low"] <= table["gap_low"]).all()
    assert (wider["gap_high"] >= table["gap_high"]).all()


def test_limits_of_the_ratio_and_of_the_difference_exclude_parity_together() -> None:
    random = np.random.default_rng(5)
    excluded = set()
    for _ in range(12):
        table = fair(counts({g: (int(random.binomial(60, 0.3)), 60) for g in "abcd"}))
        gap, ratio = (
            joint(table, f"demographic_parity_{kind}") for kind in ("difference", "ratio")
        )
        assert (gap[0] > 0) == (ratio[1] < 1)
        excluded.add(gap[0] > 0)
    table = fair(counts({"a": (50, 60), "b": (5, 60), "c": (30, 60)}))
    assert joint(table, "demographic_parity_ratio")[1] < 1
    assert False in excluded


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize("number", sweep([200, 201]))
def test_of_many_groups_the_ends_are_at_least_as_far_apart(number: int) -> None:
    random = np.random.default_rng(number)
    selected = {f"{i:03}": (int(random.integers(1, 19)), 20) for i in range(number)}
    table = fair(counts(selected))
    z = quantile(number, 0.95)
    rates = [Rate(k / n, 1 / n, 1 / n, 1 / n, n, 1.0) for k, n in selected.values()]
    pairs = limited_pairs(rates, z)
    expected = {"difference": largest_difference(pairs), "ratio": smallest_ratio(pairs)}
    for kind, (low, high) in expected.items():
        found = joint(table, f"demographic_parity_{kind}")
        if number == 200:
            assert found[:2] == pytest.approx((low, high), abs=1e-6)
        else:
            assert found[0] < low < high < found[1]
    lows, highs = zip(*(rate.limits(0.95, z) for rate in rates), strict=True)
    if number == 201:
        found = joint(table, "demographic_parity_difference")
        assert found[:2] == pytest.approx(
            (max(0.0, max(lows) - min(highs)), max(highs) - min(lows)), abs=1e-6
        )
    assert joint(table, "demographic_parity_difference")[2] == pytest.approx(p_alike(rates))


def test_equal_groups_without_variance_are_alike() -> None:
    # All positives are selected, and one negative is not.
    rows = counts({"a": (20, 20), "b": (30, 30), "c": (9, 9)}).with_columns(y=pl.lit(value=True))
    one = rows.head(1).with_columns(y=pl.lit(value=False), s=pl.col("s") - 100.0)
    found = joint(fair(pl.concat([rows, one])), "equal_opportunity_difference")
    assert (found[0], found[2]) == (0.0, 1.0)


def test_groups_in_which_all_decisions_are_the_same_are_not_compared() -> None:
    for sizes in ({"a": (20, 20), "b": (30, 30)}, {"a": (0, 20), "b": (0, 30)}):
        table = fair(counts(sizes))
        for kind in ("difference", "ratio"):
            assert joint(table, f"demographic_parity_{kind}") == (None,) * 3


def test_of_groups_with_a_value_alone(people: pl.DataFrame) -> None:
    # Group c has no negatives, and so no fpr.
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    name = "predictive_equality_difference"
    expected = joint(fair(people.filter(pl.col("g") != "c")), name)
    assert joint(fair(frame), name) == pytest.approx(expected)
    one = fair(people.filter(pl.col("y") | (pl.col("g") == "a")))
    for name in ("predictive_equality_difference", "equalized_odds_difference"):
        assert joint(one, name) == (None,) * 3


def test_no_limits_where_a_group_has_none() -> None:
    frame = counts({"a": (10, 20), "b": (5, 20), "c": (15, 20)})
    # Its squares overflow.
    huge = frame.with_columns(w=pl.when(g="b").then(1e200).otherwise("w"))
    assert joint(fair(huge), "demographic_parity_difference") == (None,) * 3
