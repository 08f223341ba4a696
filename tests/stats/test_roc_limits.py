"""Limits of points of ROC curves, against interpolation and inequalities by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.rates import Count, Rate
from polars_wroc.stats.roc_limits import RatesAlongCurves, RocPoints, limit_curves, limit_points

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

Z = 1.959963984540054


def rising(seed: int, number: int) -> Array:
    """Return rates that rise from 0 to 1."""
    inner = np.sort(np.random.default_rng(seed).random(number))
    return np.concatenate([[0.0], inner, [1.0]])


def two_curves(*, highest: bool) -> tuple[RatesAlongCurves, list[tuple[Array, Array]]]:
    curves = [(rising(1, 5), rising(2, 5)), (rising(3, 9), rising(4, 9))]
    given, found = (np.concatenate(values) for values in zip(*curves, strict=True))
    return RatesAlongCurves(given, found, np.array([0, 7, 18]), highest), curves


def wilson(value: Array, size: float) -> Wilson:
    inverse = np.full_like(value, 1 / size)
    return Wilson(value, 1 - value, inverse, inverse)


@pytest.mark.parametrize("highest", [True, False])
def test_rates_between_vertices_are_interpolated_in_each_curve(highest: bool) -> None:
    along, curves = two_curves(highest=highest)
    wanted = np.array([0.05, 0.4, 0.93])
    found = along.look_up(np.tile(wanted, 2), np.array([0, 3, 6]))
    expected = np.concatenate([np.interp(wanted, x, y) for x, y in curves])
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_vertical_piece_has_its_highest_or_lowest_rate() -> None:
    given, found = np.array([0.0, 0.5, 0.5, 1.0]), np.array([0.0, 0.2, 0.7, 1.0])
    ends = []
    for highest in (True, False):
        along = RatesAlongCurves(given, found, np.array([0, 4]), highest)
        ends.append(along.look_up(np.array([0.5 + 1e-14, 0.5 - 1e-14]), np.array([0, 2])).tolist())
    assert ends == [[0.7, 0.7], [0.2, 0.2]]


def test_the_nearest_threshold_reaches_at_most_or_at_least_the_rate() -> None:
    given = np.array([0.0, 0.25, 0.5, 1.0])
    starts = np.array([0, 3])
    wanted = np.array([0.3, 0.5, 1.0])
    places = [
        RatesAlongCurves(given, given, np.array([0, 4]), highest)
        .find_nearest(wanted, starts)
        .tolist()
        for highest in (True, False)
    ]
    assert places == [[1, 2, 3], [2, 2, 3]]


def test_margins_of_both_rates_are_combined() -> None:
    along, [(x, y), _] = two_curves(highest=True)
    value = np.array([0.5])
    points = RocPoints(
        wilson(value, 200), wilson(np.interp(value, x, y), 90), np.array([0, 1, 1]), 0.3
    )
    (low, high), one_sided = limit_points(points, along, Z)
    fpr, tpr = points.given.limits(Z), points.found.limits(Z)
    rate = points.found.value
    own = rate - tpr.low, tpr.high - rate
    moved = rate - np.interp(fpr.low, x, y), np.interp(fpr.high, x, y) - rate
    margins = [np.sqrt(a**2 + b**2 - 0.6 * a * b) for a, b in zip(own, moved, strict=True)]
    assert [low[0], high[0]] == pytest.approx([*(rate - margins[0]), *(rate + margins[1])])
    assert not one_sided


@pytest.mark.parametrize("rows", [30, 40])
def test_few_rows_beyond_the_threshold_leave_one_side_open(rows: int) -> None:
    along, _ = two_curves(highest=True)
    given = np.array([0.1])
    points = RocPoints(wilson(given, rows), wilson(given, 50), np.array([0, 1, 1]))
    (low, _), one_sided = limit_points(points, along, Z)
    # Whether all negatives are below the threshold with more than half the error
    assert one_sided == (stats.binom.pmf(0, rows, 0.1) > 0.025)
    assert (low == 0) == one_sided


@pytest.mark.parametrize("rows", [30, 40])
def test_few_positives_below_the_threshold_leave_the_upper_side_open(rows: int) -> None:
    along, _ = two_curves(highest=False)
    # The effective number of rows is 20 at a rate of 0, and ``rows`` at a rate of 1.
    rate, size = np.array([0.9]), np.array([1 / 20])
    given = Wilson(rate, 1 - rate, size, size, slope=1 / rows - size)
    points = RocPoints(given, wilson(rate, 50), np.array([0, 1, 1]))
    (_, high), one_sided = limit_points(points, along, Z)
    # Whether all positives are above the threshold with more than half the error
    assert one_sided == (stats.binom.pmf(0, rows, 0.1) > 0.025)
    assert (high == 1) == one_sided


def test_a_band_shifts_the_curve_by_those_of_both_classes() -> None:
    along, [(x, y), _] = two_curves(highest=True)
    given, level = np.array([0.5]), 0.9
    up, aside = (stats.kstwobign.isf(1 - np.sqrt(level)) / np.sqrt(n) for n in (400, 300))
    sizes = np.array([1 / 300]), np.array([1 / 400])
    low, high = limit_curves(given, np.array([0, 1, 1]), sizes, along, 1 - level)
    expected = np.interp(given - aside, x, y) - up, np.interp(given + aside, x, y) + up
    # The law of Kolmogorov is that of the inequality but for terms of exp(-8 x^2).
    assert np.array([low, high]) == pytest.approx(np.clip(expected, 0, 1), abs=1e-5)


def test_a_band_has_no_lower_limit_where_the_shifted_curve_has_not_begun() -> None:
    # The curve begins with a vertical piece, at half of the positives.
    given, found = np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.5, 1.0])
    along = RatesAlongCurves(given, found, np.array([0, 3]), highest=True)
    sizes = np.array([1 / 300]), np.array([1 / 40_000])
    low, _ = limit_curves(np.array([0.05, 0.1]), np.array([0, 2]), sizes, along, 0.1)
    shift = np.sqrt(np.log(2 / (1 - np.sqrt(0.9))) / 2 / np.array([300, 40_000]))
    assert low == pytest.approx([0.0, np.interp(0.1 - shift[0], [0, 1], [0.5, 1]) - shift[1]])


def test_limits_are_unknown_where_a_rate_is() -> None:
    along, _ = two_curves(highest=True)
    unknown = np.array([np.nan])
    points = RocPoints(wilson(np.array([0.3]), 20), wilson(unknown, 20), np.array([0, 1, 1]))
    (low, high), _ = limit_points(points, along, Z)
    assert np.isnan([low, high]).all()


LIGHT = Count(np.array([3.0]), np.array([2.0]), np.array([5.0]))
HEAVY = Count(np.array([9.0]), np.array([8.0]), np.array([12.0]))


@pytest.mark.parametrize(("events", "others"), [(LIGHT, HEAVY), (HEAVY, LIGHT)])
def test_a_rate_is_near_itself(events: Count, others: Count) -> None:
    rate = Rate(events, others, np.array([13.0]))
    near = rate.estimate_near(rate.value, rate.df)
    expected = np.array(rate.estimate().limits(Z))
    assert np.array(near.limits(Z)) == pytest.approx(expected, rel=1e-12)


def test_no_curves() -> None:
    none = np.zeros(0)
    along = RatesAlongCurves(none, none, np.array([0]), highest=True)
    assert along.look_up(none, np.array([0])).shape == (0,)
