"""Calibration of probabilities: sums over the rows of segments, and the slopes of their logits.

The mean error of a score is the mean of score - label. The slope is that of a logistic regression
of the label on the logit of the score. Large segments are fitted to points in bins of the logit,
which have the moments of the rows, so that a step of Newton's method does not pass over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.kernels import DEGREES
from polars_wroc.metrics.mean_sums import MeanSums, sum_in_units, sum_values
from polars_wroc.rows import Sample
from polars_wroc.stats.logistic_fit import (
    BIN_WIDTHS,
    FitPoints,
    FreeSlopes,
    fit_free_slopes,
    steepest,
)
from polars_wroc.stats.rates import Count, Rate
from polars_wroc.steps import SegmentRows

# Names of columns and of metrics that audits compare.
IN_THE_LARGE, SLOPE = "calibration_in_the_large", "calibration_slope"
# Segments of so few rows are fitted to these.
FEW_ROWS = 2000
# Temporary arrays of so many rows fit into the cache of a processor.
_BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class CalibrationSums:
    """Sums over the rows of segments, from which mean errors and rates of positives follow.

    ``errors`` are those of score - label, and ``promised`` those of w^2 s (1 - s), the variance of
    the sum of labels if each score s is the probability of its row. By a design ``unit_positives``
    are the weights of the positives in each sampling unit.
    """

    positives: Count
    negatives: Count
    errors: MeanSums
    promised: Array
    unit_positives: Array | None = None

    @property
    def rate(self) -> Rate:
        """The proportion of positives."""
        return Rate(self.positives, self.negatives)

    @property
    def mean_score(self) -> Array:
        """The mean of the scores."""
        return np.asarray(self.errors.mean().value + self.rate.value)

    def combine(self, function: Callable[[Array], Array]) -> CalibrationSums:
        """Return the sums of which each is a function of these, for example of all others."""
        positives, negatives = (
            Count(*(function(each) for each in vars(side).values()))
            for side in (self.positives, self.negatives)
        )
        return CalibrationSums(
            positives,
            negatives,
            self.errors.combine(function),
            function(self.promised),
            None if self.unit_positives is None else function(self.unit_positives),
        )


def sum_calibration(rows: SegmentRows, sample: Sample | None = None) -> CalibrationSums:
    """Return the sums over the rows of each segment."""
    weight, score = np.abs(rows.weight), rows.score
    is_positive = rows.weight > 0
    squares = weight**2 if rows.counts is None else rows.counts.squares
    number = np.ones(len(weight)) if rows.counts is None else rows.counts.n
    errors = sum_values(rows, score - is_positive, sample)
    of_positives = Count(
        *(rows.total(np.where(is_positive, each, 0.0)) for each in (weight, squares, number))
    )
    of_negatives = Count(
        *(rows.total(np.where(is_positive, 0.0, each)) for each in (weight, squares, number))
    )
    return CalibrationSums(
        of_positives,
        of_negatives,
        errors,
        rows.total(squares * score * (1 - score)),
        None if sample is None else sum_in_units(rows, sample, is_positive.astype(np.float64)),
    )


@dataclass(frozen=True)
class CalibrationSlopes:
    """Calibration slopes of segments, with their errors and the information that they rest on.

    All are NaN where there is no slope; the error also where the squares of weights over- or
    underflow.
    """

    value: Array
    error: Array
    information: Array

    @classmethod
    def unknown(cls, number: int) -> CalibrationSlopes:
        """Return the slopes of a number of segments that have none."""
        return cls(*(np.full(number, np.nan) for _ in range(3)))

    def put(self, places: Ints, fits: FreeSlopes) -> None:
        """Take the slopes of some segments from regressions."""
        is_known = (fits.variance > 0) & np.isfinite(fits.variance)
        self.value[places] = fits.slope
        self.error[places] = np.where(is_known, np.sqrt(fits.variance), np.nan)
        self.information[places] = fits.information


def fit_slopes(rows: SegmentRows, bins: LogitBins | None = None) -> CalibrationSlopes:
    """Return the slope of each segment, whose rows descend from the highest score.

    Segments of more than `FEW_ROWS` are fitted to the ``bins``, or else to their own. There is no
    slope with a score of exactly 0 or 1, whose logit is infinite.
    """
    slopes = CalibrationSlopes.unknown(rows.number)
    size = np.diff(rows.starts)
    places = np.flatnonzero(size > FEW_ROWS)
    if len(places):
        if bins is None:
            wide = bin_logits(take_segments(rows, places), BIN_WIDTHS[0])
            bins = merge_bins(wide, places)
        places = _fit_bins(bins, slopes, places)
    if len(places):
        narrow = bin_logits(take_segments(rows, places), BIN_WIDTHS[-1])
        places = _fit_bins(merge_bins(narrow, places), slopes, places)
    places = np.append(places, np.flatnonzero((size > 0) & (size <= FEW_ROWS)))
    if len(places):
        slopes.put(places, fit_free_slopes(_points_of_rows(take_segments(rows, places))))
    return slopes


def take_segments(rows: SegmentRows, places: Ints) -> SegmentRows:
    """Return the rows of some segments, in the order of these places."""
    if len(places) == rows.number and np.array_equal(places, np.arange(rows.number)):
        return rows
    sizes = np.diff(rows.starts)[places]
    starts = np.append(0, sizes.cumsum())
    taken = np.arange(starts[-1]) + np.repeat(rows.starts[:-1][places] - starts[:-1], sizes)
    return SegmentRows(
        rows.segments[places],
        starts,
        rows.order[taken],
        rows.score[taken],
        rows.weight[taken],
        rows.missing[places],
        None if rows.counts is None else rows.counts.at(taken),
        None if rows.bins is None else rows.bins.at(taken),
        in_order=rows.in_order,
        score_type=rows.score_type,
    )


def _find_logits(score: Array) -> Array:
    """Return the logits of scores, NaN where they are infinite or undefined."""
    inside = (score > 0) & (score < 1)
    known = score if inside.all() else np.where(inside, score, np.nan)
    return np.asarray(np.log(known / (1 - known)))


def _weights_of_classes(weight: Array, squares: Array | None) -> Array:
    """Return the weights of positives and negatives, and their squares."""
    both = np.stack([weight, -weight])
    np.maximum(both, 0.0, out=both)
    if squares is None:
        return np.concatenate([both, both**2])
    return np.concatenate([both, np.where(both > 0, squares, 0.0)])


def _points_of_rows(rows: SegmentRows) -> FitPoints:
    pos, neg, pos2, neg2 = _weights_of_classes(rows.weight, _find_squares(rows))
    return FitPoints(_find_logits(rows.score), pos, neg, pos2, neg2, rows.starts[:-1])


def _find_squares(rows: SegmentRows) -> Array | None:
    """Return the squared weights of rows if these are those of several."""
    return None if rows.counts is None else rows.counts.squares


@dataclass(frozen=True)
class LogitBins:
    """Bins of the logits of segments: the number of each bin, and moments of its rows.

    ``moments`` are sums of weights times the Chebyshev polynomials of the place in the bin, from -1
    to 1: polynomial, weight, bin. The weights are those of both classes, then their squares. Bins
    of the same segment are next to each other, and may have the same number.
    """

    segment: Ints
    number: Array
    moments: Array
    width: float


def bin_logits(rows: SegmentRows, width: float) -> LogitBins:
    """Return the bins of the rows of segments, which descend from the highest score.

    Rows without a logit are in infinite bins, whose moments are NaN.
    """
    segment, squares = rows.segment, _find_squares(rows)

    def bin_block(start: int) -> LogitBins:
        part = slice(start, start + _BLOCK_ROWS)
        of_block = None if squares is None else squares[part]
        weights = _weights_of_classes(rows.weight[part], of_block)
        return _bin_block(rows.score[part], weights, segment[part], width)

    starts = range(0, max(len(rows.score), 1), _BLOCK_ROWS)
    return add_bins([bin_block(start) for start in starts])


@np.errstate(all="ignore")
def _bin_block(score: Array, weights: Array, segment: Ints, width: float) -> LogitBins:
    place = _find_logits(score) / width
    number = np.floor(place)
    number[np.isnan(number)] = np.inf
    is_new = np.ones(len(number), dtype=bool)
    is_new[1:] = (number[1:] != number[:-1]) | (segment[1:] != segment[:-1])
    starts = np.flatnonzero(is_new)
    moments = np.empty((DEGREES, len(weights), len(starts)))
    if len(starts):
        # T_0 = 1, T_1 = x, T_k = 2 x T_(k-1) - T_(k-2)
        x = 2 * (place - number) - 1
        before, polynomial = x, np.ones(len(x))
        for degree in range(DEGREES):
            moments[degree] = np.add.reduceat(polynomial * weights, starts, axis=1)
            before, polynomial = polynomial, 2 * x * polynomial - before
    return LogitBins(segment[starts], number[starts], moments, width)


def add_bins(parts: Sequence[LogitBins]) -> LogitBins:
    """Return the bins of parts of the rows together."""
    return LogitBins(
        np.concatenate([each.segment for each in parts]),
        np.concatenate([each.number for each in parts]),
        np.concatenate([each.moments for each in parts], axis=-1),
        parts[0].width,
    )


def merge_bins(bins: LogitBins, number: Ints) -> LogitBins:
    """Return bins whose segments have other numbers, those of a segment next to each other.

    Several segments may get the same number. Equal bins of a segment are one.
    """
    segment = number[bins.segment]
    order = np.lexsort((bins.number, segment))
    segment, place = segment[order], bins.number[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (place[1:] != place[:-1]) | (segment[1:] != segment[:-1])
    starts = np.flatnonzero(is_new)
    moments = bins.moments[..., order]
    if len(starts):
        moments = np.add.reduceat(moments, starts, axis=-1)
    return LogitBins(segment[starts], place[starts], moments, bins.width)


def fit_bins(bins: LogitBins, number: int) -> CalibrationSlopes:
    """Return the slopes of a number of segments of which only bins are known.

    There is no slope that is too steep for the bins.
    """
    slopes = CalibrationSlopes.unknown(number)
    merged = merge_bins(bins, np.arange(number))
    too_steep = _fit_bins(merged, slopes, np.unique(merged.segment))
    for values in vars(slopes).values():
        values[too_steep] = np.nan
    return slopes


def _fit_bins(bins: LogitBins, slopes: CalibrationSlopes, places: Ints) -> Ints:
    """Put the slopes of some segments at their places; return those that need narrower bins."""
    taken = np.isin(bins.segment, places)
    fits = fit_free_slopes(_points_of_bins(bins, taken))
    slopes.put(places, fits)
    is_shown = np.abs(fits.slope) <= steepest(bins.width)
    return places[~is_shown & fits.has_classes]


def _points_of_bins(bins: LogitBins, taken: Mask) -> FitPoints:
    """Return points that have the moments of the rows: the Chebyshev nodes of some of the bins.

    Their weights may be negative. A sum of a smooth function over them is off by a power of the
    width of the bins, with `DEGREES` as exponent.
    """
    # x_j = cos(pi (2 j + 1) / (2 n)) has the weight sum_k c_k T_k(x_j) m_k / n, c_0 = 1, c_k = 2
    degrees = np.arange(DEGREES)
    angle = np.pi * (2 * degrees + 1) / (2 * DEGREES)
    factors = np.where(degrees == 0, 1, 2) / DEGREES * np.cos(angle[:, np.newaxis] * degrees)
    weights = np.einsum("jk,kwb->wbj", factors, bins.moments[..., taken])
    value = (bins.number[taken, np.newaxis] + (1 + np.cos(angle)) / 2) * bins.width
    starts = np.flatnonzero(np.diff(bins.segment[taken], prepend=-1)) * DEGREES
    pos, neg, squares_pos, squares_neg = (each.ravel() for each in weights)
    return FitPoints(value.ravel(), pos, neg, squares_pos, squares_neg, starts)
