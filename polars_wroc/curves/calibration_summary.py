"""Calibration in the large, O:E, slope, intercept and errors of groups, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.bounds import Between, PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.curves.calibration_curve import BinOptions, Strategy, measure_bin_errors
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.reasons import FEW_EVENTS
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import calibration
from polars_wroc.metrics.brier_parts import BRIER_COLUMNS, decompose_brier
from polars_wroc.metrics.mean_sums import require_all_probabilities
from polars_wroc.metrics.sampled_aucs import take_parts
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.stats.estimates import Estimate, limit_columns, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows, descend

_ERROR, _RATIO, _RATE = "mean_calibration_error", "oe_ratio", "observed_rate"
_SLOPE, _INTERCEPT = "calibration_slope", "calibration_intercept"
_COUNTS = ("n", "n_pos", "n_missing", "n_extreme", "n_impossible")
_VALUES = (
    *name_limits(_ERROR),
    *name_limits(_RATIO),
    *name_limits(_SLOPE),
    f"{_SLOPE}_se",
    *name_limits(_INTERCEPT),
    "mean_score",
    *name_limits(_RATE),
    "expected_calibration_error",
    "maximum_calibration_error",
    *BRIER_COLUMNS,
)
_REASON = "reason"
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(_VALUES, pl.Float64),
    **dict.fromkeys(_COUNTS, pl.Int64),
    _REASON: pl.String,
}

# For a smaller float x, 1 - x would round to 1 or keep hardly any digit of x.
_LEAST_CLIP = 1e-15
Clip: TypeAlias = Annotated[float, Between(_LEAST_CLIP, 0.5)]


@check_call
def calibration_summary(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: PositiveInt = 10,
    strategy: Strategy = "uniform",
    clip: Clip | None = None,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Return measures of calibration per group: mean error, O:E ratio, slope and others.

    Use it to find out whether scores can be read as probabilities. To test in which range scores
    are off, use `calibration_test`, which needs no bins; for a chart, use `calibration_curve`.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``mean_calibration_error``: mean score minus observed rate; positive if scores are too high;
    - ``oe_ratio``: observed rate divided by mean score; above 1 if scores are too low;
    - ``calibration_slope``: below 1 if high scores are too high and low ones too low;
    - ``calibration_intercept``: above 0 if scores are too low;
    - ``brier_score``: mean squared error;
    - ``reason``: ``"few effective events"`` where, with weights, limits of the mean error, the
      ratio and the observed rate may be too narrow.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level, design
        As for `summary`; the score must lie between 0 and 1.
    bins, strategy
        The bins of the two binned errors: see `calibration_curve`.
    clip
        Smallest distance of a score from 0 and 1 in the regressions, between 1e-15 and 0.5; closer
        scores are moved to this distance. None: scores of exactly 0 and 1, whose logit is infinite,
        are left out of the regressions, which usually changes the slope least.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. Counts are Int64, ``reason`` is
        String, and all other columns are Float64. The mean error, the ratio, the slope, the
        intercept and ``observed_rate`` have limits with the suffixes ``_low`` and ``_high``. Other
        columns, without limits:

        - ``calibration_slope_se``: standard error of the slope; ``mean_score``;
        - ``expected_calibration_error, maximum_calibration_error``: weighted mean and largest
          absolute difference of mean score and observed rate over the bins [1]_. Chance makes them
          larger than 0, the more so with fewer rows: do not compare groups by them;
        - ``miscalibration, discrimination, uncertainty``: the Brier score is ``miscalibration -
          discrimination + uncertainty``, by isotonic regression [2]_;
        - ``reliability, resolution``: the Brier score is also ``reliability - resolution +
          uncertainty``, over distinct scores [3]_. With few ties ``reliability`` is mostly noise;
        - ``n, n_pos, n_missing``: rows used, positives and missing rows;
        - ``n_extreme, n_impossible``: rows with a score of exactly 0 or 1, and how many of them
          have the opposite outcome.

        There are few effective events if fewer than five effective rows have the rarer outcome.
        Everything is null if no row has weight. Slope and intercept are null if a class has no
        weight or the regression does not converge. Limits are null if the variance is unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `calibration_curve`.

    Notes
    -----
    The slope comes from a logistic regression of the label on the logit of the score; the intercept
    from the same regression with the slope fixed at 1 [4]_. Their variance is the larger of the
    model's and the sandwich. With uneven weights, limits of the mean error reach at least as far as
    those that follow from the ratio. [Formulas](../explanation/statistics.md#calibration_summary).

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.
    .. [2] Dimitriadis, T. et al. (2021), Proceedings of the National Academy of Sciences 118.
    .. [3] Murphy, A. H. (1973), Journal of Applied Meteorology 12, 595-600.
    .. [4] Van Calster, B. et al. (2025), arXiv 2412.10288.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.calibration_summary(loans, "approved", "score", by="race")
    >>> rounded = pl.col("mean_calibration_error", "oe_ratio", "calibration_slope").round(3)
    >>> table.select("race", rounded)
    shape: (3, 4)
    ┌──────────┬────────────────────────┬──────────┬───────────────────┐
    │ race     ┆ mean_calibration_error ┆ oe_ratio ┆ calibration_slope │
    │ ---      ┆ ---                    ┆ ---      ┆ ---               │
    │ str      ┆ f64                    ┆ f64      ┆ f64               │
    ╞══════════╪════════════════════════╪══════════╪═══════════════════╡
    │ black    ┆ 0.108                  ┆ 0.862    ┆ 0.649             │
    │ hispanic ┆ 0.082                  ┆ 0.903    ┆ 1.322             │
    │ white    ┆ -0.018                 ┆ 1.02     ┆ 0.863             │
    └──────────┴────────────────────────┴──────────┴───────────────────┘
    """
    divide = BinOptions(bins, strategy)
    columns = read_columns(frame, label, score, weight, by, pos_label, design)
    columns.require_scores("a calibration")
    measure = partial(_measure_segments, bins=divide, clip=clip)
    return table_of_segments(frame, columns, _TYPES, measure, level)


