"""Rows of an audit, read once and ranked by a plan or by the compiled engine: sums and curves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import polars as pl

from polars_wroc.audits.words import many, required_values
from polars_wroc.curves.calibration_summary import walked_in_the_large_sums
from polars_wroc.groups.gaps import place
from polars_wroc.groups.references import Reference
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
from polars_wroc.inputs.designs import Replicates, SampleDesign, SurveyDesign
from polars_wroc.inputs.rows import MISSING_MARKS, MissingRows, Rows, count_missing
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.auc_variance import auc_influences
from polars_wroc.metrics.summary import walked_numbers, with_own_cluster_sums
from polars_wroc.plans.config import Division, is_compiled
from polars_wroc.plans.queries import (
    NoBatchesError,
    batches,
    collect,
    collect_all,
    require_one_negative_label,
    with_categories,
)
from polars_wroc.ranking.curve_points import parts_of_curve, thin_placements
from polars_wroc.ranking.placements import RowCurve, over_decisions, row_curve
from polars_wroc.ranking.sorting import PlacedRows, by_descending_score
from polars_wroc.stats.logistic_fit import FittedRows, RowsOfPoints, points
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import common_threshold, confusion_at, walked_confusion_at

if TYPE_CHECKING:
    from polars_wroc.ranking.compiled_rows import CompiledRows


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
_ARE_ZERO = pl.col(ZERO_LABEL), ~pl.col(ZERO_LABEL)
# Rows of a batch.
_ROWS = 1 << 18


class RowReader:
    """Reads the columns that an audit needs, with categories for keys and clusters that are texts.

    What is counted is complete when all rows have been read.
    """

    def __init__(self, rows: Rows, scores: Sequence[str], *, labeled: bool) -> None:
        """Read checked rows of these scores."""
        self._rows = rows
        self._required = required_values(recorded=rows.recorded, labeled=labeled)
        self._scores = scores
        self._group_names = {key: rows.name_of(key) for key in rows.group_keys}
        self._missing: list[MissingRows] = []
        # A row of each batch: how many rows are complete or not, and which negative labels it has.
        self._counts: list[pl.DataFrame] = []
        # That of the rows, if they have one and are in a `table`.
        self.design: SampleDesign | None = None

    def table(self) -> pl.DataFrame:
        """Read all rows."""
        design = self._rows.design
        if not isinstance(design, SurveyDesign):
            self.design = design
            return self._seen(collect(self._columns()))
        # Together, so that the source is read once.
        table, strata = collect_all([self._columns(), design.strata])
        self.design = replace(design, strata=strata.lazy())
        return self._seen(table)

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
        complete, incomplete, zeros, minuses = pl.concat(self._counts).sum().row(0)
        require_one_negative_label(zeros=bool(zeros), minuses=bool(minuses))
        if not complete:
            refuse_no_rows(incomplete, self._required)
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
        weight, zeros, minuses = pl.col(WEIGHT), pl.lit(0), pl.lit(0)
        if ZERO_LABEL in batch.columns:
            zeros, minuses = (((weight < 0) & is_zero).sum() for is_zero in _ARE_ZERO)
        incomplete = self._rows.count_where(weight.is_null())
        counts = {"incomplete": incomplete, "zeros": zeros, "minuses": minuses}
        self._counts.append(batch.select(complete=weight.count(), **counts).cast(pl.Int64))
        if MISSING_MARKS in batch.columns:
            self._missing.append(count_missing(batch, self._group_names, self._scores))
        return batch.drop(MISSING_MARKS, ZERO_LABEL, strict=False)


def refuse_no_rows(left_out: int, required: str) -> NoReturn:
    """Raise if there is nothing to audit, since so many rows lack what is required."""
    lack = "lacks" if left_out == 1 else "lack"
    why = f": {many(left_out, 'row')} {lack} a {required}" if left_out else ""
    msg = f"`frame` must have rows to audit; found none{why}"
    raise ValueError(msg)


CURVE_POINTS = 200
# In how many of the smallest segments a score is not from 0 to 1.
OUTSIDE_0_TO_1 = "__outside_0_to_1"


class RankedSums(NamedTuple):
    """Sums of segments that depend on the ranks of their rows, and points of their curves.

    By the design of a survey also the influences of sampling units on the AUCs.
    """

    sums: pl.DataFrame
    points: pl.DataFrame
    influences: pl.DataFrame | None = None


@dataclass(frozen=True)
class RankedSegments(ABC):
    """Rows of an audit, to be ranked in the segments of each grouping."""

    reference: Reference
    interval: Interval
    # The rows or, if these have become sorted arrays, none with the same columns.
    rows: Rows

    @property
    def curve(self) -> RowCurve:
        """The curves of the segments, or the parts of them, that are summed."""
        return row_curve()

    @abstractmethod
    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Sum the rows of each of the smallest segments, where a sum does not depend on ranks.

        These add up; the other sums come from `sums`.
        """

    def held(self) -> Rows | None:
        """Return all rows, if they are in memory."""
        return None

    @abstractmethod
    def fitted_rows(self) -> FittedRows:
        """Return the rows whose calibration is fitted."""

    @abstractmethod
    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Sum the rows of each segment, grouped by the keys of ``rows``."""

    def thresholds(self, choice: float | Rule) -> pl.DataFrame:
        """Give each model the threshold, or choose one on all rows."""
        return collect(common_threshold(self.rows, choice))

    @abstractmethod
    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Count the confusion matrix of each of the smallest segments."""


