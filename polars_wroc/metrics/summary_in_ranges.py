"""The summary of data larger than memory, computed one range of scores at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import polars as pl

from polars_wroc.counts.count_table import with_same_keys
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.inputs.score_types import frames_alike
from polars_wroc.metrics.roc_auc_ci import IntervalOptions, Method
from polars_wroc.metrics.score_ranges import (
    ScoreRange,
    Span,
    add_bin_counts,
    count_in_bins,
    cut_ranges,
    rows_by_score,
    span_of,
    summary_of_ranges,
    together,
)
from polars_wroc.metrics.summary import SUMMARY_COLUMNS
from polars_wroc.plans.collect import collect
from polars_wroc.plans.spill_guard import SpillWarning

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
    method: Method = "logit-t",
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
    `polars_wroc.dask.summary` does the same on several machines, all ranges at once.

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
    arguments.whole_number("rows_per_range", rows_per_range, low=1)
    parts = read_parts("frames", frames, label, score, weight, by, pos_label)
    counts, spans = _count_each(parts)
    ranges = cut_ranges(counts, parts[0].keys, rows_per_range)
    with warnings.catch_warnings():
        # A range fits in memory.
        warnings.simplefilter("ignore", SpillWarning)
        sums = [collect(each.sums(_rows_in(each, parts, spans), options)) for each in ranges]
    return collect(summary_of_ranges(sums, parts[0], options))


def read_parts(
    argument: str,
    frames: object,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
) -> list[Rows]:
    """Read the rows of each part of the data, and check that all have the same groups."""
    listed = [frames] if isinstance(frames, pl.DataFrame | pl.LazyFrame) else frames
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        arguments.reject_type(argument, "be one or several DataFrames or LazyFrames", frames)
    read = [read_rows(f, label, score, weight, by, pos_label) for f in listed]
    read[0].check_names(SUMMARY_COLUMNS)
    parts = with_same_keys(argument, read)
    alike = frames_alike(argument, [part.frame for part in parts], SCORE)
    return [replace(part, frame=frame) for part, frame in zip(parts, alike, strict=True)]


def _count_each(parts: Sequence[Rows]) -> tuple[pl.DataFrame, list[Span]]:
    """Count all parts in bins, one after another, and note the span of scores of each."""
    first, *others = parts
    counts = collect(count_in_bins(first))
    spans = [span_of(counts)]
    for part in others:
        counted = collect(count_in_bins(part))
        spans.append(span_of(counted))
        counts = add_bin_counts([counts, counted], part.keys)
    return counts, spans


def _rows_in(each: ScoreRange, parts: Sequence[Rows], spans: Sequence[Span]) -> Rows:
    """Take the rows of a range from the parts that may have any."""
    if each.known is not None:
        return rows_by_score(each.known.lazy(), parts[0].keys)
    within = [
        each.span.of(part).frame
        for part, span in zip(parts, spans, strict=True)
        if each.span.meets(span)
    ]
    return together(within, parts[0].keys)
