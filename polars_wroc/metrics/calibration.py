"""Calibration of probabilities: sums over the rows of segments, and the slopes of their logits.

The mean error of a score is the mean of score - label. The slope comes from a logistic regression
of the label on the logit of the score, without rows whose score is exactly 0 or 1. Large segments
are fitted to points in bins of the logit, which have the moments of the rows, so that a step of
Newton's method need not pass over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.metrics.mean_sums import MeanSums, count_where, sum_in_units, sum_values
from polars_wroc.records import map_arrays
from polars_wroc.rows import Sampling, replicate_rows
from polars_wroc.stats import logistic_fit
from polars_wroc.stats.calibration import RateOfScores
from polars_wroc.stats.designs import Influence, SamplingUnits, Term, replicate_influence
from polars_wroc.stats.estimates import (
    Estimate,
    FallbackEstimate,
    Limits,
    Scale,
    Wald,
    WidenedEstimate,
    Wilson,
)
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import LEAST_SQUARES, Count, Rate
from polars_wroc.steps import SegmentRows, find_changes
from polars_wroc.threads import map_in_threads

# Names of columns and of metrics that audits compare.
CALIBRATION_ERROR, SLOPE = "mean_calibration_error", "calibration_slope"
# Chebyshev polynomials whose moments stand for the rows of a bin of logits.
DEGREES = 8
# Segments with at most so many rows are fitted to the rows themselves.
FEW_ROWS = 2000
# Temporary arrays of so many rows fit into the processor's cache.
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class CalibrationSums:
    """Sums over the rows of segments, from which mean errors and rates of positives follow.

    ``cubes`` are the sums of w^3, ``scores`` the sums of w s, ``errors`` the sums of score - label,
    and ``promised`` the sums of w^2 s (1 - s), the variance of the sum of labels if each score s is
    the probability of its row. ``score_squares`` are the sums of (w s)^2, and ``positive_scores``
    the sums of w^2 s over the positives. With a design, ``unit_positives`` are the weights of the
    positives in each sampling unit.
    """

    positives: Count
    negatives: Count
    cubes: Array
    scores: Array
    errors: MeanSums
    promised: Array
    score_squares: Array
    positive_scores: Array
    unit_positives: Array | None = None

    @property
    def rate(self) -> Rate:
        """The proportion of positives."""
        return Rate(self.positives, self.negatives, self.cubes)

    @property
    def mean_score(self) -> Array:
        """The mean of the scores."""
        weight = self.errors.whole.weight
        return np.where(np.isfinite(weight), self.scores / weight, np.nan)

    @property
    def rate_of_scores(self) -> RateOfScores:
        """The rate of positives, with limits if scores are off by a factor."""
        rate, mean, whole = self.rate.value, self.mean_score, self.errors.whole
        is_exact = ~np.isnan(whole.inverse_size)

        def scale(sums: Array) -> Array:
            return np.where(is_exact, sums / whole.weight / whole.weight, np.nan)

        # scores are divided by their mean: t = s / mean
        scores = (self.promised + self.score_squares) / mean
        squares = self.score_squares / mean / mean
        # (y - p t)^2 = y - 2 p y t + p^2 t^2
        residuals = (
            self.positives.squares - 2 * rate * self.positive_scores / mean + rate**2 * squares
        )
        return RateOfScores(rate, scale(scores), scale(squares), scale(np.maximum(residuals, 0.0)))

    def combine(self, function: Callable[[Array], Array]) -> CalibrationSums:
        """Return sums that are functions of these, for example the sums of all other segments."""
        return map_arrays(self, function)  # type: ignore[no-any-return]


def sum_calibration(rows: SegmentRows, sample: Sampling | None = None) -> CalibrationSums:
    """Return the sums over the rows of each segment."""
    score, is_positive = rows.score, rows.weight > 0
    powers = rows.powers
    # w^2 s
    weighted_scores = powers.squares * score
    return CalibrationSums(
        count_where(rows, powers, is_positive),
        count_where(rows, powers, ~is_positive),
        rows.total(rows.cubes),
        rows.total(powers.weight * score),
        sum_values(rows, score - is_positive, sample),
        rows.total(weighted_scores * (1 - score)),
        rows.total(weighted_scores * score),
        rows.total(weighted_scores * is_positive),
        None if sample is None else sum_in_units(rows, sample, is_positive),
    )


def count_rows(segments: SegmentRows) -> dict[str, Array]:
    """Return the numbers of rows of each kind, by the names of columns.

    Rows with a score of 0 or 1 are extreme, and impossible if their label contradicts it.
    """
    n, is_positive = segments.n, segments.weight > 0
    is_zero, is_one = segments.score <= 0, segments.score >= 1
    impossible = (is_zero & is_positive) | (is_one & ~is_positive)
    return {
        "n": segments.total(n),
        "n_pos": segments.total(n * is_positive),
        "n_missing": segments.missing.astype(np.float64),
        "n_extreme": segments.total(n * (is_zero | is_one)),
        "n_impossible": segments.total(n * impossible),
    }


@dataclass(frozen=True)
class RateError:
    """The mean error of scores, in which only the observed rate is uncertain."""

    value: Array
    rate: Estimate

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of the rate."""
        return self.rate.df

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits implied by the limits of the rate."""
        low, high = self.rate.limits(quantile)
        return Limits(self.value + self.rate.value - high, self.value + self.rate.value - low)


@dataclass(frozen=True)
class MeanErrors:
    """Mean errors of segments with their standard errors, NaN where these are unknown.

    They are unknown where a class has no rows, or where no row differs from the mean.
    """

    sums: CalibrationSums
    value: Array
    error: Array
    df: Array | float
    units: SamplingUnits | None
    influence: Influence | None

    @classmethod
    def of(cls, sums: CalibrationSums, units: SamplingUnits | None) -> MeanErrors:
        """Return the mean errors, with the variances of a design if there is one."""
        mean = sums.errors.mean()
        if units is None:
            both = (sums.positives.weight > 0) & (sums.negatives.weight > 0)
            error = np.where(both & (mean.variance > 0), np.sqrt(mean.variance), np.nan)
            return cls(sums, mean.value, error, np.inf, None, None)
        influence = sums.errors.influence(units)
        variance = units.variance(influence)
        # If it is unknown, so are the limits of the observed rate.
        error = np.where(variance > 0, np.sqrt(variance), np.nan)
        return cls(sums, mean.value, error, units.df(influence), units, influence)

    def estimate(self, level: Level) -> Estimate:
        """Return the mean errors with limits; none at repeated looks with few rows of a class.

        With uneven weights and few positives, the error of the rows is too small if heavy positives
        happen to be missing. Limits then reach at least as far as those that follow from the ratio
        of observed to expected.
        """
        enough = self.has_enough(level)
        wald = Wald(self.value, np.where(enough, self.error, np.nan), df=self.df)
        first: Estimate = wald
        if self.units is None:
            by_ratio = RateError(self.value, self.sums.rate_of_scores)
            first = WidenedEstimate(wald, by_ratio, self.sums.rate.inverse_df > 0)
        fallback = RateError(self.value, self.rate())
        return FallbackEstimate(first, fallback, ~np.isnan(self.error) | ~enough)

    def has_enough(self, level: Level) -> Mask:
        """Return whether both classes have enough effective rows for limits at repeated looks."""
        rows = [1 / side.inverse_size for side in (self.sums.positives, self.sums.negatives)]
        return level.enough(*(np.where(np.isnan(each), np.inf, each) for each in rows))

    @cached_property
    def observed_rates(self) -> Rate:
        """The observed rates, with the variances of a design if there is one."""
        rate = self.sums.rate
        if self.units is None:
            return rate
        assert self.sums.unit_positives is not None
        assert self.sums.errors.unit_whole is not None
        influence = self.units.ratio_influence(
            self.sums.unit_positives, self.sums.errors.unit_whole
        )
        variance, df = self.units.variance(influence), self.units.df(influence)
        return replace(rate, variance=variance, design_df=df)

    def rate(self) -> Wilson:
        """Return the observed rates with limits."""
        return self.observed_rates.estimate()

    def count_expected(self, rate: Array) -> Array:
        """Return the expected number of effective rows of the smaller class at a rate."""
        return np.asarray(np.minimum(rate, 1 - rate) / self.sums.errors.whole.inverse_size)

    def error_at(self, rate: Array) -> Array:
        """Return the larger of the standard error at an expected rate and the rows' own.

        With few positives, the rows' own error is too small if there happen to be fewer than
        expected.
        """
        observed = self.sums.rate.value
        spread, other = observed * (1 - observed), rate * (1 - rate)
        factor = np.where(spread > 0, np.maximum(other / spread, 1.0), 1.0)
        return np.asarray(self.error * np.sqrt(factor))


def estimate_rates(errors: MeanErrors, level: Level) -> Estimate:
    """Return the observed rates of positives, with limits if scores are off by a factor.

    Divided by the mean scores, they are the ratios of observed to expected.
    """
    if errors.units is None:
        return errors.sums.rate_of_scores
    return _estimate_rates_by_design(errors, errors.units, level)


def _estimate_rates_by_design(errors: MeanErrors, units: SamplingUnits, level: Level) -> Estimate:
    """Return rates with limits of the logarithm, from the variance of the ratio to the mean score.

    Where that variance is 0, only the rate is uncertain.
    """
    sums = errors.sums
    assert sums.unit_positives is not None
    assert sums.errors.unit_first is not None
    # The sum of w s is the sum of w (s - y) plus the sum of w y.
    unit_scores = sums.errors.unit_first + sums.unit_positives
    influence = units.ratio_influence(sums.unit_positives, unit_scores)
    variance = units.variance(influence)
    enough = errors.has_enough(level)
    # d ln(r) = dr / r
    error = np.sqrt(variance) * sums.mean_score / sums.rate.value
    first = Wald(
        sums.rate.value, np.where(enough, error, np.nan), Scale(0.0), df=units.df(influence)
    )
    return FallbackEstimate(first, errors.rate(), (variance != 0) | ~enough)


@dataclass(frozen=True)
class CalibrationSlopes:
    """Calibration slopes of segments, with their errors and their Fisher information.

    All are NaN where there is no slope; errors are NaN also where squared weights over- or
    underflow. ``free_intercept`` is the intercept that goes with the slope. ``intercepts``, which
    are optional, come from regressions with a slope of 1.
    """

    value: Array
    error: Array
    information: Array
    free_intercept: Array
    intercepts: Wald | None = None

    @classmethod
    def unknown(cls, number: int, *, with_intercepts: bool = False) -> CalibrationSlopes:
        """Return NaN slopes for a number of segments."""
        value, error, information, free_intercept = np.full((4, number), np.nan)
        intercepts = Wald(*np.full((2, number), np.nan)) if with_intercepts else None
        return cls(value, error, information, free_intercept, intercepts)

    def fit(self, places: Ints, points: logistic_fit.FitPoints) -> logistic_fit.FreeSlopes:
        """Fit some segments to their points, and store the results."""
        free = logistic_fit.fit_free_slopes(points)
        self.value[places] = free.slope
        squares = points.total(points.squares_pos + points.squares_neg)
        self.error[places] = _find_errors(free.variance, squares)
        self.information[places] = free.information
        self.free_intercept[places] = free.intercept
        if self.intercepts is not None:
            fixed = logistic_fit.fit_fixed_slopes(points)
            self.intercepts.value[places] = fixed.intercept
            self.intercepts.error[places] = _find_errors(fixed.variance, squares)
        return free

    def forget(self, places: Ints) -> None:
        """Set the results of some segments to NaN."""
        for values in (self.value, self.error, self.information, self.free_intercept):
            values[places] = np.nan


def _find_errors(variance: Array, squares: Array) -> Array:
    """Return standard errors, NaN where the sums of squared weights over- or underflow."""
    is_known = np.isfinite(variance) & (squares >= LEAST_SQUARES)
    return np.where(is_known, np.sqrt(variance), np.nan)


def leave_out_extremes(rows: SegmentRows) -> SegmentRows:
    """Return the rows whose scores have a finite logit, because they are between 0 and 1."""
    has_logit = (rows.score > 0) & (rows.score < 1)
    return rows if has_logit.all() else rows.at(has_logit)


def fit_slopes(
    rows: SegmentRows, bins: LogitBins | None = None, *, with_intercepts: bool = False
) -> CalibrationSlopes:
    """Return the slope of each segment, whose rows descend from the highest score.

    Segments with more than `FEW_ROWS` are fitted to the ``bins``, by default to bins of their own
    rows. Rows with a score of exactly 0 or 1, whose logit is infinite, are left out.
    ``with_intercepts`` adds the intercepts of regressions with a slope of 1.
    """
    rows = leave_out_extremes(rows)
    slopes = CalibrationSlopes.unknown(rows.number, with_intercepts=with_intercepts)
    size = np.diff(rows.starts)
    places = np.flatnonzero(size > FEW_ROWS)
    if len(places):
        if bins is None:
            wide = bin_logits(take_segments(rows, places), logistic_fit.BIN_WIDTHS[0])
            bins = merge_bins(wide, places)
        places = _fit_bins(bins, slopes, places)
    if len(places):
        narrow = bin_logits(take_segments(rows, places), logistic_fit.BIN_WIDTHS[-1])
        places = _fit_bins(merge_bins(narrow, places), slopes, places)
    places = np.append(places, np.flatnonzero((size > 0) & (size <= FEW_ROWS)))
    if len(places):
        slopes.fit(places, _points_of_rows(take_segments(rows, places)))
    return slopes


def estimate_fits(rows: SegmentRows, sample: Sampling | None = None) -> tuple[Wald, Wald]:
    """Return the slope of each segment, and the intercept for a slope of 1.

    The rows descend from the highest score. Variances of a design are at least those of independent
    rows.
    """
    slopes = fit_slopes(rows, with_intercepts=True)
    slope, intercept = Wald(slopes.value, slopes.error), slopes.intercepts
    assert intercept is not None
    if sample is None:
        return slope, intercept
    if sample.replicates is None:
        influences = _find_influences(leave_out_extremes(rows), slopes, sample)
    else:
        influences = _fit_replicates(rows, slopes, sample)
    return (
        _add_design(slope, influences[0], sample.units),
        _add_design(intercept, influences[1], sample.units),
    )


def _add_design(estimate: Wald, influence: Influence, units: SamplingUnits) -> Wald:
    """Return an estimate with the larger of its own error and the error of the design."""
    variance = units.variance(influence)
    error = np.where(np.isnan(variance), np.nan, np.maximum(estimate.error, np.sqrt(variance)))
    return replace(estimate, error=error, df=units.df(influence))


def _find_influences(
    rows: SegmentRows, slopes: CalibrationSlopes, sample: Sampling
) -> tuple[Influence, Influence]:
    """Return the influences of sampling units on slopes, and on intercepts for a slope of 1."""
    assert slopes.intercepts is not None
    x, label, segment = _find_logits(rows.score), rows.weight > 0, rows.segment
    weight = np.abs(rows.weight)
    a, b = slopes.free_intercept[segment], slopes.value[segment]
    p = scipy.special.expit(a + b * x)
    information = weight * p * (1 - p)
    # m = sum w p q x / sum w p q, I = sum w p q (x - m)^2
    mean = rows.total(information * x) / rows.total(information)
    x -= mean[segment]
    slope_influence = _make_influence(
        sum_in_units(rows, sample, (label - p) * x),
        sum_in_units(rows, sample, p * (1 - p) * x**2),
    )
    x += mean[segment]
    p = scipy.special.expit(slopes.intercepts.value[segment] + x)
    intercept_influence = _make_influence(
        sum_in_units(rows, sample, label - p), sum_in_units(rows, sample, p * (1 - p))
    )
    return slope_influence, intercept_influence


def _make_influence(score: Array, information: Array) -> Influence:
    """Return the influences of units on a coefficient, with the information on it as base."""
    # Z_u = sum w (y - p) x / I, s_u = sum w p q x^2 / I
    total = information.sum(axis=0)
    return Influence((Term(score / total, information / total),))


def _fit_replicates(
    rows: SegmentRows, slopes: CalibrationSlopes, sample: Sampling
) -> tuple[Influence, Influence]:
    """Return the deviations of the slopes and intercepts of replicates."""
    fits = [slopes]
    fits += [fit_slopes(each, with_intercepts=True) for each in replicate_rows(sample, rows)[1:]]
    values = np.stack([each.value for each in fits])
    intercepts = [each.intercepts.value for each in fits if each.intercepts is not None]
    return replicate_influence(values), replicate_influence(np.stack(intercepts))


def take_segments(rows: SegmentRows, places: Ints) -> SegmentRows:
    """Return the rows of some segments, in the order of these places."""
    if len(places) == rows.number and np.array_equal(places, np.arange(rows.number)):
        return rows
    sizes = np.diff(rows.starts)[places]
    starts = np.append(0, sizes.cumsum())
    taken = np.arange(starts[-1]) + np.repeat(rows.starts[:-1][places] - starts[:-1], sizes)
    return replace(
        rows.move(taken),
        segments=rows.segments[places],
        starts=starts,
        missing=rows.missing[places],
    )


def _find_logits(score: Array) -> Array:
    """Return the logits of scores between 0 and 1."""
    return np.asarray(np.log(score / (1 - score)))


def _weights_of_classes(weight: Array, squares: Array | None) -> Array:
    """Return the weights of positives and negatives, and their squares."""
    both = np.stack([weight, -weight])
    np.maximum(both, 0.0, out=both)
    if squares is None:
        return np.concatenate([both, both**2])
    return np.concatenate([both, np.where(both > 0, squares, 0.0)])


def _points_of_rows(rows: SegmentRows) -> logistic_fit.FitPoints:
    squares = None if rows.counts is None else rows.counts.squares
    pos, neg, pos2, neg2 = _weights_of_classes(rows.weight, squares)
    return logistic_fit.FitPoints(_find_logits(rows.score), pos, neg, pos2, neg2, rows.starts[:-1])


@dataclass(frozen=True)
class LogitBins:
    """Bins of the logits of segments: the number of each bin, and moments of its rows.

    ``moments`` are sums of weights times the Chebyshev polynomials of the place in the bin, from -1
    to 1: polynomial, weight, bin. The weights are the weights of both classes, then their squares.
    Bins of a segment are contiguous, and may have the same number.
    """

    segment: Ints
    number: Array
    moments: Array
    width: float


def bin_logits(rows: SegmentRows, width: float) -> LogitBins:
    """Return the bins of the rows of segments, which descend from the highest score.

    Rows with a score of exactly 0 or 1 are left out.
    """
    rows = leave_out_extremes(rows)
    counts = rows.counts

    def bin_block(start: int) -> LogitBins:
        part = slice(start, start + _BLOCK_ROWS)
        squares = None if counts is None else counts.squares[part]
        weights = _weights_of_classes(rows.weight[part], squares)
        return _bin_block(rows.score[part], weights, rows.starts - start, width)

    starts = range(0, max(len(rows.score), 1), _BLOCK_ROWS)
    return add_bins(map_in_threads(bin_block, starts))


@np.errstate(all="ignore")
def _bin_block(score: Array, weights: Array, segment_starts: Ints, width: float) -> LogitBins:
    """Return the bins of some rows; segments may start before them or after them."""
    place = _find_logits(score) / width
    number = np.floor(place)
    is_new = find_changes(number)
    is_new[segment_starts[(segment_starts >= 0) & (segment_starts < len(score))]] = True
    starts = np.flatnonzero(is_new)
    segment = np.searchsorted(segment_starts, starts, side="right") - 1
    moments = np.empty((DEGREES, len(weights), len(starts)))
    if len(starts):
        # T_0 = 1, T_1 = x, T_k = 2 x T_(k-1) - T_(k-2)
        x = 2 * (place - number) - 1
        before, polynomial = x, np.ones(len(x))
        for degree in range(DEGREES):
            moments[degree] = np.add.reduceat(polynomial * weights, starts, axis=1)
            before, polynomial = polynomial, 2 * x * polynomial - before
    return LogitBins(segment, number[starts], moments, width)


def add_bins(parts: Sequence[LogitBins]) -> LogitBins:
    """Return the bins of several parts of the rows, joined."""
    return LogitBins(
        np.concatenate([each.segment for each in parts]),
        np.concatenate([each.number for each in parts]),
        np.concatenate([each.moments for each in parts], axis=-1),
        parts[0].width,
    )


def merge_bins(bins: LogitBins, number: Ints) -> LogitBins:
    """Return bins with new numbers of their segments, so that bins of a segment are contiguous.

    Several segments may get the same number. Equal bins of a segment are merged.
    """
    segment = number[bins.segment]
    order = np.lexsort((bins.number, segment))
    segment, place = segment[order], bins.number[order]
    starts = np.flatnonzero(find_changes(place) | find_changes(segment))
    moments = bins.moments[..., order]
    if len(starts):
        moments = np.add.reduceat(moments, starts, axis=-1)
    return LogitBins(segment[starts], place[starts], moments, bins.width)


def fit_bins(bins: LogitBins, number: int) -> CalibrationSlopes:
    """Return the slopes of a number of segments that are known only as bins.

    A slope that is too steep for the bins is NaN.
    """
    slopes = CalibrationSlopes.unknown(number)
    merged = merge_bins(bins, np.arange(number))
    too_steep = _fit_bins(merged, slopes, np.unique(merged.segment))
    slopes.forget(too_steep)
    return slopes


def _fit_bins(bins: LogitBins, slopes: CalibrationSlopes, places: Ints) -> Ints:
    """Store the slopes of some segments; return the segments that need narrower bins."""
    taken = np.isin(bins.segment, places)
    fits = slopes.fit(places, make_points(bins, taken))
    is_shown = np.abs(fits.slope) <= logistic_fit.steepest(bins.width)
    return places[~is_shown & fits.has_classes]


def make_points(bins: LogitBins, taken: Mask) -> logistic_fit.FitPoints:
    """Return points with the moments of the rows: the Chebyshev nodes of some of the bins.

    Their weights may be negative. The error of a smooth function's sum over them is of the order of
    the width of the bins to the power of `DEGREES`.
    """
    # x_j = cos(pi (2 j + 1) / (2 n)) has the weight sum_k c_k T_k(x_j) m_k / n, c_0 = 1, c_k = 2
    degrees = np.arange(DEGREES)
    angle = np.pi * (2 * degrees + 1) / (2 * DEGREES)
    factors = np.where(degrees == 0, 1, 2) / DEGREES * np.cos(angle[:, np.newaxis] * degrees)
    weights = np.einsum("jk,kwb->wbj", factors, bins.moments[..., taken])
    value = (bins.number[taken, np.newaxis] + (1 + np.cos(angle)) / 2) * bins.width
    starts = np.flatnonzero(np.diff(bins.segment[taken], prepend=-1)) * DEGREES
    pos, neg, pos2, neg2 = (each.ravel() for each in weights)
    return logistic_fit.FitPoints(value.ravel(), pos, neg, pos2, neg2, starts)
