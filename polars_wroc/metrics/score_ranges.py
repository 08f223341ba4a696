"""Ranges of scores, whose sums add up to those of the whole curve, and a summary made of them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import polars as pl

from polars_wroc.counts.count_table import with_same_keys
from polars_wroc.counts.score_sums import (
    COUNTS,
    HIGH,
    LOW,
    Binning,
    add_up,
    add_up_in_bins,
    check_labels,
    row_sums,
    rows_from_counts,
    score_bin,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    OUTSIDE,
    RANGE,
    ROW_SQUARES,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.frames import frames_alike, read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.registry import SUMMARY_METRICS
from polars_wroc.metrics.summary import (
    DIAGNOSTIC_COLUMNS,
    SUMMARY_COLUMNS,
    summary_of,
    summary_sums,
    with_cells,
)
from polars_wroc.plans.config import SpillWarning
from polars_wroc.plans.queries import aggregate, collect
from polars_wroc.ranking.placements import add_placements, row_curve
from polars_wroc.ranking.sorting import by_descending_score

_BINNING = Binning(None)
_PARTS = _BINNING.parts
_WEIGHTS = ("w_pos", "w_neg", "w2_pos", "w2_neg")
_BIN, _ROWS, _KNOWN = "__bin", "__rows", "__known"
# Scores with their own bin need no second pass if they have this proportion of a range's rows.
_WORTH_KNOWING = 1 / 8
# A range with this many times the rows it should have has few distinct scores.
_TOO_MANY = 2
# Columns whose maximum over the ranges is that of the whole; the others are summed.
_LARGEST = [metric.column for metric in SUMMARY_METRICS if metric.over_ranges == "max"]


def count_in_bins(rows: Rows) -> pl.LazyFrame:
    """Count a part of the data in bins, for `add_bin_counts` and `cut_ranges`."""
    return add_up_in_bins(rows, _BINNING, _PARTS)


def add_bin_counts(counts: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Add up the bin counts of parts of the data."""
    # Only parts whose labels may be both 0 and -1 have columns that count these.
    parts = pl.concat([part.lazy() for part in counts], how="diagonal_relaxed")
    return collect(add_up(parts, keys, score_bin(pl.col(LOW), _PARTS)))


@dataclass(frozen=True)
class Span:
    """The lowest and highest score of a range, and whether to count its rows by score."""

    low: Any
    high: Any
    counted: bool = False

    def meets(self, other: Span) -> bool:
        """Whether two spans overlap."""
        if self.low is None or other.low is None:
            return False
        return bool(self.low <= other.high and other.low <= self.high)

    def of(self, rows: Rows) -> Rows:
        """Take the rows that score in the range."""
        inside = rows.frame.filter(pl.col(SCORE).is_between(self.low, self.high))
        within = replace(rows, frame=inside.drop(ZERO_LABEL, strict=False))
        if not self.counted:
            return within
        # Rows of a class that have the same score are pooled.
        counts = add_up(row_sums(within), rows.keys, pl.col(LOW))
        return rows_by_score(counts, rows.keys, rows.model_keys)


@dataclass(frozen=True)
class ScoreRange:
    """A range of scores, the weights above and below, and its counts if it needs no rows."""

    span: Span
    above: pl.DataFrame
    below: pl.DataFrame
    known: pl.DataFrame | None = None

    def place(self, rows: Rows) -> pl.LazyFrame:
        """Rank the rows of the range among those of all ranges."""
        ranked = self.between(rows)
        return ranked.inside(add_placements(ranked.frame, rows.keys, pl.col(WEIGHT)))

    def between(self, rows: Rows) -> Rows:
        """Sort the rows of the range, between rows that stand for all above and below it.

        One row with their weight, and if rows are counted their squared weights, acts like all.
        """
        inside, outside = (pl.lit(value=value).alias(OUTSIDE) for value in (False, True))
        names = [*rows.keys, WEIGHT, *([ROW_SQUARES] if rows.counted else [])]
        above, below = (
            around.lazy().select(*names, outside) for around in (self.above, self.below)
        )
        here = by_descending_score(rows).with_columns(inside, pl.col(WEIGHT).cast(pl.Float64))
        frame = pl.concat([above, here, below], how="diagonal_relaxed")
        return replace(rows, frame=frame, in_order=True)


def cut_ranges(counts: pl.DataFrame, keys: Sequence[str], rows_per_range: int) -> list[ScoreRange]:
    """Cut the scores of all rows, given their bin counts, into ranges of about so many rows."""
    counts = collect(check_labels(counts.lazy(), keys))
    numbered = counts.with_columns(score_bin(pl.col(LOW), _PARTS).alias(_BIN))
    cuts = _cut(numbered, rows_per_range)
    numbered = numbered.join(cuts.select(_BIN, RANGE), on=_BIN, nulls_equal=True)
    weights = numbered.group_by(*keys, RANGE).agg(pl.col(_WEIGHTS).sum())
    spans = cuts.group_by(RANGE).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), pl.col(_ROWS).sum(), pl.col(_KNOWN).first()
    )
    ranges = []
    for number, low, high, rows, known in spans.sort(RANGE).iter_rows():
        of_range = pl.col(RANGE) == number
        ranges.append(
            ScoreRange(
                Span(low, high, counted=rows > _TOO_MANY * rows_per_range),
                above=_around(weights.filter(pl.col(RANGE) < number), keys),
                below=_around(weights.filter(pl.col(RANGE) > number), keys),
                known=numbered.filter(of_range).select(counts.columns) if known else None,
            )
        )
    no_weights = _around(weights, keys).clear()
    return ranges or [ScoreRange(Span(None, None), no_weights, no_weights, counts)]


