"""Tables, and lists of tables that are parts of one: plans of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.config import Division, division
from polars_wroc.counts.count_table import with_same_keys
from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.frames import frames_alike, read_rows
from polars_wroc.inputs.rows import PlannedRows
from polars_wroc.queries import FrameT

Frames: TypeAlias = FrameT | list[FrameT]


def read_parts(frame: Any, *columns: Any, designed: bool, **options: Any) -> list[PlannedRows]:
    """Read the rows of a table, or of each table of a list, which must have the same groups.

    The other arguments are those of `read_rows`.
    """
    if not isinstance(frame, list):
        return [read_rows(frame, *columns, **options)]
    _require_parts(frame)
    if designed and len(frame) > 1:
        checks.reject("frame", "be one table with a `design`", f"a list of {len(frame)}")
    read = [read_rows(part, *columns, **options) for part in frame]
    parts = with_same_keys("frame", read)
    alike = frames_alike("frame", [part.frame for part in parts], SCORE)
    return [replace(part, frame=each) for part, each in zip(parts, alike, strict=True)]


def _require_parts(frame: list[Any]) -> None:
    if not frame:
        checks.reject_type("frame", "be a table, or a list of tables that are parts of one", [])


def together(parts: Sequence[PlannedRows]) -> PlannedRows:
    """Put the rows of all parts into one."""
    if len(parts) == 1:
        return parts[0]
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    return replace(parts[0], frame=frame)


def one_of(frame: Any) -> Any:
    """Return a table, or one of a list of tables: a LazyFrame if there is one."""
    if not isinstance(frame, list):
        return frame
    _require_parts(frame)
    return next((part for part in frame if isinstance(part, pl.LazyFrame)), frame[0])


def division_of(frame: object, default: str = "none") -> Division | None:
    """Return how a table or a list of tables is divided; None for rows in memory."""
    return division(default) if isinstance(one_of(frame), pl.LazyFrame) else None
