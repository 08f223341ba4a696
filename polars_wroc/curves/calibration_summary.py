"""Calibration in the large, O:E, slope, intercept and errors of groups, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.curves.calibration_curve import (
    BinOptions,
    Strategy,
    measure_bin_errors,
    read_bins,
)
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.brier_parts import BRIER_COLUMNS, decompose_brier
from polars_wroc.metrics.calibration import (
    CALIBRATION_ERROR,
    SLOPE,
    MeanErrors,
    count_rows,
    estimate_fits,
    estimate_rates,
    sum_calibration,
)
from polars_wroc.metrics.mean_sums import require_all_probabilities
from polars_wroc.metrics.sampled_aucs import take_parts
from polars_wroc.queries import FrameT
from polars_wroc.rows import (
    Columns,
    Rows,
    SegmentColumns,
    check_level,
    read_columns,
    table_of,
    tabulate_models,
)
from polars_wroc.stats.estimates import Estimate
from polars_wroc.stats.levels import Level
from polars_wroc.stats.logistic_fit import LEAST_PROBABILITY
from polars_wroc.steps import SegmentRows, descend

_INTERCEPT = "calibration_intercept"
_COUNTS = ("n", "n_pos", "n_missing", "n_extreme", "n_impossible")
_VALUES = (
    CALIBRATION_ERROR,
    f"{CALIBRATION_ERROR}_low",
    f"{CALIBRATION_ERROR}_high",
    "oe_ratio",
    "oe_ratio_low",
    "oe_ratio_high",
    SLOPE,
    f"{SLOPE}_low",
    f"{SLOPE}_high",
    f"{SLOPE}_se",
    _INTERCEPT,
    f"{_INTERCEPT}_low",
    f"{_INTERCEPT}_high",
    "mean_score",
    "observed_rate",
    "observed_rate_low",
    "observed_rate_high",
    "expected_calibration_error",
    "maximum_calibration_error",
    *BRIER_COLUMNS,
)
_TYPES: Mapping[str, Any] = dict.fromkeys(_VALUES, pl.Float64) | dict.fromkeys(_COUNTS, pl.Int64)


@hint_keywords
def calibration_summary(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    clip: float | None = None,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Calibration of each group: in the large, O:E, intercept, slope and errors over bins.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    bins, strategy
        The bins of both errors: see `calibration_curve`.
    clip
        Smallest distance of a score from 0 and from 1, from 1e-15 to 0.5, in the regressions:
        scores that are closer are moved to it. None leaves scores of exactly 0 and 1, whose logit
        is infinite, out of the regressions, which moves slopes less than any distance does; half
        the smallest distance of the other scores comes closest.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. All limits, and the standard
        error of the slope, are then by its variances and Student's t.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_missing, n_extreme, n_impossible`` (Int64 numbers of rows: all without the
        missing, the positives, the missing, those with a score of exactly 0 or 1, and of these the
        ones that came out against it: positives with 0 and negatives with 1), and Float64 columns,
        each name with ``_low`` and ``_high`` for its limits: ``mean_score`` (no limits);
        ``observed_rate``, the proportion of positives; ``mean_calibration_error``, the mean score
        minus the observed rate; ``oe_ratio``, the observed rate divided by the mean score;
        ``calibration_intercept``; ``calibration_slope``, also with its standard error
        ``calibration_slope_se``; ``expected_calibration_error``, the weighted mean over the bins of
        the absolute difference between mean score and observed rate [1]_, and
        ``maximum_calibration_error``, the largest of these differences (no limits); and the
        ``brier_score`` with its parts (no limits): ``reliability, resolution, uncertainty`` over
        the distinct scores, ``brier_score = reliability - resolution + uncertainty`` [5]_, and
        ``miscalibration, discrimination``, which compare the score with its isotonic calibration,
        ``brier_score = miscalibration - discrimination + uncertainty`` [6]_. With few ties
        ``reliability`` is mostly noise; read ``miscalibration`` instead. All are null
        where no row has weight, or where sums of weights overflow or underflow; the ratio also
        where all scores are 0, and the ratio and its limits where they overflow. Slope and
        intercept are null where a class has no weight, but for scores of 0 and 1, and where the
        regression does not converge, as the slope if the score separates the classes; the slope
        also where all scores are equal. Limits and the standard error are null where the squares of
        the weights overflow or underflow, and where a design leaves the variance unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `calibration_curve`; also for ``clip`` outside its range, and for counts in bins of
        scores.

    Notes
    -----
    The limits of the calibration in the large are those of a mean of independent rows, of the score
    less 1 in positives: ``sqrt(sum(w**2 * (s - y - d)**2)) / sum(w)`` is the standard error of the
    mean ``d``. With rows of one class only, they are those of the observed rate. Both errors depend
    on the bins and are above 0 by chance alone, more so the fewer rows a bin has: to compare groups
    of different sizes, use ``mean_calibration_error``. Whether the scores are off anywhere, and
    where, is the better question than how large such an error is: ask `calibration_test`, which
    needs no bins.

    The slope is that of a weighted logistic regression of the label on the logit of the score.
    Below 1 the scores are too far apart: high ones are too high and low ones too low. The intercept
    is that of the regression with the slope held at 1. It is above 0, and the ratio above 1, where
    the scores are too low [2]_. Each regression takes up to 30 Newton steps, from no slope or from
    the mean score, and has converged when a step changes the coefficients by less than 1e-8 of one
    plus their size. Groups of more than 2,000 rows are fitted to points in bins of the logit, 0.1
    wide, that have the first eight moments of the rows: that changes the numbers by less than
    1e-12 of their size. Where the slope is beyond 3.5 the bins are 0.0125 wide, and where it is
    beyond 28 the rows are fitted. Rows with a score of exactly 0 or 1 are left out of both
    regressions and counted in ``n_extreme``; those in ``n_impossible`` are wrong whatever the slope
    is.

    The variance of a coefficient is the larger of two. One is that of the model, with the expected
    squares ``p * (1 - p)`` of the residuals at the fitted probabilities: without weights that of
    maximum likelihood. The other has the squared residuals themselves (the HC0 sandwich). It also
    holds where the logistic model does not, but alone is too small in small samples [3]_. Normal
    quantiles make the limits. A 95% interval of the slope covers 93% or more from 30 rows on, and
    is wide; with fewer than 10 rows of a class there is often no slope.

    The limits of the ratio ``r`` of observed to expected are the ratios ``R`` with ``(r - R)**2 =
    z**2 * V(R)``. ``V(R) = a * R - b * R**2``, with the sums ``a`` of ``w**2 * s`` and ``b`` of
    ``(w * s)**2`` divided by the square of the sum of ``w * s``, is the variance of ``r`` if each
    probability is ``R`` times the score. Without positives the lower limit is 0, and the upper one
    above it; if all scores are equal they are Wilson's of the observed rate, divided by the score.
    Where the residuals ``y - r * s`` vary more than that, as where the scores are much too low, the
    difference at ``r`` is added to ``V(R)``, and the limits reach at least as far as those on the
    logarithm, ``r * exp(+-z * sqrt(V) / r)``, where ``V`` is the variance by the residuals.

    By a design the variances are linearised: those of the differences and ratios of totals, and of
    the coefficients the sandwich with the totals of sampling units [4]_, or if it is larger the
    variance above; each set of replicate weights is fitted. Limits of the ratio ``r`` are on the
    logarithm. Where the variance is 0, those of the calibration in the large and of the ratio are
    those of the observed rate.

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.
    .. [2] Van Calster, B. et al. (2025), arXiv 2412.10288.
    .. [3] MacKinnon, J. G., White, H. (1985), Journal of Econometrics 29, 305-325.
    .. [4] Binder, D. A. (1983), International Statistical Review 51, 279-292.
    .. [5] Murphy, A. H. (1973), Journal of Applied Meteorology 12, 595-600.
    .. [6] Dimitriadis, T. et al. (2021), Proceedings of the National Academy of Sciences 118.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> table = wroc.calibration_summary(df, "y", "s")
    >>> table.select(pl.col("oe_ratio", "calibration_intercept", "calibration_slope").round(4))
    shape: (1, 3)
    ┌──────────┬───────────────────────┬───────────────────┐
    │ oe_ratio ┆ calibration_intercept ┆ calibration_slope │
    │ ---      ┆ ---                   ┆ ---               │
    │ f64      ┆ f64                   ┆ f64               │
    ╞══════════╪═══════════════════════╪═══════════════════╡
    │ 0.9375   ┆ -0.1992               ┆ 0.5805            │
    └──────────┴───────────────────────┴───────────────────┘
    """
    plan = _Plan(read_bins(bins, strategy), _read_clip(clip), check_level(level, frame))
    columns = read_columns(
        frame, label, score, weight=weight, by=by, pos_label=pos_label, design=design
    )
    columns.require_scores("a calibration")
    compute = partial(_measure_rows, columns=columns, plan=plan)
    return table_of(frame, columns, columns.schema(_TYPES), compute)


