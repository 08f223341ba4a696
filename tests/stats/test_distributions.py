"""Quantiles and p-values: against scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polars_wroc.stats.distributions import student_quantile, two_sided_p_value


@pytest.mark.parametrize("probability", [0.75, 0.9, 0.95, 0.975, 0.995, 0.9995])
def test_student_quantile(probability: float) -> None:
    df = 1 / np.linspace(1e-6, 1.0, 2_001)
    found = pl.select(student_quantile(probability, pl.lit(pl.Series(df)))).to_series()
    assert found.to_numpy() == pytest.approx(stats.t.ppf(probability, df), rel=1e-10)


def test_two_sided_p_value_is_the_normal_one() -> None:
    z = np.concatenate([np.linspace(-37, 37, 20_001), np.geomspace(1e-12, 37, 2_000)])
    found = pl.select(two_sided_p_value(pl.lit(pl.Series(z)))).to_series()
    assert found.to_numpy() == pytest.approx(2 * stats.norm.sf(np.abs(z)), rel=1e-12, abs=0)


def test_two_sided_p_value_at_its_ends() -> None:
    z = pl.Series([0.0, -0.0, float("inf"), -float("inf"), None])
    found = pl.select(two_sided_p_value(pl.lit(z))).to_series().to_list()
    assert found[:2] == pytest.approx([1.0, 1.0], rel=1e-15)
    assert found[2:] == [0.0, 0.0, None]
