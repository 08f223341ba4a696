"""Quantiles and p-values: against scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sweeps import sweep

from polars_wroc.stats.distributions import (
    chi_squared_p_value,
    normal_score,
    student_quantile,
    student_score,
    two_sided_p_value,
)


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


@pytest.mark.parametrize("first", sweep([1, 2, 40, 120], fast=2))
def test_chi_squared_p_value(first: int) -> None:
    tails = np.concatenate([np.geomspace(1e-12, 0.5, 60), 1 - np.geomspace(1e-9, 0.5, 20)])
    df = np.repeat(np.arange(first, first + 80), tails.size)
    values = stats.chi2.isf(np.tile(tails, 80), df)
    table = pl.DataFrame({"x": values, "df": df})
    found = table.select(chi_squared_p_value(pl.col("x"), pl.col("df"))).to_series()
    assert found.to_numpy() == pytest.approx(stats.chi2.sf(values, df), rel=1e-12, abs=0)


def test_chi_squared_p_value_at_its_ends() -> None:
    table = pl.DataFrame(
        {"x": [0.0, 0.0, 1e6, 1e6, None, 3.0, 3.0], "df": [1, 2, 3, 4, 3, 0, None]}
    )
    found = table.select(chi_squared_p_value(pl.col("x"), pl.col("df"))).to_series()
    assert found.to_list() == [1.0, 1.0, 0.0, 0.0, None, None, None]


def test_student_score_is_the_inverse_of_the_normal_score() -> None:
    z = pl.Series("z", np.linspace(-6, 6, 121))
    for df in (1.0, 3.5, 40.0, 1e9):
        back = normal_score(student_score(pl.col("z"), pl.lit(df)), pl.lit(df))
        found = z.to_frame().select(back).to_series()
        assert found.to_numpy() == pytest.approx(z.to_numpy(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("df", "most"), [(7, 0.011), (20, 0.001)])
def test_student_score_is_rather_too_large(df: int, most: float) -> None:
    z = np.linspace(2, 3.5, 50)
    found = pl.select(student_score(pl.lit(pl.Series(z)), pl.lit(df))).to_series().to_numpy()
    excess = found / stats.t.isf(stats.norm.sf(z), df) - 1
    assert 0 < excess.min() < excess.max() < most