@dataclass(frozen=True)
class PlannedSegments(RankedSegments):
    """Rows in the order of their scores, all or those of a range, which windows rank."""

    @property
    def curve(self) -> RowCurve:
        """The curves of all rows, or the parts of them in the range."""
        return row_curve(in_range=self.rows.in_range)

    @property
    def _designed(self) -> bool:
        """Whether rows are clustered, whose sums have the same bits on each run."""
        return self.rows.design is not None

    @property
    def _own(self) -> Rows:
        """The rows without those that stand for others."""
        return replace(self.rows, frame=self.rows.inside(self.rows.frame))

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Aggregate the rows in any order; a sum of ranks needs a column of placed rows."""
        columns = set(self.rows.frame.collect_schema())
        unranked = {
            name: value
            for name, value in aggregates.items()
            if columns.issuperset(value.meta.root_names())
        }
        sums = self.rows.aggregate(self._own.frame, unranked)
        return collect(sums, reproducible=self._designed)

    def held(self) -> Rows:
        """Return all rows."""
        return self.rows

    def fitted_rows(self) -> FittedRows:
        """Return all rows."""
        return RowsOfPoints(points(self._own), self.rows.keys)

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Place the rows in their segments."""
        # Windows take most of the time; the sums and the points share them.
        designed = self._designed
        in_place = collect(rows.inside(place(rows.frame, rows)), reproducible=designed)
        placed = PlacedRows(in_place.lazy(), rows.keys)
        placed = with_own_cluster_sums(placed, self.interval)
        points = thin_placements(rows, placed.frame, CURVE_POINTS)
        sums = collect(placed.aggregate(aggregates), reproducible=designed)
        influences = None
        if designed:
            influences = collect(auc_influences(placed.frame, rows), reproducible=True)
        return RankedSums(sums, collect(points), influences)

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Compare each row with the threshold."""
        return collect(confusion_at(self._own, thresholds), reproducible=self._designed)


@dataclass(frozen=True)
class WalkedSegments(RankedSegments):
    """Rows that the compiled engine sorted, and walks along."""

    sorted_rows: CompiledRows
    are_held = True

    @property
    def _walk_sums(self) -> dict[str, pl.Expr]:
        return walked_numbers() | self.interval.walk_sums() | self.reference.own.walk_sums()

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Add up the rows of each code."""
        values = walked_in_the_large_sums()
        values[OUTSIDE_0_TO_1] = over_decisions("outside_0_to_1")
        unranked = {name: values[name] for name in aggregates if name not in self._walk_sums}
        return self.sorted_rows.decided_sums().select(*self.rows.keys, **unranked)

    def held(self) -> Rows:
        """Take all rows out of the sorted arrays."""
        return replace(self.rows, frame=self.sorted_rows.rows_of(None).lazy(), compiled="at once")

    def fitted_rows(self) -> FittedRows:
        """Return these rows, as they are sorted."""
        return self

    def bins(self, width: float) -> pl.DataFrame:
        """Walk along the rows of each bin."""
        return self.sorted_rows.logit_bins(width)

    def points(self, groups: pl.DataFrame | None) -> pl.DataFrame:
        """Take the rows of these codes out of the sorted arrays."""
        return collect(points(replace(self.rows, frame=self.sorted_rows.rows_of(groups).lazy())))

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Walk along the rows once."""
        walked = self.sorted_rows.walk(rows.group_keys)
        named = {name: value for name, value in self._walk_sums.items() if name in aggregates}
        sums = walked.sums.lazy().select(*rows.keys, **named)
        points = thin_placements(rows, walked.points.lazy(), CURVE_POINTS)
        return RankedSums(collect(sums), collect(points))

    def thresholds(self, choice: float | Rule) -> pl.DataFrame:
        """Give each model the threshold, or choose one on all rows, which are sorted already."""
        by_rule = isinstance(choice, Rule)
        sorted_rows = self.sorted_rows
        table = sorted_rows.rows_of_partitions() if by_rule else sorted_rows.partition_keys
        rows = replace(self.rows, frame=table.lazy(), compiled="at once" if by_rule else None)
        return collect(common_threshold(rows, choice))

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Sum the rows above and below the threshold."""
        return collect(walked_confusion_at(self.sorted_rows, thresholds))


