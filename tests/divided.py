"""`summary` and `audit` that are computed in ranges of scores, however few rows there are."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import polars as pl
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc

# Scores in bins of their own, and so close together that many are in one bin.
SCORES = st.one_of(
    st.none(),
    st.floats(-3, 3),
    st.tuples(st.integers(-2, 2), st.integers(-9, 9)).map(lambda n: n[0] + n[1] * 1e-5),
)
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 3.0, None])

# About what a row of a range takes.
_BYTES_IN_SUMMARY, _BYTES_IN_AUDIT = 200, 250


def memory_of(rows: int, bytes_of_row: int = _BYTES_IN_SUMMARY) -> str:
    """The memory of a range of so many rows."""
    return f"{rows * bytes_of_row}B"


def summary_in_ranges(
    frame: Any, label: Any, score: Any, *, rows_per_range: int = 100, **options: Any
) -> pl.DataFrame:
    """Summarise in ranges of about so many rows."""
    with wroc.Config(memory=memory_of(rows_per_range)), _any_rows_are_many():
        table: pl.LazyFrame = wroc.summary(lazy(frame), label, score, **options)
        return table.collect()


def audit_in_ranges(
    frame: Any, label: Any, score: Any, *, rows_per_range: int = 100, **options: Any
) -> wroc.Audit:
    """Audit in ranges of about so many rows."""
    memory = memory_of(rows_per_range, _BYTES_IN_AUDIT)
    with wroc.Config(memory=memory), _any_rows_are_many():
        return wroc.audit(lazy(frame), label, score, **options)


def _any_rows_are_many() -> Any:
    return patch("polars_wroc.config.Division.is_needed", return_value=True)


def assert_same(table: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Compare tables but for rounding."""
    assert_frame_equal(table, expected, check_exact=False, rel_tol=1e-12, abs_tol=1e-14)


def thirds(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Return three parts of rows that are far from each other."""
    return [frame[start::3] for start in range(3)]


def lazy(frame: Any) -> Any:
    """Make a table or each of a list lazy, since rows in memory are never divided."""
    if isinstance(frame, list):
        return [lazy(part) for part in frame]
    return frame.lazy() if isinstance(frame, pl.DataFrame | pl.LazyFrame) else pl.LazyFrame(frame)
