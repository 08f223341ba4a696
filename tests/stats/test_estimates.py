"""Limits of estimates, against statsmodels, SciPy and worked numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from statsmodels.stats.proportion import proportion_confint

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Scale, Wald, Wilson
from polars_wroc.stats.levels import Level, RepeatedLooks

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

Z = float(Level(0.05).quantile())


def rate(events: Array, rows: Array) -> Wilson:
    """Return rates of rows of equal weights."""
    return Wilson(events / rows, 1 - events / rows, 1 / rows, 1 / rows)


def auc(value: float, low: float, high: float) -> Wilson:
    """Return an AUC with 1 divided by the effective size of each limit."""
    sizes = np.array([low]), np.array([high])
    return Wilson(np.array([value]), 1 - np.array([value]), *sizes, skewness=1 / 12)


def random_wilson(segments: int = 500) -> Wilson:
    rng = np.random.default_rng(4)
    value = rng.choice([0.0, 0.01, 0.3, 0.5, 0.9, 1.0], segments)
    low, high, at_one = rng.uniform(0.001, 1, (3, segments))
    # Both limits of a rate rest on the same sizes, those of an AUC on sizes of their own.
    is_rate = rng.random(segments) < 0.5
    slope = np.where(is_rate, at_one - low, 0.0)
    return Wilson(value, 1 - value, low, np.where(is_rate, low, high), slope)


# Wilson


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.001])
def test_limits_of_rates_are_wilson_of_statsmodels(alpha: float) -> None:
    events, rows = np.array([0.0, 1, 3, 50, 100, 7]), np.array([5.0, 40, 10, 100, 100, 7])
    expected = proportion_confint(events, rows, alpha, method="wilson")
    found = rate(events, rows).limits(Level(alpha).quantile())
    assert found.low == pytest.approx(expected[0], abs=1e-14)
    assert found.high == pytest.approx(expected[1], abs=1e-14)


def test_3_of_10_of_methods3c_section_1() -> None:
    low, high = rate(np.array([3.0]), np.array([10.0])).limits(Z)
    assert [*low, *high] == pytest.approx([0.1077912674, 0.6032218525], abs=5e-11)


def test_12_of_100_rows_at_a_tenth_of_the_planned_of_methods3a_section_2() -> None:
    low, high = rate(np.array([12.0]), np.array([100.0])).limits(
        Level(0.05, RepeatedLooks(1000.0, 100.0)).quantile()
    )
    assert [*low, *high] == pytest.approx([0.0423577009, 0.2959755476], abs=5e-11)


@pytest.mark.parametrize(
    ("value", "sizes", "expected"),
    [
        (0.8125, (0.25, 0.25), (0.3462500033, 0.9815114205)),
        (0.9375, (0.25, 0.2089749645), (0.4499682398, 0.9995612268)),
        (0.5, (0.2135848273, 0.2135848273), (0.1643314442, 0.8356685558)),
        (0.8, (0.2300280202, 0.2426471072), (0.3512652999, 0.9775376056)),
    ],
)
def test_aucs_of_methods3c_section_3(
    value: float, sizes: tuple[float, float], expected: tuple[float, float]
) -> None:
    # Its numbers are those of the quantile rounded to six digits.
    low, high = auc(value, *sizes).limits(1.959964)
    assert [*low, *high] == pytest.approx(expected, abs=2e-10)


def test_auc_at_the_planned_rows_of_methods3a_section_2() -> None:
    low, high = auc(0.8125, 0.25, 0.25).limits(Level(0.05, RepeatedLooks(9.0, 9.0)).quantile())
    assert [*low, *high] == pytest.approx([0.2025617588, 0.9973565899], abs=5e-11)


def test_limits_of_a_rate_solve_its_score_equation_at_the_size_there() -> None:
    # (p - m)^2 = z^2 m (1 - m) r(m), which four iterations solve to three digits or more
    p, at_zero, at_one, z = 0.2, 0.02, 0.05, 1.96
    size = np.array([at_zero])
    estimate = Wilson(np.array([p]), np.array([1 - p]), size, size, at_one - at_zero)

    def excess(m: float) -> float:
        size = (1 - m) * at_zero + m * at_one
        return (p - m) ** 2 - z**2 * m * (1 - m) * size

    expected = optimize.brentq(excess, 0.01, p), optimize.brentq(excess, p, 0.99)
    low, high = estimate.limits(z)
    assert [*low, *high] == pytest.approx(expected, abs=1e-3)


def test_limits_contain_the_value_and_stay_between_0_and_1() -> None:
    estimate = random_wilson()
    for quantile in (0.0, 0.5, 1.96, 37.0, 1e50):
        low, high = estimate.limits(quantile)
        assert ((low >= 0) & (low <= estimate.value)).all()
        assert ((high <= 1) & (high >= estimate.value)).all()


@pytest.mark.parametrize("skewness", [0.0, 1 / 12])
def test_limits_widen_with_the_quantile(skewness: float) -> None:
    rng = np.random.default_rng(5)
    value, low, high = rng.uniform(0, 1, (3, 300))
    estimate = Wilson(value, 1 - value, low, high, skewness=skewness)
    limits = [estimate.limits(quantile) for quantile in (0.1, 1.0, 1.5, 3.0, 10.0)]
    assert (np.diff([each.low for each in limits], axis=0) <= 1e-15).all()
    assert (np.diff([each.high for each in limits], axis=0) >= -1e-15).all()


def test_limits_of_the_complement_are_mirrored() -> None:
    estimate = random_wilson()
    at_one = estimate.low + estimate.slope, estimate.high + estimate.slope
    mirrored = Wilson(
        estimate.complement, estimate.value, at_one[1], at_one[0], -np.asarray(estimate.slope)
    )
    low, high = estimate.limits(2.2)
    other_low, other_high = mirrored.limits(2.2)
    assert low == pytest.approx(1 - other_high, abs=1e-12)
    assert high == pytest.approx(1 - other_low, abs=1e-12)


def test_an_exact_rate_has_no_width_and_an_unknown_size_no_limits() -> None:
    value, size = np.array([0.3, 0.0, 0.3, 0.3, np.nan]), np.array([0.0, 0.0, np.inf, np.nan, 0.1])
    low, high = Wilson(value, 1 - value, size, size).limits(1.96)
    assert low[:2] == pytest.approx(value[:2])
    assert high[:2] == pytest.approx(value[:2])
    assert np.isnan([low[2:], high[2:]]).all()


def test_no_segments_have_no_limits() -> None:
    none = np.zeros(0)
    assert Wilson(none, none, none, none, none).limits(none).low.size == 0
    assert Wald(none, none, Scale(0.0, 1.0)).limits(none).high.size == 0


# Wald


def test_two_scores_of_statistics_md_section_2() -> None:
    # D and V*, with 5.565 degrees of freedom
    error = np.sqrt([0.0587876649])
    low, high = Wald(np.array([0.1666666667]), error).limits(Level(0.05).quantile(5.5653816685))
    assert [*low, *high] == pytest.approx([-0.4380295849, 0.7713629183], abs=5e-10)


def test_identity_scale_gives_symmetric_normal_limits() -> None:
    value, error = np.array([-3.0, 0.2]), np.array([1.0, 0.1])
    low, high = Wald(value, error).limits(Z)
    assert low == pytest.approx(stats.norm.ppf(0.025, value, error))
    assert high == pytest.approx(stats.norm.ppf(0.975, value, error))


def test_logit_scale_gives_limits_between_its_ends() -> None:
    value, error = np.array([-0.5, 0.9]), np.array([0.4, 2.0])
    low, high = Wald(value, error, Scale(-1.0, 1.0)).limits(Z)
    logit = special.logit((value + 1) / 2)
    assert low == pytest.approx(2 * special.expit(logit - Z * error) - 1)
    assert high == pytest.approx(2 * special.expit(logit + Z * error) - 1)


def test_logarithmic_scale_gives_limits_by_factors() -> None:
    value, error = np.array([0.5, 2.0]), np.array([0.1, 0.3])
    low, high = Wald(value, error, Scale(0.0)).limits(Z)
    assert low == pytest.approx(value * np.exp(-Z * error))
    assert high == pytest.approx(value * np.exp(Z * error))


def test_each_segment_has_its_own_ends() -> None:
    scale = Scale(np.array([0.0, -1.0]), np.array([np.inf, 1.0]))
    value = np.array([2.0, 0.5])
    low, _ = Wald(value, np.ones(2), scale).limits(1.0)
    assert low == pytest.approx([2 / math.e, 2 * special.expit(special.logit(0.75) - 1) - 1])


def test_limits_around_another_centre_include_the_value() -> None:
    value, centre = np.array([0.9, 0.9]), special.logit(np.array([0.8, 0.95]))
    low, high = Wald(value, np.full(2, 0.1), Scale(0.0, 1.0), centre).limits(1.0)
    logits = np.minimum(centre, special.logit(value)), np.maximum(centre, special.logit(value))
    assert low == pytest.approx(special.expit(logits[0] - 0.1))
    assert high == pytest.approx(special.expit(logits[1] + 0.1))


def test_value_at_an_end_has_limits_if_it_has_a_centre() -> None:
    value, error = np.array([0.0, 1.0]), np.ones(2)
    low, high = Wald(value, error, Scale(0.0, 1.0), special.logit(np.array([0.1, 0.8]))).limits(1.0)
    assert [low[0], high[1]] == [0, 1]
    assert high[0] == pytest.approx(special.expit(special.logit(0.1) + 1))
    assert low[1] == pytest.approx(special.expit(special.logit(0.8) - 1))
    without = Wald(value, error, Scale(0.0, 1.0))
    assert np.isnan(without.limits(1.0)).all()
    assert np.isnan(without.standard_error).all()


def test_no_error_gives_no_limits() -> None:
    estimate = Wald(np.full(3, 0.4), np.array([0.0, np.nan, 0.1]), Scale(0.0, 1.0))
    assert np.isnan(estimate.limits(2.0).low).tolist() == [True, True, False]
    assert np.isnan(estimate.standard_error).tolist() == [True, True, False]


@pytest.mark.parametrize("scale", [Scale(), Scale(0.0), Scale(0.0, 1.0), Scale(-2.0, 3.0)])
def test_places_on_scales_invert_and_have_the_slope_of_differences(scale: Scale) -> None:
    value = np.array([0.1, 0.5, 0.93])
    place = scale.transform(value)
    assert scale.invert(place) == pytest.approx(value, rel=1e-12)
    step = 1e-6
    slope = (scale.invert(place + step) - scale.invert(place - step)) / (2 * step)
    assert scale.slope(value) == pytest.approx(slope, rel=1e-8)


def test_standard_error_is_that_of_the_delta_method() -> None:
    value, error = np.array([0.2]), np.array([0.5])
    assert Wald(value, error, Scale(0.0, 1.0)).standard_error == pytest.approx(0.2 * 0.8 * 0.5)


def test_estimates_at_some_places_have_the_limits_of_these_segments() -> None:
    places = np.array([3, 0, 3])
    rng = np.random.default_rng(6)
    value, error, low, centre = rng.uniform(0.1, 0.9, (4, 5))
    for estimate in (
        Wilson(value, 1 - value, error, low, df=10 * value),
        Wald(value, error, Scale(low - 1, 2.0), centre, df=4.0),
    ):
        found = estimate.at(places).limits(np.array([1.0, 2.0, 3.0]))
        for quantile, place, low_end, high_end in zip((1.0, 2.0, 3.0), places, *found, strict=True):
            expected = estimate.limits(quantile)
            assert (low_end, high_end) == (expected.low[place], expected.high[place])
        assert np.ndim(estimate.at(places).df) == np.ndim(estimate.df)