# Memory of a row, by plans and by the compiled engine.
_BYTES, _BYTES_COMPILED = 250, 70


class TooManyRowsError(Exception):
    """There are more rows than fit into the memory."""


def _within(
    batches: Iterator[pl.DataFrame], division: Division | None, *, planned: bool
) -> Iterator[pl.DataFrame]:
    """Hand on batches until they are too many."""
    rows = 0
    for batch in batches:
        rows += batch.height
        of_row = _BYTES_COMPILED if not planned and is_compiled(rows) else _BYTES
        if division and division.exceeded(rows, of_row):
            raise TooManyRowsError
        yield batch


def rank_segments(
    rows: Rows,
    scores: Sequence[str],
    reference: Reference,
    interval: Interval,
    division: Division | None = None,
    *,
    labeled: bool = True,
) -> tuple[RankedSegments, MissingRows]:
    """Read the rows of an audit, and rank them by the engine that is to compute them."""
    reader = RowReader(rows, scores, labeled=labeled)
    planned = rows.counted or rows.recorded or rows.design is not None
    if planned and division is None:
        table: pl.DataFrame | Iterator[pl.DataFrame] = reader.table()
    else:
        handed = _within(reader.batches(), division, planned=planned)
        table = pl.concat(handed) if planned else _all_or_many(handed)
    if not isinstance(table, pl.DataFrame):
        first = next(table)
        # The rows become sorted arrays.
        none = Rows(first.clear().lazy(), rows.keys, rows.model_keys)
        return _walk(chain([first], table), none, reference, interval), reader.missing()
    missing = reader.missing()
    if not planned and is_compiled(table.height):
        read = Rows(table.lazy(), rows.keys, rows.model_keys, compiled="at once")
        return _walk(iter([table]), read, reference, interval), missing
    table = collect(by_descending_score(Rows(table.lazy(), [])))
    read = Rows(table.lazy(), rows.keys, rows.model_keys, in_order=True, design=reader.design)
    return PlannedSegments(reference, interval, read), missing


def _all_or_many(batches: Iterator[pl.DataFrame]) -> pl.DataFrame | Iterator[pl.DataFrame]:
    """Return all rows in a table, or in batches if the compiled engine computes so many."""
    first: list[pl.DataFrame] = []
    rows = 0
    for batch in batches:
        first.append(batch)
        rows += batch.height
        if is_compiled(rows):
            return chain(_taken(first), batches)
    return pl.concat(first)


def _taken(batches: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Take batches out of a list, so that they do not stay in memory."""
    while batches:
        yield batches.pop(0)


def _walk(
    batches: Iterator[pl.DataFrame], rows: Rows, reference: Reference, interval: Interval
) -> WalkedSegments:
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import PackedRows  # noqa: PLC0415

    parts = parts_of_curve(CURVE_POINTS)
    compiled = PackedRows(batches, rows.model_keys, rows.keys).sort(parts)
    return WalkedSegments(reference, interval, rows, compiled)
