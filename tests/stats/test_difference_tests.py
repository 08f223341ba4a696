"""Intervals and tests of differences: against their definition in numpy and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special, stats
from sweeps import sweep

from polars_wroc.stats.difference_tests import AucEstimate, auc_difference_test, contrast

ONE_ROW = pl.DataFrame({"row": [0]})

NUMBERS = ["difference", "difference_se", "difference_low", "difference_high", "p_value"]
# Two AUCs with their variances and degrees of freedom, and the variance of the difference.
PAIRS = [
    ((0.8, 0.002, 12.0), (0.7, 0.003, 30.0), 0.0035),
    ((0.8, 0.002, 12.0), (0.7, 0.003, 30.0), 0.005),
    ((0.6, 0.004, 3.0), (0.65, 0.001, 2.0), 0.0062),
    ((0.55, 0.004, 20.0), (0.85, 0.0005, 30.0), 0.003),
    ((0.7, 0.004, 1.1), (0.8, 0.004, 1.0), 0.006),
]


def by_definition(one: Any, other: Any, variance: float, level: float) -> list[float]:
    """MOVER of the limits on the logit, and Welch's t of the logits; both with the covariance."""
    (a, v, f), (b, w, g) = one, other
    covariance = (v + w - variance) / 2
    correlation = covariance / np.sqrt(v * w)
    limits = []
    for auc, var, df in (one, other):
        margin = stats.t.ppf((1 + level) / 2, df) * np.sqrt(var) / (auc * (1 - auc))
        limits.append(special.expit(special.logit(auc) + margin * np.array([-1, 1])))
    (low, high), (other_low, other_high) = limits

    def margin_of(near: float, far: float) -> float:
        return float(np.sqrt(near**2 + far**2 - 2 * correlation * near * far))

    slopes = 1 / (a * (1 - a)), 1 / (b * (1 - b))
    parts = v * slopes[0] ** 2, w * slopes[1] ** 2
    both = sum(parts)
    error = np.sqrt(both - 2 * covariance * slopes[0] * slopes[1])
    df = 1 / ((parts[0] / both) ** 2 / f + (parts[1] / both) ** 2 / g)
    t = (special.logit(a) - special.logit(b)) / error
    ends = (a - b - margin_of(a - low, other_high - b), a - b + margin_of(high - a, b - other_low))
    return [a - b, np.sqrt(variance), *ends, 2 * stats.t.sf(abs(t), df)]


@pytest.mark.parametrize("level", sweep([0.8, 0.95]))
@pytest.mark.parametrize(("one", "other", "variance"), PAIRS)
def test_difference_of_aucs(one: Any, other: Any, variance: float, level: float) -> None:
    first, second = (
        AucEstimate(*map(pl.lit, (auc, 1 - auc, var, df))) for auc, var, df in (one, other)
    )
    found = ONE_ROW.select(**auc_difference_test(first, second, pl.lit(variance), level))
    expected = by_definition(one, other, variance, level)
    assert found.select(NUMBERS).row(0) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("variance", "difference"), [(0.0, pytest.approx(0.1)), (None, None)])
def test_aucs_without_a_variance_of_the_difference(
    variance: float | None, difference: float | None
) -> None:
    first, second = (AucEstimate(*map(pl.lit, (a, 1 - a, 0.002, 9.0))) for a in (0.8, 0.7))
    found = ONE_ROW.select(**auc_difference_test(first, second, pl.lit(variance, pl.Float64), 0.95))
    assert found.select(NUMBERS).row(0) == (difference, variance, None, None, None)


@pytest.mark.parametrize("df", [1.5, 7.0])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_contrast(df: float, level: float) -> None:
    columns = contrast(pl.lit(-0.3), pl.lit(0.04), level, pl.lit(df))
    found = ONE_ROW.select(**columns).row(0, named=True)
    margin = 0.2 * stats.t.ppf((1 + level) / 2, df)
    expected = {
        "difference": -0.3,
        "difference_se": 0.2,
        "difference_low": -0.3 - margin,
        "difference_high": -0.3 + margin,
        "z": -1.5,
        "p_value": 2 * stats.t.sf(1.5, df),
    }
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("difference", "p_value"), [(0.0, 1.0), (1e-13, 1.0), (-1e-13, 1.0), (0.1, None), (-2.0, None)]
)
def test_contrast_without_variance(difference: float, p_value: float | None) -> None:
    found = ONE_ROW.select(**contrast(pl.lit(difference), pl.lit(0.0), 0.95, pl.lit(7.0))).row(0)
    assert found == (difference, 0, None, None, None, p_value)
