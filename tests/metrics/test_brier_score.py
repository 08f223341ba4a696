"""The Brier score and its parts: against scikit-learn and sums written out row by row."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

import polars_wroc as wroc

Row: TypeAlias = tuple[int, float, int]
Parts: TypeAlias = dict[str, float]

FIELDS = [
    "brier_score",
    "reliability",
    "resolution",
    "uncertainty",
    "miscalibration",
    "discrimination",
]
BRIER = wroc.brier_score("y", "s", weight="w")
# The ends, ties, and probabilities that no binary fraction is.
SCORES = [0.0, -0.0, 0.1, 0.2, 0.25, 0.5, 0.7, 0.9, 1 - 1e-9, 1.0]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(1, 5)),
    min_size=1,
    max_size=40,
)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    schema = {"y": pl.Int64, "s": pl.Float64, "w": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def sample(seed: int, digits: int = 2, rows: int = 300) -> pl.DataFrame:
    """Weighted rows, the score of which is a probability that is a bit off."""
    random = np.random.default_rng(seed)
    s = random.random(rows)
    y = random.random(rows) < 0.1 + 0.6 * s**2
    return pl.DataFrame({"y": y, "s": s.round(digits), "w": random.lognormal(size=rows)})


def brier(frame: pl.DataFrame) -> Parts:
    """The Brier score and its parts, as the table of calibration has them."""
    table = wroc.calibration_summary(frame, "y", "s", weight="w").select(FIELDS)
    found = table.row(0, named=True)
    assert frame.select(BRIER).item() == pytest.approx(found["brier_score"], abs=1e-15)
    return found


def mean(values: list[tuple[float, float]]) -> float:
    """Mean of values, each with its weight."""
    return sum(v * w for v, w in values) / sum(w for _, w in values)


def murphy(rows: list[tuple[bool, float, float]]) -> Parts:
    """The definitions, by rows of the same score."""
    overall = mean([(y, w) for y, _, w in rows])
    here = {s: [(float(y), w) for y, t, w in rows if t == s] for _, s, _ in rows}
    rates = {s: mean(group) for s, group in here.items()}
    return {
        "brier_score": mean([((s - y) ** 2, w) for y, s, w in rows]),
        "reliability": mean([((s - rates[s]) ** 2, w) for _, s, w in rows]),
        "resolution": mean([((rates[s] - overall) ** 2, w) for _, s, w in rows]),
        "uncertainty": mean([((overall - y) ** 2, w) for y, _, w in rows]),
    }


def corp(frame: pl.DataFrame) -> Parts:
    """The parts by isotonic regression: the score, it recalibrated, and the mean of the labels."""
    y, s, w = (frame[name].to_numpy().astype(float) for name in ("y", "s", "w"))
    calibrated = IsotonicRegression().fit(s, y, sample_weight=w).predict(s)
    losses = [
        np.average((forecast - y) ** 2, weights=w)
        for forecast in (s, calibrated, np.full_like(s, np.average(y, weights=w)))
    ]
    return {
        "miscalibration": losses[0] - losses[1],
        "discrimination": losses[2] - losses[1],
    }


def check(frame: pl.DataFrame) -> None:
    """Compare with the definitions, and add up the parts."""
    found = brier(frame)
    assert list(found) == FIELDS
    expected = murphy(frame.select("y", pl.col("s") + 0.0, "w").rows()) | corp(frame)
    assert found == pytest.approx(expected, abs=1e-12)
    both = (("reliability", "resolution"), ("miscalibration", "discrimination"))
    for off, gain in both:
        total = found[off] - found[gain] + found["uncertainty"]
        assert total == pytest.approx(found["brier_score"], abs=1e-12)
    assert min(found.values()) >= 0


def test_worked_values(seven: pl.DataFrame) -> None:
    expected = (0.27111, 0.21556, 0.19136, 0.24691, 0.10444, 0.08025)
    assert tuple(brier(seven).values()) == pytest.approx(expected, abs=5e-6)
    assert seven.select(BRIER).schema == {"brier_score": pl.Float64}


@given(rows=ROWS)
def test_parts_are_the_definitions(rows: list[Row]) -> None:
    check(frame_of(rows))


@pytest.mark.parametrize("digits", [0, 1, 2, 9])
@pytest.mark.parametrize("seed", range(3))
def test_parts_of_many_weighted_rows(seed: int, digits: int) -> None:
    frame = sample(seed, digits)
    check(frame)
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    expected = brier_score_loss(y, s, sample_weight=w)
    assert brier(frame)["brier_score"] == pytest.approx(expected, abs=1e-12)
    unweighted = frame.select(wroc.brier_score("y", "s")).item()
    assert unweighted == pytest.approx(brier_score_loss(y, s), abs=1e-12)


@given(rows=ROWS)
def test_classes_may_be_swapped(rows: list[Row]) -> None:
    frame = frame_of(rows)
    swapped = frame.with_columns(y=1 - pl.col("y"), s=1 - pl.col("s"))
    assert brier(swapped) == pytest.approx(brier(frame), abs=1e-12)


def test_perfect_wrong_constant_and_calibrated_scores() -> None:
    frame = sample(1)
    spread = brier(frame)["uncertainty"]
    perfect = brier(frame.with_columns(s=pl.col("y").cast(pl.Float64)))
    assert list(perfect.values()) == pytest.approx([0, 0, spread, spread, 0, spread], abs=1e-12)
    wrong = brier(frame.with_columns(s=1 - pl.col("y").cast(pl.Float64)))
    assert list(wrong.values()) == pytest.approx([1, 1, spread, spread, 1 - spread, 0], abs=1e-12)
    share = (pl.col("w") * pl.col("y")).sum() / pl.col("w").sum()
    constant = brier(frame.with_columns(s=share))
    assert list(constant.values()) == pytest.approx([spread, 0, 0, spread, 0, 0], abs=1e-12)
    y, s, w = (frame[name].to_numpy().astype(float) for name in ("y", "s", "w"))
    calibrated = IsotonicRegression().fit(s, y, sample_weight=w).predict(s)
    found = brier(frame.with_columns(s=calibrated))
    assert found["miscalibration"] == pytest.approx(0, abs=1e-12)
    assert found["discrimination"] == pytest.approx(brier(frame)["discrimination"], abs=1e-12)


def test_rounding_makes_no_part_of_calibrated_scores_negative() -> None:
    random = np.random.default_rng(0)
    columns = {"y": random.integers(0, 2, 2_000), "w": random.lognormal(size=2_000)}
    frame = pl.DataFrame({"g": np.repeat(np.arange(100), 20), "k": np.arange(2_000) % 2, **columns})
    rate = (pl.col("w") * pl.col("y")).sum() / pl.col("w").sum()
    scored = frame.with_columns(s=rate.over("g", "k"))
    table = wroc.calibration_summary(scored, "y", "s", weight="w", by="g")
    for part in table.select(FIELDS).iter_columns():
        assert part.min() >= 0  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Int64, pl.Float32, pl.Decimal(9, 2)])
def test_scores_0_and_1_of_any_type(dtype: Any) -> None:
    frame = sample(2, digits=0)
    found = brier(frame.with_columns(pl.col("s").cast(dtype)))
    assert found == pytest.approx(brier(frame), abs=1e-12)


def test_one_class_has_a_brier_score() -> None:
    frame = pl.DataFrame({"y": [1, 1], "s": [0.8, 0.5], "w": [3.0, 1.0]})
    for each in (frame, frame.with_columns(y=1 - pl.col("y"), s=1 - pl.col("s"))):
        loss = (3 * 0.2**2 + 0.5**2) / 4
        assert list(brier(each).values()) == pytest.approx([loss, loss, 0, 0, loss, 0], abs=1e-12)


def test_weights_that_are_lost_in_rounding() -> None:
    columns = {"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": [1e-200, 1e200, 1e-200, 1e200]}
    found = brier(pl.DataFrame(columns))
    assert found["miscalibration"] == found["brier_score"] == pytest.approx(0.325)
    assert found["discrimination"] == 0


@pytest.mark.parametrize(
    "frame",
    [
        frame_of([]),
        frame_of([(1, 0.5, 0), (0, 0.2, 0)]),
        frame_of([(1, 0.5, 1)]).with_columns(y=None),
        frame_of([(1, float("nan"), 1)]),
    ],
    ids=["no rows", "no weight", "no label", "no score"],
)
def test_nothing_has_no_brier_score(frame: pl.DataFrame) -> None:
    assert frame.lazy().select(BRIER).collect().item() is None
    table = wroc.calibration_summary(frame, "y", "s", weight="w").select(FIELDS)
    assert table.schema == dict.fromkeys(FIELDS, pl.Float64)
    assert table.row(0) == (None,) * 6


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        (-1e-5, "-0.00001"),
        (1 + 1e-5, "1.00001"),
        (7.0, "7.0"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
    ],
)
def test_score_must_be_a_probability(bad: float, shown: str) -> None:
    frame = pl.concat([sample(3), pl.DataFrame({"y": [True], "s": [bad], "w": [1e-3]})]).lazy()
    message = f"`score` must be a probability, from 0 to 1; found {shown} in column 's'$"
    grouped = frame.group_by(pl.int_range(pl.len()) % 3).agg(BRIER)
    for plan in (frame.select(BRIER), grouped):
        with pytest.raises(InvalidOperationError, match=message):
            plan.collect()


def test_integer_score_must_be_a_probability() -> None:
    frame = pl.LazyFrame({"y": [0, 1, 1], "s": [0, 1, 2], "w": [1, 1, 1]})
    with pytest.raises(
        InvalidOperationError, match="`score` must be a probability, from 0 to 1; found 2"
    ):
        frame.select(BRIER).collect()


@pytest.mark.parametrize("bad", [7.0, -1.0, float("inf"), float("-inf")])
def test_rows_that_are_not_there_may_have_any_score(bad: float) -> None:
    frame = sample(4)
    gone = pl.DataFrame(
        {
            "y": [True, False, None, True, False],
            "s": [bad, bad, bad, None, float("nan")],
            "w": [0.0, None, 1.0, 1.0, 1.0],
        }
    )
    for rows in (pl.concat([frame, gone]), pl.concat([gone, frame])):
        expected = frame.select(BRIER).item()
        assert rows.lazy().select(BRIER).collect().item() == expected


def test_groups_are_as_if_alone() -> None:
    frame = pl.concat(sample(seed, rows=50 + seed).with_columns(g=seed) for seed in range(9))
    # A group of positives, one of rows that weigh nothing, and one that is missing.
    frame = frame.with_columns(
        y=pl.col("y") | (pl.col("g") == 6),
        w=pl.when(pl.col("g") != 7).then("w").otherwise(0.0),
        s=pl.when(pl.col("g") != 8).then("s"),
    )
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1).lazy()
    found = shuffled.group_by("g").agg(BRIER).sort("g").collect()
    table = wroc.calibration_summary(shuffled, "y", "s", weight="w", by="g").select("g", *FIELDS)
    # The table has no row of a group that weighs nothing.
    weighing = found.filter(pl.col("g") != 7)
    assert_frame_equal(table.select("g", "brier_score").collect(), weighing, abs_tol=1e-12)
    for group, *values in table.collect().rows():
        rows = frame.filter(pl.col("g") == group)
        expected = dict.fromkeys(FIELDS, None) if group > 6 else murphy(rows["y", "s", "w"].rows())
        if group < 7:
            expected |= corp(rows)
        assert values == pytest.approx([expected[name] for name in FIELDS], abs=1e-12)
    windows = shuffled.select("g", BRIER.over("g")).unique().sort("g").collect()
    assert_frame_equal(windows, found, abs_tol=1e-12)
