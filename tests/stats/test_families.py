"""Families of tests, against statsmodels and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import (
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    Adjustment,
    adjust_p_values,
    are_equivalent,
    count_tests,
    judge,
)
from polars_wroc.stats.levels import Level

STATSMODELS: dict[Adjustment, str] = {"holm": "holm", "bh": "fdr_bh"}


def random_p_values() -> Array:
    rng = np.random.default_rng(7)
    p_value = rng.random(60) ** 3
    # Several are tied, as those of Fisher's test.
    p_value[:20] = np.round(p_value[:20], 1)
    return p_value


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_tied_p_values_are_adjusted_as_by_statsmodels(method: Adjustment) -> None:
    p_value = random_p_values()
    expected = multipletests(p_value, method=STATSMODELS[method])[1]
    assert adjust_p_values(p_value, method) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_undefined_p_values_are_no_tests(method: Adjustment) -> None:
    p_value = random_p_values()
    p_value[::3] = np.nan
    known = ~np.isnan(p_value)
    expected = multipletests(p_value[known], method=STATSMODELS[method])[1]
    found = adjust_p_values(p_value, method)
    assert found[known] == pytest.approx(expected, rel=1e-12)
    assert np.isnan(found[~known]).all()
    assert count_tests(p_value, method) == known.sum()


@pytest.mark.parametrize("method", ["holm", "bh", "none"])
def test_repeated_tests_count_once_and_have_the_same_result(method: Adjustment) -> None:
    once = np.array([0.01, 0.04, np.nan, 0.03])
    both = np.concatenate([once, once[:1]])
    repeats = np.arange(5) == 4
    expected = adjust_p_values(once, method)
    found = adjust_p_values(both, method, repeats)
    assert found == pytest.approx(np.concatenate([expected, expected[:1]]), nan_ok=True)
    assert count_tests(both, method, repeats) == count_tests(once, method)


def test_no_adjustment_leaves_p_values_and_counts_one_test() -> None:
    p_value = np.array([0.2, np.nan, 0.01])
    assert adjust_p_values(p_value, "none") == pytest.approx(p_value, nan_ok=True)
    assert count_tests(p_value, "none") == 1


@pytest.mark.parametrize("p_value", [np.zeros(0), np.full(3, np.nan)])
def test_no_tests_share_the_error_of_one(p_value: Array) -> None:
    assert adjust_p_values(p_value, "holm").size == p_value.size
    assert np.isnan(adjust_p_values(p_value, "bh")).all()
    assert count_tests(p_value, "holm") == 1


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_adjusted_p_values_are_at_least_the_p_values_and_keep_their_order(
    method: Adjustment,
) -> None:
    p_value = np.sort(random_p_values())
    found = adjust_p_values(p_value, method)
    assert ((found >= p_value) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()
    shuffled = np.random.default_rng(8).permutation(60)
    assert adjust_p_values(p_value[shuffled], method).tolist() == found[shuffled].tolist()


def test_holm_rejects_where_the_closure_of_bonferroni_does() -> None:
    p_value = np.array([0.012, 0.03, 0.2])
    subsets = [s for s in np.ndindex(2, 2, 2) if any(s)]
    for place, found in enumerate(adjust_p_values(p_value, "holm")):
        chosen = [np.flatnonzero(s) for s in subsets if s[place]]
        closed = max(min(p_value[each].min() * each.size, 1.0) for each in chosen)
        assert found == pytest.approx(closed)


def test_limits_within_the_margin_are_equivalent_and_on_it_are_not() -> None:
    low, high = np.array([-0.04, -0.05, -0.01, np.nan]), np.array([0.04, 0.01, 0.05, np.nan])
    assert are_equivalent(Limits(low, high), 0.05).tolist() == [True, False, False, False]


def test_verdicts_are_equivalent_before_different_before_inconclusive() -> None:
    p_adjusted = np.array([0.01, 0.01, 0.05, 0.051, np.nan, np.nan])
    equivalent = np.array([True, False, False, False, False, True])
    expected = [EQUIVALENT, DIFFERENT, DIFFERENT, INCONCLUSIVE, INCONCLUSIVE, EQUIVALENT]
    assert judge(p_adjusted, equivalent, Level(0.05)).tolist() == expected


def test_no_verdicts_of_no_tests() -> None:
    assert judge(np.zeros(0), np.zeros(0, dtype=bool), Level(0.05)).size == 0