def _measure_segments(
    rows: Rows, segments: SegmentRows, bins: BinOptions, clip: float | None, level: Level
) -> Iterator[SegmentColumns]:
    require_all_probabilities(rows)
    for first, part_rows, part in take_parts(rows, segments):
        descending = descend(part)
        found = measure_calibration(part_rows, descending, level, clip)
        expected, maximum = measure_bin_errors(descending, bins)
        found["expected_calibration_error"] = expected
        found["maximum_calibration_error"] = maximum
        found |= decompose_brier(descending)
        yield SegmentColumns(np.arange(first, first + part.number), found)


def measure_calibration(
    rows: Rows, segments: SegmentRows, level: Level, clip: float | None = None
) -> dict[str, NDArray[Any]]:
    """Return all columns of segments but the errors over bins; rows descend."""
    units = None if rows.sample is None else rows.sample.units
    sums = calibration.sum_calibration(segments, rows.sample)
    errors = calibration.MeanErrors.of(sums, units)
    fitted = segments
    if clip is not None:
        fitted = replace(segments, score=segments.score.clip(clip, 1 - clip))
    slope, intercept = calibration.estimate_fits(fitted, rows.sample)
    enough = errors.has_enough(level)
    columns: dict[str, NDArray[Any]] = {**calibration.count_rows(segments)}
    columns[_REASON] = reason = np.full(segments.number, None, dtype=object)
    reason[errors.observed_rates.has_few_events] = FEW_EVENTS
    columns["mean_score"] = mean = sums.mean_score
    estimates: dict[str, Estimate] = {
        _RATE: errors.rate(),
        _ERROR: errors.estimate(level),
        _RATIO: calibration.estimate_rates(errors, level),
    }
    for name, fit in ((_INTERCEPT, intercept), (_SLOPE, slope)):
        columns[f"{name}_se"] = fit.error
        estimates[name] = replace(fit, error=np.where(enough, fit.error, np.nan))
    for name, estimate in estimates.items():
        limits = estimate.limits(level.quantile(estimate.df))
        columns |= limit_columns(name, estimate.value, limits)
    for name in name_limits(_RATIO):
        # A ratio to a mean of 0, or nearly 0, overflows.
        ratio = columns[name] / mean
        columns[name] = np.where(np.isfinite(ratio), ratio, np.nan)
    return columns
