"""The tables of a call: columns to read, plans of their rows to count, and rows pooled in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.config import Division, division
from polars_wroc.counts.count_table import pool_in_bins, with_same_keys
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs.columns import SCORE, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import frames_alike, read_rows
from polars_wroc.inputs.rows import IntoColumns, PlannedRows
from polars_wroc.metrics.counted_parts import Part
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, align_keys, read_columns, read_counted

Frames: TypeAlias = FrameT | list[FrameT]


@dataclass(frozen=True)
class GivenTables:
    """A table, or a list of parts of a table, and the columns that a call names.

    ``argument`` is what messages call the columns that group the rows. If the call reports missing
    values, planned rows ``mark_missing`` ones by what they miss.
    """

    frame: Any
    label: IntoColumn | None
    score: IntoColumns
    weight: IntoWeight | None
    by: IntoColumns | None
    pos_label: object
    design: Design | None
    selected: IntoColumn | None = None
    argument: str = "by"
    mark_missing: bool = False

    def read_columns(self) -> list[Columns]:
        """Return the columns of each table."""
        if not isinstance(self.frame, list):
            return [self._read(self.frame)]
        # Plans check the tables against each other.
        self._plan_rows()
        return align_keys([self._read(table) for table in self.frame])

    def _read(self, table: Any) -> Columns:
        return read_columns(
            table, *self._columns, self.design, selected=self.selected, argument=self.argument
        )

    @property
    def _columns(
        self,
    ) -> tuple[IntoColumn | None, IntoColumns, IntoWeight | None, IntoColumns | None, object]:
        return self.label, self.score, self.weight, self.by, self.pos_label

    def read_parts(self) -> list[Part]:
        """Return the columns of each table with a plan of its rows, for more than fit in memory."""
        return [Part(*each) for each in zip(self.read_columns(), self._plan_rows(), strict=True)]

    def pool_in_bins(self, binning: Binning) -> Columns:
        """Return the columns of rows that are pooled in bins of scores, if there is a binning."""
        planned = self._plan_rows()
        rows = planned[0]
        if len(planned) > 1:
            frames = [each.frame for each in planned]
            rows = replace(rows, frame=pl.concat(frames, how="diagonal_relaxed"))
        return read_counted(pool_in_bins(rows, binning))

    def _plan_rows(self) -> list[PlannedRows]:
        """Return plans of the rows of each table, with the same groups and type of scores."""
        if not isinstance(self.frame, list):
            return [self._plan(self.frame)]
        _require_tables(self.frame)
        if self.design is not None and len(self.frame) > 1:
            checks.reject("frame", "be one table with a `design`", f"a list of {len(self.frame)}")
        planned = with_same_keys("frame", [self._plan(table) for table in self.frame])
        alike = frames_alike("frame", [each.frame for each in planned], SCORE)
        return [replace(each, frame=frame) for each, frame in zip(planned, alike, strict=True)]

    def _plan(self, table: Any) -> PlannedRows:
        return read_rows(
            table,
            *self._columns,
            mark_missing=self.mark_missing,
            selected=self.selected,
            called=self.argument,
        )


def _require_tables(frame: Sequence[Any]) -> None:
    if not frame:
        checks.reject_type("frame", "be a table, or a list of tables that are parts of one", [])


def one_of(frame: Any) -> Any:
    """Return a table, or one of a list of tables: a LazyFrame if there is one."""
    if not isinstance(frame, list):
        return frame
    _require_tables(frame)
    return next((table for table in frame if isinstance(table, pl.LazyFrame)), frame[0])


def division_of(frame: object, default: str = "none") -> Division | None:
    """Return the division of a table or a list of tables; None for rows in memory."""
    return division(default) if isinstance(one_of(frame), pl.LazyFrame) else None
