"""Points of curves: one for each tie, after an origin, with the weights around rows."""

from __future__ import annotations

import numpy as np
import pytest

from polars_wroc.kernels import blocks
from polars_wroc.kernels.blocks import cut_blocks, points_of
from polars_wroc.kernels.scans import weights_around
from polars_wroc.kernels.sorting import FLOAT_BITS, RowChunk, score_bits, sort_rows

ROWS, GROUPS = 3000, 6
# A group without rows; another is not among those asked for.
EMPTY = 3


@pytest.mark.parametrize("decimals", [1, 12])
def test_points_are_the_weights_around_the_last_rows_of_ties(
    decimals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    random = np.random.default_rng(4)
    groups = random.choice(np.array([0, 1, 2, 5], np.uint8), ROWS)
    score = random.normal(size=ROWS).round(decimals)
    signed = random.gamma(2.0, size=ROWS) * random.choice([-1, 1], ROWS)
    rows = sort_rows([RowChunk(score.view(np.uint64), signed, groups)], FLOAT_BITS, GROUPS)
    there = np.array([0, 1, 2, EMPTY, 5])
    points = points_of(rows, there)
    _, tp, _, fp = weights_around(rows, cut_blocks(rows))
    assert len(points.starts) == len(there) + 1
    for place, group in enumerate(there):
        a, b = (int(start) for start in points.starts[place : place + 2])
        own = slice(int(rows.starts[group]), int(rows.starts[group + 1]))
        keys, last = np.unique(rows.keys[own][::-1], return_index=True)
        last = own.stop - 1 - last
        np.testing.assert_array_equal(points.keys[a + 1 : b], keys)
        np.testing.assert_array_equal(points.tp[a:b], [0.0, *tp[last]])
        np.testing.assert_array_equal(points.fp[a:b], [0.0, *fp[last]])
        # Also from one block to the next.
        assert (np.diff(points.tp[a:b]) >= 0).all()
        scores = score_bits(points.keys[a + 1 : b], FLOAT_BITS).view(np.float64)
        np.testing.assert_array_equal(scores, np.unique(score[groups == group])[::-1])


def test_groups_without_rows_have_an_origin() -> None:
    none = np.zeros(0)
    rows = sort_rows([RowChunk(none.view(np.uint64), none)], FLOAT_BITS)
    points = points_of(rows, np.array([0]))
    assert points.starts.tolist() == [0, 1]
    assert points.tp.tolist() == points.fp.tolist() == [0.0]
