"""Limits of the ratio of observed to expected, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.proportion import proportion_confint

from polars_wroc.arrays import Array
from polars_wroc.stats.calibration import RateOfScores
from polars_wroc.stats.estimates import Wald, WidenedEstimate

Z = float(stats.norm.ppf(0.975))


def rate_of(y: Array, s: Array, w: Array) -> RateOfScores:
    h, t = w / w.sum(), s / np.average(s, weights=w)
    p = np.average(y, weights=w)
    sums = (h**2 * t).sum(), (h**2 * t**2).sum(), (h**2 * (y - p * t) ** 2).sum()
    value, scores, squares, residuals = (np.array([each]) for each in (p, *sums))
    return RateOfScores(value, scores, squares, residuals)


def draw(seed: int, factor: float) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    s = random.beta(2, 3, 80)
    return (random.random(80) < factor * s).astype(float), s, random.lognormal(size=80)


@pytest.mark.parametrize("seed", range(5))
def test_limits_are_where_the_squared_distance_is_that_of_the_variance(seed: int) -> None:
    y, s, w = draw(seed, 0.8)
    rate = rate_of(y, s, w)
    h, t, p = w / w.sum(), s / np.average(s, weights=w), rate.value.item()
    model = (h**2 * p * t * (1 - p * t)).sum()
    excess = max(rate.residuals.item() - model, 0.0)

    def distance(at: float) -> float:
        return float((p - at) ** 2 - Z**2 * ((h**2 * at * t * (1 - at * t)).sum() + excess))

    low = brentq(distance, 0.0, p, xtol=1e-15) if distance(0.0) > 0 else 0.0
    high = brentq(distance, p, 3.0, xtol=1e-15)
    if excess > 0:
        factor = np.exp(Z * np.sqrt(rate.residuals.item()) / p)
        low, high = min(low, p / factor), max(high, p * factor)
    limits = rate.limits(Z)
    assert (limits.low.item(), limits.high.item()) == pytest.approx((low, high), rel=1e-9)


def test_limits_reach_as_far_as_those_of_the_logarithm_where_residuals_vary_more() -> None:
    # So few effective rows that the limits of the rate itself are narrower
    p, scores, squares = 0.02, 0.2, 0.3
    residuals = 1.01 * p * (scores - p * squares)
    rate = RateOfScores(
        np.array([p]), np.array([scores]), np.array([squares]), np.array([residuals])
    )
    limits = rate.limits(Z)
    margin = Z * np.sqrt(residuals) / p
    assert np.log(np.ravel(limits) / p) == pytest.approx([-margin, margin])


@pytest.mark.parametrize("positives", [0, 3, 40])
def test_limits_of_equal_scores_are_those_of_wilson(positives: int) -> None:
    y = np.repeat([1.0, 0.0], [positives, 40 - positives])
    found = rate_of(y, np.full(40, 0.3), np.ones(40)).limits(Z)
    expected = proportion_confint(positives, 40, method="wilson")
    assert (found.low.item(), found.high.item()) == pytest.approx(expected, abs=1e-12)


def test_no_segments_have_no_limits() -> None:
    none = np.zeros(0)
    assert RateOfScores(none, none, none, none).limits(Z).low.size == 0


def test_an_estimate_is_widened_to_the_limits_of_another_one_where_these_are_known() -> None:
    value, error = np.full(4, 1.0), np.array([1.0, 1.0, 1.0, np.nan])
    other = Wald(np.full(4, 1.2), np.array([2.0, 2.0, np.nan, 2.0]))
    widened = WidenedEstimate(Wald(value, error), other, np.array([True, False, True, True]))
    low, high = widened.limits(1.0)
    assert low == pytest.approx([-0.8, 0.0, 0.0, np.nan], nan_ok=True)
    assert high == pytest.approx([3.2, 2.0, 2.0, np.nan], nan_ok=True)
