"""Numbers of rows: limits, tests and placements of SciPy and statsmodels, and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from polars_wroc.stats.aucs import SKEWNESS
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.sample_sizes import (
    MOST_ROWS,
    AucPlan,
    InverseSizes,
    RowSizes,
    RowsPlan,
    find_rows,
    find_rows_for_error,
    find_rows_for_margin,
    find_rows_for_width,
    invert_limits,
    square_placements,
)

ONE = np.ones(1)
Z, Z_POWER = stats.norm.ppf(0.975), stats.norm.ppf(0.8)
OF_ONE = RowSizes(InverseSizes(ONE, ONE, ONE))


@given(st.floats(0.01, 0.99))
def test_placements_of_normal_scores(auc: float) -> None:
    place = stats.norm.ppf(1 - auc)
    owen = 1 - auc - 2 * special.owens_t(place, 1 / math.sqrt(3))
    assert square_placements(np.array([auc]))[0] == pytest.approx(owen, rel=1e-12)


def test_placements_by_the_bivariate_normal_distribution() -> None:
    place = stats.norm.ppf(0.25)
    both = stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf([place, place])
    found = square_placements(np.array([0.75, 0.0, 1.0]))
    assert found[0] == pytest.approx(both, abs=1e-7)
    assert found[0] == pytest.approx(0.1202751073, abs=1e-10)
    assert found[1:].tolist() == [1, 0]


@given(
    st.floats(0.02, 0.98),
    st.floats(5, 1e5),
    st.floats(5, 1e5),
    st.sampled_from([0.0, SKEWNESS]),
    st.floats(1.0, 3.5),
)
def test_sizes_are_found_from_limits(
    value: float, low: float, high: float, skewness: float, quantile: float
) -> None:
    values = np.array([value])
    estimate = Wilson(values, 1 - values, ONE / low, ONE / high, skewness=skewness)
    limits = estimate.limits(quantile)
    sizes = invert_limits(values, *limits, quantile, skewness)
    assert 1 / sizes.low[0] == pytest.approx(low, rel=1e-8)
    assert 1 / sizes.high[0] == pytest.approx(high, rel=1e-8)
    assert sizes.test[0] == max(sizes.low[0], sizes.high[0])


def test_a_limit_at_the_value_has_the_size_of_the_other() -> None:
    zero = np.zeros(1)
    low, high = proportion_confint(0, 40, method="wilson")
    with np.errstate(invalid="ignore"):
        sizes = invert_limits(zero, np.array([low]), np.array([high]), Z, 0.0)
    assert 1 / sizes.low[0] == pytest.approx(40)
    assert 1 / sizes.high[0] == pytest.approx(40)
    # A value between 0 and 1 may have such a limit too.
    values = np.array([0.3])
    high = values + 0.1
    sizes = invert_limits(values, values, high, Z, 0.0)
    assert sizes.low == sizes.high > 0


@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, 0.93])
def test_width_by_the_limits_of_statsmodels(value: float) -> None:
    rows = math.ceil(find_rows_for_width(np.array([value]), OF_ONE, 0.04, Z)[0])
    for n, is_enough in ((rows - 1, False), (rows, True)):
        low, high = proportion_confint(value * n, n, method="wilson")
        assert ((high - low) / 2 <= 0.04) == is_enough


def test_sizes_of_planned_aucs_fall_with_rows() -> None:
    value = np.array([0.8])
    plan = AucPlan(value, square_placements(value), 0.3, 0.7)
    few_rows, many_rows = np.array([100.0]), np.array([10_000.0])
    few = *plan.limit_sizes(few_rows), plan.test_size(few_rows)
    many = *plan.limit_sizes(many_rows), plan.test_size(many_rows)
    # Pseudo-rows matter less the more rows there are.
    for one, other in zip(few, many, strict=True):
        assert 1 < one[0] / other[0] / 100 < 1.5
    # DeLong's variance of normal scores, divided by theta (1 - theta):
    # (Q - (1 - theta)^2) (1 / n+ + 1 / n-), where Q is the mean square of placements
    second = square_placements(value)
    variance = (second - 0.2**2) * (1 / 3_000 + 1 / 7_000)
    assert many[2][0] == pytest.approx(variance[0] / 0.16, rel=0.01)
    cautious = AucPlan(value, second, 0.3, 0.7, cautious=True).test_size(few_rows)
    assert cautious[0] == max(few[0][0], few[1][0])


def test_sizes_of_a_plan_give_the_limits_that_they_are_from() -> None:
    value, rows = np.array([0.83]), np.array([150.0])
    limits = np.array([0.71]), np.array([0.89])
    plan = AucPlan(value, square_placements(value), 0.3, 0.7)
    sizes = RowSizes.from_limits(value, limits, rows, Z, plan)
    assert np.ravel(sizes.estimate(value, rows).limits(Z)) == pytest.approx(np.ravel(limits))
    wider, narrower = (sizes.estimate(value, rows * factor).limits(Z) for factor in (0.9, 1.1))
    assert wider.low < limits[0] < narrower.low < narrower.high < limits[1] < wider.high


def test_equivalence_by_simulation() -> None:
    value = np.array([0.7])
    plan = RowsPlan(value, OF_ONE, np.array([2.0]), ONE)
    one_sided = stats.norm.ppf(0.95)
    (found,) = plan.find_rows_for_equivalence(0.06, one_sided, 0.8)
    mirrored = RowsPlan(1 - value, OF_ONE, np.array([2.0]), ONE)
    assert mirrored.find_rows_for_equivalence(0.06, one_sided, 0.8) == pytest.approx(found)
    rows = math.ceil(found)
    random = np.random.default_rng(3)
    sides = []
    for n in (rows, 2 * rows):
        events = random.binomial(n, 0.7, 20_000)
        low, high = proportion_confint(events, n, alpha=0.1, method="wilson")
        sides.append((events / n, low, high))
    (a, a_low, a_high), (b, b_low, b_high) = sides
    low = a - b - np.hypot(a - a_low, b_high - b)
    high = a - b + np.hypot(a_high - a, b - b_low)
    assert np.mean((low > -0.06) & (high < 0.06)) == pytest.approx(0.8, abs=0.015)


def test_a_gap_below_what_there_can_be_needs_no_number() -> None:
    plan = RowsPlan(np.array([0.55, 0.55]), OF_ONE, np.ones(2), np.ones(2))
    assert np.isnan(plan.find_rows_for_gap(0.06, Z, 0.8, least=0.5)).all()
    assert (plan.find_rows_for_gap(0.06, Z, 0.8, least=0.0) > 0).all()


def test_margin_of_changes() -> None:
    found = find_rows_for_margin(0.02, 0.01, Z, 0.8)[0]
    assert math.ceil(found) == 1686


def test_errors_fall_with_the_root_of_rows() -> None:
    assert find_rows_for_error(np.array([0.5, 1e-9, np.nan]), 0.1, 2.0).tolist()[:2] == [100, 1]


def test_search() -> None:
    threshold = np.array([1.0, 17.25, 1e8, np.inf])
    found = find_rows(lambda rows: rows >= threshold, 4)
    assert found[:3] == pytest.approx(threshold[:3], rel=1e-9)
    assert np.isnan(found[3])
    assert MOST_ROWS > 1e8
    assert len(find_rows(lambda rows: rows >= 1, 0)) == 0
