"""Options that commands on rows have in common, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from polars_wroc.audits.gates import Gate, GateScope, judge_gates
from polars_wroc.cli.options import (
    INPUT,
    Attributes,
    By,
    Conditions,
    Rows,
    Selected,
    Threshold,
    Uncertainty,
    Unlabeled,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, TableOutput
from polars_wroc.cli.report import Report, show_report
from polars_wroc.cli.source import Source, require_favorable
from polars_wroc.files.csv_dialect import FileFormat

Dialect = Annotated[FileFormat, Parameter(name="*", group=INPUT, negative_bool="no-")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a command on rows or counts, but for groups and output."""

    rows: Rows = Rows()
    dialect: Dialect = FileFormat()
    uncertainty: Uncertainty = Uncertainty()
    conditions: Conditions = Conditions()

    @property
    def limits(self) -> dict[str, Any]:
        """The arguments of functions about confidence limits."""
        return self.uncertainty.arguments


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """Options of a command that makes a table."""

    output: TableOutput = TableOutput()

    def read_conditions(self, of: GateScope) -> list[Gate]:
        """Read the conditions on a table."""
        return self.conditions.read(of)

    def show(
        self, report: Report, gates: Sequence[Gate] = (), table: pl.DataFrame | None = None
    ) -> None:
        """Print or write a result, and judge its table, or another."""
        judgement = judge_gates(gates, report.table if table is None else table)
        show_report(report, self.output, judgement, strict=self.conditions.fail_unjudged)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ByGroups(TableOptions):
    """Options of a command that makes a table of groups."""

    by: By = ()

    def read(
        self,
        files: Sequence[str],
        *,
        approximate: int | None = None,
        suffixes: Sequence[str] = TABLES_AND_CHARTS,
    ) -> Source:
        """Read the rows or counts, after checking that the output can be written."""
        self.output.check(suffixes, files)
        source = Source(
            files=files,
            dialect=self.dialect,
            columns=self.rows,
            group_texts=self.by,
            flag="--by",
            approximate=approximate,
        )
        source.require("label", "score")
        return source


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Segments(Options):
    """Options of a command that compares the segments of attributes."""

    attributes: Attributes
    threshold: Threshold = None
    selected: Selected = None

    def make_source(self, files: Sequence[str]) -> Source:
        """Return the rows or counts."""
        return Source(
            files=files,
            dialect=self.dialect,
            columns=self.rows,
            group_texts=self.attributes,
            selected=self.selected,
        )

    @property
    def decides(self) -> bool:
        """Whether there are decisions, by a threshold or recorded ones."""
        return self.threshold is not None or self.selected is not None

    def require_favorable(self, favorable: str | None) -> None:
        """Check that it is said which decision is good, if there are decisions."""
        require_favorable(favorable, threshold=self.threshold, selected=self.selected)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ByAttributes(Segments, TableOptions):
    """Options of a command that makes a table of the segments of attributes."""

    def read(self, files: Sequence[str], *required: str) -> Source:
        """Read the rows or counts, after checking that the output can be written."""
        self.output.check(TABLES_AND_CHARTS, files)
        source = self.make_source(files)
        source.require(*required)
        return source


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class UnlabeledByAttributes(ByAttributes):
    """Options of a command that compares how often segments are selected."""

    rows: Unlabeled = Unlabeled()
