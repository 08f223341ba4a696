"""Rows that are moved to groups and sorted in them, against NumPy's sort."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from polars_wroc import buckets
from polars_wroc.arrays import Array
from polars_wroc.buckets import count_codes, move_to_buckets, sort_groups, sort_into_groups
from polars_wroc.rows import Rows

ROWS = 20_000
SCORES: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda rng: rng.normal(size=ROWS),
    "tied": lambda rng: rng.integers(0, 5, ROWS).astype(np.float64),
    "constant": lambda rng: rng.choice([0.25], ROWS),
    "infinite": lambda rng: rng.choice([-np.inf, 0.0, np.inf], ROWS),
    "one outlier": lambda rng: np.append(rng.normal(size=ROWS - 1), 1e300),
    "many magnitudes": lambda rng: np.exp(30 * rng.normal(size=ROWS)),
    "subnormal": lambda rng: 1e-310 * rng.normal(size=ROWS),
    "both ends of floats": lambda rng: rng.choice([-1.7e308, 0.0, 1.7e308], ROWS),
    "zeros of both signs": lambda rng: rng.choice([-0.0, 0.0], ROWS),
}


@pytest.fixture(params=[1, 7, 300])
def groups(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("kind", SCORES)
def test_groups_are_sorted_as_by_numpy(
    kind: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_CHUNK_ROWS", 1000)
    rng = np.random.default_rng(5)
    score, carried = SCORES[kind](rng), np.arange(ROWS)
    codes = rng.integers(0, groups, ROWS).astype(np.uint16)
    found = sort_groups(codes, groups, [score, carried])
    expected = np.lexsort((-score, codes))
    np.testing.assert_array_equal(found.columns[0], score[expected])
    np.testing.assert_array_equal(found.places, found.columns[1])
    np.testing.assert_array_equal(np.sort(found.places), carried)
    np.testing.assert_array_equal(score[found.places], found.columns[0])
    np.testing.assert_array_equal(np.diff(found.starts), np.bincount(codes, minlength=groups))


@pytest.mark.parametrize(
    "by",
    [["text"], ["whole"], ["holds"], ["known"], ["text", "holds", "whole"], ["holds", "float"]],
)
def test_groups_of_rows_are_those_of_polars(by: list[str]) -> None:
    rng = np.random.default_rng(8)
    rows = pl.DataFrame(
        {
            "text": rng.choice(["b", "", "a"], ROWS),
            "whole": rng.integers(-2, 3, ROWS),
            "holds": rng.random(ROWS) < 0.2,
            "known": [(True, False, None)[place] for place in rng.integers(0, 3, ROWS)],
            "float": rng.choice([0.5, -1.5], ROWS),
        }
    )
    groups, starts, places = sort_into_groups(rows.select(by), ROWS)
    expected = rows.with_row_index("row").group_by(by).agg("row").sort(by)
    assert_frame_equal(groups, expected.select(by))
    found = [part.tolist() for part in np.split(places, starts[1:-1])]
    assert found == expected["row"].to_list()


def test_moved_rows_keep_their_order(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_CHUNK_ROWS", 1000)
    codes = np.random.default_rng(6).integers(0, groups, ROWS).astype(np.uint16)
    found = move_to_buckets(codes, groups + 1, [])
    np.testing.assert_array_equal(found.places, np.argsort(codes, kind="stable"))
    assert found.starts[-2:].tolist() == [ROWS, ROWS]
    assert count_codes(codes, groups + 1).sum() == ROWS


def test_no_rows() -> None:
    found = sort_groups(np.zeros(0, np.uint16), 3, [np.zeros(0)])
    assert found.starts.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("by", [[], ["g"], ["g", "h"]])
@pytest.mark.parametrize("ranks", [True, False])
def test_segments_of_many_rows_are_those_of_few(
    by: list[str], *, ranks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    keys = pl.DataFrame({"g": rng.integers(-3, 3, ROWS), "h": rng.choice(["x", "y", "z"], ROWS)})
    score = np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS).round(2))
    weight = rng.gamma(2, size=ROWS) * rng.choice([-1, 1], ROWS)
    rows = Rows(keys, {"score": score}, weight)
    few = rows.segments(by)
    monkeypatch.setattr("polars_wroc.rows._MANY_ROWS", 1)
    many = rows.segments(by, ranks=ranks)
    assert_frame_equal(many.segments, few.segments)
    np.testing.assert_array_equal(many.starts, few.starts)
    np.testing.assert_array_equal(many.missing, few.missing)
    np.testing.assert_array_equal(weight[many.order], many.weight)
    own = np.lexsort((few.order, -few.score, few.segment))
    other = np.lexsort((many.order, -many.score, many.segment))
    np.testing.assert_array_equal(many.order[other], few.order[own])
