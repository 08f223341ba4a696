"""Quantiles of the studentised range: against scipy, and the normal quantile of one pair."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sweeps import sweep

from polars_wroc.stats.distributions import MOST_GROUPS, quantile_of_pairs, simultaneous_quantile


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
