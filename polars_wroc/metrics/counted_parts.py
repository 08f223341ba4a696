"""Rows that do not fit into memory, measured one range of scores at a time.

A first pass counts the rows in bins of the score. The bins are then grouped into ranges whose rows
fit into memory. Each range is read and passed to the task that also measures rows in memory, with
the weights of both classes above and below it, which are known from the bins. The results of all
ranges add up to the sums of all rows. Ranges are measured one after another, or by the workers of a
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import polars as pl

from polars_wroc.config import Division
from polars_wroc.counts.score_sums import (
    HIGH,
    LOW,
    Binning,
    add_up_bins,
    add_up_in_bins,
    check_labels,
    row_sums,
    rows_from_counts,
    score_bin,
)
from polars_wroc.inputs.columns import MODEL, SCORE, score_column
from polars_wroc.inputs.rows import MISSING_MARKS, PlannedRows
from polars_wroc.metrics.score_ranges import ScoreRange, cut_ranges, find_fineness
from polars_wroc.progress import Progress
from polars_wroc.queries import collect
from polars_wroc.rows import Columns, Rows, join_rows, read_counted, require_exact
from polars_wroc.steps import FloatType

_ResultT = TypeVar("_ResultT")


@dataclass(frozen=True)
class Part:
    """One of the tables that hold the data.

    ``columns`` read its rows; ``planned`` are the same rows after checks, for counting.
    """

    columns: Columns
    planned: PlannedRows

    def without_missing(self, names: Sequence[str]) -> Part:
        """Leave out the rows where any of these grouping columns is null.

        ``names`` are the caller's names of columns; other names are ignored.
        """
        keys = [key for key, name in self.columns.names.items() if name in names]
        if not keys:
            return self
        known = pl.all_horizontal(pl.col(keys).is_not_null())
        columns = replace(self.columns, plan=self.columns.plan.filter(known))
        return Part(columns, replace(self.planned, frame=self.planned.frame.filter(known)))

    def with_types(self, score_types: Sequence[FloatType]) -> Part:
        """Set the type in which each score is compared with thresholds."""
        return replace(self, columns=replace(self.columns, score_types=score_types))

    def count_in_bins(self) -> PartCounts:
        """Count the rows of each group and model in bins of the score; more groups, fewer bins.

        Rows with missing values are counted separately, by which values they miss.
        """
        rows = self.planned
        groups = collect(rows.key_values()).height
        if MISSING_MARKS in rows.frame.collect_schema():
            rows = rows.group_by([*rows.group_keys, MISSING_MARKS])
        table = collect(add_up_in_bins(rows, Binning(None), find_fineness(groups)))
        by_model = {model: _take_model(table, model) for model in self.columns.models}
        spans = {model: (own[LOW].min(), own[HIGH].max()) for model, own in by_model.items()}
        return PartCounts(table, [spans])

    def read(self, each: ScoreRange) -> Rows:
        """Return the rows in a range of scores, pooled by score if it is crowded."""
        if each.crowded:
            return self._pool_equal_scores(each)
        columns = self.columns.take_model(each.model)
        name, counted_type = score_column(0), self.planned.frame.collect_schema()[SCORE]
        score = pl.col(name)
        if columns.plan.collect_schema()[name] != counted_type:
            # Only if necessary, since a Parquet file cannot skip other scores once they are cast.
            score = score.cast(counted_type)
        rows = columns.rows(collect(columns.plan.filter(score.is_between(each.low, each.high))))
        complete = rows.complete(each.model)
        return rows if complete.all() else rows.at(complete)

    def _pool_equal_scores(self, each: ScoreRange) -> Rows:
        """Return one weighted row for all rows with the same class, group and score."""
        keys = self.planned.group_keys
        inside = pl.col(SCORE).is_between(each.low, each.high)
        if self.planned.model_keys:
            inside &= pl.col(MODEL).cast(pl.String) == each.model
        rows = replace(self.planned, frame=self.planned.frame.filter(inside), keys=keys)
        return _read_counts_as_rows(
            add_up_bins(row_sums(rows), keys, pl.col(LOW)), keys, each.model
        )


class PartCounts(NamedTuple):
    """The counts of the rows of some parts in bins, and the lowest and highest scores of each."""

    table: pl.DataFrame
    spans: Sequence[Mapping[str, tuple[Any, Any]]]


def _read_counts_as_rows(counts: pl.LazyFrame, keys: list[str], model: str) -> Rows:
    """Turn the counts of each score into rows that stand for all rows counted there."""
    named = counts.with_columns(pl.col(LOW).alias(SCORE))
    columns = read_counted(rows_from_counts(named, keys, [], binned=False))
    return replace(columns, models=[model]).rows(collect(columns.plan))


@dataclass(frozen=True)
class CountedParts:
    """The parts of the data, and the counts of their rows in bins of the score.

    ``spans`` has a mapping for each part, from the name of a score to its lowest and highest value
    there. ``fineness`` is the number of bins between two powers of two.
    """

    parts: Sequence[Part]
    spans: Sequence[Mapping[str, tuple[Any, Any]]]
    counts: pl.DataFrame
    division: Division
    fineness: int

    @property
    def models(self) -> Sequence[str]:
        """The names of the scores."""
        return self.parts[0].columns.models

    @property
    def keys(self) -> list[str]:
        """The columns that group the rows."""
        return self.parts[0].columns.keys

    def counts_of(self, model: str) -> pl.DataFrame:
        """Return the counts of one score."""
        return _take_model(self.counts, model)

    def most_complete_rows(self) -> float:
        """Return the largest number of rows without a missing value that a score has."""
        return float(max([1.0, *(_count_complete(self.counts_of(model)) for model in self.models)]))

    def cut(self, bytes_of_row: int) -> list[ScoreRange]:
        """Cut each score into ranges whose rows fit into memory."""
        ranges = []
        for model in self.models:
            counts = self.counts_of(model)
            rows = self.division.rows_of_range(_count_complete(counts), bytes_of_row)
            ranges += cut_ranges(counts, self.keys, model, rows, self.fineness)
        return ranges

    def measure(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], _ResultT]
    ) -> list[_ResultT]:
        """Return the results of the task for the rows of each range.

        Raise ValueError if a range does not have as many rows as were counted.
        """
        items = [(each, self._find_parts(each)) for each in ranges]
        passes = 1 + sum(each.counts is None for each in ranges)
        results = []
        with Progress(passes, "passes over the rows") as line:
            line.advance()
            score_types = dict(zip(self.models, self.parts[0].columns.score_types, strict=True))
            run = partial(_measure, task, self.keys, score_types)
            for each, result in zip(ranges, self.division.map(run, items), strict=True):
                line.advance(each.counts is None)
                results.append(result)
        return results

    def _find_parts(self, each: ScoreRange) -> list[Part]:
        """Return the parts that may have scores in a range; none if its counts are sufficient."""
        if each.counts is not None:
            return []
        spans = zip(self.parts, self.spans, strict=True)
        return [part for part, span in spans if each.meets(*span[each.model])]


def _measure(
    task: Callable[[ScoreRange, Rows], _ResultT],
    keys: list[str],
    score_types: Mapping[str, FloatType],
    item: tuple[ScoreRange, Sequence[Part]],
) -> _ResultT:
    """Read the rows of a range, check their number, and return the result of the task."""
    each, parts = item
    if each.counts is None:
        rows = join_rows([part.read(each) for part in parts])
    else:
        rows = _read_counts_as_rows(each.counts.lazy(), keys, each.model)
    # Counts of several scores have a common type.
    rows = replace(rows, score_types={each.model: score_types[each.model]})
    number = round(rows.n.sum())
    if number != each.rows:
        msg = (
            "`frame` must have the same rows whenever it is read; a range of scores had "
            f"{each.rows:,} rows when they were counted, and {number:,} when it was read again"
        )
        raise ValueError(msg)
    return task(each, rows)


def count_parts(parts: Sequence[Part], division: Division) -> CountedParts:
    """Count the rows of all parts in bins of the score; the more groups, the fewer bins.

    Each part is a separate task, so that a cluster can share the work.
    """
    columns, keys = parts[0].columns, parts[0].planned.keys
    table, spans = division.reduce(Part.count_in_bins, parts, partial(_add_counts, keys=keys))
    # Each group may encode its negatives in its own way, unless groups are pooled.
    counts = collect(check_labels(table.lazy(), [] if columns.pools_groups else keys))
    for end in (LOW, HIGH):
        require_exact(counts[end], "the scores")
    return CountedParts(parts, spans, counts, division, _find_fineness(counts, keys))


def _find_fineness(counts: pl.DataFrame, keys: Sequence[str]) -> int:
    """Return the fineness of bins for all groups in the counts."""
    return find_fineness(counts.select(keys).n_unique() if keys else 1)


def _add_counts(parts: Sequence[PartCounts], keys: Sequence[str]) -> PartCounts:
    """Return the counts of all parts, in the bins for all their groups."""
    # Only parts whose labels may be both 0 and -1 have columns that count these.
    joined = pl.concat([each.table for each in parts], how="diagonal_relaxed")
    marks = [MISSING_MARKS] if MISSING_MARKS in joined.columns else []
    number = score_bin(pl.col(LOW), _find_fineness(joined, keys))
    added = collect(add_up_bins(joined.lazy(), [*keys, *marks], number))
    return PartCounts(added, [spans for each in parts for spans in each.spans])


def _count_complete(counts: pl.DataFrame) -> int:
    """Return the number of rows without a missing value."""
    return int(counts.select(pl.sum_horizontal("n_pos", "n_neg").sum()).item())


def _take_model(counts: pl.DataFrame, model: str) -> pl.DataFrame:
    if MODEL not in counts.columns:
        return counts
    return counts.filter(pl.col(MODEL).cast(pl.String) == model).drop(MODEL)
