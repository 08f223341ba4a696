"""Calibration curves: mean score and observed rate, in bins of the score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.curves.smooth_calibration import SMOOTH_RATES, limit_smooth_rates, require_loess
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.calibration import CalibrationSums, MeanErrors, RateError, sum_calibration
from polars_wroc.metrics.mean_sums import require_all_probabilities
from polars_wroc.metrics.sampled_aucs import take_parts
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.stats.estimates import limit_columns, name_limits
from polars_wroc.stats.histograms import find_ends, number_bins
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows, Steps, descend, find_changes, map_steps

Strategy: TypeAlias = Literal["uniform", "quantile"]

BIN_TYPES: Mapping[str, Any] = {
    "bin": pl.Int64,
    **dict.fromkeys(("score_min", "score_max", "mean_score"), pl.Float64),
    **dict.fromkeys(name_limits("observed_rate"), pl.Float64),
    **dict.fromkeys(name_limits("mean_calibration_error"), pl.Float64),
    "n": pl.Int64,
    "weight": pl.Float64,
}
# The rounding error of a share of the weight.
_ROUNDING = 1e-12


@check_call
def calibration_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: PositiveInt = 10,
    strategy: Strategy = "uniform",
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
    smooth: bool = False,
) -> FrameT:
    """Return the observed rate and the mean score in bins of the score, per group.

    Use it to see where scores are too high or too low; `calibration_chart` draws the table. A score
    whose curve is right in every group is called calibrated within groups [1]_.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``bin`` from 1;
    - ``score_min, score_max, mean_score``: the scores in the bin;
    - ``observed_rate`` with limits: the proportion of positives;
    - ``mean_calibration_error`` with limits: mean score minus observed rate;
    - ``n, weight``: rows and their weight.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level
        As for `summary`; the score must lie between 0 and 1.
    bins
        Number of bins for the scores of each group.
    strategy
        ``"uniform"``: bins of equal width; each includes its upper end, the first also 0.
        ``"quantile"``: bins of equal weight, as far as ties allow.
    design
        As for `summary`. Only with ``"uniform"``, since other bins move with the sample.
    smooth
        Add a smooth curve, R's loess; needs the extra ``polars-wroc[smooth]``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and bin that has rows, sorted by the ``by`` columns, then by
        ``bin``. ``bin`` and ``n`` are Int64, the rest Float64; limits have the suffixes ``_low``
        and ``_high``. Rates, means and limits are null where sums of weights overflow or underflow.
        Missing rows are in no bin.

        ``smooth`` adds ``smooth_rate``, the smooth curve at the mean score of the bin, with
        ``smooth_rate_low, smooth_rate_high``; null with fewer than eight distinct scores, the
        limits also with `Looks`.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`; also, once the rows are read, for a score outside 0 to 1.

    Notes
    -----
    Limits of the rate are Wilson's, with effective sample sizes where there are weights; limits of
    the error treat the scores as fixed. Limits of the smooth curve are percentiles of 200 bootstrap
    samples, for each score by itself.

    References
    ----------
    .. [1] Kleinberg, J. et al. (2017), Innovations in Theoretical Computer Science.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> curve = wroc.calibration_curve(df, "y", "s", bins=2)
    >>> curve.select("bin", "mean_score", "observed_rate", "mean_calibration_error")
    shape: (2, 4)
    ┌─────┬────────────┬───────────────┬────────────────────────┐
    │ bin ┆ mean_score ┆ observed_rate ┆ mean_calibration_error │
    │ --- ┆ ---        ┆ ---           ┆ ---                    │
    │ i64 ┆ f64        ┆ f64           ┆ f64                    │
    ╞═════╪════════════╪═══════════════╪════════════════════════╡
    │ 1   ┆ 0.266667   ┆ 0.0           ┆ 0.266667               │
    │ 2   ┆ 0.8        ┆ 1.0           ┆ -0.2                   │
    └─────┴────────────┴───────────────┴────────────────────────┘
    """
    divide = BinOptions(bins, strategy)
    if strategy == "quantile":
        why = "for strategy 'quantile', whose bins move with the sample: use strategy='uniform'"
        read_design(design).require_none(why)
    if smooth:
        require_loess("leave it out")
    columns = read_columns(frame, label, score, weight, by, pos_label, design)
    columns.require_scores("a calibration")
    types = dict(BIN_TYPES)
    if smooth:
        types |= dict.fromkeys(SMOOTH_RATES, pl.Float64)
    measure = partial(_measure_segments, bins=divide, smooth=smooth)
    return table_of_segments(frame, columns, types, measure, level)


@dataclass(frozen=True)
class BinOptions:
    """The number of bins into which scores of a segment are divided, and the strategy."""

    number: int
    strategy: Strategy

    def number_rows(self, rows: SegmentRows) -> Ints:
        """Return the number of the bin of each row, from 1; rows are in descending order."""
        if self.strategy == "uniform":
            return number_bins(rows.score, find_ends(self.number, 0.0, 1.0)) + 1
        return _number_quantiles(rows, self.number)


def _number_quantiles(rows: SegmentRows, bins: int) -> Ints:
    """Return the number of each row's bin by the share of the weight with a lower score."""

    def share_below(steps: Steps) -> Array:
        weight = steps.spread(steps.totals.sum(axis=0))
        return np.asarray((weight - steps.weights_reached.sum(axis=0)) / weight)

    blocks = [share for _, share in map_steps(rows, share_below)]
    share = np.concatenate([*blocks, np.zeros(0)])
    # (k - 1) / bins <= share < k / bins; weights that overflow make one bin.
    number = np.floor((share + _ROUNDING) * bins) + 1
    number = np.where(np.isnan(share), 1, np.clip(number, 1, bins)).astype(np.int64)
    is_new = find_changes(rows.score) | find_changes(rows.segment)
    return np.asarray(number[is_new.cumsum() - 1])


def divide_segments(rows: SegmentRows, bins: BinOptions) -> SegmentRows:
    """Return the rows divided into bins: segments with the keys ``segment`` and ``bin``.

    Rows and bins are in descending order of the score within each segment.
    """
    segment, number = rows.segment, bins.number_rows(rows)
    starts = np.flatnonzero(find_changes(segment) | find_changes(number))
    return replace(
        rows,
        segments=pl.DataFrame({"segment": segment[starts], "bin": number[starts]}),
        starts=np.append(starts, len(segment)),
        missing=np.zeros(len(starts), np.int64),
        bins=None,
        outside=None,
    )


def _measure_segments(
    rows: Rows, segments: SegmentRows, bins: BinOptions, level: Level, *, smooth: bool
) -> Iterator[SegmentColumns]:
    require_all_probabilities(rows)
    for first, part_rows, part in take_parts(rows, segments):
        segment, columns = measure_bins(part_rows, part, bins, level)
        rates = {}
        if smooth:
            mean = columns["mean_score"]
            rates = limit_smooth_rates(part_rows, part, segment, mean, level)
        yield SegmentColumns(segment + first, {**columns, **rates})


def measure_bins(
    rows: Rows, segments: SegmentRows, bins: BinOptions, level: Level
) -> SegmentColumns:
    """Return the columns of `BIN_TYPES` of the bins of each segment that have rows."""
    binned = divide_segments(descend(segments), bins)
    sums = sum_calibration(binned, rows.sample)
    errors = MeanErrors.of(sums, None if rows.sample is None else rows.sample.units)
    rate = errors.rate()
    quantile = level.quantile(rate.df)
    error_limits = RateError(errors.value, rate).limits(quantile)
    weight = sums.errors.whole.weight
    columns = {
        "bin": binned.segments["bin"].to_numpy(),
        "score_min": binned.score[binned.starts[1:] - 1],
        "score_max": binned.score[binned.starts[:-1]],
        "n": sums.errors.whole.rows,
        "weight": np.where(np.isfinite(weight), weight, np.nan),
        "mean_score": sums.mean_score,
        **limit_columns("observed_rate", rate.value, rate.limits(quantile)),
        **limit_columns("mean_calibration_error", errors.value, error_limits),
    }
    # Reversed, so that the lowest bin of each segment comes first
    rising = {name: values[::-1] for name, values in columns.items()}
    return SegmentColumns(binned.segments["segment"].to_numpy()[::-1], rising)


def measure_bin_errors(segments: SegmentRows, bins: BinOptions) -> tuple[Array, Array]:
    """Return the expected and the maximum calibration error of each segment, in descending rows.

    NaN where a segment has no rows, or where sums of weights overflow or underflow.
    """
    binned = divide_segments(segments, bins)
    sums: CalibrationSums = sum_calibration(binned)
    error, weight = np.abs(sums.errors.mean().value), sums.errors.whole.weight
    starts = np.searchsorted(binned.segments["segment"].to_numpy(), np.arange(segments.number + 1))
    filled = np.flatnonzero(np.diff(starts) > 0)
    expected, maximum = np.full((2, segments.number), np.nan)
    if len(filled):
        firsts = starts[:-1][filled]
        total = np.add.reduceat(weight, firsts)
        is_known = np.isfinite(total) & np.isfinite(1 / total)
        mean = np.add.reduceat(error * weight, firsts) / total
        expected[filled] = np.where(is_known, mean, np.nan)
        maximum[filled] = np.where(is_known, np.maximum.reduceat(error, firsts), np.nan)
    return expected, maximum
