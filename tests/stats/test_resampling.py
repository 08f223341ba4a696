"""Random multiples of weights and quantiles, against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polars_wroc.stats.designs import Units
from polars_wroc.stats.resampling import (
    count_draws,
    count_poisson,
    draw_exponential,
    find_quantile,
    find_standard_deviation,
    hash_evenly,
    poisson,
    rescale_units,
)

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

SHARES = np.random.default_rng(1).random(5_000)


def test_counts_are_quantiles_of_poisson() -> None:
    assert poisson() == pytest.approx(stats.poisson.cdf(range(14), 1), rel=1e-12)
    assert count_poisson(SHARES).tolist() == stats.poisson.ppf(SHARES, 1).tolist()


def test_multipliers_of_the_bayesian_bootstrap_are_exponential() -> None:
    assert draw_exponential(SHARES) == pytest.approx(stats.expon.isf(SHARES), rel=1e-12)
    assert np.isfinite(draw_exponential(np.zeros(1))).all()


def test_hashes_are_even_and_repeat() -> None:
    identity = pl.Series(np.arange(20_000))
    share = hash_evenly(identity, 7)
    assert stats.kstest(share, "uniform").pvalue > 0.01
    assert hash_evenly(identity.reverse(), 7).tolist() == share[::-1].tolist()
    assert stats.pearsonr(share, hash_evenly(identity, 8)).pvalue > 0.01


def test_units_are_drawn_within_their_strata() -> None:
    stratum = np.array([1, 0, 1, 0, 0, 2])
    units = Units(stratum, np.array([3.0, 2.0, 1.0]), np.zeros(3))
    order = np.argsort(stratum, kind="stable")
    assert count_draws(units).tolist() == [2, 1, 1]
    # Of stratum 0 its first and third unit, of stratum 1 the second, of stratum 2 the only one
    times = rescale_units(units, order, np.array([0.1, 0.9, 0.6, 0.3]))
    assert times == pytest.approx([0, 1.5, 2, 0, 1.5, 1])
    # A hash may be rounded to 1, which draws the last unit of a stratum.
    times = rescale_units(units, order, np.ones(4))
    assert times == pytest.approx([0, 0, 2, 0, 3, 1])


@pytest.mark.parametrize("share", [0.025, 0.5, 1.0])
def test_quantiles_and_spreads_are_those_of_numpy(share: float) -> None:
    values = np.random.default_rng(2).normal(size=(40, 3, 2))
    values[::7, 1] = np.nan
    expected = np.nanquantile(values, share, axis=0)
    assert find_quantile(values, share) == pytest.approx(expected, rel=1e-12)
    assert find_standard_deviation(values) == pytest.approx(
        np.nanstd(values, axis=0, ddof=1), rel=1e-12
    )


def test_nothing_is_known_of_nothing() -> None:
    unknown = np.full((3, 1), np.nan)
    assert np.isnan(find_quantile(unknown, 0.5)).all()
    assert np.isnan(find_standard_deviation(unknown)).all()
    assert find_quantile(np.zeros((3, 0)), 0.5).shape == (0,)
