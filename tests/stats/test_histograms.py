"""Bins of equal width, against pandas' cut and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from polars_wroc.stats.histograms import choose_range, find_ends, number_bins


@pytest.mark.parametrize(("bins", "low", "high"), [(20, 0.0, 1.0), (7, -3.0, 11.0), (1, 0.2, 0.3)])
def test_bins_are_those_of_pandas(bins: int, low: float, high: float) -> None:
    ends = find_ends(bins, low, high)
    values = np.concatenate([np.random.default_rng(1).uniform(low, high, 500), ends])
    expected = pd.cut(values, ends, labels=False, include_lowest=True)
    assert number_bins(values, ends).tolist() == expected.tolist()


def test_ends_are_decimal_fractions() -> None:
    assert find_ends(5, 0.0, 1.0).tolist() == [0.0, 1 / 5, 2 / 5, 3 / 5, 4 / 5, 1.0]


def test_the_range_of_all_floats_does_not_overflow() -> None:
    ends = find_ends(4, -1.7e308, 1.7e308)
    assert np.isfinite(ends).all()
    assert number_bins(np.array([-1.7e308, 0.0, 1.7e308]), ends).tolist() == [0, 1, 3]


def test_the_range_is_that_of_the_values() -> None:
    assert choose_range(np.array([0.2, 0.9])) == (0.0, 1.0)
    assert choose_range(np.array([0.2, 1.0])) == (0.0, 1.0)
    assert choose_range(np.array([0.2, 1.9])) == (0.2, 1.9)
    assert choose_range(np.array([0.2]), np.array([4.0])) == (0.2, 4.0)
    assert choose_range(np.array([6.0, 6.0])) == (3.0, 9.0)
    assert choose_range(np.array([-0.1])) == (-0.6, 0.4)
    assert choose_range(np.zeros(0)) == (0.0, 1.0)
