"""Bisection of many rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from polars_wroc.stats.solve import first_place


def test_cube_reaches_numbers_at_their_cube_roots() -> None:
    numbers = np.array([1e-9, 0.5, 8.0, 1000.0])
    found = first_place(lambda x: x**3 >= numbers, np.zeros(4), np.full(4, 20.0))
    assert found == pytest.approx(np.cbrt(numbers), rel=1e-13)


def test_each_row_agrees_with_brentq_between_its_own_ends() -> None:
    slopes, low, high = np.array([0.3, 1.0, 4.0]), np.array([0.0, 1.0, -2.0]), np.full(3, 3.0)
    found = first_place(lambda x: slopes * x >= np.cos(x), low, high)
    for place, slope in zip(found[[0, 2]], slopes[[0, 2]], strict=True):
        root = optimize.brentq(lambda x, slope=slope: slope * x - np.cos(x), -2.0, 3.0)
        assert place == pytest.approx(root, abs=1e-12)
    # The condition holds at the lower end of the second row already.
    assert found[1] == pytest.approx(1.0)


def test_condition_that_never_holds_gives_the_upper_end() -> None:
    found = first_place(lambda x: x > 2, np.zeros(2), np.ones(2))
    assert found.tolist() == [1.0, 1.0]


def test_no_rows_give_no_places() -> None:
    assert first_place(lambda x: x > 0, np.zeros(0), np.ones(0)).size == 0


def test_place_has_as_many_digits_as_wanted_from_values_inside_the_interval() -> None:
    tried: list[float] = []

    def is_reached(x: np.ndarray) -> np.ndarray:
        tried.extend(x.ravel())
        return np.asarray(x >= 0.99)

    (found,) = first_place(is_reached, np.zeros(1), np.ones(1), digits=8)
    assert 0.99 <= found <= 0.99 + 2**-8
    assert 0 < min(tried) < max(tried) < 1
