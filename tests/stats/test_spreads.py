"""The largest difference of several groups: limits by all pairs, and the test that none differ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.spreads import ComparedGroups, equal_groups, find_spread

LEVEL = Level(0.05)


def compared(events: list[int], rows: list[int], df: Array | float = np.inf) -> ComparedGroups:
    """Groups of unweighted rows, perhaps with the degrees of freedom of a design."""
    k, n = np.array(events, dtype=float), np.array(rows, dtype=float)
    return ComparedGroups(Wilson(k / n, 1 - k / n, 1 / n, 1 / n, df=df))


def test_two_groups_have_newcombes_limits() -> None:
    spread = find_spread(compared([30, 15], [100, 90]), LEVEL)
    limits = confint_proportions_2indep(30, 100, 15, 90, method="newcomb", compare="diff")
    assert (spread.highest, spread.lowest) == (0, 1)
    assert spread.difference == pytest.approx((30 / 100 - 15 / 90, *limits), abs=1e-9)


@pytest.mark.parametrize("metrics", [1, 2])
def test_limits_are_the_farthest_of_all_pairs_at_tukeys_quantile(metrics: int) -> None:
    events, rows = [30, 15, 24, 51], [100, 90, 130, 100]
    spread = find_spread(compared(events, rows), LEVEL, metrics=metrics)
    z = stats.studentized_range.ppf(1 - 0.05 / metrics, 4, np.inf) / np.sqrt(2)
    alpha = 2 * stats.norm.sf(z)
    pairs = [
        confint_proportions_2indep(
            events[a], rows[a], events[b], rows[b], method="newcomb", alpha=alpha
        )
        for a, b in itertools.permutations(range(4), 2)
    ]
    low, high = (max(ends) for ends in zip(*pairs, strict=True))
    assert spread.difference == pytest.approx((51 / 100 - 15 / 90, low, high), abs=1e-7)
    assert (spread.highest, spread.lowest) == (3, 1)


def test_ratio_excludes_1_where_the_difference_excludes_0() -> None:
    for events in ([30, 15, 24], [30, 18, 24], [30, 29, 31]):
        spread = find_spread(compared(events, [100, 100, 100]), LEVEL)
        assert (spread.difference.low > 0) == (spread.ratio.high < 1)
        assert spread.ratio.value == min(events) / max(events)


def test_a_design_has_the_fewer_degrees_of_freedom_of_a_pair() -> None:
    found, expected = (
        find_spread(compared([30, 15], [100, 90], df=df), LEVEL)
        for df in (np.array([5.0, 40.0]), 5.0)
    )
    assert found == expected


def test_weighted_rates_have_welchs_degrees_of_freedom() -> None:
    # The worked example of two variances.
    estimate = compared([30, 15], [100, 90], df=np.array([8.0, 12.0])).estimate
    groups = ComparedGroups(estimate, np.array([0.01, 0.02]))
    one, other = np.triu_indices(2, 1)
    assert groups.pair_df(one, other) == pytest.approx(19.6363636364)
    assert ComparedGroups(estimate).pair_df(one, other) == pytest.approx(8)


def test_of_equal_values_the_first_is_largest_and_the_last_smallest() -> None:
    values = np.array([0.3, 0.3 + 1e-15, 0.3 - 1e-15])
    estimate = Wilson(values, 1 - values, np.full(3, 0.01), np.full(3, 0.01))
    spread = find_spread(ComparedGroups(estimate), LEVEL)
    assert (spread.highest, spread.lowest) == (0, 2)


@pytest.mark.parametrize("groups", [200, 201])
def test_many_groups_have_wider_limits_by_their_ends(groups: int) -> None:
    rows = [50] * groups
    spread = find_spread(compared([5 + i % 30 for i in range(groups)], rows), LEVEL)
    z = float(LEVEL.joint_quantile(groups))
    one, other = (
        Wilson(p, 1 - p, np.array([0.02]), np.array([0.02])).limits(z)
        for p in (np.array([0.68]), np.array([0.1]))
    )
    ends = float(one.low[0] - other.high[0]), float(one.high[0] - other.low[0])
    if groups == 201:
        assert spread.difference[1:] == pytest.approx(ends)
    else:
        assert ends[0] < spread.difference.low
        assert spread.difference.high < ends[1]


def test_no_spread_of_fewer_than_two_groups() -> None:
    for groups in (compared([], []), compared([3], [9])):
        spread = find_spread(groups, LEVEL)
        assert (spread.highest, spread.lowest) == (-1, -1)
        assert np.isnan([*spread.difference, *spread.ratio]).all()
        assert np.isnan(equal_groups(groups, np.ones(groups.number), by_design=False))


def test_no_limits_where_a_group_has_none() -> None:
    groups = compared([30, 15, 24], [100, 90, 130], df=np.array([5.0, np.nan, 9.0]))
    spread = find_spread(groups, LEVEL)
    assert spread.difference.value == pytest.approx(30 / 100 - 15 / 90)
    assert np.isnan([*spread.difference[1:], *spread.ratio[1:]]).all()


def test_no_ratio_to_nobody() -> None:
    with np.errstate(all="ignore"):
        spread = find_spread(compared([0, 0, 0], [20, 30, 40]), LEVEL)
    assert spread.difference.value == 0.0
    assert np.isnan(spread.ratio).all()


def test_equal_groups_by_chi_squared() -> None:
    events, rows = np.array([30, 15, 24, 51]), np.array([100, 90, 130, 100])
    table = np.stack([events, rows - events])
    expected = stats.chi2_contingency(table, correction=False).pvalue
    groups = compared(events.tolist(), rows.tolist(), df=np.array([4.0, 9.0, 7.0, 5.0]))
    assert equal_groups(groups, rows, by_design=False) == pytest.approx(expected, rel=1e-12)
    statistic = stats.chi2.isf(expected, 3)
    by_design = stats.f.sf(statistic / 3, 3, 9)
    assert equal_groups(groups, rows, by_design=True) == pytest.approx(by_design, rel=1e-9)
    alike = compared([4, 4], [4, 4])
    assert equal_groups(alike, np.array([4.0, 4.0]), by_design=False) == 1.0
