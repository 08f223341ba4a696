"""Tests of equal proportions: against scipy, and what holds of them."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from polars_wroc.stats.equal_proportions import (
    Sample,
    equal_proportions_p_value,
    equal_proportions_test,
)

SIZES = st.integers(1, 60) | st.integers(61, 3000)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Draw a table of four: numbers with the outcome, and of rows."""
    n, m = draw(SIZES), draw(SIZES)
    few = draw(st.booleans())
    x, y = (draw(st.integers(0, min(size, 8) if few else size)) for size in (n, m))
    return (x, n, y, m) if draw(st.booleans()) else (n - x, n, m - y, m)


def p_value(x: float, n: float, y: float, m: float) -> float | None:
    frame = pl.LazyFrame(
        {"x": x, "n": n, "y": y, "m": m}, schema_overrides=dict.fromkeys("xnym", pl.Float64)
    )
    one, other = (Sample(pl.col(a) / pl.col(b), pl.col(b)) for a, b in ("xn", "ym"))
    found: float | None = frame.select(equal_proportions_p_value(one, other)).collect().item()
    return found


def by_definition(x: int, n: int, y: int, m: int) -> float:
    expected = stats.contingency.expected_freq([[x, n - x], [y, m - y]])
    if expected.min() == 0:
        return 1.0
    if expected.min() >= 5:
        table = [[x, n - x], [y, m - y]]
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    law = stats.hypergeom(n + m, x + y, n)
    logs = [law.logpmf(k) for k in range(max(0, x + y - m), min(n, x + y) + 1)]
    own = law.logpmf(x)
    less = sum(math.exp(log) for log in logs if log < own - 1e-7)
    return less + sum(math.exp(log) for log in logs if abs(log - own) <= 1e-7) / 2


@given(tables())
def test_against_the_definition(table: tuple[int, int, int, int]) -> None:
    assert p_value(*table) == pytest.approx(by_definition(*table), rel=1e-8, abs=1e-200)


@given(tables())
def test_fishers_p_value_is_larger_by_half_of_what_is_as_likely(
    table: tuple[int, int, int, int],
) -> None:
    x, n, y, m = table
    expected = stats.contingency.expected_freq([[x, n - x], [y, m - y]]).min()
    found = p_value(*table)
    assert found is not None
    if 0 < expected < 5:
        fisher = float(stats.fisher_exact([[x, n - x], [y, m - y]]).pvalue)
        own = float(stats.hypergeom(n + m, x + y, n).pmf(x))
        assert fisher - own - 1e-9 <= found <= fisher - own / 2 + 1e-9


@given(tables())
def test_groups_and_outcomes_may_be_exchanged(table: tuple[int, int, int, int]) -> None:
    x, n, y, m = table
    found = p_value(*table)
    assert p_value(y, m, x, n) == pytest.approx(found, rel=1e-9)
    assert p_value(n - x, n, m - y, m) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((3.4, 12.5, 20.2, 60.3), None),
        ((3.0, 12.5, 20.0, 60.0), None),
        ((9.4, 30.5, 20.2, 60.3), 0.797),
        ((0, 12.5, 0, 60.3), 1.0),
        ((60.3, 60.3, 12.5, 12.5), 1.0),
    ],
)
def test_numbers_that_are_not_whole(
    table: tuple[float, float, float, float], expected: float | None
) -> None:
    assert p_value(*table) == (None if expected is None else pytest.approx(expected, abs=1e-3))


def test_very_different_proportions() -> None:
    assert p_value(900, 1000, 0, 1_000_000) == pytest.approx(0, abs=1e-200)
    assert p_value(150, 1000, 0, 1_000_000) == pytest.approx(0, abs=1e-200)


def test_unknown_proportions() -> None:
    null = pl.lit(None, pl.Float64)
    known, unknown = Sample(pl.lit(0.5), pl.lit(10.0)), Sample(null, null)
    assert pl.select(equal_proportions_p_value(known, unknown)).item() is None


@pytest.mark.parametrize(
    ("counts", "method"),
    # Half of the rows of both groups have the outcome: 5.5, 5 and 4.5 are expected in each cell.
    [((4, 11, 7, 11), "z"), ((3, 10, 7, 10), "z"), ((3, 9, 6, 9), "mid-p")],
)
def test_exact_where_fewer_than_five_are_expected(
    counts: tuple[int, int, int, int], method: str
) -> None:
    x, n, y, m = (pl.lit(float(count)) for count in counts)
    found = pl.select(equal_proportions_test(Sample(x / n, n), Sample(y / m, m), "mid-p"))
    assert found.item()["p_method"] == method
