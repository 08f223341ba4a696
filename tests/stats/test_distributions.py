"""Quantiles and p-values: against scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polars_wroc.stats.distributions import (
    t_quantile,
    upper_quantile,
)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_student_quantile(level: float) -> None:
    df = 1 / np.linspace(1e-6, 1.0, 2_001)
    found = pl.select(t_quantile(level, pl.lit(pl.Series(df)))).to_series()
    assert found.to_numpy() == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-10)


def test_upper_quantile() -> None:
    tails = np.concatenate([np.geomspace(1e-16, 0.5, 4_001), 0.5 - np.geomspace(1e-9, 0.4, 500)])
    found = pl.select(upper_quantile(pl.lit(pl.Series(tails)))).to_series()
    assert found.to_numpy() == pytest.approx(stats.norm.isf(tails), rel=0, abs=1e-10)


def test_upper_quantile_at_its_ends() -> None:
    tails = pl.lit(pl.Series([0.5, 0.8, None]))
    assert pl.select(upper_quantile(tails)).to_series().to_list() == [0.0, 0.0, None]