def _read_clip(clip: float | None) -> float | None:
    if clip is None:
        return None
    return checks.number("clip", clip, low=LEAST_PROBABILITY, high=0.5)


@dataclass(frozen=True)
class _Plan:
    """The bins of calibration errors, how far scores are moved from 0 and 1, and the level."""

    bins: BinOptions
    clip: float | None
    level: ConfidenceLevel


def _measure_rows(rows: Rows, columns: Columns, plan: _Plan) -> pl.DataFrame:
    require_all_probabilities(rows)
    level = rows.level(plan.level)

    def measure(own: Rows, segments: SegmentRows) -> Iterator[SegmentColumns]:
        for first, part_rows, part in take_parts(own, segments):
            descending = descend(part)
            found = measure_calibration(part_rows, descending, level, plan.clip)
            expected, maximum = measure_bin_errors(descending, plan.bins)
            found["expected_calibration_error"] = expected
            found["maximum_calibration_error"] = maximum
            found |= decompose_brier(descending)
            yield SegmentColumns(np.arange(first, first + part.number), found)

    return tabulate_models(rows, columns, measure)


def measure_calibration(
    rows: Rows, segments: SegmentRows, level: Level, clip: float | None = None
) -> dict[str, Array]:
    """Return the columns of segments, whose rows descend, but for the errors over bins."""
    units = None if rows.sample is None else rows.sample.units
    sums = sum_calibration(segments, rows.sample)
    errors = MeanErrors.of(sums, units)
    fitted = segments
    if clip is not None:
        fitted = replace(segments, score=segments.score.clip(clip, 1 - clip))
    slope, intercept = estimate_fits(fitted, rows.sample)
    enough = errors.has_enough(level)
    columns = count_rows(segments)
    columns["mean_score"] = mean = sums.mean_score
    columns |= limit_columns("observed_rate", errors.rate(), level)
    columns |= limit_columns(CALIBRATION_ERROR, errors.estimate(level), level)
    rates = limit_columns("oe_ratio", estimate_rates(segments, errors, level), level)
    for name, value in rates.items():
        # A ratio to a mean of 0, or nearly 0, overflows.
        ratio = value / mean
        columns[name] = np.where(np.isfinite(ratio), ratio, np.nan)
    for name, estimate in ((_INTERCEPT, intercept), (SLOPE, slope)):
        columns[f"{name}_se"] = estimate.error
        limited = replace(estimate, error=np.where(enough, estimate.error, np.nan))
        columns |= limit_columns(name, limited, level)
    return columns


def limit_columns(name: str, estimate: Estimate, level: Level) -> dict[str, Array]:
    """Return a value and its limits as columns."""
    low, high = estimate.limits(level.quantile(estimate.df))
    return {name: estimate.value, f"{name}_low": low, f"{name}_high": high}
