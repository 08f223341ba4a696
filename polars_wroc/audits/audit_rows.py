"""The rows of an audit: read once, as arrays, with the numbers of missing values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import NoReturn

import polars as pl

from polars_wroc.audits.words import required_values
from polars_wroc.config import Division
from polars_wroc.documents.phrases import many
from polars_wroc.inputs.columns import (
    LABEL,
    MODEL,
    ROW_WEIGHT,
    SELECTED,
    score_column,
)
from polars_wroc.inputs.rows import MISSING_MARKS, MissingRows, count_missing
from polars_wroc.queries import NoBatchesError, batches, collect, find_height
from polars_wroc.rows import Columns, Rows, read_tables

# The rows of a batch, and the bytes that a row takes until the audit is done.
_ROWS = 1 << 18
_BYTES = 130


class TooManyRowsError(Exception):
    """There are more rows than fit into the memory."""


@dataclass(frozen=True)
class AuditRows:
    """The rows of one or several tables, with their columns as read.

    Rows of weight 0 are left out. Missing scores are counted under the names in ``scores``. Only
    rows with a value of the groups named in ``complete`` are kept.
    """

    columns: Sequence[Columns]
    tables: Sequence[pl.DataFrame]
    scores: Sequence[str]
    complete: Sequence[str] = ()

    def at(self, complete: Sequence[str]) -> AuditRows:
        """Return the rows with a value of some groups, by the caller's names."""
        tables = []
        for columns, table in zip(self.columns, self.tables, strict=True):
            known = [
                pl.col(k).is_not_null() for k, name in columns.names.items() if name in complete
            ]
            tables.append(table.filter(known) if known else table)
        return replace(self, tables=tables, complete=complete)

    @property
    def is_counted(self) -> bool:
        """Whether rows came from a plan of checked rows, for example from counts."""
        return self.columns[0].is_counted

    @cached_property
    def arrays(self) -> dict[str, Rows]:
        """The rows of each score as arrays.

        All scores share them, unless counts have rows for each score.
        """
        first = self.columns[0]
        if not (first.is_counted and first.several):
            return dict.fromkeys(first.models, read_tables(self.columns, self.tables))
        arrays = {}
        for place, model in enumerate(first.models):
            own_type = first.score_types[place : place + 1]
            alone = replace(first, models=[model], several=False, score_types=own_type)
            own = self.tables[0].filter(pl.col(MODEL).cast(pl.String) == model)
            arrays[model] = alone.rows(own)
        return arrays

    @property
    def n_complete(self) -> float:
        """The number of complete rows of the score with the most."""
        return max(rows.count_complete() for rows in self.arrays.values())

    def check_number(self, *, labeled: bool) -> None:
        """Raise if there is nothing to audit."""
        complete = sum(int(rows.complete(model).sum()) for model, rows in self.arrays.items())
        if complete == 0:
            incomplete = sum(int(rows.n.sum()) for rows in self.arrays.values())
            recorded = SELECTED in self.tables[0].columns
            refuse_no_rows(incomplete, required_values(recorded=recorded, labeled=labeled))

    @property
    def missing(self) -> MissingRows:
        """The numbers of rows without a value in each column."""
        if self.is_counted:
            (columns,), (table,) = self.columns, self.tables
            if MISSING_MARKS not in table.columns:
                return MissingRows(groups={})
            return count_missing(table, columns.names, self.scores)
        parts = zip(self.columns, self.tables, strict=True)
        return reduce(add, [_count_missing(columns, table) for columns, table in parts])


def refuse_no_rows(left_out: int, required: str) -> NoReturn:
    """Raise because there is nothing to audit, with the number of incomplete rows."""
    lack = "lacks" if left_out == 1 else "lack"
    why = f": {many(left_out, 'row')} {lack} a {required}" if left_out else ""
    msg = f"`frame` must have rows to audit; found none{why}"
    raise ValueError(msg)


def read_audit_rows(
    columns: Sequence[Columns], scores: Sequence[str], division: Division | None = None
) -> AuditRows:
    """Return all rows, reading each source once; raise `TooManyRowsError` if they do not fit."""
    if division is not None and division.has_workers:
        # They count the rows first, so that this process does not read rows that it cannot hold.
        rows = sum(division.map(find_height, [each.plan for each in columns]))
        if division.is_needed(rows, _BYTES):
            raise TooManyRowsError
    tables: list[pl.DataFrame] = []
    for each in columns:
        if division is None:
            tables.append(collect(each.plan))
        else:
            height = sum(table.height for table in tables)
            tables.append(pl.concat(_read_batches(each.plan, height, division)))
    read = [_leave_out_weightless(each, table) for each, table in zip(columns, tables, strict=True)]
    return AuditRows(columns, read, scores)


def _read_batches(plan: pl.LazyFrame, height: int, division: Division) -> Iterator[pl.DataFrame]:
    """Yield the rows of a plan in order, in batches; raise when they become too many."""
    handed = batches(plan, _ROWS)
    try:
        # A plan without rows may yield no batch.
        batch = next(handed, plan.collect_schema().to_frame())
    except NoBatchesError:
        batch = collect(plan)
    while True:
        height += batch.height
        if division.is_needed(height, _BYTES):
            raise TooManyRowsError
        yield batch
        following = next(handed, None)
        if following is None:
            return
        batch = following


def _leave_out_weightless(columns: Columns, table: pl.DataFrame) -> pl.DataFrame:
    """Return rows without weight 0, which only count for a design, by their sampling units."""
    has_design = columns.design is not None and columns.design.is_given
    if ROW_WEIGHT not in table.columns or has_design:
        return table
    used = table[ROW_WEIGHT].ne_missing(0)
    return table if used.all() else table.filter(used)


def _count_missing(columns: Columns, table: pl.DataFrame) -> MissingRows:
    if ROW_WEIGHT in table.columns and columns.design is not None:
        table = table.filter(pl.col(ROW_WEIGHT).ne_missing(0))
    number = pl.col(ROW_WEIGHT).cast(pl.Int64).fill_null(1)
    others = {"label": LABEL, "weight": ROW_WEIGHT, "decision": SELECTED}
    is_missing = {
        **{key: pl.col(key).is_null() for key in columns.names},
        **{name: pl.col(name).is_null() for name in others.values() if name in table.columns},
        **{
            model: pl.col(score_column(place)).cast(pl.Float64).fill_nan(None).is_null()
            for place, model in enumerate(columns.models)
        },
    }
    counts = table.select(
        **{
            name: (holds * number).sum() if columns.frequency else holds.sum()
            for name, holds in is_missing.items()
        }
    ).row(0, named=True)
    return MissingRows(
        groups={name: counts[key] for key, name in columns.names.items()},
        scores={model: counts[model] for model in columns.models},
        others={kind: counts.get(name, 0) for kind, name in others.items()},
    )
