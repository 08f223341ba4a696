"""Cells of confusion matrices: against a loop over rows, and cells that are given by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows, read_columns
from polars_wroc.thresholds.cells import (
    Cells,
    sum_cells,
    sum_cells_at,
    sum_cells_at_each,
    sum_decided_cells,
)
from polars_wroc.thresholds.choice import choose_thresholds, trace_curves

THRESHOLDS = [np.inf, 0.7, 0.35, 0.2, -np.inf]


def frame_of(seed: int, rows: int = 200) -> pl.DataFrame:
    """Rows of four groups with ties; one group has a single class."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, rows)
    return pl.DataFrame(
        {
            "g": group,
            "y": (rng.random(rows) < 0.4) & (group > 0),
            "s": rng.integers(0, 11, rows) / 10,
            "w": rng.lognormal(size=rows),
            "n": rng.integers(1, 4, rows),
            "d": rng.random(rows) < 0.5,
            "c": rng.integers(0, 9, rows),
            "r0": rng.random(rows),
            "r1": rng.random(rows),
        }
    )


def read(frame: pl.DataFrame, **options: Any) -> Rows:
    columns = read_columns(frame, "y", "s", by="g", **options)
    return columns.rows(columns.plan.collect())


def loop(frame: pl.DataFrame, selected: Sequence[bool], value: str) -> np.ndarray:
    """Add up values of rows one by one, in a row for each cell and a column for each group."""
    groups = sorted(frame["g"].unique())
    sums = np.zeros((4, len(groups)))
    rows = zip(frame["g"], frame["y"], selected, frame[value], strict=True)
    for group, positive, is_selected, number in rows:
        cell = {(True, True): "tp", (False, True): "fp", (True, False): "fn", (False, False): "tn"}
        sums[CELLS.index(cell[positive, is_selected]), groups.index(group)] += number
    return sums


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_cells_at_a_threshold_are_those_of_a_loop(threshold: float) -> None:
    frame = frame_of(1)
    rows = read(frame, weight="w").segments(["__key_0"])
    found = sum_cells_at(rows, threshold)
    powers = frame.with_columns(q=pl.col("w") ** 2, one=1)
    selected = (frame["s"] >= threshold).to_list()
    for sums, value in ((found.weight, "w"), (found.squares, "q"), (found.rows, "one")):
        np.testing.assert_allclose(sums, loop(powers, selected, value), rtol=1e-13)


def test_each_segment_may_have_its_own_threshold_or_none() -> None:
    rows = read(frame_of(2), weight="w").segments(["__key_0"])
    own = np.array([0.2, np.nan, 0.5, np.inf])
    found = sum_cells_at(rows, own)
    for place, threshold in enumerate(own):
        expected = sum_cells_at(rows, threshold).weight[:, place]
        np.testing.assert_array_equal(found.weight[:, place], expected)
    assert np.isnan(found.weight[:, 1]).all()
    assert not np.isnan(found.weight[:, [0, 2, 3]]).any()


def test_segments_that_select_nobody_do_so_at_an_infinite_score() -> None:
    frame = frame_of(3).with_columns(s=pl.lit(np.inf))
    rows = read(frame).segments(["__key_0"])
    at_origin = sum_cells_at(rows, np.inf, selects=np.zeros(4, bool))
    assert at_origin.count(("tp", "fp")).rows.tolist() == [0] * 4
    assert sum_cells_at(rows, np.inf).count(("fn", "tn")).rows.tolist() == [0] * 4


@pytest.mark.parametrize("weight", [None, "w", wroc.frequency("n")])
def test_several_thresholds_are_one_after_another(weight: Any) -> None:
    rows = read(frame_of(4), weight=weight).segments(["__key_0"])
    found = sum_cells_at_each(rows, np.array(THRESHOLDS))
    each = [sum_cells_at(rows, threshold) for threshold in THRESHOLDS]
    for name in ("weight", "squares", "rows"):
        expected = np.stack([getattr(cells, name) for cells in each], axis=-1).reshape(4, -1)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-13, atol=1e-13)


def test_recorded_decisions_are_those_of_the_rows() -> None:
    frame = frame_of(5)
    rows = read(frame, weight="w", selected="d")
    found = sum_decided_cells(rows.segments(["__key_0"]), rows)
    np.testing.assert_allclose(found.weight, loop(frame, frame["d"].to_list(), "w"), rtol=1e-13)


