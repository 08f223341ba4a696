"""Scores, labels and groups of every kind: tables give what expressions of Polars give."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

ROWS = 400


def make_people() -> pl.DataFrame:
    """Rows with ties, weights of 0, missing values and groups that are null or of one class."""
    random = np.random.default_rng(1)
    group = random.choice(np.array(["a", "b", "c", "d", None]), ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    positive = (random.random(ROWS) < 0.4) | (group == "d")
    frame = pl.DataFrame(
        {
            "g": group.tolist(),
            "h": random.integers(0, 3, ROWS),
            "y": positive,
            "s": (random.normal(size=ROWS) + positive).round(1),
            "w": random.choice([0.0, 0.5, 1.0, 2.5], ROWS, p=[0.05, 0.35, 0.3, 0.3]),
        }
    )
    missing = pl.Series(random.random(ROWS) < 0.05)
    return frame.with_columns(s=pl.when(~missing).then("s"))


PEOPLE = make_people()
SCORE, NUMBER = pl.col("s"), pl.int_range(pl.len())
SCORES: dict[str, pl.Expr] = {
    "as they are": SCORE,
    "all distinct": SCORE + NUMBER * 1e-6,
    "all equal": SCORE * 0,
    "zeros of both signs": pl.when(NUMBER % 2 == 0).then(SCORE * 0).otherwise(-0.0),
    "Float32": SCORE.cast(pl.Float32),
    "NaN and infinities": pl.when(SCORE > 1.5)
    .then(float("inf"))
    .when(SCORE < -1)
    .then(float("-inf"))
    .when(SCORE == 0)
    .then(float("nan"))
    .otherwise(SCORE),
    "integers": (SCORE * 10).cast(pl.Int16),
    "unsigned integers": (SCORE * 10 + 100).cast(pl.UInt32),
    "decimals": (SCORE * 10).cast(pl.Decimal(30, 2)),
    "all missing": pl.lit(None, pl.Float64),
}
LABELS: dict[str, pl.Expr] = {
    "Boolean": pl.col("y"),
    "0 and 1": pl.col("y").cast(pl.Int8),
    "-1 and 1": pl.col("y") * 2 - 1,
    "floats": pl.col("y").cast(pl.Float64),
}
GROUPS: dict[str, pl.Expr] = {
    "Boolean": pl.col("h") == 1,
    "float": pl.when(pl.col("h") == 1).then(float("nan")).otherwise(pl.col("h") / 7),
    "wide integers": pl.col("h") * 2**60,
    "all of 8 bits": (NUMBER % 256 - 128).cast(pl.Int8),
    "unsigned, large": (2**64 - 3 + pl.col("h").cast(pl.UInt64)).cast(pl.UInt64),
    "integers and null": pl.when(pl.col("h") > 0).then(pl.col("h").cast(pl.Int8) + 125),
    "integers of 128 bits": pl.col("h").cast(pl.Int128) * 2**100,
    "all null": pl.lit(None, pl.Int32),
    "one": pl.lit(7),
    "date": pl.date(2020, 1, 1) + pl.duration(days=pl.col("h")),
    "time": pl.datetime(2020, 1, 1) + pl.duration(microseconds=pl.col("h")),
    "Enum": pl.col("g").cast(pl.Enum(["d", "c", "b", "a", "none"])),
    "Categorical": pl.col("g").cast(pl.Categorical),
    "binary": pl.col("g").cast(pl.Binary),
    "null text": pl.lit(None, pl.String),
    "many": NUMBER // 3,
}
WEIGHTS: dict[str, Any] = {
    "no weights": None,
    "weights": "w",
    "frequencies": wroc.frequency(pl.col("w").ceil()),
}


def check_summary(frame: pl.DataFrame, by: list[Any] | None, weight: Any = "w") -> pl.DataFrame:
    """Return a summary, compared with expressions of its metrics."""
    table = wroc.summary(frame, "y", "s", weight=weight, by=by)
    lazy = wroc.summary(frame.lazy(), "y", "s", weight=weight, by=by).collect()
    assert_frame_equal(lazy, table, check_exact=True)
    metrics = {
        "auc": wroc.roc_auc("y", "s", weight=weight),
        "average_precision": wroc.average_precision("y", "s", weight=weight),
        "ks": wroc.ks("y", "s", weight=weight),
    }
    # A table has no group all of whose rows weigh nothing.
    rows = frame if weight is None else frame.filter(pl.col("w") > 0)
    expected = rows.group_by(by).agg(**metrics) if by else rows.select(**metrics)
    keys = [name for name in expected.columns if name not in metrics]
    assert_frame_equal(
        table.select(expected.columns),
        expected.sort(keys) if keys else expected,
        rel_tol=1e-12,
        abs_tol=1e-12,
    )
    return table


@pytest.mark.parametrize("weight", sweep(WEIGHTS, fast=["weights"]))
@pytest.mark.parametrize("kind", SCORES)
def test_scores_of_every_kind(kind: str, weight: str) -> None:
    table = check_summary(PEOPLE.with_columns(s=SCORES[kind]), ["g"], WEIGHTS[weight])
    known = kind != "all missing"
    assert (table["n"].sum() > ROWS / 2) == known


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(kind: str) -> None:
    check_summary(PEOPLE.with_columns(y=LABELS[kind]), ["g"])


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_every_kind(kind: str) -> None:
    frame = PEOPLE.with_columns(k=GROUPS[kind])
    assert check_summary(frame, ["k"]).schema["k"] == frame.schema["k"]
    for by in (["k", "g"], ["g", "k"], [pl.lit(1).alias("one"), "k"]):
        check_summary(frame, by)


@pytest.mark.filterwarnings("ignore:each of the .* is a group")
@pytest.mark.parametrize("kind", sweep([name for name in GROUPS if name != "binary"], fast=1))
def test_gaps_of_groups_of_every_kind(kind: str) -> None:
    frame = PEOPLE.with_columns(k=GROUPS[kind])
    table = wroc.group_gaps(
        frame, "y", "s", attributes=["k", "g"], intersections="only", weight="w"
    )
    assert set(table["attribute"]) == {"k \N{MULTIPLICATION SIGN} g"}
    aucs = wroc.summary(frame, "y", "s", by=["k", "g"], weight="w")["auc"].drop_nulls()
    found = table.filter(metric="auc")["value"].drop_nulls()
    assert found.sort().to_list() == pytest.approx(aucs.sort().to_list())


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("by", [None, ["g"]])
def test_few_rows(rows: int, by: list[str] | None) -> None:
    check_summary(PEOPLE.head(rows), by)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": pl.lit(2)}, "`label` must be Boolean, hold 0 and 1 or -1 and 1"),
        ({"y": pl.col("h") - 1}, "`label` must hold 0 and 1 or -1 and 1"),
        ({"w": pl.lit(-1.0)}, "`weight` must be finite and zero or more"),
        ({"w": pl.lit(float("nan"))}, "`weight` must be finite and zero or more"),
    ],
)
def test_wrong_values_are_refused(change: dict[str, pl.Expr], message: str) -> None:
    frame = PEOPLE.with_columns(**change)
    with pytest.raises(ValueError, match=message):
        wroc.summary(frame, "y", "s", weight="w")
    plan = wroc.summary(frame.lazy(), "y", "s", weight="w")
    with pytest.raises(ValueError, match=message):
        plan.collect()
