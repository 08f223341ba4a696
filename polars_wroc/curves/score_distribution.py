"""Distributions of scores, in bins of equal width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import Finite, PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import ratio
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.stats.histograms import choose_range, find_ends, number_bins
from polars_wroc.steps import SegmentRows

DISTRIBUTION_TYPES: Mapping[str, type[pl.DataType]] = {
    "positive": pl.Boolean,
    "bin": pl.Int64,
    **dict.fromkeys(("bin_low", "bin_high"), pl.Float64),
    "n": pl.Int64,
    **dict.fromkeys(("weight", "share", "density", "cumulative"), pl.Float64),
}
_ENDS = 2


@check_call
def score_distribution(
    frame: FrameT,
    score: IntoColumns,
    *,
    label: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: PositiveInt = 20,
    range: tuple[float, float] | None = None,  # noqa: A002  (as in numpy.histogram)
) -> FrameT:
    """Return a weighted histogram of the score, per group and class.

    Draw it with `distribution_chart`.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``positive``: the class; null without a label;
    - ``bin, bin_low, bin_high``: the bin from 1, and its ends;
    - ``n, weight``: rows and their weight;
    - ``share``: the proportion of the weight of the group and class;
    - ``density, cumulative``: the share divided by the width of the bin, and summed up to it.

    Parameters
    ----------
    frame, score, weight, by, pos_label
        As for `summary`.
    label
        As for `summary`, for the distribution of each class; None for all rows.
    bins
        Number of bins of equal width, the same for all groups. Each includes its upper end, the
        first also its lower end.
    range
        Lower end of the first bin and upper end of the last; all scores must lie between them.
        None: 0 and 1 if all scores lie there, else the extreme scores of each model.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), class and bin, also those without rows, sorted by the ``by``
        columns, then by class and bin. ``positive`` is Boolean, ``bin`` and ``n`` Int64, the rest
        Float64. ``share, density, cumulative`` are null where the class has no weight in the group.
        Missing rows are in no bin.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`; also, at collect, for a score that is infinite or outside the range, and
        for binned counts that do not fit these bins.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> table = wroc.score_distribution(df, "s", label="y", bins=2)
    >>> table.select("positive", "bin_low", "bin_high", "n", "share")
    shape: (4, 5)
    ┌──────────┬─────────┬──────────┬─────┬───────┐
    │ positive ┆ bin_low ┆ bin_high ┆ n   ┆ share │
    │ ---      ┆ ---     ┆ ---      ┆ --- ┆ ---   │
    │ bool     ┆ f64     ┆ f64      ┆ i64 ┆ f64   │
    ╞══════════╪═════════╪══════════╪═════╪═══════╡
    │ false    ┆ 0.0     ┆ 0.5      ┆ 1   ┆ 0.5   │
    │ false    ┆ 0.5     ┆ 1.0      ┆ 1   ┆ 0.5   │
    │ true     ┆ 0.0     ┆ 0.5      ┆ 0   ┆ 0.0   │
    │ true     ┆ 0.5     ┆ 1.0      ┆ 2   ┆ 1.0   │
    └──────────┴─────────┴──────────┴─────┴───────┘
    """
    ends = None if range is None else _check_range(range)
    columns = read_columns(frame, label, score, weight, by, pos_label)

    def tabulate(_: Rows, segments: SegmentRows) -> list[SegmentColumns]:
        return [distribute_scores(segments, bins, ends, by_class=label is not None)]

    return table_of_segments(frame, columns, DISTRIBUTION_TYPES, tabulate)


def _check_range(ends: object) -> tuple[float, float]:
    """Check the range of the bins."""
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != _ENDS:
        checks.reject_type("range", "be two numbers, for example (0.0, 1.0)", ends)
    low, high = (checks.number("range", end, Finite()) for end in ends)
    if low >= high:
        checks.reject("range", "rise from a lower to a higher score", repr(ends))
    return low, high


def distribute_scores(
    segments: SegmentRows,
    bins: int,
    between: tuple[float, float] | None,
    *,
    by_class: bool = True,
) -> SegmentColumns:
    """Return the columns of `DISTRIBUTION_TYPES` of each segment, class and bin."""
    ends = _find_ends(segments, bins, between)
    classes = 2 if by_class else 1
    shape = segments.number, classes, bins
    n, weight = _sum_bins(segments, _number_bins(segments, ends), shape)
    below = weight.cumsum(axis=-1)
    total = below[..., -1:]
    share, width = ratio(weight, total), np.diff(ends)
    positive = np.arange(classes) if by_class else np.full(classes, np.nan)
    columns = {
        "positive": positive[:, np.newaxis],
        "bin": np.arange(bins) + 1,
        "bin_low": ends[:-1],
        "bin_high": ends[1:],
        "n": n,
        "weight": weight,
        "share": share,
        "density": np.where(width > 0, share / width, np.nan),
        "cumulative": ratio(below, total),
    }
    spread = {name: np.broadcast_to(values, shape).ravel() for name, values in columns.items()}
    return SegmentColumns(np.repeat(np.arange(segments.number), classes * bins), spread)


def _find_ends(segments: SegmentRows, bins: int, between: tuple[float, float] | None) -> Array:
    """Return the ends of the bins; raise for scores that have none."""
    score = segments.score
    highest = score if segments.bins is None else segments.bins.high
    if between is None:
        infinite = score[np.isinf(score)]
        if not len(infinite):
            infinite = highest[np.isinf(highest)]
        if len(infinite):
            checks.reject("score", "be finite in bins of equal width", infinite[0])
        return find_ends(bins, *choose_range(score, highest))
    low, high = between
    outside = np.append(score[score < low], highest[highest > high])
    if len(outside):
        checks.reject("range", "hold all scores", outside[0])
    return find_ends(bins, low, high)


def _number_bins(segments: SegmentRows, ends: Array) -> Ints:
    """Return the bin of each row; raise for a bin of counts that an end divides."""
    number = number_bins(segments.score, ends)
    if segments.bins is not None:
        divided = np.flatnonzero(number != number_bins(segments.bins.high, ends))
        if len(divided):
            place = divided[0]
            found = f"one from {segments.score[place]} to {segments.bins.high[place]}"
            msg = f"`bins` and `range` must not divide a bin of the counts; found {found}"
            raise ValueError(msg)
    return number


def _sum_bins(
    segments: SegmentRows, number: Ints, shape: tuple[int, int, int]
) -> tuple[Array, Array]:
    """Return the numbers of rows, and their weights, in each bin of a class of a segment."""
    _, classes, bins = shape
    is_positive = (segments.weight > 0) & (classes > 1)
    place = (segments.segment * classes + is_positive) * bins + number
    size = int(np.prod(shape))
    rows = None if segments.counts is None else segments.counts.n
    sums = [np.bincount(place, values, size) for values in (rows, np.abs(segments.weight))]
    n, weight = (each.astype(np.float64).reshape(shape) for each in sums)
    return np.round(n), weight
