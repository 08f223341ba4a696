"""Running sums of segments, against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polars_wroc.arrays import cumulate

pytestmark = pytest.mark.usefixtures("undefined_is_nan")


def test_sums_of_segments_of_any_size_keep_their_digits() -> None:
    values = np.array([1e200, -2e200, 1.0, 2.0, 3.0, np.inf, 1.0, 1e-200, 4e-200])
    found = cumulate(values, np.array([0, 2, 5, 7]))
    expected = [1e200, -1e200, 1.0, 3.0, 6.0, np.nan, np.nan, 1e-200, 5e-200]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("heavy", [1.0, 1e12])
def test_sums_of_many_segments_are_exact_but_for_rounding(heavy: float) -> None:
    random = np.random.default_rng(1)
    starts = np.flatnonzero(random.random(3_000) < 0.05)
    starts[0] = 0
    values = random.normal(size=(2, 3_000))
    values[:, : starts[20]] *= heavy
    found = cumulate(values, starts)
    for first, stop in zip(starts, [*starts[1:], 3_000], strict=True):
        for row, part in zip(found[:, first:stop], values[:, first:stop], strict=True):
            exact = [math.fsum(part[: place + 1]) for place in range(stop - first)]
            assert row == pytest.approx(exact, abs=1e-14 * np.abs(part).sum())