def test_cells_of_units_add_up_to_those_of_the_segment() -> None:
    frame = frame_of(6)
    rows = read(frame, weight="w", design="c")
    segments = rows.segments(["__key_0"])
    assert rows.sample is not None
    found = sum_cells_at(segments, 0.4, rows.sample)
    assert found.units is not None
    np.testing.assert_allclose(found.units.sum(axis=1), found.weight, rtol=1e-13)
    one = frame.filter(c=3)
    expected = loop(one, (one["s"] >= 0.4).to_list(), "w")
    places = [sorted(frame["g"].unique()).index(group) for group in sorted(one["g"].unique())]
    np.testing.assert_allclose(found.units[:, 3][:, places], expected, rtol=1e-13)
    assert (found.unit_present > 0).sum(axis=0).tolist() == [
        frame.filter(g=group)["c"].n_unique() for group in range(4)
    ]


def test_replicate_weights_have_cells_after_those_of_the_full_weights() -> None:
    frame = frame_of(7)
    rows = read(frame, weight="w", design=wroc.ReplicateWeights(["r0", "r1"], "brr"))
    found = sum_cells_at(rows.segments(["__key_0"]), 0.4, rows.sample)
    assert found.units is not None
    selected = (frame["s"] >= 0.4).to_list()
    expected = np.stack([loop(frame, selected, name) for name in ("w", "r0", "r1")], axis=1)
    np.testing.assert_allclose(found.units, expected, rtol=1e-13)


def test_thresholds_inside_a_bin_are_refused() -> None:
    frame = frame_of(8).with_columns(s=pl.Series(np.random.default_rng(8).random(200)))
    counts = wroc.score_counts(frame, "y", "s", by="g", bins=16)
    state: Any = wroc.from_counts(counts)
    columns = read_columns(state._state, "y", "s", by="g")
    rows = columns.rows(columns.plan.collect()).segments(columns.keys)
    assert rows.bins is not None
    several = np.flatnonzero(rows.bins.several)[0]
    inside, highest = rows.bins.high[several], rows.score.max()
    message = r"^`threshold` must not be inside a bin"
    with pytest.raises(ValueError, match=message):
        sum_cells_at(rows, inside)
    with pytest.raises(ValueError, match=message):
        sum_cells_at_each(rows, np.array([inside]))
    assert sum_cells_at(rows, highest).count(("tp", "fp")).rows.sum() > 0
    assert sum_cells_at_each(rows, np.array([highest])).count(("tp", "fp")).rows.sum() > 0


def test_counts_and_rates_are_those_of_the_cells() -> None:
    cells = Cells(np.array([[3.0], [1], [2], [4]]), np.ones((4, 1)), np.full((4, 1), 2.0))
    count = cells.count(("tp", "fn"))
    assert [count.weight[0], count.squares[0], count.rows[0]] == [5, 2, 4]
    assert cells.rate(("tp",), ("fn",)).value.tolist() == [0.6]
    assert cells.combine(lambda values: 2 * values).weight.tolist() == [[6], [2], [4], [8]]


def test_curves_have_an_origin_and_the_cells_of_every_score() -> None:
    frame = frame_of(9)
    rows = read(frame, weight="w").segments(["__key_0"])
    points = trace_curves(rows)
    for place in range(rows.number):
        part = slice(points.starts[place], points.starts[place + 1])
        scores = sorted(frame.filter(g=place)["s"].unique(), reverse=True)
        assert points.threshold[part].tolist() == [np.inf, *scores]
        for point, score in zip(range(part.start + 1, part.stop), scores, strict=True):
            expected = sum_cells_at(rows, score).weight[:, place]
            np.testing.assert_allclose(points.cells.weight[:, point], expected, atol=1e-12)
        assert points.cells.weight[:2, part.start].tolist() == [0, 0]


def test_segments_far_apart_in_weight_keep_their_digits() -> None:
    frame = frame_of(10).with_columns(w=pl.when(pl.col("g") == 1).then(1e18).otherwise("w"))
    rows = read(frame, weight="w").segments(["__key_0"])
    alone = read(frame.filter(g=2), weight="w").segments(["__key_0"])
    points, expected = trace_curves(rows), trace_curves(alone)
    part = slice(points.starts[2], points.starts[3])
    np.testing.assert_array_equal(points.cells.weight[:, part], expected.cells.weight)


def test_no_rows_have_no_cells() -> None:
    rows = read(frame_of(11).clear()).segments(["__key_0"])
    assert sum_cells(rows, np.zeros(0, bool)).weight.shape == (4, 0)
    assert sum_cells_at_each(rows, np.array([1.0, 0.5])).weight.shape == (4, 0)
    assert trace_curves(rows).threshold.shape == (0,)
    assert choose_thresholds(rows, wroc.rules.youden()).value.shape == (0,)
