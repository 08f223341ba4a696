"""A weight that counts rows gives what as many rows give, in every table."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from calls import COMPARISONS, TABLES
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

UNTYPED: Any = wroc
# Others are among the queries of test_contracts.py.
NO_QUERIES = ("audit", "counts", "summary_in_ranges")
# Quantiles of few rows are where the sums of rows in another order put them.
EQUAL: dict[str, Any] = {"rel_tol": 1e-8, "abs_tol": 1e-10}


def some_rows(rows: int = 240) -> pl.DataFrame:
    random = np.random.default_rng(3)
    y = random.random(rows) < 0.4
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "y": y,
            "s": (1 / (1 + np.exp(-random.normal(size=rows) - y))).round(2),
            "t": random.random(rows).round(2),
            "n": random.integers(0, 5, rows),
        }
    ).with_columns(pl.when(pl.int_range(rows) % 31 != 0).then("s"))


def repeated(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.exclude("n").repeat_by("n").explode(empty_as_null=False))


@pytest.mark.parametrize("name", sweep([n for n in TABLES if n.startswith(NO_QUERIES)], fast=3))
def test_frequencies_are_repeated_rows(name: str) -> None:
    frame = some_rows()
    found = TABLES[name](frame, "y", "s", "g", weight=wroc.frequency("n"))
    assert_frame_equal(found, TABLES[name](repeated(frame), "y", "s", "g"), **EQUAL)


@pytest.mark.parametrize("name", COMPARISONS)
def test_scores_are_compared_on_as_many_rows(name: str) -> None:
    frame = some_rows()
    found = COMPARISONS[name](frame, "y", ["s", "t"], "g", weight=wroc.frequency("n"))
    assert_frame_equal(found, COMPARISONS[name](repeated(frame), "y", ["s", "t"], "g"), **EQUAL)


def test_another_engine_counts_them_too() -> None:
    frame = some_rows().with_columns(n=pl.when(pl.int_range(pl.len()) % 7 != 0).then("n"))
    options: dict[str, Any] = {"weight": wroc.frequency("n"), "by": "g"}
    expected = wroc.score_counts(frame, "y", "s", **options)
    with duckdb.connect() as connection:
        table = connection.from_arrow(frame.to_arrow())
        assert_frame_equal(wroc.score_counts(table, "y", "s", **options), expected)
        half = connection.from_arrow(frame.with_columns(pl.col("n") / 2).to_arrow())
        with pytest.raises(pl.exceptions.PolarsError, match="`weight` must be whole numbers of"):
            wroc.score_counts(half, "y", "s", **options)


@pytest.mark.parametrize("bad", [0.5, -1.0, float("inf"), float("nan"), 2.0**60])
def test_what_is_no_number_of_rows_is_refused(bad: float) -> None:
    frame = some_rows().with_columns(
        n=pl.when(pl.int_range(pl.len()) == 5).then(bad).otherwise(1.0)
    )
    with pytest.raises(ValueError, match="`weight` must be whole numbers of rows"):
        wroc.summary(frame, "y", "s", weight=wroc.frequency("n"))


@pytest.mark.parametrize(
    "call",
    [
        lambda f, **o: wroc.bootstrap(f, "y", "s", metrics="ks", resamples=3, **o),
        lambda f, **o: wroc.bootstrap(f, "y", "s", metrics="ks", resamples=3, **o, replicates=True),
        lambda f, **o: wroc.abroca_test(f, "y", "s", by="g", permutations=3, **o),
        lambda f, **o: wroc.threshold_metrics(
            f, "y", "s", threshold=wroc.rules.youden(), per_group=True, honest="bootstrap", **o
        ),
    ],
    ids=["bootstrap", "replicates", "abroca_test", "honest threshold_metrics"],
)
def test_rows_that_are_drawn_must_be_single(call: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^`weight` must not be a frequency .*; found frequency\(n\)$"
    ):
        call(some_rows(), weight=wroc.frequency("n"))


def test_units_of_a_design_count_not_rows() -> None:
    frame = some_rows().with_columns(unit=pl.int_range(pl.len()) // 5)
    for design in ("unit", wroc.Survey("unit", strata="g")):
        found, expected = (
            wroc.summary(frame, "y", "s", weight=weight, design=design)
            for weight in (wroc.frequency("n"), "n")
        )
        assert_frame_equal(found, expected)


def test_a_frequency_is_of_a_column() -> None:
    with pytest.raises(TypeError, match="`weight` must be a column name or a Polars expression"):
        wroc.summary(some_rows(), "y", "s", weight=UNTYPED.frequency(3))
