"""Thresholds are compared in the type of the score, so that a file's format changes no decision."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from divided import audit_in_ranges
from polars.testing import assert_frame_equal

import polars_wroc as wroc

# None of these numbers is a float of 32 bits, and many scores are equal to one of them.
THRESHOLD, OTHER = 0.7, 0.3
ROWS = 600
GROUPS: dict[str, Any] = {"attributes": "g", "threshold": THRESHOLD}
SELECTED: dict[str, Any] = {**GROUPS, "favorable": "selected"}


def expression(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("g").agg(wroc.confusion_matrix("y", "s", threshold=THRESHOLD)).sort("g")


def count(frame: pl.DataFrame, bins: int | None = None) -> Any:
    """Return the tables of the counts of two parts, in a file between them."""
    file = io.BytesIO()
    parts = [
        wroc.score_counts(part, "y", "s", by=["g", "h"], bins=bins)
        for part in (frame[: ROWS // 2], frame[ROWS // 2 :])
    ]
    wroc.merge_counts(parts).write_parquet(file)
    file.seek(0)
    return wroc.from_counts(pl.read_parquet(file))


TABLES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "threshold_metrics": lambda f: wroc.threshold_metrics(
        f, "y", "s", threshold=[OTHER, THRESHOLD], by="g"
    ),
    "threshold_metrics by a survey": lambda f: wroc.threshold_metrics(
        f, "y", "s", threshold=[OTHER, THRESHOLD], by="g", design="c"
    ),
    "group_gaps": lambda f: wroc.group_gaps(f, "y", "s", **GROUPS),
    "fairness": lambda f: wroc.fairness(f, "y", "s", **GROUPS),
    "impact_ratios": lambda f: wroc.impact_ratios(f, "s", **SELECTED),
    "impact_ratios by a survey": lambda f: wroc.impact_ratios(f, "s", design="c", **SELECTED),
    "audit": lambda f: wroc.audit(f, "y", "s", **SELECTED).table,
    "audit's segments": lambda f: wroc.audit(f, "y", "s", **SELECTED).segments,
    "release_check": lambda f: wroc.release_check(
        f, "y", "s", "t", attributes="g", threshold={"old": THRESHOLD, "new": OTHER}, margin=0.05
    ),
    "worst_segments": lambda f: wroc.worst_segments(
        f, "y", "s", **SELECTED | {"attributes": ["g", "h"]}
    ),
    "trend": lambda f: wroc.trend(f, "y", "s", over="h", threshold=THRESHOLD),
    "audit in ranges": lambda f: (
        audit_in_ranges(f, "y", "s", rows_per_range=100, **SELECTED).segments
    ),
    "expected_metrics": lambda f: wroc.expected_metrics(
        f, "s", label="y", by="g", threshold=THRESHOLD
    ),
    "confusion_matrix": expression,
    "threshold_metrics of counts": lambda f: count(f).threshold_metrics(
        threshold=[OTHER, THRESHOLD], by="g"
    ),
    "decision_curve of counts": lambda f: count(f).decision_curve(thresholds=[OTHER, THRESHOLD]),
    "group_gaps of counts": lambda f: count(f).group_gaps(**GROUPS),
    "fairness of counts": lambda f: count(f).fairness(**GROUPS),
    "impact_ratios of counts": lambda f: count(f).impact_ratios(**SELECTED),
    "worst_segments of counts": lambda f: count(f).worst_segments(
        **SELECTED | {"attributes": ["g", "h"]}
    ),
    "trend of counts": lambda f: count(f).trend(over="h", threshold=THRESHOLD),
    "audit of counts": lambda f: count(f).audit(**SELECTED).segments,
    "threshold_metrics of narrow bins": lambda f: count(f, bins=4096).threshold_metrics(
        threshold=THRESHOLD
    ),
}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(2)
    label = random.random(ROWS) < 0.5
    return pl.DataFrame(
        {
            "y": label,
            "s": random.integers(0, 10, ROWS) / 10,
            "t": random.integers(0, 10, ROWS) / 10,
            "g": random.choice(["a", "b"], ROWS),
            "h": random.choice([1, 2], ROWS),
            "c": random.integers(0, 50, ROWS),
        }
    )


def read_both(people: pl.DataFrame, folder: Path, dtype: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the scores as Parquet keeps them, and as CSV, which has no types, does."""
    narrow = people.with_columns(pl.col("s", "t").cast(dtype))
    narrow.write_parquet(folder / "people.parquet")
    narrow.with_columns(pl.col("s", "t").cast(pl.Float64).round(3)).write_csv(folder / "people.csv")
    parquet, csv = (pl.read_parquet(folder / "people.parquet"), pl.read_csv(folder / "people.csv"))
    assert parquet.schema["s"] == dtype
    assert csv.schema["s"] == pl.Float64
    assert (parquet["s"].cast(pl.Float64) < THRESHOLD).sum() != (csv["s"] < THRESHOLD).sum()
    return parquet, csv


