"""Sums of the walk along sorted rows, against their definitions, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sweeps import sweep

from polars_wroc.kernels import CLASS_SUMS, CURVE_SUMS, blocks, compiling
from polars_wroc.kernels.blocks import Groups, cut_blocks
from polars_wroc.kernels.scans import sums_of_partitions, walk, weights_around
from polars_wroc.kernels.sorting import FLOAT_BITS, RowChunk, SortedRows, sort_rows

Array = npt.NDArray[Any]
ROWS, GROUPS = 3_000, 4


def rows(decimals: int, *, weighted: bool) -> tuple[Array, Array, Array, SortedRows]:
    """Scores with ties, signed weights, groups; the last group has positives only."""
    random = np.random.default_rng(8)
    groups = random.integers(0, GROUPS, ROWS).astype(np.uint8)
    positive = (random.random(ROWS) < 0.3) | (groups == GROUPS - 1)
    score = (random.normal(size=ROWS) + positive).round(decimals)
    weight = random.gamma(2.0, 1.0, ROWS) if weighted else np.ones(ROWS, np.int8)
    signed = np.where(positive, weight, -weight).astype(weight.dtype)
    found = sort_rows([RowChunk(score.view(np.uint64), signed, groups)], FLOAT_BITS, GROUPS)
    return score, signed, groups, found


def sums_of(rows: SortedRows) -> Array:
    """Walk along partitions of one group each."""
    cut = cut_blocks(rows)
    sums, _ = walk(rows, cut)
    return sums_of_partitions(cut, sums)[:, 0]


def by_definition(score: Array, signed: Array) -> dict[Any, Any]:
    """Compute each sum from all pairs of a positive and a negative."""
    weight = np.abs(signed.astype(np.longdouble))
    unit = weight
    positive = signed > 0
    total = {True: weight[positive].sum(), False: weight[~positive].sum()}
    above = np.sign(score[None, :] - score[:, None]) / 2 + 0.5
    placement = np.empty(len(score), np.longdouble)
    share = (above * weight * positive).sum(1) / total[True]
    placement[positive] = ((above * weight * ~positive).sum(1) / total[False])[positive]
    placement[~positive] = 1 - share[~positive]
    sums: dict[Any, Any] = {}
    for side, rows in (("pos", positive), ("neg", ~positive)):
        w, u, p = weight[rows], unit[rows], placement[rows]
        terms = (np.ones_like(w), w, w * u, w * u * u, w * p, w * u * p, w * u * p * p)
        sums |= {(name, side): term.sum() for name, term in zip(CLASS_SUMS, terms, strict=True)}
    reached = score[None, :] >= score[:, None]
    tp, fp = (reached * weight * positive).sum(1), (reached * weight * ~positive).sum(1)
    sums["ranked"] = (weight * share)[~positive].sum()
    sums["precision"] = (weight * tp / (tp + fp))[positive].sum()
    sums["distance"] = np.abs(tp / total[True] - fp / total[False]).max()
    return sums


@pytest.mark.parametrize("weighted", sweep([True, False]))
@pytest.mark.parametrize("decimals", sweep([1, 12]))
def test_sums_follow_their_definitions(
    decimals: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several blocks in each group.
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    score, signed, groups, found = rows(decimals, weighted=weighted)
    table = sums_of(found)
    names: list[Any] = [
        *((name, side) for side in ("pos", "neg") for name in CLASS_SUMS),
        *CURVE_SUMS,
    ]
    for group in range(GROUPS - 1):
        own = groups == group
        expected = by_definition(score[own], signed[own])
        for name, value in zip(names, table[group], strict=True):
            assert value == pytest.approx(float(expected[name]), rel=1e-12), name


@pytest.mark.parametrize("decimals", sweep([1, 12]))
def test_groups_of_one_order_have_the_sums_of_their_own(
    decimals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    score, signed, groups, _ = rows(decimals, weighted=True)
    together = in_one_order(score, signed, groups)
    cut = cut_blocks(together, 2)
    for of_code in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 0, 1, 1], [2, 0, 0, 1]):
        count = 2 if max(of_code) < 3 else 4
        groups_of = Groups(count, np.array(of_code, np.uint32))
        sums, _ = walk(together, cut, groups_of)
        found = sums_of_partitions(cut, sums)[0]
        for group in range(count):
            # Those whose code is larger than the last group are left out.
            own = np.array(of_code)[groups] == group
            alone = sort_rows([RowChunk(score[own].view(np.uint64), signed[own])], FLOAT_BITS)
            expected = sums_of(alone)[0]
            np.testing.assert_allclose(found[group], expected, rtol=1e-12, atol=1e-12)


def test_points_are_the_ends_of_the_parts_of_each_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    parts = 9
    score, signed, groups, _ = rows(2, weighted=True)
    together = in_one_order(score, signed, groups)
    cut = cut_blocks(together, 2)
    groups_of = Groups(GROUPS, np.arange(GROUPS, dtype=np.uint32))
    _, points = walk(together, cut, groups_of, parts=parts)
    for group in range(GROUPS):
        mine = points.groups == group
        found = {tuple(weights) for weights in points.weights[mine].round(6)}
        own = groups == group
        thresholds = np.unique(score[own])[::-1]
        reached = score[own][None, :] >= thresholds[:, None]
        tp = (reached * np.maximum(signed[own], 0)).sum(1)
        fp = (reached * np.maximum(-signed[own], 0)).sum(1)
        length = tp / tp[-1] + (fp / fp[-1] if fp[-1] else 0)
        part = np.ceil((length / 2 * parts).round(9)).clip(1, parts)
        for number in np.unique(part):
            for at in np.flatnonzero(part == number)[[0, -1]]:
                assert (tp[at].round(6), fp[at].round(6)) in found
        assert len(found) < 2 * len(thresholds)


def in_one_order(score: Array, signed: Array, codes: Array) -> SortedRows:
    return sort_rows([RowChunk(score.view(np.uint64), signed, None, codes)], FLOAT_BITS)


def test_a_group_of_one_class_has_its_weights() -> None:
    _, signed, groups, found = rows(2, weighted=True)
    table = sums_of(found)
    own = signed[groups == GROUPS - 1]
    assert table[-1, :2] == pytest.approx([len(own), own.sum()])
    assert (table[-1, len(CLASS_SUMS) : 2 * len(CLASS_SUMS)] == 0).all()


def test_weights_around_ties_follow_their_definition() -> None:
    score, signed, groups, found = rows(1, weighted=True)
    around = weights_around(found, cut_blocks(found))
    order = np.lexsort((np.arange(ROWS), -score, groups))
    for at in range(0, ROWS, 50):
        row = order[at]
        own = groups == groups[row]
        for place, part in ((score > score[row], 0), (score >= score[row], 1)):
            weights = signed[own & place]
            expected = weights[weights > 0].sum(), -weights[weights < 0].sum()
            found_here = around[part][at], around[part + 2][at]
            assert found_here == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_bits_do_not_depend_on_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    expected = sums_of(of_threads(2, monkeypatch))
    found = sums_of(of_threads(count, monkeypatch))
    np.testing.assert_array_equal(found, expected)


def of_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> SortedRows:
    monkeypatch.setattr(compiling, "thread_count", lambda: count)
    *_, found = rows(1, weighted=True)
    return found
