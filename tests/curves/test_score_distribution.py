"""Score distributions against numpy's histograms and their definition."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc

COLUMNS = {
    "positive": pl.Boolean(),
    "bin": pl.Int64(),
    "bin_low": pl.Float64(),
    "bin_high": pl.Float64(),
    "n": pl.Int64(),
    **dict.fromkeys(["weight", "share", "density", "cumulative"], pl.Float64()),
}


def sample(seed: int, rows: int = 400, digits: int = 9) -> pl.DataFrame:
    """Weighted rows of three groups; some scores are missing."""
    random = np.random.default_rng(seed)
    s = random.beta(1, 2, rows).round(digits)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "y": random.random(rows) < 0.8 * s,
            "s": s,
            "w": random.lognormal(size=rows, sigma=0.5),
        }
    )
    return frame.with_columns(s=pl.when(pl.int_range(rows) % 40 != 0).then("s"))


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 1, 20), (-3, 7, 13), (1e-9, 3e-9, 4)])
@pytest.mark.parametrize("ends", ["given", "found"])
def test_numpy_has_the_same_histogram(low: float, high: float, bins: int, ends: str) -> None:
    frame = sample(1).with_columns(s=low + pl.col("s") * (high - low))
    if ends == "given":
        limits: Any = (low, high)
    else:
        found = frame["s"].min(), frame["s"].max()
        limits = (0, 1) if found[0] >= 0 and found[1] <= 1 else found  # type: ignore[operator]
    table = wroc.score_distribution(
        frame.lazy(),
        "s",
        label="y",
        weight="w",
        by="g",
        bins=bins,
        range=limits if ends == "given" else None,
    ).collect()
    assert table.height == 3 * 2 * bins
    for (g, positive), part in table.group_by("g", "positive", maintain_order=True):
        rows = frame.filter(pl.col("s").is_not_null(), g=g, y=positive)
        s, w = rows["s"].to_numpy(), rows["w"].to_numpy()
        # No score is at an edge but the ends of all.
        numbers, edges = np.histogram(s, bins, limits)
        weights, _ = np.histogram(s, bins, limits, weights=w)
        density, _ = np.histogram(s, bins, limits, weights=w, density=True)
        assert part["bin"].to_list() == list(range(1, bins + 1))
        assert part["n"].to_list() == numbers.tolist()
        assert part["bin_low"].to_list() == pytest.approx(edges[:-1], rel=1e-12, abs=1e-20)
        assert part["bin_high"].to_list() == pytest.approx(edges[1:], rel=1e-12, abs=1e-20)
        assert part["weight"].to_list() == pytest.approx(weights, abs=1e-9)
        assert part["share"].to_list() == pytest.approx(weights / weights.sum(), abs=1e-12)
        assert part["density"].to_list() == pytest.approx(density, rel=1e-9)
        cumulative = (weights / weights.sum()).cumsum()
        assert part["cumulative"].to_list() == pytest.approx(cumulative, abs=1e-12)
        assert part["cumulative"][-1] == 1


@given(
    scores=st.lists(st.integers(0, 60).map(lambda s: s / 60), min_size=1, max_size=40),
    bins=st.integers(1, 30),
)
def test_bins_include_their_upper_ends(scores: list[float], bins: int) -> None:
    frame = pl.DataFrame({"s": scores})
    table = wroc.score_distribution(frame, "s", bins=bins)
    edges = [k / bins for k in range(bins + 1)]
    assert [*table["bin_low"], table["bin_high"][-1]] == edges
    expected = [
        sum((s > low or k == 0) and low <= s <= high for s in scores)
        for k, (low, high) in enumerate(pairwise(edges))
    ]
    assert table["n"].to_list() == expected
    curve = wroc.calibration_curve(frame.with_columns(y=True), "y", "s", bins=bins)
    assert table.filter(pl.col("n") > 0)["bin"].to_list() == curve["bin"].to_list()


@given(
    scores=st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=2, max_size=30
    ),
    bins=st.integers(2, 9),
)
def test_each_score_is_in_its_bin(scores: list[float], bins: int) -> None:
    frame = pl.DataFrame({"s": scores})
    table = wroc.score_distribution(frame, "s", bins=bins)
    assert table["n"].sum() == len(scores)
    assert table["bin_low"][1:].to_list() == table["bin_high"][:-1].to_list()
    assert table["bin_low"][0] <= min(scores)
    assert max(scores) <= table["bin_high"][-1]
    # Edges a few floats apart coincide.
    for low, high, n in table.select("bin_low", "bin_high", "n").rows():
        assert n <= sum(low <= s <= high for s in scores) or high - low <= abs(high) * 1e-14


def test_the_same_edges_for_all_groups() -> None:
    frame = pl.DataFrame({"g": ["a", "a", "b"], "s": [-1.0, 0.0, 3.0]})
    table = wroc.score_distribution(frame, "s", by="g", bins=4)
    assert table.schema == {"g": pl.String(), **COLUMNS}
    assert table["bin_high"].to_list() == [0, 1, 2, 3] * 2
    assert table["n"].to_list() == [2, 0, 0, 0, 0, 0, 0, 1]
    assert table["share"].to_list() == [1, 0, 0, 0, 0, 0, 0, 1]
    assert table["positive"].to_list() == [None] * 8


def test_each_model_has_its_own_edges() -> None:
    frame = sample(2).with_columns(t=pl.col("s") * 10 - 5)
    table = frame.wroc.score_distribution(["t", "s"], label="y", by="g", bins=3)  # type: ignore[attr-defined]
    assert table.columns == ["g", "model", *COLUMNS]
    for model in ("t", "s"):
        alone = wroc.score_distribution(frame, model, label="y", by="g", bins=3)
        assert_frame_equal(table.filter(model=model).drop("model"), alone)
    assert table["model"].unique(maintain_order=True).to_list() == ["t", "s"]
    given_ends = wroc.score_distribution(frame, ["t", "s"], bins=3, range=(-5, 5))
    assert given_ends["bin_low"].n_unique() == 3


@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ([0.2, 0.2], (0, 1)),
        ([5.0, 5.0], (2.5, 7.5)),
        ([-0.5], (-1.0, 0.0)),
        ([1e300], (5e299, 1.5e300)),
        ([3, 3, 3], (1.5, 4.5)),
        ([None], (0, 1)),
    ],
)
def test_ends_of_a_single_score(scores: list[float | None], ends: tuple[float, float]) -> None:
    frame = pl.DataFrame({"s": scores}, strict=False)
    table = wroc.score_distribution(frame, "s", bins=5)
    assert (table["bin_low"][0], table["bin_high"][-1]) == ends
    there = sum(score is not None for score in scores)
    assert table["n"].sum() == there
    shares = [table["share"].sum(), table["cumulative"].max()]
    assert shares == ([1, 1] if there else [0, None])


def test_a_class_without_weight_has_no_shares() -> None:
    frame = pl.DataFrame({"g": ["a", "b"], "y": [1, 0], "s": [0.2, 0.4], "w": [1.0, 1e308]})
    table = wroc.score_distribution(frame, "s", label="y", weight="w", by="g", bins=2)
    known = table.filter(pl.col("share").is_not_null())
    assert known.select("g", "positive").unique().sort("g").rows() == [("a", True), ("b", False)]
    for name in ("density", "cumulative"):
        assert table[name].is_null().to_list() == table["share"].is_null().to_list()
    many = pl.concat([frame.filter(g="b")] * 20)
    overflown = wroc.score_distribution(many, "s", weight="w", bins=2)
    assert overflown["share"].to_list() == [None, None]
    assert wroc.score_distribution(frame.clear(), "s", by="g").height == 0
    assert wroc.score_distribution(frame.clear(), "s", bins=3)["n"].to_list() == [0, 0, 0]


def test_counts_give_the_distribution_of_each_class() -> None:
    frame = sample(3, digits=2)
    of_scores = wroc.from_counts(wroc.score_counts(frame, "y", "s", weight="w", by="g"))
    for by in ("g", None):
        expected = wroc.score_distribution(frame, "s", label="y", weight="w", by=by)
        assert_frame_equal(of_scores.score_distribution(by=by), expected, abs_tol=1e-12)
    of_bins = wroc.from_counts(wroc.score_counts(frame, "y", "s", weight="w", bins=64))
    halves = of_bins.score_distribution(bins=1)
    assert_frame_equal(
        halves, wroc.score_distribution(frame, "s", label="y", weight="w", bins=1), abs_tol=1e-12
    )
    with pytest.raises(ValueError, match="must not divide a bin of the counts; found"):
        of_bins.score_distribution(bins=30)


def test_a_distribution_refuses_wrong_bins_and_ranges() -> None:
    frame = sample(8)
    with pytest.raises(ValueError, match="`range` must hold all scores; found"):
        wroc.score_distribution(frame, "s", range=(0.1, 1))
    with pytest.raises(ValueError, match="`range` must hold all scores; found"):
        wroc.score_distribution(frame, "s", range=(0, 0.5))
    infinite = frame.with_columns(
        s=pl.when(pl.int_range(pl.len()) == 3).then(math.inf).otherwise("s")
    )
    with pytest.raises(ValueError, match=r"`score` must be finite .*; found inf"):
        wroc.score_distribution(infinite, "s", by="g")
    with pytest.raises(ValueError, match=r"`score` must be finite .*; found -inf"):
        wroc.score_distribution(infinite.with_columns(-pl.col("s")), "s")
    for bad, kind, message in [
        ((1, 1), ValueError, r"`range` must rise .*; found \(1, 1\)"),
        ((0, math.inf), ValueError, "`range` must be a finite number; found inf"),
        ((0, math.nan), ValueError, "`range` must be a finite number; found nan"),
        ((0, 1, 2), TypeError, "`range` must be two numbers"),
        ("01", TypeError, "`range` must be two numbers"),
        ((0, "1"), TypeError, "`range` must be a number; found '1'"),
    ]:
        ends: Any = bad
        with pytest.raises(kind, match=message):
            wroc.score_distribution(frame, "s", range=ends)
    with pytest.raises(TypeError, match="`score` must be numeric; found column 'g'"):
        wroc.score_distribution(frame, "g")
    with pytest.raises(ValueError, match=r"`by` must not take .* found 'bin'"):
        wroc.score_distribution(frame.rename({"g": "bin"}), "s", by="bin")
    with pytest.raises(TypeError, match="`label` must be"):
        wroc.score_distribution(frame, "s", label="g")
    mixed = frame.with_columns(y=pl.when("y").then(1).otherwise(pl.int_range(pl.len()) % 2 - 1))
    with pytest.raises(ValueError, match="`label` must hold 0 and 1"):
        wroc.score_distribution(mixed, "s", label="y", by="g")
