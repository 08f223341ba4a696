"""Cumulative sums of segments and their ranges, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from plain_ranges import Step, picked, range_tail
from plain_ranges import range_quantile as plain_quantile

from polars_wroc.stats.walks import (
    RangeTests,
    WalkSteps,
    find_ranges,
    range_p_value,
    range_quantile,
)


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_those_of_all_intervals(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = [7, 1, 0, 12]
    starts = np.cumsum([0, *sizes])
    number = starts[-1]
    low = np.concatenate([np.sort(random.integers(0, 40, n))[::-1] * 2.0 for n in sizes])
    weight, variance = random.integers(1, 4, number) * 1.0, random.random(number)
    difference = random.integers(-2, 3, number) * 1.0
    steps = WalkSteps(low, low + 1, weight, difference, variance, starts)
    found = find_ranges(steps)
    assert found.steps.tolist() == sizes
    assert np.isnan(found.size[2])
    for segment in (0, 1, 3):
        part = slice(starts[segment], starts[segment + 1])
        columns = (difference, variance, weight, low, low + 1)
        plain = [Step(*row) for row in zip(*(each[part].tolist() for each in columns), strict=True)]
        total = weight[part].sum()
        if not any(step.difference for step in plain):
            assert np.isnan(found.from_score[segment])
            continue
        expected = picked(plain[::-1], 1e-9)
        assert found.size[segment] * total == pytest.approx(expected.size)
        assert (found.from_score[segment], found.to_score[segment]) == (expected.low, expected.high)
        assert found.difference_inside[segment] * total == pytest.approx(expected.difference)
        assert found.weight_inside[segment] * total == pytest.approx(expected.weight)
        assert np.sqrt(found.variance[segment]) * total == pytest.approx(expected.sd)
        test = RangeTests(found, np.ones(4), np.full(4, 9.0), found.variance)
        if found.effective[segment] >= 2:
            assert test.p_value[segment] == pytest.approx(expected.p_value, rel=1e-9)


def test_no_segments_have_no_ranges() -> None:
    none = np.zeros(0)
    steps = WalkSteps(none, none, none, none, none, np.zeros(1, np.int64))
    assert find_ranges(steps).size.size == 0


@pytest.mark.parametrize("weight", [0.0, 1e-310, 1e308])
def test_weights_that_are_zero_overflow_or_underflow_have_no_range(weight: float) -> None:
    each = np.full(3, weight)
    steps = WalkSteps(each, each, each, each * [1, -1, 1], each, np.array([0, 3]))
    with np.errstate(all="ignore"):
        found = find_ranges(steps)
    assert np.isnan([found.size, found.variance, found.from_score, found.weight_inside]).all()


def test_the_law_of_the_range() -> None:
    x = np.concatenate([np.linspace(0.2, 8, 79), [1.999999, 2.0]])
    expected = [range_tail(each) for each in x]
    assert range_p_value(x).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-15)
    quantiles = [range_quantile(tail) for tail in (0.1, 0.05, 0.01, 1e-9)]
    known = [2.2411746364, 2.4976721610, 3.0233410818, plain_quantile(1e-9)]
    assert quantiles == pytest.approx(known, rel=1e-9)
    assert range_quantile(0.9) == range_quantile(0.5)
    with np.errstate(all="ignore"):
        assert range_p_value(np.array([0.0, np.nan])).tolist() == pytest.approx(
            [1.0, np.nan], nan_ok=True
        )
