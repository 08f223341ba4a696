"""Scores of several types beside each other: none is rounded into ties without a word."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pytest
from calls import OF_ONE_SCORE, TABLES, Call
from conftest import INVALID_VALUES
from divided import summary_in_ranges
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

# The first whole number that no float is.
BIG = 2**53 + 1
TOO_LARGE = (
    r"^`score` must hold whole numbers up to 2\*\*53; found 9007199254740995 in column 'i': "
    r"rank it, as in pl\.col\(\.\.\.\)\.rank\('dense'\)$"
)


def rows(offset: int, dtype: pl.DataType) -> pl.DataFrame:
    """Whole numbers from an offset on beside fractions, with some ties."""
    labels = [0, 1, 0, 1, 1, 0, 1, 0]
    steps = [0, 1, 2, 3, 1, 0, 3, 3]
    fractions = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    whole = pl.Series([offset + step for step in steps], dtype=dtype)
    groups = ["a", "b", "b", "a"] * 2
    return pl.DataFrame({"y": labels, "i": whole, "f": fractions, "g": groups})


WIDE = [pl.Int64(), pl.UInt64(), pl.Int128()]


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_whole_numbers_that_floats_round_raise(dtype: pl.DataType) -> None:
    plan = wroc.summary(rows(BIG - 1, dtype).lazy(), "y", ["i", "f"])
    with pytest.raises(ValueError, match=r"`score` must hold whole numbers up to 2\*\*53; found"):
        plan.collect()
    with pytest.raises(ValueError, match=TOO_LARGE):
        wroc.summary(rows(BIG - 1, dtype), "y", "i")


CALLS = TABLES | OF_ONE_SCORE
STACKING = {name: call for name, call in TABLES.items() if name != "summary"}


@pytest.mark.parametrize(
    "call", sweep(STACKING.values(), fast=list(STACKING.values())[::3]), ids=list(STACKING)
)
def test_no_table_of_several_scores_rounds_them(call: Call) -> None:
    frame = rows(BIG - 1, pl.Int64())
    with pytest.raises(INVALID_VALUES, match=r"`score` must (not mix types|hold whole numbers)"):
        call(frame, "y", ["i", "f"], "g")


@pytest.mark.parametrize("dtype", sweep([*WIDE, pl.Int8(), pl.UInt16()], fast=3), ids=str)
def test_whole_numbers_that_floats_hold_stand_beside_floats(dtype: pl.DataType) -> None:
    frame = rows(5, dtype)
    both = wroc.summary(frame.lazy(), "y", ["i", "f"]).collect()
    for model, alone in zip("if", both.partition_by("model", maintain_order=True), strict=True):
        assert_frame_equal(alone.drop("model"), wroc.summary(frame, "y", model))
    top = rows(2**53 - 3, dtype) if dtype in WIDE else frame
    assert wroc.summary(top, "y", ["f", "i"]).height == 2


def test_compared_scores_may_have_several_types() -> None:
    frame = rows(BIG // 2, pl.Int64())
    aucs = [roc_auc_score(frame["y"], frame["i"]), roc_auc_score(frame["y"], frame["f"])]
    compared = wroc.compare(frame.lazy(), "y", ["i", "f"]).collect()
    assert compared.select("value", "reference_value").row(0) == pytest.approx(aucs, abs=1e-12)
    large = wroc.compare(rows(BIG - 1, pl.Int64()).lazy(), "y", ["i", "f"])
    with pytest.raises(ValueError, match=r"`score` must hold whole numbers up to 2\*\*53"):
        large.collect()


def test_parts_of_several_types_are_not_rounded() -> None:
    whole = rows(BIG - 1, pl.Int64())
    parts = [whole, whole.with_columns(i=pl.col("f"))]
    rule = (
        r"^`{}` must not mix types that round its values; the score in number 1 of type Int64 "
        r"is mixed with the score in number 2 of type Float64; found 900719925474099[35]$"
    )
    with pytest.raises(pl.exceptions.InvalidOperationError, match=rule.format("frame")):
        summary_in_ranges(parts, "y", "i")
    counts = [wroc.score_counts(part, "y", "i") for part in parts]
    with pytest.raises(pl.exceptions.InvalidOperationError, match=rule.format("counts")):
        wroc.merge_counts(counts)


def test_parts_of_several_types_add_up() -> None:
    small = rows(-4, pl.Int32())
    parts = [small, small.with_columns(i=pl.col("f"))]
    whole = pl.concat(parts, how="vertical_relaxed")
    expected = wroc.summary(whole, "y", "i")
    assert_frame_equal(summary_in_ranges(parts, "y", "i"), expected)
    counts = wroc.merge_counts([wroc.score_counts(part, "y", "i") for part in parts])
    assert_frame_equal(counts, wroc.score_counts(whole, "y", "i"))


DIGITS = [Decimal("0.12345678901234567890"), Decimal("0.12345678901234567891")]


def decimals(dtype: pl.DataType) -> pl.DataFrame:
    """Decimals of which some pairs differ in the last of 20 digits only."""
    scores = [*DIGITS, Decimal("0.1"), Decimal("0.3"), None, DIGITS[1]]
    return pl.DataFrame(
        {
            "y": [0, 1, 0, 1, 1, 0],
            "d": pl.Series(scores, dtype=dtype),
            "f": [0.5, 0.2, 0.3, 0.4, 0.1, 0.2],
            "g": ["a", "a", "b", "b", "a", "b"],
        }
    )


def test_counts_of_decimals_keep_every_digit() -> None:
    frame = decimals(pl.Decimal(38, 20)).lazy()
    # Of the positives one is above two of the negatives and tied with the third.
    auc = (2.5 + 3) / 6
    assert frame.select(wroc.roc_auc("y", "d")).collect().item() == auc
    counts = wroc.score_counts(frame, "y", "d").collect()
    assert counts["score"].to_list() == [Decimal("0.3"), *DIGITS[::-1], Decimal("0.1"), None]
    # A table compares scores as floats, so that those of the last digit are tied.
    tied = (2.5 + 2.5) / 6
    assert wroc.summary(frame, "y", "d").collect()["auc"].item() == tied
    again = wroc.from_counts(wroc.merge_counts([counts])).summary()
    assert again["auc"].item() == tied


def test_decimals_stand_beside_floats() -> None:
    frame = decimals(pl.Decimal(38, 20))
    both = wroc.summary(frame, "y", ["d", "f"])
    alone = [wroc.summary(frame, "y", name)["auc"].item() for name in "df"]
    assert both["auc"].to_list() == alone


@pytest.mark.parametrize("dtype", sweep([pl.Decimal(38, 20), pl.Decimal(9, 4)]), ids=str)
@pytest.mark.parametrize(
    "call", sweep(CALLS.values(), fast=list(CALLS.values())[::3]), ids=list(CALLS)
)
def test_decimals_are_like_the_same_floats(call: Call, dtype: pl.DataType) -> None:
    frame = rows(3, pl.Int64()).with_columns(d=pl.col("f").cast(dtype))
    by_decimal, by_float = (call(frame, "y", name, "g") for name in ("d", "f"))
    by_float = by_float.rename({"f": "d"}, strict=False)
    if "model" in by_float.columns:
        by_float = by_float.with_columns(pl.col("model").replace("f", "d"))
    assert_frame_equal(by_decimal, by_float, check_dtypes=False)


CELLS = ["tp", "fp", "fn", "tn"]


def cells(frame: pl.DataFrame, reaches: pl.Series) -> tuple[int, ...]:
    positive = frame["y"] == 1
    counts = (positive & reaches, ~positive & reaches, positive & ~reaches, ~positive & ~reaches)
    return tuple(int(each.sum()) for each in counts)


@pytest.mark.parametrize("threshold", [BIG - 1.0, BIG + 1.0, BIG + 3.0, 1e30, -1e30, float("inf")])
@pytest.mark.parametrize("dtype", sweep(WIDE, fast=2), ids=str)
def test_whole_numbers_reach_thresholds_exactly(threshold: float, dtype: pl.DataType) -> None:
    frame = rows(BIG - 1, dtype)
    reaches = pl.Series([score >= threshold for score in frame["i"].to_list()])
    expected = cells(frame, reaches)
    for given in (threshold, pl.lit(threshold)):
        matrix = wroc.confusion_matrix("y", "i", threshold=given)
        found = frame.lazy().select(matrix).unnest("confusion_matrix").collect()
        assert found.select(CELLS).row(0) == expected


def test_a_threshold_that_no_float_is_raises() -> None:
    frame = rows(BIG - 1, pl.Int64())
    found = "must be a number that a float holds exactly; found 9007199254740993$"
    with pytest.raises(ValueError, match=f"^`threshold` {found}"):
        wroc.confusion_matrix("y", "i", threshold=BIG)
    with pytest.raises(ValueError, match=f"^`threshold` {found}"):
        wroc.threshold_metrics(frame, "y", "i", threshold=[0, BIG])
    with pytest.raises(ValueError, match=r"^`threshold` must be a number that a float holds"):
        wide_gaps(frame, "y", "i", by="g", threshold=10**400)


@pytest.mark.parametrize("threshold", [[1.0], wroc.rules.youden()], ids=["given", "rule"])
def test_whole_numbers_that_floats_round_have_no_thresholds_in_tables(threshold: Any) -> None:
    frame = rows(BIG - 1, pl.Int64()).lazy()
    found = (
        r"^`score` must hold whole numbers up to 2\*\*53; found 90071992547409\d\d in column 'i'"
    )
    with pytest.raises(ValueError, match=found):
        wroc.threshold_metrics(frame, "y", "i", threshold=threshold).collect()


def test_a_chosen_threshold_is_the_score_itself() -> None:
    def choose(frame: pl.LazyFrame) -> pl.LazyFrame:
        matrix = wroc.confusion_matrix("y", "i", threshold=wroc.rules.youden())
        return frame.select(matrix).unnest("confusion_matrix")

    frame = rows(BIG - 2, pl.Int64()).lazy()
    # The best threshold is the second lowest score, which is even.
    found = choose(frame).collect()
    assert found["threshold"].item() == BIG - 1
    assert found.select("tp", "fp").row(0) == (4, 2)
    with pytest.raises(pl.exceptions.InvalidOperationError, match="must be a number that a float"):
        choose(frame.with_columns(pl.col("i") + 1)).collect()
    with pytest.raises(ValueError, match=TOO_LARGE):
        wroc.equalized_thresholds(rows(BIG - 1, pl.Int64()), "y", "i", by="g")


def test_whole_numbers_of_another_engine_keep_every_digit() -> None:
    arrow = rows(BIG - 1, pl.Int64()).to_arrow()
    relation = duckdb.from_arrow(arrow).select("y, CAST(i AS HUGEINT) AS i, f")
    counts = wroc.score_counts(relation, "y", "i")
    assert [int(score) - BIG for score in counts["score"]] == [2, 1, 0, -1]
    found = "^`score` must not mix types .*; column 'i' .* is mixed with column 'f' of type Float64"
    with pytest.raises(pl.exceptions.InvalidOperationError, match=found):
        wroc.score_counts(relation, "y", ["f", "i"])