def together(frames: Sequence[pl.LazyFrame], keys: list[str], model_keys: list[str]) -> Rows:
    """Concatenate the rows of a range from several parts."""
    return Rows(pl.concat(frames, how="diagonal_relaxed"), keys, model_keys)


def add_ranges(sums: Iterable[pl.DataFrame], keys: Sequence[str]) -> pl.LazyFrame:
    """Add up the sums of some or all ranges, in any order."""
    parts = pl.concat([part.lazy() for part in sums], how="vertical_relaxed")
    names = [name for name in parts.collect_schema() if name not in keys]
    added = aggregate(parts, keys, {name: _added(name) for name in names})
    # The last digits of an AUC that was added up may be beyond 1.
    return added.with_columns(pl.col("auc").clip(0.0, 1.0))


def _added(name: str) -> pl.Expr:
    part = pl.col(name)
    whole = part.max() if name in _LARGEST else part.sum()
    # What is undefined in one part is undefined in all.
    return pl.when(part.count() > 0).then(whole)


def _cut(numbered: pl.DataFrame, rows_per_range: int) -> pl.DataFrame:
    """Number the range of each bin from the highest score down, missing scores first."""
    bins = numbered.group_by(_BIN).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), pl.sum_horizontal(COUNTS).sum().alias(_ROWS)
    )
    bins = bins.sort(_BIN, descending=True, nulls_last=False)
    rows, low = pl.col(_ROWS), pl.col(LOW)
    alone = low.eq_missing(pl.col(HIGH))
    enough = rows.sum().over(alone.rle_id()) >= _WORTH_KNOWING * rows_per_range
    bins = bins.with_columns((low.is_null() | (alone & enough)).alias(_KNOWN))
    stretch = pl.col(_KNOWN).rle_id()
    before = rows.cum_sum().over(stretch) - rows
    return bins.with_columns(pl.struct(stretch, before // rows_per_range).rle_id().alias(RANGE))


def _around(weights: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return a row with the total weight of each class of each group."""
    total = aggregate(weights.lazy(), keys, {name: pl.col(name).sum() for name in _WEIGHTS})
    sides = {"w2_pos": pl.col("w_pos"), "w2_neg": -pl.col("w_neg")}
    rows = pl.concat(
        [
            total.select(*keys, side.alias(WEIGHT), pl.col(squares).alias(ROW_SQUARES))
            for squares, side in sides.items()
        ]
    )
    return collect(rows.filter(pl.col(WEIGHT) != 0))


def rows_by_score(counts: pl.LazyFrame, keys: list[str], model_keys: list[str]) -> Rows:
    """Turn counts by score into rows."""
    named = counts.with_columns(pl.col(LOW).alias(SCORE))
    return rows_from_counts(named, keys, model_keys, binned=False)


ResultT = TypeVar("ResultT")


class RangePasses(ABC):
    """Passes over the rows of several parts of the data, which have the same groups."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        """Set the parts."""
        self.parts = parts

    @property
    def keys(self) -> list[str]:
        """The keys of all parts."""
        return self.parts[0].keys

    @property
    def model_keys(self) -> list[str]:
        """The key that names the model, if there are several models."""
        return self.parts[0].model_keys

    @abstractmethod
    def count(self, parts: Sequence[Rows]) -> pl.DataFrame:
        """Count the rows in bins; the ``parts`` may have more keys than those of the passes."""

    def measure(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Return what the task makes of each range, reading only those whose rows are not known."""
        read = iter(self.read([each for each in ranges if each.known is None], task))
        return [
            next(read)
            if each.known is None
            else run(task, each, rows_by_score(each.known.lazy(), self.keys, self.model_keys))
            for each in ranges
        ]

    @abstractmethod
    def read(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Read the rows of each range, and return what the task makes of them."""


def run(task: Callable[[ScoreRange, Rows], ResultT], each: ScoreRange, rows: Rows) -> ResultT:
    """Measure a range, which fits in memory, so that nothing spills."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpillWarning)
        return task(each, rows)


class PassesInTurn(RangePasses):
    """Passes in this process: one part after another, then one range after another."""

    # Of the scores of each part, from the first pass on.
    _spans: Sequence[Span] = ()

    def count(self, parts: Sequence[Rows]) -> pl.DataFrame:
        """Count the parts one after another, and note the span of the scores of each."""
        counts, self._spans = None, []
        for part in parts:
            counted = collect(count_in_bins(part))
            self._spans = [*self._spans, Span(counted[LOW].min(), counted[HIGH].max())]
            counts = counted if counts is None else add_bin_counts([counts, counted], part.keys)
        assert counts is not None
        return counts

    def read(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Read one range after another, each from the parts that have scores in it."""
        return [run(task, each, self._rows_in(each.span)) for each in ranges]

    def _rows_in(self, span: Span) -> Rows:
        within = [
            span.of(part).frame
            for part, of_part in zip(self.parts, self._spans, strict=True)
            if span.meets(of_part)
        ]
        return together(within, self.keys, self.model_keys)


# Sorting them takes some two gigabytes.
ROWS_PER_RANGE = 10_000_000

Frames: TypeAlias = pl.DataFrame | pl.LazyFrame | Sequence[pl.DataFrame | pl.LazyFrame]


def summary_in_ranges(
    frames: Frames,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    rows_per_range: int = ROWS_PER_RANGE,
    diagnostics: bool = False,
) -> pl.DataFrame:
    """`summary` of data larger than memory, computed one range of scores at a time.

    Parameters
    ----------
    frames
        One or several LazyFrames or DataFrames, whose rows are summarised together. A frame is read
        for a range only if it has scores in it: files that each hold their own range of scores
        are read once to count and once or twice to measure.
    label, score, weight, by, pos_label, level, method
        As for `summary`.
    rows_per_range
        About how many rows are in memory at once. The frames are read once to count and once for
        each range, so that smaller ranges take longer.
    diagnostics
        As for `summary`.

    Returns
    -------
    pl.DataFrame
        The result of `summary` for all rows; numbers may differ in the last digits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for frames with different groups and for ``rows_per_range`` below 1.

    Notes
    -----
    The first pass counts rows in bins of scores. The counts give ranges of about equally many
    rows, and the weight above and below each range, which is all that it needs from the others.
    Counts, weights and the sums for the AUC, its variance and the average precision add up over
    ranges; KS is the largest of the ranges. Many rows with few distinct scores need no second
    pass. There is no ``design``, since rows of one cluster may be in different ranges.
    `polars_wroc.dask.summary` does the same on several machines, all ranges at once;
    `audit_in_ranges` adds up whole audits.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> monday = pl.LazyFrame({"y": [1, 0], "s": [0.9, 0.7]})
    >>> tuesday = pl.LazyFrame({"y": [1, 0], "s": [0.7, 0.1]})
    >>> table = wroc.summary_in_ranges([monday, tuesday], "y", "s", rows_per_range=2)
    >>> table.select("n", "n_pos", "auc", "ks")
    shape: (1, 4)
    ┌─────┬───────┬───────┬─────┐
    │ n   ┆ n_pos ┆ auc   ┆ ks  │
    │ --- ┆ ---   ┆ ---   ┆ --- │
    │ i64 ┆ i64   ┆ f64   ┆ f64 │
    ╞═════╪═══════╪═══════╪═════╡
    │ 4   ┆ 2     ┆ 0.875 ┆ 0.5 │
    └─────┴───────┴───────┴─────┘
    """
    arguments.flag("diagnostics", diagnostics)
    interval = Interval(level, method)
    rows_per_range = arguments.whole_number("rows_per_range", rows_per_range, low=1)
    parts = read_parts("frames", frames, label, score, weight, by, pos_label)
    passes = PassesInTurn(parts)
    return summarise_ranges(passes, interval, rows_per_range, diagnostics=diagnostics)


def summarise_ranges(
    passes: RangePasses,
    interval: Interval,
    rows_per_range: int,
    *,
    diagnostics: bool = False,
) -> pl.DataFrame:
    """Summarise the rows of all parts from ranges of about so many rows."""
    rows = passes.parts[0]
    rows.check_names(SUMMARY_COLUMNS)
    ranges = cut_ranges(passes.count(passes.parts), rows.keys, rows_per_range)
    sums = passes.measure(ranges, partial(sum_range, interval=interval))
    table = with_cells(summary_of(add_ranges(sums, rows.keys), interval.for_rows(rows)))
    more = DIAGNOSTIC_COLUMNS if diagnostics else ()
    return collect(rows.result(table, (*SUMMARY_COLUMNS, *more)))


def sum_range(each: ScoreRange, rows: Rows, interval: Interval) -> pl.DataFrame:
    """Return the sums over the range that `add_ranges` adds up."""
    sums = summary_sums(rows, interval.for_rows(rows), row_curve(in_range=True))
    return collect(rows.aggregate(each.place(rows), sums))


def read_parts(
    argument: str,
    frames: object,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    pos_label: object,
    *,
    mark_missing: bool = False,
) -> list[Rows]:
    """Read the rows of each part of the data, and check that all have the same groups."""
    listed = [frames] if isinstance(frames, pl.DataFrame | pl.LazyFrame) else frames
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        arguments.reject_type(argument, "be one or several DataFrames or LazyFrames", frames)
    read = [
        read_rows(frame, label, score, weight, by, pos_label, mark_missing=mark_missing)
        for frame in listed
    ]
    parts = with_same_keys(argument, read)
    alike = frames_alike(argument, [part.frame for part in parts], SCORE)
    return [replace(part, frame=frame) for part, frame in zip(parts, alike, strict=True)]
