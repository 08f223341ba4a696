"""`summary` and `audit` that are computed in ranges of scores, however few rows there are."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import polars as pl

import polars_wroc as wroc
from polars_wroc import config
from polars_wroc.audits import in_ranges
from polars_wroc.audits.result import Audit
from polars_wroc.inputs.rows import polars_frame
from polars_wroc.metrics import summary


def memory_of(rows: int, bytes_of_row: int = summary.BYTES_IN_SCORE_RANGE) -> str:
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
) -> Audit:
    """Audit in ranges of about so many rows."""
    memory = memory_of(rows_per_range, in_ranges.BYTES_IN_RANGE)
    with wroc.Config(memory=memory), _any_rows_are_many():
        return wroc.audit(lazy(frame), label, score, **options)


def _any_rows_are_many() -> Any:
    return patch.object(config.Division, "exceeded", return_value=True)


def lazy(frame: Any) -> Any:
    """Make a table or each of a list lazy, since rows in memory are never divided."""
    return [lazy(part) for part in frame] if isinstance(frame, list) else polars_frame(frame).lazy()
