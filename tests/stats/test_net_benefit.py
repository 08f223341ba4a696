"""Net benefits against their definition by rows, and against resampled rows."""

from __future__ import annotations

import numpy as np
import pytest

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.net_benefit import contrast_rates, contrast_shares, estimate_standardized
from polars_wroc.stats.rates import Count, Rate

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

ODDS = np.array([0.25])


def draw_rows(seed: int, rows: int) -> tuple[Array, Ints]:
    """Return the weights of rows and the cell of each, from 0 to 3."""
    random = np.random.default_rng(seed)
    return random.gamma(2, 1, rows), random.choice(4, rows, p=[0.3, 0.2, 0.1, 0.4])


def sum_cells(values: Array, cell: Ints) -> Array:
    return np.bincount(cell, values, 4)[:, np.newaxis].astype(np.float64)


def rate(w: Array, cell: Ints, counted: int, others: list[int]) -> Rate:
    weight, squares, cubes = (sum_cells(w**power, cell) for power in (1, 2, 3))
    rows = np.ones(1)
    return Rate(
        Count(weight[counted], squares[counted], rows),
        Count(weight[others].sum(axis=0), squares[others].sum(axis=0), 3 * rows),
        cubes[[counted, *others]].sum(axis=0),
    )


def test_the_standardized_net_benefit_has_the_variance_of_influences() -> None:
    w, cell = draw_rows(1, 60)
    positive, gain = np.isin(cell, [0, 2]), np.select([cell == 0, cell == 1], [1.0, -ODDS[0]], 0.0)
    value = (w * gain).sum() / (w * positive).sum()
    influence = w * (gain - value * positive) / (w * positive).sum()
    found = estimate_standardized(sum_cells(w, cell), sum_cells(w**2, cell), ODDS)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.error**2 == pytest.approx((influence**2).sum(), rel=1e-12)


def test_the_contrast_is_the_net_benefit_of_rows() -> None:
    w, cell = draw_rows(2, 80)
    tp, fp = rate(w, cell, 0, [1, 2, 3]), rate(w, cell, 1, [0, 2, 3])
    contrast = contrast_shares(tp, fp, ODDS)
    gain = np.select([cell == 0, cell == 1], [1.0, -ODDS[0]], 0.0)
    assert contrast.gap == pytest.approx(np.average(gain, weights=w), rel=1e-12)
    low, high = contrast.limits(1.96)
    assert low < contrast.gap < high


def test_limits_in_many_rows_have_the_error_of_the_mean_gain() -> None:
    w, cell = draw_rows(3, 40_000)
    contrast = contrast_shares(rate(w, cell, 0, [1, 2, 3]), rate(w, cell, 1, [0, 2, 3]), ODDS)
    gain = np.select([cell == 0, cell == 1], [1.0, -ODDS[0]], 0.0)
    mean = np.average(gain, weights=w)
    error = np.sqrt((w**2 * (gain - mean) ** 2).sum()) / w.sum()
    low, high = contrast.limits(1.96)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.02)


def test_in_a_population_the_classes_are_two_samples() -> None:
    w, cell = draw_rows(4, 90)
    tpr, fpr = rate(w, cell, 0, [2]), rate(w, cell, 1, [3])
    contrast = contrast_rates(tpr, fpr, ODDS, 0.1)
    assert contrast.gap == pytest.approx(0.1 * tpr.value - 0.9 * ODDS * fpr.value, rel=1e-12)
    assert contrast.correlation == 0.0


def test_nobody_selected_says_nothing_about_the_variance() -> None:
    weight = np.array([[0.0], [0.0], [5.0], [6.0]])
    found = estimate_standardized(weight, weight, ODDS)
    assert found.value == 0
    assert np.isnan(found.limits(1.96).low)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_squared_weights_that_underflow_or_overflow_leave_no_limits(scale: float) -> None:
    weight = scale * np.array([[3.0], [1.0], [5.0], [6.0]])
    with np.errstate(all="ignore"):
        found = estimate_standardized(weight, weight**2, ODDS)
    assert found.value == pytest.approx((3 - ODDS) / 8)
    assert np.isnan(found.error)


def test_no_segments() -> None:
    none = np.zeros((4, 0))
    assert estimate_standardized(none, none, np.zeros(0)).limits(1.96).low.shape == (0,)
