"""Ranges of scores, whose sums add up to those of the whole curve, and the tasks that sum them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.config import Division, Progress, division
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
from polars_wroc.inputs.columns import RANGE, ROW_SQUARES, SCORE, WEIGHT, ZERO_LABEL
from polars_wroc.inputs.frames import frames_alike, read_rows
from polars_wroc.inputs.rows import Rows
from polars_wroc.queries import FrameT, aggregate, collect, join_on_keys
from polars_wroc.steps import OutsideWeights, SegmentRows

_BINNING = Binning(None)
# How many bins each part of a range between powers of two makes for probabilities. Polars adds up
# so many bins of groups as it reads; of many more it holds rows, in memory that grows with these.
_BINS_OF_PART, _MOST_BINS = 28, 150_000
_WEIGHTS = ("w_pos", "w_neg", "w2_pos", "w2_neg")
_BIN, _ROWS, _KNOWN = "__bin", "__rows", "__known"
# Scores with their own bin need no second pass if they have this proportion of a range's rows.
_WORTH_KNOWING = 1 / 8
# A range with this many times the rows it should have has few distinct scores.
_TOO_MANY = 2


def count_in_bins(rows: Rows, parts: int = _BINNING.parts) -> pl.DataFrame:
    """Count rows in bins, given the parts of a range between powers of two, for `cut_ranges`."""
    return collect(add_up_in_bins(rows, _BINNING, parts))


def _groups_of(rows: Rows) -> pl.DataFrame:
    return collect(rows.key_values())


def _parts_for(groups: int) -> int:
    """Return the most parts, a power of two, that do not make too many bins of so many groups."""
    most = _MOST_BINS // (_BINS_OF_PART * max(groups, 1))
    return min(1 << max(most.bit_length() - 1, 0), _BINNING.parts)


def _added_up(counts: Sequence[pl.DataFrame], keys: Sequence[str], parts: int) -> pl.DataFrame:
    # Only parts whose labels may be both 0 and -1 have columns that count these.
    both = pl.concat([each.lazy() for each in counts], how="diagonal_relaxed")
    return collect(add_up(both, keys, score_bin(pl.col(LOW), parts)))


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
    """A range of scores, its number of rows, the weights above and below, and what is known."""

    span: Span
    rows: int
    above: pl.DataFrame
    below: pl.DataFrame
    # Its counts, if it needs no rows.
    known: pl.DataFrame | None = None

    def rows_of(self, parts: Sequence[Rows], keys: list[str], model_keys: list[str]) -> Rows:
        """Take the rows of the range, or its counts, from the parts that have some."""
        if self.known is not None:
            return rows_by_score(self.known.lazy(), keys, model_keys)
        frames = [self.span.of(part).frame for part in parts]
        return Rows(pl.concat(frames, how="diagonal_relaxed"), keys, model_keys)

    def outside(self, segments: SegmentRows) -> OutsideWeights:
        """Return the weights of each segment of the range above it, and in all ranges."""
        above, below = (_weights_of(part, segments.segments) for part in (self.above, self.below))
        sides = np.stack([segments.weight, -segments.weight])
        inside = segments.total(np.maximum(sides, 0.0))
        return OutsideWeights(above, above + inside + below)


def _weights_of(around: pl.DataFrame, segments: pl.DataFrame) -> Array:
    """Return the weights of both classes of segments, whose signs are those of the classes."""
    keys = segments.columns
    weight = pl.col(WEIGHT)
    sums = {"pos": weight.filter(weight > 0).sum(), "neg": -weight.filter(weight < 0).sum()}
    weights = aggregate(around.lazy(), keys, sums)
    if keys:
        weights = join_on_keys(segments.lazy(), weights, keys)
    return collect(weights.select(pl.col("pos", "neg").fill_null(0.0))).to_numpy().T


def cut_ranges(
    counts: pl.DataFrame, keys: Sequence[str], rows_per_range: int, parts: int = _BINNING.parts
) -> list[ScoreRange]:
    """Cut the scores of all rows, given their bin counts, into ranges of about so many rows."""
    counts = collect(check_labels(counts.lazy(), keys))
    numbered = counts.with_columns(score_bin(pl.col(LOW), parts).alias(_BIN))
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
                rows,
                above=_around(weights.filter(pl.col(RANGE) < number), keys),
                below=_around(weights.filter(pl.col(RANGE) > number), keys),
                known=numbered.filter(of_range).select(counts.columns) if known else None,
            )
        )
    no_weights = _around(weights, keys).clear()
    return ranges or [ScoreRange(Span(None, None), 0, no_weights, no_weights, counts)]


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


@dataclass(frozen=True)
class CountedParts:
    """Parts of the data with the spans of their scores, all rows counted in bins, and the memory.

    The rows of the parts, and those of the counts, may have more keys than the ranges have.
    """

    parts: Sequence[Rows]
    spans: Sequence[Span]
    counts: pl.DataFrame
    division: Division
    # Of a range between powers of two, which are the bins.
    fineness: int

    @classmethod
    def of(cls, parts: Sequence[Rows], division: Division) -> CountedParts:
        """Count the parts, each in a task; many groups in fewer bins."""
        keys, fineness = parts[0].keys, _BINNING.parts
        if keys:
            groups = pl.concat(division.map(_groups_of, parts), how="vertical_relaxed").n_unique()
            fineness = _parts_for(groups)
        counts, spans = None, []
        for counted in division.map(partial(count_in_bins, parts=fineness), parts):
            spans.append(Span(counted[LOW].min(), counted[HIGH].max()))
            counts = counted if counts is None else _added_up([counts, counted], keys, fineness)
        assert counts is not None
        return cls(parts, spans, counts, division, fineness)

    def cut(self, keys: Sequence[str], bytes_of_row: int) -> list[ScoreRange]:
        """Cut the scores into ranges whose rows fit into the memory."""
        rows = self.division.rows_within(bytes_of_row)
        return cut_ranges(self.counts, keys, rows, self.fineness)

    def measure(
        self,
        ranges: Sequence[ScoreRange],
        task: Callable[[ScoreRange, Rows], ResultT],
        keys: list[str],
    ) -> list[ResultT]:
        """Return what the task makes of each range; it reads the parts that have scores in it."""
        items = [(each, self._with_rows(each)) for each in ranges]
        run = partial(_measure, task, keys, self.parts[0].model_keys)
        read = sum(each.known is None for each in ranges)
        with Progress(read + 1, "passes over the rows") as line:
            line.advance()
            results = []
            for each, result in zip(ranges, self.division.map(run, items), strict=True):
                line.advance(each.known is None)
                results.append(result)
        return results

    def _with_rows(self, each: ScoreRange) -> list[Rows]:
        if each.known is not None:
            return []
        spans = zip(self.parts, self.spans, strict=True)
        return [part for part, span in spans if each.span.meets(span)]


def _measure(
    task: Callable[[ScoreRange, Rows], ResultT],
    keys: list[str],
    model_keys: list[str],
    item: tuple[ScoreRange, Sequence[Rows]],
) -> ResultT:
    each, parts = item
    return task(each, each.rows_of(parts, keys, model_keys))


def require_unchanged(ranges: Sequence[ScoreRange], sums: Iterable[pl.DataFrame]) -> None:
    """Raise if a range had other rows when it was summed than when it was counted."""
    for each, table in zip(ranges, sums, strict=True):
        found = table.select(pl.sum_horizontal("n", "n_missing").sum()).item()
        if found != each.rows:
            msg = (
                "`frame` must have the same rows whenever it is read; found "
                f"{each.rows:,} rows in a range of scores, and then {found:,}"
            )
            raise ValueError(msg)


Frames: TypeAlias = FrameT | list[FrameT]


def read_parts(frame: Any, *columns: Any, designed: bool, **options: Any) -> list[Rows]:
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


def together(parts: Sequence[Rows]) -> Rows:
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
