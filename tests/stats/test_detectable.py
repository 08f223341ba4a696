"""Smallest detectable differences: a worked number, bisection in plain Python, the power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polars_wroc.plans.queries import in_columns
from polars_wroc.stats.difference_tests import Comparison, Detectable


def detectable(
    reference: float, sizes: tuple[float, float], level: float = 0.95, most: float | None = None
) -> float | None:
    """Compute it for one comparison; ``sizes`` are inverse."""
    largest = reference if most is None else most
    comparison = Comparison(*(pl.lit(value) for value in (reference, *sizes, largest)))
    plan = Detectable(lambda _: {"x": comparison}, ("x",), "quantile")
    frame = pl.LazyFrame({"quantile": [stats.norm.ppf((1 + level) / 2)]})
    found: float | None = in_columns(frame, plan.steps).collect()[plan.difference("x")].item()
    return found


def by_bisection(
    reference: float, sizes: tuple[float, float], level: float, largest: float
) -> float | None:
    """Solve the equation of the definition."""

    def excess(difference: float) -> float:
        middle, below = reference - difference / 2, reference - difference
        tested = middle * (1 - middle) * sum(sizes)
        true = reference * (1 - reference) * sizes[1] + below * (1 - below) * sizes[0]
        quantiles = stats.norm.ppf((1 + level) / 2), stats.norm.ppf(0.8)
        return float(difference - quantiles[0] * math.sqrt(tested) - quantiles[1] * math.sqrt(true))

    low, high = 0.0, largest
    if largest <= 0 or excess(largest) < 0:
        return None
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) >= 0 else (middle, high)
    return high


def test_worked_number() -> None:
    assert detectable(0.8, (0.02, 0.02), most=0.3) == pytest.approx(0.2604, abs=5e-5)


@given(
    reference=st.floats(0.01, 0.999),
    sizes=st.tuples(st.floats(1e-6, 0.5), st.floats(1e-6, 0.5)),
    level=st.sampled_from([0.5, 0.95, 0.9999]),
    is_auc=st.booleans(),
)
def test_is_the_solution(
    reference: float, sizes: tuple[float, float], level: float, *, is_auc: bool
) -> None:
    largest = reference - 0.5 if is_auc else reference
    expected = by_bisection(reference, sizes, level, largest)
    found = detectable(reference, sizes, level, largest)
    if expected is not None and expected < largest * (1 - 1e-9):
        assert found == pytest.approx(expected, rel=1e-4)
    elif expected is None:
        # Rounding decides at the end.
        beyond = by_bisection(reference, sizes, level, largest * (1 + 1e-9))
        assert found is None or beyond is not None


def test_most_solutions_have_nine_digits() -> None:
    random = np.random.default_rng(0)
    reference, quantile = random.uniform(0.01, 0.999, 5_000), random.choice([0.7, 2.0, 3.9], 5_000)
    own, fixed = 10 ** random.uniform(-6, -0.3, (2, 5_000))
    columns = {"reference": reference, "own": own, "fixed": fixed, "quantile": quantile}
    comparison = Comparison(*map(pl.col, ("reference", "own", "fixed", "reference")))
    plan = Detectable(lambda _: {"x": comparison}, ("x",), "quantile")
    table = in_columns(pl.LazyFrame(columns), plan.steps).collect()
    found = table[plan.difference("x")].fill_null(float("nan")).to_numpy()
    low, high = np.zeros(5_000), reference
    for _ in range(60):
        difference = (low + high) / 2
        middle, below = reference - difference / 2, reference - difference
        tested = np.sqrt(middle * (1 - middle) * (own + fixed))
        true = np.sqrt(reference * (1 - reference) * fixed + below * (1 - below) * own)
        enough = difference >= quantile * tested + stats.norm.ppf(0.8) * true
        low, high = np.where(enough, low, difference), np.where(enough, difference, high)
    far = high < 0.999 * reference
    assert far.mean() > 0.5
    assert found[far] == pytest.approx(high[far], rel=1e-9)


@pytest.mark.parametrize("reference", [1.0, 1 - 1e-12])
def test_perfect_reference(reference: float) -> None:
    """Where only the group ranks anything wrong, the smallest gap is not 0."""
    found = detectable(reference, (0.01, 0.001), most=0.5)
    expected = by_bisection(1 - 1e-12, (0.01, 0.001), 0.95, 0.5)
    assert expected is not None
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("reference", "most"), [(0.0, 0.0), (0.5, 0.0), (0.4, -0.1), (0.6, 0.1), (0.05, 0.05)]
)
def test_no_difference_would_be_found(reference: float, most: float) -> None:
    assert detectable(reference, (0.05, 0.05), most=most) is None


def test_unknown_sizes() -> None:
    unknown = Comparison(pl.lit(0.8), pl.lit(None, pl.Float64), pl.lit(0.1), pl.lit(0.3))
    plan = Detectable(lambda _: {"x": unknown}, ("x",), "quantile")
    table = in_columns(pl.LazyFrame({"quantile": [1.96]}), plan.steps).collect()
    assert table[plan.difference("x")].to_list() == [None]


@pytest.mark.parametrize(("rate", "rows"), [(0.5, 100), (0.9, 60)])
def test_power_is_80_percent(rate: float, rows: int) -> None:
    """Of pooled z-tests of two samples whose true rates differ by so much."""
    difference = detectable(rate, (1 / rows, 1 / rows))
    assert difference is not None
    random = np.random.default_rng(8)
    draw: Callable[..., np.ndarray] = random.binomial
    p, q = (draw(rows, share, 40_000) / rows for share in (rate, rate - difference))
    pooled = (p + q) / 2
    found = np.abs(p - q) > 1.96 * np.sqrt(pooled * (1 - pooled) * 2 / rows)
    assert found.mean() == pytest.approx(0.8, abs=0.03)
