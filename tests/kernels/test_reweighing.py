"""Random weights of replicates, and the rates that a walk along them gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from sweeps import sweep

from polars_wroc.kernels import blocks as blocks_module
from polars_wroc.kernels.blocks import class_weights, cut_blocks, reweighed
from polars_wroc.kernels.scans import rates_of_partitions, sums_of_partitions, walk
from polars_wroc.kernels.sorting import FLOAT_BITS, RowChunk, SortedRows, sort_rows
from polars_wroc.stats.variances import poisson

Array = npt.NDArray[Any]
ROWS, GROUPS = 3_000, 4
# Of the sums of a walk: the weights of both classes, and those along the curve.
RATES = [1, 8, 14, 15, 16]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> SortedRows:
    """Rows with ties in several blocks of each group."""
    monkeypatch.setattr(blocks_module, "_BLOCK", 100)
    random = np.random.default_rng(8)
    groups = random.integers(0, GROUPS, ROWS).astype(np.uint8)
    positive = random.random(ROWS) < 0.3
    score = (random.normal(size=ROWS) + positive).round(1)
    signed = np.where(positive, 1.0, -1.0) * random.gamma(2.0, 1.0, ROWS)
    return sort_rows([RowChunk(score.view(np.uint64), signed, groups)], FLOAT_BITS, GROUPS)


def hashes_of(count: int) -> Array:
    found = np.random.default_rng(2).integers(0, 2**64, count, dtype=np.uint64)
    found[:3] = 0, 2**64 - 1, 2**63
    return found


def test_rates_are_those_of_the_walk(rows: SortedRows) -> None:
    blocks = cut_blocks(rows)
    found = rates_of_partitions(rows, blocks, class_weights(rows, blocks))
    np.testing.assert_allclose(found, walked_rates(rows), rtol=1e-14)


def walked_rates(rows: SortedRows) -> Array:
    blocks = cut_blocks(rows)
    sums, _ = walk(rows, blocks)
    rates: Array = sums_of_partitions(blocks, sums)[:, 0, RATES]
    return rates


@pytest.mark.parametrize("kind", sweep(["poisson", "gamma"], fast=2))
def test_weights_are_multiplied_by_quantiles_of_the_hashes(rows: SortedRows, kind: str) -> None:
    hashes = hashes_of(ROWS)
    share = hashes.astype(np.float64) / 2.0**64
    if kind == "poisson":
        limits, times = np.array(poisson()), stats.poisson.ppf(share, 1)
        times[1], times[0] = len(limits), 0
    else:
        limits, times = None, -np.log(np.maximum(share, 2.0**-64))
    blocks = cut_blocks(rows)
    found, weights = reweighed(rows, blocks, hashes, limits)
    np.testing.assert_allclose(found.signed, rows.signed * times, rtol=1e-14)
    expected = class_weights(found, blocks)
    for name, value in weights._asdict().items():
        np.testing.assert_array_equal(value, getattr(expected, name))
    rates = rates_of_partitions(found, blocks, weights)
    np.testing.assert_allclose(rates, walked_rates(found), rtol=1e-14)


def test_rows_that_are_not_drawn_at_the_top_have_no_precision() -> None:
    score, signed = np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, -1.0])
    rows = sort_rows([RowChunk(score.view(np.uint64), signed)], FLOAT_BITS)
    hashes = np.array([0, 2**63, 2**63], np.uint64)
    blocks = cut_blocks(rows)
    drawn, weights = reweighed(rows, blocks, hashes, np.array(poisson()))
    found = rates_of_partitions(drawn, blocks, weights)
    assert found.tolist() == [[1, 1, 1, 1, 1]]


def test_no_rows() -> None:
    none = np.zeros(0)
    rows = sort_rows([RowChunk(none.view(np.uint64), none)], FLOAT_BITS)
    blocks = cut_blocks(rows)
    drawn, weights = reweighed(rows, blocks, none.view(np.uint64), None)
    assert rates_of_partitions(drawn, blocks, weights).shape == (0, 5)
