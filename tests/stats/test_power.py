"""Detectable gaps, against a worked number, SciPy's root finder and simulated power."""

from __future__ import annotations

import numpy as np
import plain_rates
import pytest
from scipy import stats

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Scale, Wald
from polars_wroc.stats.levels import Level
from polars_wroc.stats.power import detectable_difference, detectable_gap
from polars_wroc.stats.rates import Count, Rate, Sample, equal_rates

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
Z = float(LEVEL.quantile())


def sample(value: float, pool: float, at_zero: float, at_one: float) -> Sample:
    return Sample(*(np.array([x]) for x in (value, 1 - value, pool, at_zero, at_one)))


def table(events: Array, rows: Array) -> Rate:
    events, others = np.asarray(events, float), np.asarray(rows - events, float)
    return Rate(Count(events, events, events), Count(others, others, others), events + others)


def test_aucs_of_methods2_section_8() -> None:
    own, reference = sample(0.8, 0.02, 0.02, 0.02), sample(0.8, 0.02, 0.02, 0.02)
    assert detectable_gap(own, reference, Z, least=0.5) == pytest.approx(0.2604, abs=5e-5)


def test_gaps_of_random_sizes_equal_those_of_scipy_root_finder() -> None:
    rng = np.random.default_rng(21)
    for value, *sizes in rng.uniform(0.05, 1, (60, 7)) ** [1, *[2.5] * 6]:
        own, other = sample(value, *sizes[:3]), sample(value, *sizes[3:])
        sides = plain_rates.Side(*sizes[:3]), plain_rates.Side(*sizes[3:])
        for least in (0.0, 0.5):
            expected = plain_rates.smallest(value, sides, Z, value - least)
            found = detectable_gap(own, other, Z, least=least)[0]
            assert found == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


@pytest.mark.parametrize("reference", [0.0, np.nan, 0.5])
def test_no_gap_is_detected_below_the_least_value(reference: float) -> None:
    own = sample(0.8, 0.01, 0.01, 0.01)
    other = sample(reference, 0.01, 0.01, 0.01)
    assert np.isnan(detectable_gap(own, other, Z, least=0.5)).all()


def test_no_gap_is_detected_from_two_rows() -> None:
    assert np.isnan(detectable_gap(sample(0.6, 0.5, 0.5, 0.5), sample(0.6, 0.5, 0.5, 0.5), Z)).all()


def test_gap_from_a_reference_of_1_is_detected() -> None:
    own, other = sample(1.0, 0.5, 0.5, 0.5), sample(1.0, 1 / 49, 1 / 49, 1 / 49)
    sides = plain_rates.Side(0.5, 0.5, 0.5), plain_rates.Side(1 / 49, 1 / 49, 1 / 49)
    expected = plain_rates.smallest(1.0, sides, Z, 1.0)
    assert detectable_gap(own, other, Z) == pytest.approx(expected, rel=1e-9)


def test_gaps_fall_with_rows_and_rise_with_quantile_and_power() -> None:
    reference = table(np.array([400.0]), np.array([800.0])).sample()
    rows = np.array([20.0, 60.0, 200.0, 1000.0])
    own = table(rows / 2, rows).sample()
    gaps = detectable_gap(own, Sample(*(np.repeat(x, 4) for x in reference)), Z)
    assert (np.diff(gaps) < 0).all()
    one = Sample(*(np.asarray(x)[2:3] for x in own))
    by_quantile = [float(detectable_gap(one, reference, q)[0]) for q in (1.6, 2.0, 3.0)]
    by_power = [float(detectable_gap(one, reference, Z, power=p)[0]) for p in (0.5, 0.8, 0.95)]
    assert by_quantile == sorted(by_quantile)
    assert by_power == sorted(by_power)


def test_power_at_the_detectable_gap_is_about_80_percent() -> None:
    rng = np.random.default_rng(22)
    rows, reference = 150, 0.4
    expected = table(np.array([reference * rows]), np.array([rows]))
    gap = detectable_gap(expected.sample(), expected.sample(), Z)[0]
    rates = reference - gap, reference
    events = (rng.binomial(rows, p, 4000).astype(float) for p in rates)
    one, other = (table(each, np.full(4000, rows)) for each in events)
    # MC error .006; the normal approximation is off by a few points.
    power = (equal_rates(one, other, LEVEL).p_value <= 0.05).mean()
    assert power == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_detectable_difference_is_so_many_standard_errors(correlation: float) -> None:
    own = Wald(np.array([0.2, 0.2]), np.array([0.5, 0.0]), Scale(0.0, 1.0))
    other = Wald(np.array([0.4, 0.4]), np.array([0.25, 0.25]), Scale(0.0, 1.0))
    a, b = 0.5 * 0.2 * 0.8, 0.25 * 0.4 * 0.6
    error = np.sqrt(a**2 + b**2 - 2 * correlation * a * b)
    found = detectable_difference(own, other, Z, correlation=correlation)
    assert found[0] == pytest.approx((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error)
    assert np.isnan(found[1])


def test_no_segments_have_no_detectable_gaps() -> None:
    none = np.zeros(0)
    empty = Sample(none, none, none, none, none)
    assert detectable_gap(empty, empty, none).size == 0
