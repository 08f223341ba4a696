"""What bins hide: no gap, test or verdict may claim more than is certain of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import gaps_by_group, gaps_of, wide_gaps

import polars_wroc as wroc

ROUNDING = 1e-12


@pytest.fixture(scope="module")
def crowded() -> pl.DataFrame:
    """A group with nearly all scores in one of few bins, which orders it well, and another."""
    random, rows = np.random.default_rng(0), 1000
    label = random.integers(0, 2, rows)
    close = 0.26 + 0.05 * label + random.random(rows) * 0.1
    score = np.where(random.random(rows) < 0.1, random.random(rows), close)
    logit = random.normal(size=rows)
    other = logit + random.normal(size=rows) > 0
    return pl.DataFrame(
        {
            "g": ["a"] * rows + ["b"] * rows,
            "y": np.concatenate([label, other.astype(int)]),
            "s": np.concatenate([score, 1 / (1 + np.exp(-logit))]),
        }
    )


@pytest.mark.parametrize("reference", sweep(["rest", "overall", "best", "a"], fast=2))
@pytest.mark.parametrize("bins", sweep([16, 256, 4096]))
def test_intervals_of_gaps_hold_those_of_the_rows(
    crowded: pl.DataFrame, reference: str, bins: int
) -> None:
    counts = wroc.from_counts(wroc.score_counts(crowded, "y", "s", by="g", bins=bins))
    table = counts.group_gaps(attributes="g", reference=reference)
    binned = gaps_by_group(table, crowded, "g", ["auc"])
    exact = wide_gaps(crowded, "y", "s", by="g", reference=reference)
    both = binned.join(exact, on="g", suffix="_rows").drop_nulls(["auc_gap", "auc_gap_rows"])
    gap = pl.col("auc_gap_rows")
    assert both.filter(~gap.is_between("auc_gap_low", "auc_gap_high")).is_empty()
    # Where the sign is not certain nothing is tested; in many bins it is what it is for rows.
    tested = both.drop_nulls("auc_gap_p_value")
    assert tested.filter(gap.sign() != pl.col("auc_gap").sign()).is_empty()
    if bins == 16:
        assert tested.is_empty()
    if bins == 4096:
        assert not tested.is_empty()
        p_values = (tested["auc_gap_p_value"] - tested["auc_gap_p_value_rows"]).abs()
        assert (p_values < 0.01).all()


def test_bins_of_one_score_hide_nothing(crowded: pl.DataFrame) -> None:
    rows = crowded.with_columns(s=(pl.col("s") * 3).round() / 3)
    counts = wroc.from_counts(wroc.score_counts(rows, "y", "s", by="g", bins=16))
    exact = wide_gaps(rows, "y", "s", by="g")
    found = gaps_by_group(counts.group_gaps(attributes="g"), rows, "g", ["auc"])
    assert_frame_equal(found, exact, rel_tol=1e-9)


def test_limits_are_wider_by_half_of_the_range_of_either_auc() -> None:
    random = np.random.default_rng(6)
    y, g = random.integers(0, 2, 600), random.choice(["a", "b"], 600)
    low = np.array([0.26, 0.51, 0.76])[np.clip(random.integers(0, 3, 600) + y - 1, 0, 2)]
    frame = pl.DataFrame({"g": g, "y": y, "s": low + 0.01 * random.integers(0, 2, 600)})
    # Three bins with two scores each, or with one.
    binned, tied = (
        wroc.from_counts(wroc.score_counts(each, "y", "s", by="g", bins=16))
        for each in (frame, frame.with_columns(s=low))
    )
    aucs = binned.summary(by="g")
    hidden = ((aucs["auc_max"] - aucs["auc_min"]) / 2).sum()
    assert hidden > 0.01
    options: dict[str, Any] = {"attributes": "g", "metrics": ["auc"]}
    found, exact = (each.group_gaps(**options) for each in (binned, tied))
    for end, sign in (("gap_low", -1), ("gap_high", 1)):
        expected = exact[end] + sign * hidden
        assert found[end].to_list() == pytest.approx(expected.to_list())


def test_no_limit_is_beyond_all_differences_of_aucs() -> None:
    # One group ranks all rows well, and the other none; of two rows a bin hides the order.
    pairs = [(0.1, 0.9)] * 3 + [(0.52, 0.521)]
    rows = [("a", y, pair[y]) for pair in pairs for y in (0, 1)]
    rows += [("b", y, pair[1 - y]) for pair in pairs for y in (0, 1)]
    frame = pl.DataFrame(rows, ["g", "y", "s"], orient="row")
    gaps = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g", bins=16)).group_gaps(
        attributes="g"
    )
    assert gaps["gap"].to_list() == [0.9375, -0.9375]
    assert (gaps["gap_high"][0], gaps["gap_low"][1]) == (1, -1)


def test_groups_that_are_put_together_may_each_have_another_score_in_a_bin() -> None:
    # Scores of a bin differ between u and v alone: the AUC of each g may be any from 0 to 1.
    rows = [
        (g, *row) for g in "ab" for row in [("u", 1, 0.51), ("v", 0, 0.52), ("v", 1, 0.52)] * 40
    ]
    frame = pl.DataFrame(rows, ["g", "h", "y", "s"], orient="row")
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", by=["g", "h"], bins=16))
    table = counts.audit(attributes=["g", "h"]).table
    found = table.filter(pl.col("metric") == "auc", pl.col("attribute") == "g")
    expected = counts.group_gaps(attributes="g")
    limits = ["segment", "gap", "gap_low", "gap_high"]
    assert_frame_equal(found.select(limits), expected.select(limits), check_row_order=False)
    assert found["gap_low"].max() == -1
    assert found["gap_high"].min() == 1


def test_periods_that_are_put_together_may_each_have_another_score_in_a_bin() -> None:
    frame = pl.DataFrame({"period": [1, 2] * 40, "y": [0, 0, 1, 1] * 20, "s": [0.51, 0.52] * 40})
    counts = wroc.score_counts(frame, "y", "s", by="period", bins=16)
    trend = wroc.from_counts(counts).trend(over="period")
    ((value, low, high),) = (
        trend.filter(metric="shift_auc", period=2).select("value", "gap_low", "gap_high").rows()
    )
    # All rows are in one bin, and all scores of the rows have risen.
    assert value == 0.5
    assert low < -0.5
    assert high > 0.5


def audit_in_bins(frame: pl.DataFrame, bins: int) -> wroc.Audit:
    counts = wroc.score_counts(frame, "y", "s", by="g", bins=bins)
    audit: wroc.Audit = wroc.from_counts(counts).audit(attributes="g")
    return audit


def test_a_verdict_from_few_bins_finds_nothing_that_is_not_there(crowded: pl.DataFrame) -> None:
    for bins in (16, 256):
        gaps = gaps_of(audit_in_bins(crowded, bins))
        assert not (gaps["auc_gap_p_adjusted"] < 0.05).any()


def test_bins_make_no_score_look_inverted() -> None:
    frame = pl.DataFrame(
        {
            "y": [1] * 1000 + [0] * 1000,
            "s": [0.45] * 900 + [0.30] * 100 + [0.28] * 850 + [0.6] * 150,
        }
    )
    turned = frame.with_columns(-pl.col("s"))

    def inverted(rows: pl.DataFrame, bins: int) -> pl.Series:
        return wroc.summary(rows, "y", "s", bins=bins, diagnostics=True)["inverted"]

    assert inverted(frame, bins=16).to_list() == [None]
    assert inverted(frame, bins=4096).to_list() == [False]
    assert inverted(turned, bins=4096).to_list() == [True]


@pytest.mark.parametrize("weight", [1e-170, 1.0, 1e150])
def test_a_tolerance_is_kept_for_any_weights(weight: float) -> None:
    random = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"y": random.integers(0, 2, 2000), "s": random.uniform(0.3, 0.301, 2000)}
    ).with_columns(w=pl.lit(weight))
    found = wroc.summary(frame, "y", "s", weight="w", tolerance=0.001).row(0, named=True)
    assert found["auc_max"] - found["auc_min"] <= 0.001 + ROUNDING


def test_stacked_tables_of_different_bins_are_taken_for_the_widest() -> None:
    first = pl.DataFrame({"y": [1] * 10, "s": [0.26] * 5 + [0.49] * 5})
    second = pl.DataFrame({"y": [0] * 10, "s": [0.3] * 5 + [0.31] * 5})
    states = [
        wroc.score_counts(first, "y", "s", bins=16),
        wroc.score_counts(second, "y", "s", bins=4096),
    ]
    stacked, merged = pl.concat(states), wroc.merge_counts(states)
    found, expected = (wroc.from_counts(each).summary() for each in (stacked, merged))
    assert_frame_equal(found, expected)
    assert found["auc_min"].item() <= 0.5 <= found["auc_max"].item()


def test_weights_whose_powers_are_no_numbers_are_counted() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [0.9, 0.8, 0.7, 0.1, 0.75]})
    frame = frame.with_columns(w=pl.lit(1e120))
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", weight="w"))
    assert_frame_equal(counts.summary(), wroc.summary(frame, "y", "s", weight="w"))


def test_weights_that_add_up_to_the_rows_are_weights() -> None:
    frame = pl.DataFrame(
        {
            "y": [1, 1, 0, 0] * 2,
            "s": [0.9, 0.2, 0.3, 0.1] * 2,
            "w": [0.5, 1.5, 0.5, 1.5] * 2,
            "g": list("aaaabbbb"),
        }
    )
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", weight="w", by="g", bins=64))
    settings = counts.audit(attributes="g").settings
    assert settings.weight == "weight"
    assert settings.bins == 64


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bins": pl.lit(0)}, "the number of bins in column 'bins', .*; found 0"),
        (
            {"score_low": pl.col("score_high"), "score_high": pl.col("score_low")},
            "the lowest of a bin first; found 0.45 to 0.3",
        ),
        ({"score_low": pl.lit(float("nan"))}, "must hold scores that are numbers"),
        ({"score_low": pl.lit(None, pl.Float64)}, "must hold scores that are numbers"),
        ({"n_pos": pl.col("n_pos") * 1.3}, "must hold whole numbers, zero or more in .*'n_pos'"),
    ],
)
def test_counts_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    frame = pl.DataFrame({"y": [1, 0, 1], "s": [0.3, 0.4, 0.45]})
    counts = wroc.score_counts(frame, "y", "s", bins=16)
    counts = counts.with_columns(score_high=pl.lit(0.45), score_low=pl.lit(0.3))
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        wroc.from_counts(counts.with_columns(**changed)).summary()


def test_a_calibration_needs_scores() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1], "s": [0.3, 0.4, 0.45]})
    for function in ("calibration_curve", "calibration_summary"):
        counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", bins=16))
        with pytest.raises(ValueError, match=r"^`counts` must be by score for a calibration"):
            getattr(counts, function)()
    by_score = wroc.from_counts(wroc.score_counts(frame, "y", "s"))
    found = by_score.calibration_curve(bins=2)
    assert_frame_equal(found, wroc.calibration_curve(frame, "y", "s", bins=2))
