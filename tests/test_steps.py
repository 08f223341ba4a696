"""The engine: steps, sums and placement values against loops over rows, whatever the threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_wroc.buckets import sort_into_groups
from polars_wroc.rows import Rows
from polars_wroc.steps import (
    SegmentRows,
    Steps,
    Sums,
    descend,
    find_steps,
    place_rows,
    placements,
    pool_steps,
    reduce_steps,
)


def make_rows(
    sizes: list[int], seed: int, *, decimals: int = 1, scales: list[float] | None = None
) -> SegmentRows:
    """Return rows of segments of some sizes, with ties and weights."""
    random = np.random.default_rng(seed)
    segment = np.repeat(np.arange(len(sizes)), sizes)
    weight = random.gamma(2, 1, len(segment)) * random.choice([-1, 1], len(segment))
    if scales is not None:
        weight = weight * np.repeat(scales, sizes)
    score = np.round(random.normal(size=len(segment)), decimals)
    order = random.permutation(len(segment))
    keys = pl.DataFrame({"segment": segment[order]})
    return Rows(keys, {"score": score[order]}, weight[order]).segments(["segment"])


def place_slowly(score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the share of the other class that outranks each row, by all pairs."""
    placed = []
    for one, sign in zip(score, np.sign(weight), strict=True):
        others = np.where(np.sign(weight) != sign, np.abs(weight), 0.0)
        better = score > one if sign > 0 else score < one
        outranked = np.where(better, 1.0, np.where(score == one, 0.5, 0.0))
        total = others.sum()
        placed.append((others * outranked).sum() / total if total else np.nan)
    return np.array(placed)


def sum_misranked(steps: Steps) -> Sums:
    """Return the weighted placement values of both classes, and the largest of a step."""
    return {
        "misranked": steps.total(steps.w * placements(steps)),
        "rows": steps.total(steps.n),
        "heaviest": steps.largest(steps.w.sum(axis=0)),
    }


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.integers(0, 10_000),
    st.integers(0, 2),
)
def test_placement_values_are_those_of_all_pairs(
    sizes: list[int], seed: int, decimals: int
) -> None:
    rows = make_rows(sizes, seed, decimals=decimals)
    placed = place_rows(rows)
    for first, stop in zip(rows.starts[:-1], rows.starts[1:], strict=True):
        expected = place_slowly(rows.score[first:stop], rows.weight[first:stop])
        np.testing.assert_allclose(placed[first:stop], expected, atol=1e-12)


# Blocks have 65,536 rows.
@pytest.mark.parametrize("sizes", [[150_000], [5, 150_000, 3, 17_000], [3] * 30_000])
def test_sums_of_blocks_are_those_of_rows(sizes: list[int]) -> None:
    rows = make_rows(sizes, 1, decimals=2)
    sums = reduce_steps(rows, sum_misranked, maxima=frozenset({"heaviest"}))
    placed = np.nan_to_num(place_rows(rows)) * np.abs(rows.weight)
    for row, is_side in enumerate((rows.weight > 0, rows.weight < 0)):
        found = np.nan_to_num(sums["misranked"][row])
        np.testing.assert_allclose(found, rows.total(placed * is_side), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(sums["rows"][row], rows.total(is_side.astype(float)))


@pytest.mark.parametrize("sizes", [[], [400], [5, 40_000, 3], [3] * 1_000])
def test_steps_begin_where_rows_that_descend_have_another_score(sizes: list[int]) -> None:
    rows = make_rows(sizes, 3)
    descending, pooled = descend(rows), pool_steps(rows)
    firsts, starts = find_steps(descending)
    np.testing.assert_array_equal(starts, pooled.starts)
    np.testing.assert_array_equal(descending.score[firsts], pooled.score)
    ends = np.append(firsts, len(descending.score))
    for power, sums in ((1, pooled.w), (2, pooled.w2), (3, pooled.w3)):
        expected = [
            [np.abs(side[first:stop] ** power).sum() for first, stop in pairwise(ends)]
            for side in (descending.weight.clip(0), descending.weight.clip(None, 0))
        ]
        np.testing.assert_allclose(sums, np.reshape(expected, sums.shape), rtol=1e-12)


def test_light_segments_keep_their_digits_beside_heavy_ones() -> None:
    sizes, scales = [20] * 6, [1.0, 1e-200, 1e200, 1e-10, 1e300, 1.0]
    alone = reduce_steps(make_rows(sizes, 3), sum_misranked)
    beside = reduce_steps(make_rows(sizes, 3, scales=scales), sum_misranked)
    np.testing.assert_allclose(
        beside["misranked"] / np.array(scales), alone["misranked"], rtol=1e-13
    )


def test_no_rows_have_no_sums() -> None:
    rows = make_rows([], 0)
    assert rows.number == 0
    sums = reduce_steps(rows, sum_misranked)
    assert sums["misranked"].shape == sums["rows"].shape == (2, 0)
    pooled = pool_steps(rows)
    assert pooled.score.shape == (0,)
    assert pooled.n.shape == pooled.w.shape == pooled.w2.shape == pooled.w3.shape == (2, 0)
    assert place_rows(rows).shape == (0,)


def test_segments_without_complete_rows_have_sums_of_zero() -> None:
    rows = Rows(
        pl.DataFrame({"segment": ["a", "b", "b"]}),
        {"score": np.array([np.nan, 0.2, 0.4])},
        np.array([1.0, -1.0, 1.0]),
    ).segments(["segment"])
    assert rows.missing.tolist() == [1, 0]
    assert reduce_steps(rows, sum_misranked)["rows"].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("categories", [1, 3, 300])
@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Int8, pl.UInt64, pl.Int64, pl.Float64, pl.Categorical]
)
def test_groups_are_those_of_polars(
    columns: int, categories: int, dtype: type[pl.DataType]
) -> None:
    random = np.random.default_rng(columns * categories)
    is_null = random.random(500) < (0.1 if columns == 1 else 0.0)
    values = {f"{c}": random.integers(0, min(categories, 100), 500) for c in range(columns)}
    texts = pl.DataFrame(values).cast(pl.String)
    keys = (texts if dtype in (pl.String, pl.Categorical) else pl.DataFrame(values)).cast(dtype)
    keys = keys.with_columns(pl.when(pl.Series(is_null)).then(None).otherwise(pl.all()).name.keep())
    groups, starts, order = sort_into_groups(keys, keys.height)
    expected = keys.with_row_index("row").group_by(keys.columns).agg("row").sort(keys.columns)
    assert groups.equals(expected.drop("row"))
    assert order.tolist() == expected["row"].explode().to_list()
    assert np.diff(starts).tolist() == expected["row"].list.len().to_list()
