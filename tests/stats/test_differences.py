"""Limits of ratios of two rates: what they solve, their ends, and that differences agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_roc import ratio_limits as in_closed_form
from plain_roc import wilson

from polars_wroc.stats.proportions import (
    Estimate,
    credible_correlation,
    difference_limits,
    margin,
    ratio_limits,
)

Limited: TypeAlias = Sequence[float | None]

COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def limits(one: Limited, other: Limited) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the ratio and of the difference."""
    first, second = (
        Estimate(*(pl.lit(part, pl.Float64) for part in each)) for each in (one, other)
    )
    rows = [
        pl.select(low=each.low, high=each.high).row(0)
        for each in (ratio_limits(first, second), difference_limits(first, second))
    ]
    return rows[0], rows[1]


def rate(count: int, rows: int, level: float = 0.95) -> tuple[float, float, float]:
    return (count / rows, *wilson(count / rows, rows, level))


def test_worked_example() -> None:
    ratio, gap = limits(rate(15, 100), rate(30, 100))
    assert ratio == pytest.approx((0.28894, 0.86105), abs=5e-6)
    assert gap == pytest.approx((-0.26149, -0.03411), abs=5e-6)


@given(COUNTS, COUNTS, st.sampled_from([0.5, 0.95, 0.9999]))
def test_limits_solve_the_equation(
    one: tuple[int, int], other: tuple[int, int], level: float
) -> None:
    a, b = rate(*one, level), rate(*other, level)
    ratio, gap = limits(a, b)
    assert ratio[0] <= (a[0] / b[0] if b[0] else math.inf) <= ratio[1] or a[0] == b[0] == 0
    for r, near, far in (
        (ratio[0], a[0] - a[1], b[2] - b[0]),
        (ratio[1], a[2] - a[0], b[0] - b[1]),
    ):
        if 0 < r < math.inf:
            assert abs(a[0] - r * b[0]) == pytest.approx(np.hypot(near, r * far), rel=1e-9)
    assert (ratio[0] == 0) == (a[0] == 0)
    assert (ratio[1] == math.inf) == (b[0] == 0)
    # Away from where rounding decides.
    assume(min(abs(end) for end in gap) > 1e-12)
    assert (ratio[0] > 1, ratio[1] < 1) == (gap[0] > 0, gap[1] < 0)


@given(COUNTS, COUNTS)
def test_limits_are_those_of_the_closed_form(one: tuple[int, int], other: tuple[int, int]) -> None:
    a, b = rate(*one), rate(*other)
    # There the closed form divides by a difference that may be 0.
    assume(abs(2 * b[0] - b[2]) > 1e-6)
    assert limits(a, b)[0] == pytest.approx(in_closed_form(a, b), rel=1e-6)


def test_rates_near_zero_keep_their_digits() -> None:
    a, b = rate(30, 100), rate(15, 100)
    tiny = [part * 1e-200 for part in b]
    assert limits(tiny, a)[0] == pytest.approx([1e-200 * end for end in limits(b, a)[0]], rel=1e-12)


@pytest.mark.parametrize(
    ("covariance", "one", "other", "expected"),
    [
        (0.5, 1.0, 4.0, 0.25),
        (2.0, 1.0, 4.0, 0.95),
        (-2.0, 1.0, 4.0, -0.95),
        # The product of these variances is no number.
        (5e-201, 1e-200, 4e-200, 0.25),
        (0.0, 0.0, 4.0, 0.0),
        (None, 1.0, 4.0, 0.0),
        (0.5, None, 4.0, 0.0),
        (0.5, 4.0, 0.0, 0.0),
        (0.5, 0.0, 4.0, 0.0),
    ],
)
def test_credible_correlation(
    covariance: float | None, one: float | None, other: float | None, expected: float
) -> None:
    parts = (pl.lit(part, pl.Float64) for part in (covariance, one, other))
    assert pl.select(credible_correlation(*parts)).item() == pytest.approx(expected)


def test_estimates_that_move_together_differ_by_the_difference_of_their_margins() -> None:
    ones = np.linspace(0.1, 1, 91)
    # Rounding makes some sums of squares negative; their root would be NaN.
    for factor in (1 - 2**-52, 1, 1 + 2**-52, 1.5):
        frame = pl.DataFrame({"one": ones, "other": ones * factor})
        found = frame.select(margin(pl.col("one"), pl.col("other"), pl.lit(1.0)))
        expected = ones * abs(factor - 1)
        assert found.to_series().to_list() == pytest.approx(expected, abs=1e-7)


def test_ratio_of_estimates_that_are_all_but_exact() -> None:
    # Rounding makes the square of such a value and limit negative; its root would be NaN.
    values = np.array([0.923854799557242, 0.3955715572455183, 0.6534709045079072])
    steps = np.array([27, 29, 6])
    parts = {"value": values, "low": values, "high": values + steps * np.spacing(values)}
    one, other = Estimate(*[pl.lit(0.5)] * 3), Estimate(*map(pl.col, parts))
    found = pl.DataFrame(parts).select(**ratio_limits(one, other)._asdict())
    for limit in found.iter_columns():
        assert limit.to_list() == pytest.approx(0.5 / values, abs=1e-6)


def test_ratio_to_no_events() -> None:
    low, high = limits(rate(3, 10), rate(0, 20))[0]
    assert low == pytest.approx(rate(3, 10)[1] / rate(0, 20)[2])
    assert high == math.inf


def test_no_limits_without_those_of_both() -> None:
    known, unknown = rate(1, 4), (0.5, None, None)
    for one, other in ((known, unknown), (unknown, known), (unknown, unknown)):
        assert list(limits(one, other)[0]) == [None, None]


def test_limits_of_nearly_certain_rates_are_known() -> None:
    random = np.random.default_rng(0)
    value, width = random.uniform(0.1, 0.9, 1000), 10 ** random.uniform(-12, -6, 1000)
    frame = pl.DataFrame({"value": value, "low": value - 0.95 * width, "high": value + width})
    each = Estimate(pl.col("value"), pl.col("low"), pl.col("high"))
    # Rounding makes some squares negative; their root would be NaN.
    limits = frame.select(**ratio_limits(each, each, pl.lit(0.95))._asdict())
    assert limits.to_numpy() == pytest.approx(1, abs=1e-4)
