"""Permuted groups and areas between curves, against ranks and rates by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import distance

from polars_wroc.kernels.across import (
    class_sizes,
    deal,
    measure,
    mirrored,
    placements_across,
    ranked,
)

Array = npt.NDArray[Any]
SIDES = (False, True)


def ends_of(signed: Array, groups: Array, count: int) -> Array:
    """Count the rows of each class in the groups up to each."""
    sizes = [np.bincount(groups[(signed > 0) == side], minlength=count) for side in SIDES]
    return np.cumsum(sizes, axis=1).astype(np.uint64)


def dealt(signed: Array, groups: Array, hashes: Array, count: int) -> Array:
    found = np.empty_like(groups)
    deal(hashes, signed, ends_of(signed, groups, count), found)
    return found


def by_rank(signed: Array, groups: Array, hashes: Array) -> Array:
    """Give the rows of a class with the smallest hashes to the first group, and so on."""
    expected = np.empty_like(groups)
    for side in SIDES:
        rows = np.flatnonzero((signed > 0) == side)
        expected[rows[np.argsort(hashes[rows], kind="stable")]] = np.sort(groups[rows])
    return expected


@pytest.mark.parametrize(("rows", "count"), [(1, 1), (5, 2), (30, 40), (5_000, 2), (40_000, 300)])
def test_groups_are_dealt_by_the_ranks_of_hashes(rows: int, count: int) -> None:
    random = np.random.default_rng(rows)
    signed = np.where(random.random(rows) < 0.3, 1.0, -1.0)
    groups = random.integers(0, count, rows).astype(np.uint32)
    for _ in range(3):
        hashes = random.integers(0, 2**64, rows, dtype=np.uint64)
        found = dealt(signed, groups, hashes, count)
        np.testing.assert_array_equal(found, by_rank(signed, groups, hashes))


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60
    ),
    high=st.sampled_from([0, 2**62, 2**64 - 4]),
)
def test_equal_hashes_keep_the_order_of_the_rows(
    rows: list[tuple[bool, int, int]], high: int
) -> None:
    signed = np.array([1 if row[0] else -1 for row in rows], np.int8)
    groups = np.array([row[1] for row in rows], np.uint32)
    hashes = np.array([high + row[2] for row in rows], np.uint64)
    found = dealt(signed, groups, hashes, 5)
    np.testing.assert_array_equal(found, by_rank(signed, groups, hashes))


def sums_of(score: Array, signed: Array, groups: Array, count: int) -> Array:
    order = np.argsort(-score, kind="stable")
    score, signed, groups = score[order], signed[order], groups[order]
    ends_tie = np.append(score[1:] != score[:-1], True)
    rows = ranked(signed, ends_tie)
    return measure(rows, groups, class_sizes(rows, groups, count), [(0, count)])


@pytest.mark.parametrize("rows", [12, 200, 20_000])
@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_areas_are_those_of_the_curves(rows: int, decimals: int) -> None:
    random = np.random.default_rng(rows)
    groups = np.append([0, 0, 1, 1, 2, 2], random.integers(0, 3, rows - 6)).astype(np.uint32)
    positive = np.append([True, False] * 3, random.random(rows - 6) < 0.4)
    score = (random.normal(size=rows) + positive * groups).round(decimals)
    weight = random.lognormal(size=rows)
    table = sums_of(score, np.where(positive, weight, -weight), groups, 3)
    for group, (*totals, area) in enumerate(table):
        own = groups == group
        expected = [weight[a & b].sum() for a in (own, ~own) for b in (positive, ~positive)]
        assert totals == pytest.approx(expected, rel=1e-12)
        assert area == pytest.approx(distance(positive, score, weight, own), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_areas_where_few_rows_have_most_of_the_weight(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(12, 60))
    groups = np.append([0, 0, 1, 1, 2, 2], random.integers(0, 3, rows - 6)).astype(np.uint32)
    positive = np.append([True, False] * 3, random.random(rows - 6) < 0.5)
    score = random.normal(size=rows).round(seed % 3)
    weight = 10.0 ** random.integers(-12, 12, rows)
    if seed % 2:
        weight = np.where(groups == 0, 1e12, 1.0)
    table = sums_of(score, np.where(positive, weight, -weight), groups, 3)
    for group, area in enumerate(table[:, 4]):
        own = groups == group
        assert area == pytest.approx(distance(positive, score, weight, own), abs=1e-12)


def test_area_by_hand() -> None:
    # The first group ranks its positive first, the second ties its two rows.
    score = np.array([4.0, 3.0, 2.0, 2.0])
    signed = np.array([1, -1, 2, -2], np.int8)
    table = sums_of(score, signed, np.array([0, 0, 1, 1], np.uint32), 2)
    np.testing.assert_allclose(table, [[1, 1, 2, 2, 0.5], [2, 2, 1, 1, 0.5]], rtol=1e-15)


def test_curves_that_cross_within_a_piece() -> None:
    # One is level at a half, the other is the diagonal.
    score = np.array([3.0, 2.0, 1.0, 2.5, 2.5])
    signed = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    groups = np.array([0, 0, 0, 1, 1], np.uint32)
    assert sums_of(score, signed, groups, 2)[:, 4] == pytest.approx([0.25, 0.25], rel=1e-15)


def test_areas_of_many_pieces_keep_their_digits() -> None:
    # One group ranks its positive first, the other two of three; between are the negatives.
    rows = 100_000
    signed = np.array([1, 1, 1, *[-1] * (2 * rows), 1], np.int8)
    groups = np.array([0, 1, 1, *[0, 1] * rows, 1], np.uint32)
    table = sums_of(-np.arange(len(signed), dtype=float), signed, groups, 2)
    assert table[:, 4] == pytest.approx([1 / 3, 1 / 3], rel=2e-14, abs=0)


def placed(rows: Array, others: Array, above: Array, weight: Array) -> list[float]:
    """Sum a class and its placement values, from all pairs with the others."""
    w = weight[rows]
    shares = above[np.ix_(rows, others)] @ weight[others] / weight[others].sum()
    sums = (np.ones_like(w), w, w**2, w**3, w * shares, w**2 * shares, w**2 * shares**2)
    return [float(each.sum()) for each in sums]


@pytest.mark.parametrize("seed", range(6))
def test_placements_among_other_groups(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, count = 120, 4
    positive = random.random(rows) < 0.4
    score = np.sort((random.normal(size=rows) + positive).round(1))[::-1]
    weight, groups = random.lognormal(size=rows), random.integers(0, count, rows).astype(np.uint8)
    signed = np.where(positive, weight, -weight)
    ties = (np.diff(score, prepend=np.inf) < 0).cumsum().astype(np.uint32)
    misranked = (score[:, None] < score) + (score[:, None] == score) / 2

    def sums(pos: Array, neg: Array) -> list[float]:
        p, n = np.flatnonzero(pos & positive), np.flatnonzero(neg & ~positive)
        below = placed(n, p, misranked.T, weight)
        return [*placed(p, n, misranked, weight), *below, below[1] - below[4]]

    pairs = placements_across(signed, ties, groups, count, of_rest=False)
    rests = placements_across(signed, ties, groups, count, of_rest=True)
    turned = -signed[::-1], (ties.max() + 1 - ties)[::-1], groups[::-1]
    others = mirrored(placements_across(*turned, count, of_rest=True))
    for own in range(count):
        inside = groups == own
        np.testing.assert_allclose(rests[own, 0], sums(~inside, inside), rtol=1e-12)
        np.testing.assert_allclose(others[own, 0], sums(inside, ~inside), rtol=1e-12)
        for other in range(count):
            expected = sums(groups == other, inside)
            np.testing.assert_allclose(pairs[own, other], expected, rtol=1e-12)
