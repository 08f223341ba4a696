"""Tails of skewed sums, compared with SciPy, and with what they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polars_wroc.stats.skewed_sums import (
    exact_tail,
    limit_rates,
    lower_tail,
    pearson_tail,
    upper_tail,
)


def both_tails(*parts: Any) -> tuple[Any, Any]:
    """Return both probabilities."""
    return upper_tail(*parts), lower_tail(*parts)


@pytest.mark.parametrize(
    ("z", "skewness"), [(1.3, -0.4), (-2.2, 0.7), (4.0, 3.0), (0.4, -6.0), (7.0, 0.05)]
)
def test_the_skewed_tail_is_that_of_scipy(z: float, skewness: float) -> None:
    tail = pearson_tail(np.array([z]), np.array([skewness]))[0]
    assert tail == pytest.approx(stats.pearson3.sf(z, skewness), rel=1e-9)


@pytest.mark.parametrize(
    ("rows", "rate", "events", "expected"),
    [
        (100, 0.05, 14, (6.93e-4, 5.99e-4, 3.6e-5)),
        (1000, 0.02, 40, (7.1e-5, 6.4e-5, 6.3e-6)),
        (100, 0.05, 0, (6.2e-3, 5.9e-3, 2.2e-2)),
    ],
)
def test_the_skewed_p_value_is_close_to_that_of_counting_where_the_normal_one_is_not(
    rows: int, rate: float, events: int, expected: tuple[float, ...]
) -> None:
    variance = rows * rate * (1 - rate)
    z, skewness = (events - rows * rate) / variance**0.5, (1 - 2 * rate) / variance**0.5
    parts = [np.array([each]) for each in (z, skewness, skewness)]
    # Of two tails, each with half of the probability of the count itself.
    count = stats.binom(rows, rate)
    counted = min(count.sf(events), count.cdf(events - 1)) + count.pmf(events) / 2
    found = [float(min(both_tails(*parts))[0]), float(counted), float(stats.norm.sf(abs(z)))]
    assert [2 * each for each in found] == pytest.approx(expected, rel=0.01)


@given(st.floats(-6, 6), st.floats(-8, 8).filter(lambda x: abs(x) >= 2e-3))
def test_skewed_tails_are_mirrored_and_those_of_scipy(z: float, skewness: float) -> None:
    upper, lower = (pearson_tail(np.array([s * z]), np.array([s * skewness]))[0] for s in (1, -1))
    assert upper + lower == pytest.approx(1, abs=1e-9)
    # SciPy has few digits where there is hardly any skewness.
    tolerance = 1e-8 if abs(skewness) > 0.1 else 1e-5
    assert upper == pytest.approx(stats.pearson3.sf(z, skewness), abs=tolerance)


@pytest.mark.parametrize(("total", "events", "rows"), [(60, 20, 25), (500, 400, 490), (9, 3, 3)])
def test_exact_tails_are_those_of_scipys_hypergeometric_law(
    total: int, events: int, rows: int
) -> None:
    law = stats.hypergeom(total, events, rows)
    both = np.arange(max(0, events + rows - total), min(events, rows) + 1)
    sizes = (np.full(both.shape, float(number)) for number in (rows, events, total))
    found = exact_tail(both.astype(float), *sizes)
    assert found == pytest.approx(law.sf(both) + law.pmf(both) / 2, rel=1e-9)


def test_limits_of_rates_are_where_the_tails_have_the_probability() -> None:
    weights = np.array([1.0, 2.0, 0.5, 4.0, 1.5, 1.0])
    weight, squares, cubes = (np.array([(weights**power).sum()]) for power in (1, 2, 3))
    tail, rate = np.array([0.01]), np.array([0.4])
    low, high = limit_rates(rate, weight, squares, cubes, tail, np.ones(1))
    for true, side in ((low[0], 0), (high[0], 1)):
        spread = np.sqrt(true * (1 - true))
        z = (rate - true) * weight / np.sqrt(squares) / spread
        skewness = (1 - 2 * true) / spread * cubes / squares**1.5
        least = (1 - 2 * true) / spread * np.sqrt(squares) / weight
        assert both_tails(z, skewness, least)[side][0] == pytest.approx(0.01, rel=1e-6)
    # No event, and nothing but events.
    assert limit_rates(np.zeros(1), weight, squares, cubes, tail, np.ones(1)).low[0] < 1e-9
    assert limit_rates(np.ones(1), weight, squares, cubes, tail, np.ones(1)).high[0] > 1 - 1e-9
