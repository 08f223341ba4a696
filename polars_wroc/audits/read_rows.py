"""Read the rows of an audit once, and count what is missing on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import NoReturn

import polars as pl

from polars_wroc.audits.phrases import many, required_values
from polars_wroc.inputs.columns import (
    CLUSTER,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    SELECTED,
    SEVERAL_SCORES,
    STRATUM,
    WEIGHT,
    ZERO_LABEL,
)
from polars_wroc.inputs.missing import MISSING_MARKS, MissingRows, count_missing
from polars_wroc.inputs.rows import Rows
from polars_wroc.inputs.survey_design import Design, Replicates, SurveyDesign
from polars_wroc.plans.by_keys import with_categories
from polars_wroc.plans.checks import require_one_negative_label
from polars_wroc.plans.collect import NoBatchesError, batches, collect, collect_all

_CARRIED = (
    CLUSTER,
    STRATUM,
    ROW_COUNT,
    ROW_SQUARES,
    ROW_CUBES,
    SCORE_HIGH,
    SELECTED,
    MISSING_MARKS,
    ZERO_LABEL,
)
# Rows of a batch.
_ROWS = 1 << 18


class RowReader:
    """Reads the columns that an audit needs, with categories for keys and clusters that are texts.

    What is counted is complete when all rows have been read.
    """

    def __init__(self, rows: Rows, scores: Sequence[str]) -> None:
        """Read checked rows of these scores."""
        self._rows = rows
        self._scores = scores
        self._group_names = {key: rows.name_of(key) for key in rows.group_keys}
        self._missing: list[MissingRows] = []
        self._complete = self._incomplete = 0
        self._zeros = self._minuses = False
        self._design: Design | None = None

    def table(self) -> pl.DataFrame:
        """Read all rows."""
        design = self._rows.design
        if not isinstance(design, SurveyDesign):
            self._design = design
            return self._seen(collect(self._columns()))
        # Together, so that the source is read once.
        table, strata = collect_all([self._columns(), design.strata])
        self._design = replace(design, strata=strata.lazy())
        return self._seen(table)

    def design(self) -> Design | None:
        """Return the design of the rows, if they have one and are in a `table`."""
        return self._design

    def batches(self) -> Iterator[pl.DataFrame]:
        """Read all rows in their order, one or more batches."""
        columns = self._columns()
        handed = batches(columns, _ROWS)
        try:
            # Without rows there may be no batch.
            first = next(handed, columns.collect_schema().to_frame())
        except NoBatchesError:
            first = collect(columns)
        yield self._seen(first)
        yield from map(self._seen, handed)

    def missing(self) -> MissingRows:
        """Return what is missing, if the rows can be audited; else raise."""
        require_one_negative_label(zeros=self._zeros, minuses=self._minuses)
        if not self._complete:
            refuse_no_rows("frame", self._incomplete, recorded=self._rows.recorded)
        return reduce(add, self._missing) if self._missing else MissingRows(groups={})

    def _columns(self) -> pl.LazyFrame:
        rows = self._rows
        schema = rows.frame.collect_schema()
        carried: list[str | pl.Expr] = [name for name in _CARRIED if name in schema]
        if isinstance(rows.design, Replicates):
            carried += rows.design.columns
        if rows.binned:
            # A bin with one score in each group may have several scores in a segment.
            carried.append((pl.col(SCORE) < pl.col(SCORE_HIGH)).alias(SEVERAL_SCORES))
        texts = [*rows.keys, *(name for name in [CLUSTER] if name in schema)]
        return with_categories(rows.frame, texts).select(*rows.keys, SCORE, *carried, WEIGHT)

    def _seen(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Count what is missing in a batch, and drop the columns that tell."""
        weight = pl.col(WEIGHT)
        self._complete += batch[WEIGHT].len() - batch[WEIGHT].null_count()
        if batch[WEIGHT].null_count():
            self._incomplete += batch.select(self._rows.count_where(weight.is_null())).item()
        if ZERO_LABEL in batch.columns:
            negative, zero = weight < 0, pl.col(ZERO_LABEL)
            zeros, minuses = batch.select(
                zeros=(negative & zero).any(), minuses=(negative & ~zero).any()
            ).row(0)
            self._zeros |= zeros
            self._minuses |= minuses
        if MISSING_MARKS in batch.columns:
            self._missing.append(count_missing(batch, self._group_names, self._scores))
        return batch.drop(MISSING_MARKS, ZERO_LABEL, strict=False)


def refuse_no_rows(argument: str, left_out: int, *, recorded: bool = False) -> NoReturn:
    """Raise if there is nothing to audit, since so many rows were left out."""
    lacking = required_values(recorded=recorded)
    lack = "lacks" if left_out == 1 else "lack"
    why = f": {many(left_out, 'row')} {lack} a {lacking}" if left_out else ""
    msg = f"`{argument}` must have rows to audit; found none{why}"
    raise ValueError(msg)
