"""The compiled sort: stable, by group and descending score, for any scores, on any threads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import sweep

from polars_wroc.kernels import compiling, sorting
from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    KeyBits,
    RowChunk,
    score_bits,
    sort_rows,
)

Array = npt.NDArray[Any]
ROWS = 60_000


def random_bits(random: np.random.Generator, shared: int) -> Array:
    """Floats that share their leading bits."""
    bits = random.integers(0, 1 << (62 - shared), ROWS, dtype=np.uint64)
    return (bits | np.uint64(0x3 << 60)).view(np.float64)


def inputs() -> dict[str, Array]:
    random = np.random.default_rng(3)
    normal = random.normal(size=ROWS)
    wide = 10.0 ** random.uniform(-300, 300, ROWS)
    return {
        "normal": normal,
        "all equal": np.zeros(ROWS),
        "two values": random.integers(0, 2, ROWS).astype(float),
        "zeros of both signs": np.where(random.random(ROWS) < 0.5, -0.0, normal.round(1)),
        "sorted": np.sort(normal),
        "reversed": np.sort(normal)[::-1].copy(),
        "one binade": 1 + random.random(ROWS),
        "most tied": np.where(random.random(ROWS) < 0.99, 0.5, normal),
        "wide": wide * random.choice([-1, 1], ROWS),
        "infinities": np.where(random.random(ROWS) < 0.3, np.inf * np.sign(normal), normal),
        "denormals": normal * 5e-324 * 1e6,
        "denormals and outliers": np.where(random.random(ROWS) < 1e-3, wide, normal * 1e-310),
        "shared bits": random_bits(random, 20),
        "powers of two": 2.0 ** random.integers(-1000, 1000, ROWS),
    }


INPUTS = inputs()


def expected_order(score: Array, codes: Array | None) -> Array:
    """Stable order by code and descending score, by Python's own sort."""
    keys = [-value for value in score.tolist()]
    groups = [0] * len(keys) if codes is None else codes.tolist()
    return np.array(sorted(range(len(keys)), key=lambda i: (groups[i], keys[i])), dtype=int)


def chunks(
    bits: Array, weight: Array, codes: Array | None = None, carried: Array | None = None
) -> list[RowChunk]:
    """Cut rows into chunks of different sizes, one of them without rows."""
    cuts = [0, 0, len(bits) // 7, len(bits) // 2, len(bits)]
    columns = (bits, weight, codes, carried)
    return [
        RowChunk(*(None if column is None else column[a:b] for column in columns))  # type: ignore[arg-type]
        for a, b in pairwise(cuts)
    ]


def check(score: Array, bits: Array, key_bits: KeyBits, codes: Array | None, groups: int) -> None:
    """Sort rows that carry their number, and compare with the expected order."""
    row = np.arange(len(score), dtype=np.uint32)
    weight = np.where(row % 3 == 0, -1.0, 1.0) * (row + 1)
    found = sort_rows(chunks(bits, weight, codes, row), key_bits, groups)
    order = expected_order(score, codes)
    assert found.carried is not None
    np.testing.assert_array_equal(found.carried, order)
    np.testing.assert_array_equal(found.signed, weight[order])
    sizes = np.bincount(np.zeros_like(row) if codes is None else codes, minlength=groups)
    np.testing.assert_array_equal(found.starts, [0, *sizes.cumsum()])
    # Within a group equal scores, and only these, have equal keys.
    same_key = found.keys[1:] == found.keys[:-1]
    same_score = score[order][1:] == score[order][:-1]
    np.testing.assert_array_equal(same_key, same_score)


@pytest.mark.parametrize("name", sweep(INPUTS, fast=list(INPUTS)[::3]))
@pytest.mark.parametrize("groups", sweep([1, 300, 7], fast=2))
def test_order_is_that_of_a_stable_sort(name: str, groups: int) -> None:
    score = INPUTS[name]
    codes = np.random.default_rng(1).integers(0, groups, ROWS).astype(np.uint16)
    check(score, score.view(np.uint64), FLOAT_BITS, codes if groups > 1 else None, groups)


@given(st.lists(st.floats(allow_nan=False)))
def test_any_floats(values: list[float]) -> None:
    score = np.array(values, dtype=np.float64)
    check(score, score.view(np.uint64), FLOAT_BITS, None, 1)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_any_signed_integers(values: list[int]) -> None:
    score = np.array(values, dtype=np.int64)
    order = np.array(sorted(range(len(values)), key=lambda i: -values[i]), dtype=int)
    row = np.arange(len(values), dtype=np.uint32)
    found = sort_rows(chunks(score.view(np.uint64), np.ones(len(values)), None, row), SIGNED_BITS)
    np.testing.assert_array_equal(found.carried, order)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_any_unsigned_integers(values: list[int]) -> None:
    score = np.array(values, dtype=np.uint64)
    order = np.array(sorted(range(len(values)), key=lambda i: -values[i]), dtype=int)
    row = np.arange(len(values), dtype=np.uint32)
    found = sort_rows(chunks(score, np.ones(len(values)), None, row), UNSIGNED_BITS)
    np.testing.assert_array_equal(found.carried, order)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_order_does_not_depend_on_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    score = INPUTS["most tied"]
    monkeypatch.setattr(compiling, "thread_count", lambda: count)
    monkeypatch.setattr(sorting, "thread_count", lambda: count)
    codes = np.random.default_rng(2).integers(0, 5, ROWS).astype(np.uint8)
    check(score, score.view(np.uint64), FLOAT_BITS, codes, 5)


def test_cells_within_cells() -> None:
    # Of 2,048 cells of 25 scores each, the last is divided again, five times.
    cells, last = np.arange(2048, dtype=np.uint64), np.uint64(2**64 - 1)
    shifts = [np.uint64(shift) for shift in (46, 35, 24, 13, 2)]
    levels = [(last << shift << np.uint64(11)) | (cells << shift) for shift in shifts]
    ends = np.array([0, last], np.uint64)
    bits = np.append(np.repeat(~np.concatenate(levels), 25), ends)
    row = np.random.default_rng(1).permutation(len(bits)).astype(np.uint32)
    shuffled = np.empty_like(bits)
    shuffled[row] = bits
    found = sort_rows([RowChunk(shuffled, np.ones(len(bits)))], UNSIGNED_BITS)
    np.testing.assert_array_equal(score_bits(found.keys, UNSIGNED_BITS), np.sort(bits)[::-1])
