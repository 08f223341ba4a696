"""Options that commands on rows have in common, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from polars_wroc.cli.options import (
    CSV_FILES,
    Attributes,
    By,
    RowColumns,
    Selected,
    ThresholdOption,
    Uncertainty,
    UnlabeledColumns,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, TableOutput
from polars_wroc.cli.source import Source, require_favorable
from polars_wroc.files.csv_dialect import FileFormat

Dialect = Annotated[FileFormat, Parameter(name="*", group=CSV_FILES, negative_bool="no-")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Options of a command on rows or counts, without groups and output."""

    rows: RowColumns = RowColumns()
    dialect: Dialect = FileFormat()
    uncertainty: Uncertainty = Uncertainty()

    @property
    def limits(self) -> dict[str, Any]:
        """The arguments of functions about confidence limits."""
        return self.uncertainty.arguments


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions(RowOptions):
    """Options of a command that makes a table."""

    output: TableOutput = TableOutput()


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
            design=self.uncertainty.design,
        )
        source.require("label", "score")
        return source


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SegmentOptions(RowOptions):
    """Options of a command that compares the segments of attributes."""

    attributes: Attributes
    threshold: ThresholdOption = None
    selected: Selected = None

    def make_source(self, files: Sequence[str]) -> Source:
        """Return the rows or counts."""
        return Source(
            files=files,
            dialect=self.dialect,
            columns=self.rows,
            group_texts=self.attributes,
            selected=self.selected,
            design=self.uncertainty.design,
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
class ByAttributes(SegmentOptions, TableOptions):
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

    rows: UnlabeledColumns = UnlabeledColumns()
