"""The summary of data larger than memory, computed one range of scores at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import polars as pl

from polars_wroc.counts.count_table import with_same_keys
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.inputs.score_types import frames_alike
from polars_wroc.metrics.auc_interval import IntervalOptions, Method
from polars_wroc.metrics.range_passes import PassesInTurn, RangePasses
from polars_wroc.metrics.score_ranges import ScoreRange, cut_ranges, summary_of_ranges
from polars_wroc.metrics.summary import SUMMARY_COLUMNS
from polars_wroc.plans.collect import collect

# Sorting them takes some two gigabytes.
ROWS_PER_RANGE = 10_000_000

Frames: TypeAlias = pl.DataFrame | pl.LazyFrame | Sequence[pl.DataFrame | pl.LazyFrame]


def summary_in_ranges(
    frames: Frames,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    weight_type: WeightType = "probability",
    rows_per_range: int = ROWS_PER_RANGE,
) -> pl.DataFrame:
    """`summary` of data larger than memory, computed one range of scores at a time.

    Parameters
    ----------
    frames
        One or several LazyFrames or DataFrames, whose rows are summarised together. A frame is read
        for a range only if it has scores in it: files that each hold their own range of scores
        are read once to count and once or twice to measure.
    label, score, weight, by, pos_label, level, method, weight_type
        As for `summary`.
    rows_per_range
        About how many rows are in memory at once. The frames are read once to count and once for
        each range, so that smaller ranges take longer.

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
    pass. There is no ``cluster``, since rows of one cluster may be in different ranges.
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
    options = IntervalOptions(level, method, weight_type)
    rows_per_range = arguments.whole_number("rows_per_range", rows_per_range, low=1)
    parts = read_parts("frames", frames, label, score, weight, by, pos_label)
    return summarise_ranges(PassesInTurn(parts), options, rows_per_range)


def summarise_ranges(
    passes: RangePasses, options: IntervalOptions, rows_per_range: int
) -> pl.DataFrame:
    """Summarise the rows of all parts from ranges of about so many rows."""
    rows = passes.parts[0]
    rows.check_names(SUMMARY_COLUMNS)
    ranges = cut_ranges(passes.count(passes.parts), rows.keys, rows_per_range)
    sums = passes.measure(ranges, partial(_sums, options=options))
    return collect(summary_of_ranges(sums, rows, options))


def _sums(each: ScoreRange, rows: Rows, options: IntervalOptions) -> pl.DataFrame:
    return collect(each.sums(rows, options))


def read_parts(
    argument: str,
    frames: object,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
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
