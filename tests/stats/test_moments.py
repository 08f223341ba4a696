"""Moments that are moved and subtracted: against those of the values themselves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_wroc.stats.moments import Moments, _mean, others

VALUES, WEIGHTS = np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.0, 3.0, 2.0, 0.5])


def of(values: np.ndarray, weights: np.ndarray, centre: float) -> list[float]:
    """Weight, centre, squares and the powers with squared weights, by their definition."""
    deviations = values - centre
    powers = [float((weights**2 * deviations**power).sum()) for power in range(5)]
    return [float(weights.sum()), centre, float((weights * deviations**2).sum()), *powers]


def moments(numbers: list[float]) -> Moments:
    weight, centre, squares, *powers = map(pl.lit, numbers)
    return Moments(weight, centre, squares, tuple(powers))


def numbers_of(found: Moments) -> list[float]:
    named = (value.alias(name) for name, value in found.columns("x").items())
    return list(pl.select(*named).row(0))


def mean(values: np.ndarray, weights: np.ndarray) -> float:
    return float((values * weights).sum() / weights.sum())


def test_moved_from_the_mean_and_back() -> None:
    centred = of(VALUES, WEIGHTS, mean(VALUES, WEIGHTS))
    about = moments(centred).about(pl.lit(5.0))
    assert numbers_of(about) == pytest.approx(of(VALUES, WEIGHTS, 5.0))
    back = about.about_mean(pl.lit(centred[1]))
    assert numbers_of(back) == pytest.approx(centred, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_equal_values_have_no_variance(scale: float) -> None:
    equal = np.full(4, 3.0)
    about = moments(of(equal, WEIGHTS * scale, 5.0)).about_mean(pl.lit(3.0))
    assert pl.select(about.squares).item() == 0
    assert pl.select(about.variance).item() == 0


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])
def test_variance_is_unbiased(scale: float) -> None:
    weights = WEIGHTS * scale
    centred = of(VALUES, weights, mean(VALUES, weights))
    found = pl.select(moments(of(VALUES, weights, 5.0)).about_mean(pl.lit(centred[1])).variance)
    freedom = weights.sum() - (weights**2).sum() / weights.sum()
    assert found.item() == pytest.approx(centred[2] / freedom)
    # One row has no variance.
    one = of(VALUES[:1], weights[:1], VALUES[0])
    assert pl.select(moments(one).variance).item() is None


def test_others_are_what_is_left() -> None:
    whole, part = of(VALUES, WEIGHTS, 3.0), of(VALUES[:2], WEIGHTS[:2], 3.0)
    left = of(VALUES[2:], WEIGHTS[2:], 3.0)
    assert numbers_of(others(moments(whole), moments(part))) == pytest.approx(left)
    # Rounding of large moments leaves nothing.
    nearly = [number * (1 + 1e-15) for number in whole]
    nothing = [0.0, 3.0] + [0.0] * 6
    assert numbers_of(others(moments(whole), moments(nearly))) == nothing


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        # Sum, weight, least and largest value.
        ((6.0, 2.0, 1.0, 4.0), 3.0),
        ((0.0, 0.0, 1.0, 4.0), None),
        ((9.000000000000002, 3.0, 3.0, 3.0), 3.0),
        ((8.999999999999998, 3.0, 3.0, 3.0), 3.0),
        ((float("inf"), 3.0, 1.0, float("inf")), float("inf")),
    ],
)
def test_mean_is_among_the_values(numbers: tuple[float, ...], expected: float | None) -> None:
    assert pl.select(_mean(*map(pl.lit, numbers))).item() == expected