@pytest.mark.parametrize("name", TABLES)
def test_scores_of_32_bits_are_selected_as_those_of_64(
    name: str, people: pl.DataFrame, tmp_path: Path
) -> None:
    parquet, csv = (TABLES[name](each) for each in read_both(people, tmp_path, pl.Float32))
    # Counts and texts are the same; scores themselves differ in their last digits.
    assert_frame_equal(parquet, csv, abs_tol=1e-6, check_dtypes=False)


def test_a_score_equal_to_the_threshold_is_selected(people: pl.DataFrame, tmp_path: Path) -> None:
    parquet, csv = read_both(people, tmp_path, pl.Float32)
    number = (people["s"] >= THRESHOLD).sum()
    for frame in (parquet, csv):
        table = wroc.threshold_metrics(frame, "y", "s", threshold=THRESHOLD)
        assert table.select(pl.col("tp") + pl.col("fp")).item() == number
        # It is reported as it was given.
        assert table["threshold"].item() == THRESHOLD
        (lazy,) = pl.collect_all(
            [wroc.threshold_metrics(frame.lazy(), "y", "s", threshold=THRESHOLD)]
        )
        assert_frame_equal(lazy, table)


def test_models_of_two_types_have_the_threshold_of_each(people: pl.DataFrame) -> None:
    both = people.with_columns(n=pl.col("s").cast(pl.Float32))
    table = wroc.threshold_metrics(both, "y", ["s", "n"], threshold=THRESHOLD)
    one, other = (table.filter(model=name).drop("model") for name in ("s", "n"))
    assert_frame_equal(one, other)
    audit = wroc.audit(both, "y", ["s", "n"], **SELECTED).segments
    selected = [
        audit.filter(model=name).select("segment", "tp", "fp", "n_selected") for name in "sn"
    ]
    assert_frame_equal(*selected)


def test_counts_of_32_bits_select_the_same_rows_as_the_rows() -> None:
    frame = pl.DataFrame({"y": [1, 0] * 30, "s": pl.Series([0.08, 0.01] * 30, dtype=pl.Float32)})
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s"))
    expected = wroc.expected_metrics(frame, "s", label="y", threshold=0.08).filter(metric="tpr")
    assert counts.threshold_metrics(threshold=0.08)["tpr"].item() == 1.0
    assert wroc.threshold_metrics(frame, "y", "s", threshold=0.08)["tpr"].item() == 1.0
    assert expected["value"].item() == 1.0


@pytest.mark.parametrize("threshold", [1e300, -1e300, float("inf"), float("-inf")])
def test_a_threshold_beyond_the_type_selects_all_or_none(
    threshold: float, people: pl.DataFrame
) -> None:
    narrow = people.with_columns(pl.col("s").cast(pl.Float32))
    table = wroc.threshold_metrics(narrow, "y", "s", threshold=threshold)
    assert table.select(pl.col("tp") + pl.col("fp")).item() == (ROWS if threshold < 0 else 0)
