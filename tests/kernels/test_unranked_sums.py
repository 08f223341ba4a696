"""Sums that do not depend on ranks, against their definitions by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polars_wroc.kernels import UNRANKED_SUMS, blocks
from polars_wroc.kernels.blocks import Groups, cut_blocks, unranked_sums
from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    KeyBits,
    RowChunk,
    sort_rows,
)

Array = npt.NDArray[Any]
ROWS, GROUPS = 500, 3


def by_definition(score: Array, signed: Array) -> dict[str, Any]:
    sums: dict[str, Any] = {}
    for side, own in (("pos", signed > 0), ("neg", signed < 0)):
        s, w = score[own], np.abs(signed[own])
        sums |= {f"weight_{side}": w.sum(), f"squares_{side}": w @ w, f"rows_{side}": own.sum()}
        sums |= {f"scores_{side}": w @ s, f"scores_squares_{side}": (w * w) @ s}
    s, w = score, np.abs(signed)
    outside, extreme = (s < 0) | (s > 1), np.isin(s, [0.0, 1.0])
    return sums | {
        "second_scores": w @ s**2,
        "second_scores_squares": (w * w) @ s**2,
        "outside_0_to_1": outside.sum(),
        "extremes": extreme.sum(),
    }


def scores() -> dict[str, tuple[Array, KeyBits]]:
    random = np.random.default_rng(4)
    ranges = {"from 0 to 1": (0, 21), "below and above": (-10, 31)}
    floats = {name: random.integers(*ends, ROWS) / 20 for name, ends in ranges.items()}
    return {name: (score, FLOAT_BITS) for name, score in floats.items()} | {
        "signed": (random.integers(-3, 4, ROWS), SIGNED_BITS),
        "unsigned": (random.integers(0, 2**63, ROWS, np.uint64) * np.uint64(2), UNSIGNED_BITS),
    }


SCORES = scores()


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("several", [False, True])
def test_sums_follow_their_definitions(
    kind: str, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    score, key_bits = SCORES[kind]
    random = np.random.default_rng(5)
    signed = random.choice([-1.0, 1.0], ROWS) * random.lognormal(size=ROWS)
    codes = random.integers(0, GROUPS, ROWS).astype(np.uint16)
    rows = sort_rows([RowChunk(score.view(np.uint64), signed, None, codes)], key_bits)
    # The last of several groups is left out.
    groups = Groups(GROUPS - 1, np.arange(GROUPS, dtype=np.uint32)) if several else Groups()
    found = unranked_sums(rows, cut_blocks(rows), groups, key_bits, None)
    assert len(found) > 1
    for group, sums in enumerate(found.sum(0)):
        own = codes == group if several else codes >= 0
        expected = by_definition(score[own].astype(np.float64), signed[own])
        assert dict(zip(UNRANKED_SUMS, sums, strict=True)) == pytest.approx(expected, rel=1e-12)


def test_scores_may_stand_for_others() -> None:
    numbers = np.array([2, 0, 1, 2], np.uint64)
    values, signed = np.array([0.25, 0.5, 1.0]), np.array([1.0, -2.0, 3.0, -4.0])
    rows = sort_rows([RowChunk(numbers, signed)], UNSIGNED_BITS)
    found = unranked_sums(rows, cut_blocks(rows), Groups(), UNSIGNED_BITS, values).sum((0, 1))
    expected = by_definition(values[numbers], signed)
    assert dict(zip(UNRANKED_SUMS, found, strict=True)) == pytest.approx(expected)
