"""Quantiles of the studentised range: against scipy, and the normal quantile of one pair."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sweeps import sweep

from polars_wroc.stats.studentized_range import (
    MOST_GROUPS,
    picked,
    quantile_of_pairs,
    simultaneous_quantile,
)


def found(level: float, groups: list[int]) -> list[float | None]:
    number = pl.lit(pl.Series(groups))
    return pl.select(simultaneous_quantile(level, number)).to_series().to_list()


def test_published_quantiles() -> None:
    quantiles = [1.960, 2.344, 2.569, 2.728, 3.164, 3.544]
    assert found(0.95, [2, 3, 4, 5, 10, 20]) == pytest.approx(quantiles, abs=5e-4)


@pytest.mark.parametrize("level", sweep([0.95, 0.001, 0.5, 0.8, 0.975, 0.9999], fast=[0.95, 0.8]))
def test_quantiles_are_scipys(level: float) -> None:
    groups = [2, 3, 5, 12, 50, 200]
    expected = [stats.studentized_range.ppf(level, k, np.inf) / np.sqrt(2) for k in groups]
    # The precision of scipy's own integral, in the rarest tails.
    assert found(level, groups) == pytest.approx(expected, rel=1e-5 if level > 0.99 else 2e-8)


@pytest.mark.parametrize("level", sweep([0.95, 0.05, 0.5, 0.99, 0.99995], fast=2))
def test_quantile_of_two_groups_is_the_normal_one(level: float) -> None:
    assert found(level, [2]) == pytest.approx([stats.norm.ppf((1 + level) / 2)], rel=4e-9)


@pytest.mark.parametrize("level", sweep([0.95, 0.5, 0.975, 0.9999], fast=1))
def test_polynomial_is_the_solution(level: float) -> None:
    groups = [2, 3, 4, 7, 17, 90, 199, 1_000, 5_000, 9_999, MOST_GROUPS]
    expected = [quantile_of_pairs(level, k) for k in groups]
    assert found(level, groups) == pytest.approx(expected, rel=2e-9)
    assert np.all(np.diff(expected) > 0)


def test_no_quantile_of_one_group_or_far_too_many() -> None:
    assert found(0.95, [0, 1, MOST_GROUPS + 1]) == [None] * 3


def of_picked(p_values: list[float | None], groups: list[int | None]) -> list[float | None]:
    table = pl.DataFrame({"p": p_values, "k": groups}, {"p": pl.Float64, "k": pl.Int64})
    return table.select(picked(pl.col("p"), pl.col("k"), 0.95)).to_series().to_list()


def test_published_p_values_of_a_picked_reference() -> None:
    """The examples of the specification, which are those of scipy to the digits printed."""
    found = of_picked([0.01, 0.0025, 0.03], [5, 20, 2])
    assert [f"{p:.10f}" for p in found] == ["0.0187111175", "0.0115218075", "0.0300000000"]
    assert found[2] == 0.03


@pytest.mark.parametrize("groups", sweep([5, 3, 4, 20, 100, 1_000, MOST_GROUPS], fast=3))
def test_p_values_of_a_picked_reference_are_scipys(groups: int) -> None:
    """Where scipy's own integral has the digits, and the range does not exceed all but surely."""
    most = min(1.0, 2.5 / groups**2)
    p_values = np.geomspace(min(1e-6, most / 100), most, 12)
    quantiles = np.sqrt(2) * stats.norm.isf(p_values / 2)
    expected = stats.studentized_range.sf(quantiles, groups, np.inf) / (groups - 1)
    found = of_picked([*p_values], [groups] * 12)
    assert found == pytest.approx(np.maximum(expected, p_values), rel=1e-8)


def beyond_range(p_value: float, groups: float) -> float:
    """Integrate the probability that a range exceeds the quantile of a p-value, per comparison."""
    half = stats.norm.isf(p_value / 2) / np.sqrt(2)
    largest = np.arange(-12.0, 14.0, 0.01) + half
    below = stats.norm.logcdf(largest)
    share = np.exp(stats.norm.logcdf(largest - 2 * half) - below)
    none = (groups - 1) * np.log1p(-np.minimum(share, 1 - 1e-16))
    values = -np.exp(stats.norm.logpdf(largest) + (groups - 1) * below) * np.expm1(none)
    return float(groups / (groups - 1) * 0.01 * values.sum())


@pytest.mark.parametrize("groups", sweep([3, MOST_GROUPS, 12, 300], fast=2))
def test_rare_p_values_of_a_picked_reference(groups: int) -> None:
    p_values = np.geomspace(1e-15, min(1e-3, 2.5 / groups**2), 12)
    expected = [beyond_range(p, groups) for p in p_values]
    assert of_picked([*p_values], [groups] * 12) == pytest.approx(expected, rel=1e-8)
    # Beyond, the ratio of both is nearly that of the number of pairs to that of comparisons.
    assert of_picked([1e-200], [groups]) == pytest.approx([groups / 2 * 1e-200], rel=0.04)


def test_p_values_of_a_picked_reference_are_those_of_any_fewer_groups() -> None:
    """Holm's method ends with few comparisons, for which the p-value must not be too small."""
    for p_value in (0.9, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-5):
        most = max(p_value, *(beyond_range(p_value, k) for k in np.geomspace(2, 2_000, 50)))
        (found,) = of_picked([p_value], [2_000])
        assert found is not None
        assert 0.96 * most <= found <= most * (1 + 1e-8)
        assert found >= p_value


def test_p_values_of_a_picked_reference_rise() -> None:
    table = pl.DataFrame({"p": np.geomspace(1e-18, 1.0, 2_000)})
    rises = picked(pl.col("p"), pl.lit(30), 0.95).diff() > 0
    assert table.select(rises.all()).item()


def test_ends_of_p_values_of_a_picked_reference() -> None:
    assert of_picked([0.0, 1.0, None, 0.2, 0.2], [5, 5, 5, 1, None]) == [0.0, 1.0, None, 0.2, 0.2]
