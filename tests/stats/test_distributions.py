"""Quantiles and p-values: against scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polars_wroc.stats.distributions import (
    t_quantile,
    two_sided_p_value,
    upper_quantile,
)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_student_quantile(level: float) -> None:
    df = 1 / np.linspace(1e-6, 1.0, 2_001)
    found = pl.select(t_quantile(level, pl.lit(pl.Series(df)))).to_series()
    assert found.to_numpy() == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-10)


def test_two_sided_p_value_is_the_normal_one() -> None:
    z = np.concatenate([np.linspace(-37, 37, 20_001), np.geomspace(1e-12, 37, 2_000)])
    found = pl.select(two_sided_p_value(pl.lit(pl.Series(z)))).to_series()
    assert found.to_numpy() == pytest.approx(2 * stats.norm.sf(np.abs(z)), rel=1e-12, abs=0)


def test_two_sided_p_value_at_its_ends() -> None:
    z = pl.Series([0.0, -0.0, float("inf"), -float("inf"), None])
    found = pl.select(two_sided_p_value(pl.lit(z))).to_series().to_list()
    assert found[:2] == pytest.approx([1.0, 1.0], rel=1e-15)
    assert found[2:] == [0.0, 0.0, None]


def test_upper_quantile() -> None:
    tails = np.concatenate([np.geomspace(1e-16, 0.5, 4_001), 0.5 - np.geomspace(1e-9, 0.4, 500)])
    found = pl.select(upper_quantile(pl.lit(pl.Series(tails)))).to_series()
    assert found.to_numpy() == pytest.approx(stats.norm.isf(tails), rel=0, abs=1e-10)


def test_upper_quantile_at_its_ends() -> None:
    tails = pl.lit(pl.Series([0.5, 0.8, None]))
    assert pl.select(upper_quantile(tails)).to_series().to_list() == [0.0, 0.0, None]
