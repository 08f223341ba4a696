"""Tests of parts of a sample, compared with sums over its rows and with permutations."""

from __future__ import annotations

import numpy as np
import pytest

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.part_means import (
    CrossSums,
    ErrorSums,
    ValueSums,
    compare_errors,
    compare_values,
)

RANDOM = np.random.default_rng(3)
ROWS = 400
WEIGHT = RANDOM.lognormal(0, 0.5, ROWS)
PARTS = [RANDOM.random(ROWS) < share for share in (0.1, 0.5)]


def sum_values(weight: Array, x: Array, part: Mask) -> ValueSums:
    w, x = weight[part], x[part]
    cross = CrossSums((w**2 * x).sum(), (w**2 * x**2).sum())
    powers = (w * x).sum(), (w * x**2).sum(), (w * x**3).sum()
    return ValueSums(np.asarray(w.size), w.sum(), (w**2).sum(), (w**3).sum(), *powers, cross)


def in_arrays(parts: list[ValueSums]) -> ValueSums:
    names = ("n", "weight", "squares", "cubes", "first", "second", "third")
    sums = {name: np.array([getattr(each, name) for each in parts]) for name in names}
    crosses = [each.cross for each in parts if each.cross is not None]
    cross = CrossSums(*(np.array([getattr(c, name) for c in crosses]) for name in vars(crosses[0])))
    return ValueSums(**sums, cross=cross)


@pytest.mark.parametrize("place", [0, 1])
def test_moments_are_those_of_shuffled_values(place: int) -> None:
    """Where weights tell nothing of values, these are exchangeable."""
    part = PARTS[place]
    x = RANDOM.exponential(1.0, ROWS)
    whole = sum_values(WEIGHT, x, np.ones(ROWS, dtype=bool))
    tests = compare_values(sum_values(WEIGHT, x, part), whole)
    share = WEIGHT[part].sum() / WEIGHT.sum()
    factor = np.where(part, 1 - share, -share) * WEIGHT
    excesses = np.array([factor @ RANDOM.permutation(x) for _ in range(20_000)])
    # Of values with the mean and the moments of weighted rows, here those of all rows nearly.
    assert tests.plain == pytest.approx(excesses.var(), rel=0.1)
    moved = (excesses - excesses.mean()) / excesses.std()
    assert tests.skewness == pytest.approx((moved**3).mean(), abs=0.1)
    assert tests.excess == pytest.approx(factor @ x)
    assert tests.z == pytest.approx(tests.excess / np.sqrt(tests.variance))


def test_the_variance_adds_up_squared_errors_where_it_is_larger() -> None:
    x = WEIGHT**2
    whole = sum_values(WEIGHT, x, np.ones(ROWS, dtype=bool))
    parts = in_arrays([sum_values(WEIGHT, x, part) for part in PARTS])
    tests = compare_values(parts, whole)
    error = WEIGHT * (x - (WEIGHT * x).sum() / WEIGHT.sum())
    for place, part in enumerate(PARTS):
        share = WEIGHT[part].sum() / WEIGHT.sum()
        variance = (np.where(part, 1 - share, -share) ** 2 * error**2).sum()
        assert tests.variance[place] == pytest.approx(max(variance, tests.plain[place]))
    rest = whole.take_away(parts)
    outside = [(WEIGHT * x)[~part].sum() for part in PARTS]
    np.testing.assert_allclose(rest.first, outside)


def test_errors_have_the_moments_of_labels_with_the_probability_of_the_score() -> None:
    part, score = PARTS[1], RANDOM.beta(1, 6, ROWS)
    w, s = WEIGHT[part], score[part]
    labels = RANDOM.random((20_000, s.size)) < s
    sums = (w * (s - labels)).sum(axis=1)
    spread = s * (1 - s)
    own = ErrorSums(
        np.asarray(w.size),
        w.sum(),
        (w**2).sum(),
        sums[0],
        (w * s).sum(),
        (w**2 * spread).sum(),
        (w**3 * spread * (1 - 2 * s)).sum(),
    )
    tests = compare_errors(own, own, to_target=True)
    assert tests.excess == sums[0]
    assert tests.variance == pytest.approx(sums.var(), rel=0.05)
    moved = (sums - sums.mean()) / sums.std()
    assert tests.skewness == pytest.approx((moved**3).mean(), abs=0.1)
    # A part that is everything has no excess over all.
    with np.errstate(invalid="ignore"):
        whole = compare_errors(own, own, to_target=False)
    assert whole.excess == pytest.approx(0, abs=1e-12)


def test_errors_beside_those_of_all_rows_have_the_skewness_of_independent_labels() -> None:
    score = RANDOM.beta(1, 6, ROWS)

    def sum_errors(inside: Mask) -> ErrorSums:
        w, s = WEIGHT[inside], score[inside]
        spread = s * (1 - s)
        powers = (w**2 * spread).sum(), (w**3 * spread * (1 - 2 * s)).sum()
        sums = w.sum(), (w**2).sum(), 0 * w.sum(), (w * s).sum()
        return ErrorSums(np.asarray(w.size), *sums, *powers)

    for part in PARTS:
        tests = compare_errors(sum_errors(part), sum_errors(part | ~part), to_target=False)
        share = WEIGHT[part].sum() / WEIGHT.sum()
        factor = WEIGHT * np.where(part, 1 - share, -share)
        variance = (factor**2 * score * (1 - score)).sum()
        third = -(factor**3 * score * (1 - score) * (1 - 2 * score)).sum()
        assert tests.variance == pytest.approx(variance)
        assert tests.skewness == pytest.approx(third / variance**1.5)
