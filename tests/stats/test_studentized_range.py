"""Quantiles and p-values of the studentized range, against scipy and a finer integral."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from sweeps import sweep

from polars_wroc.stats.levels import Level, adjust_picked

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

Floats = npt.NDArray[np.float64]
LEVEL = Level(0.05)
MANY = 10_000


@pytest.mark.parametrize("level", sweep([0.95, 0.001, 0.5, 0.8, 0.975, 0.9999], fast=[0.95, 0.8]))
def test_quantiles_are_scipys(level: float) -> None:
    groups = np.array([2.0, 3, 5, 12, 50, 200])
    expected = [stats.studentized_range.ppf(level, k, np.inf) / np.sqrt(2) for k in groups]
    found = Level(1 - level).joint_quantile(groups)
    # The precision of scipy's own integral, in the rarest tails.
    assert found == pytest.approx(expected, rel=1e-5 if level > 0.99 else 2e-8)


@pytest.mark.parametrize("level", sweep([0.95, 0.5, 0.975, 0.9999], fast=1))
def test_quantiles_of_many_groups_rise_up_to_that_of_bonferroni(level: float) -> None:
    groups = np.array([2.0, 3, 4, 7, 17, 90, 199, 1_000, 5_000, MANY])
    found = Level(1 - level).joint_quantile(groups)
    assert np.all(np.diff(found) > 0)
    assert np.all(found <= stats.norm.isf((1 - level) / (groups * (groups - 1))) * (1 + 1e-12))


def of_picked(p_values: list[float] | Floats, groups: float) -> Floats:
    p_value = np.asarray(p_values, dtype=float)
    return adjust_picked(p_value, np.full(p_value.shape, float(groups)), LEVEL)


@pytest.mark.parametrize("groups", sweep([5, 3, 4, 20, 100, 1_000, MANY], fast=3))
def test_p_values_of_a_picked_reference_are_scipys(groups: int) -> None:
    """Where scipy's own integral has the digits, and the range does not exceed all but surely."""
    most = min(1.0, 2.5 / groups**2)
    p_values = np.geomspace(min(1e-6, most / 100), most, 12)
    quantiles = np.sqrt(2) * stats.norm.isf(p_values / 2)
    expected = stats.studentized_range.sf(quantiles, groups, np.inf) / (groups - 1)
    found = of_picked(p_values, groups)
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


@pytest.mark.parametrize("groups", sweep([3, MANY, 12, 300], fast=2))
def test_rare_p_values_of_a_picked_reference(groups: int) -> None:
    p_values = np.geomspace(1e-15, min(1e-3, 2.5 / groups**2), 12)
    expected = [beyond_range(p, groups) for p in p_values]
    assert of_picked(p_values, groups) == pytest.approx(expected, rel=1e-8)
    # Beyond, the ratio of both is nearly that of the number of pairs to that of comparisons.
    assert of_picked([1e-200], groups) == pytest.approx([groups / 2 * 1e-200], rel=0.04)


def test_p_values_of_a_picked_reference_are_those_of_any_fewer_groups() -> None:
    """Holm's method ends with few comparisons, for which the p-value must not be too small."""
    for p_value in (0.9, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-5):
        most = max(p_value, *(beyond_range(p_value, k) for k in np.geomspace(2, 2_000, 50)))
        (found,) = of_picked([p_value], 2_000)
        assert 0.96 * most <= found <= most * (1 + 1e-8)
        assert found >= p_value


def test_p_values_of_a_picked_reference_rise() -> None:
    assert (np.diff(of_picked(np.geomspace(1e-18, 1.0, 2_000), 30)) > 0).all()
