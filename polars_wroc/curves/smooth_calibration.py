"""Smooth calibration curves: R's loess of the labels on the scores, with limits by resampling.

`require_loess` checks that the library is installed before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.rows import Rows, Sampling
from polars_wroc.stats.estimates import name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows

# Distances of the curve from the scores: the mean, the median and the ninth decile.
SMOOTH = ("ici", "e50", "e90")
# The curve at a score, and its limits.
SMOOTH_RATES = name_limits("smooth_rate")
# With more scores, all scores in a quantile of the weight become one point.
_MOST_POINTS = 1_000
# With fewer scores there is no quadratic in every neighborhood.
_FEWEST_POINTS = 8
# The share of points in each neighborhood in which R's loess fits a quadratic.
_SPAN, _DEGREE = 0.75, 2
_REPLICATES, _SEED = 200, 20_150


def require_loess(instead: str) -> None:
    """Raise without the library, and say what to do ``instead``."""
    try:
        import skmisc.loess  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = (
            "a smooth calibration curve needs scikit-misc: pip install 'polars-wroc[smooth]', "
            f"or {instead}"
        )
        raise ImportError(msg) from error


def limit_smooth_errors(rows: Rows, segments: SegmentRows, level: Level) -> Array:
    """Return the values and limits of each of `SMOOTH` in each segment; NaN without any."""
    found = np.full((3, len(SMOOTH), segments.number), np.nan)
    for number in range(segments.number):
        points = _Points.of(rows, segments.between(number, number + 1))
        found[:, :, number] = _limit(points, _measure_distances, len(SMOOTH), level)
    return found


def limit_smooth_rates(
    rows: Rows, segments: SegmentRows, segment: Ints, score: Array, level: Level
) -> dict[str, Array]:
    """Return the columns `SMOOTH_RATES` at some scores of segments."""
    found = np.full((3, len(score)), np.nan)
    for number in range(segments.number):
        places = np.flatnonzero(segment == number)
        points = _Points.of(rows, segments.between(number, number + 1))
        rates = partial(_interpolate, scores=score[places])
        found[:, places] = _limit(points, rates, len(places), level)
    return dict(zip(SMOOTH_RATES, found, strict=True))


class _Curve(NamedTuple):
    """The smooth rate at each score, with the weight of the score."""

    scores: Array
    weights: Array
    rates: Array


def _measure_distances(curve: _Curve) -> Array:
    """Return each of `SMOOTH`."""
    distance = np.abs(curve.rates - curve.scores)
    order, total = np.argsort(distance), curve.weights.sum()
    cumulated = curve.weights[order].cumsum() / total
    quantiles = [distance[order][np.searchsorted(cumulated, share)] for share in (0.5, 0.9)]
    return np.array([distance @ curve.weights / total, *quantiles])


def _interpolate(curve: _Curve, scores: Array) -> Array:
    return np.asarray(np.interp(scores, curve.scores, curve.rates))


@dataclass(frozen=True)
class _Units:
    """The sampling units with rows of a segment: their strata, and the units that these have."""

    stratum: Ints
    size: Array
    # Whether each unit represents others, so that values vary.
    vary: Mask


@dataclass(frozen=True)
class _Points:
    """Rows of a segment, and the point of each: a score, or the mean of neighboring ones.

    ``counts`` says how many rows a row stands for. With a design, ``unit`` is the place of its
    sampling unit.
    """

    scores: Array
    place: Ints
    weights: Array
    positive: Mask
    counts: Ints
    unit: Ints | None
    units: _Units | None

    @classmethod
    def of(cls, rows: Rows, segment: SegmentRows) -> _Points:
        """Return the rows of a segment in a fixed order, so that a seed gives the same draws."""
        score, signed, n = segment.score, segment.weight, segment.n
        order, unit, units = np.lexsort((signed, score)), None, None
        if rows.sample is not None:
            unit, units = _number_units(rows.sample, segment.order)
            order = np.lexsort((signed, score, unit))
            unit = unit[order]
        score, weights, is_positive = score[order], np.abs(signed[order]), signed[order] > 0
        counts = np.round(n[order]).astype(np.int64)
        scores, place = np.unique(score, return_inverse=True)
        if len(scores) > _MOST_POINTS:
            total = np.bincount(place, weights).cumsum()
            bins = np.minimum(total / total[-1] * _MOST_POINTS, _MOST_POINTS - 1).astype(np.int64)
            place = np.unique(bins, return_inverse=True)[1][place]
            sums = np.bincount(place, weights)
            scores = np.bincount(place, weights * score) / sums
        return cls(scores, place, weights, is_positive, counts, unit, units)

    def fit(self, weights: Array) -> _Curve | None:
        """Return the curve with some weights of the rows; None if it is undefined."""
        from skmisc.loess import loess  # noqa: PLC0415  (an extra)

        number = len(self.scores)
        whole: Array = np.bincount(self.place, weights, number).astype(np.float64)
        used = np.flatnonzero(whole > 0)
        if len(used) < _FEWEST_POINTS:
            return None
        part = np.bincount(self.place, weights * self.positive, number)[used]
        x, whole = self.scores[used], whole[used]
        # The curve does not depend on the scale of the weights.
        fit = loess(x, part / whole, weights=whole / whole.mean(), span=_SPAN, degree=_DEGREE)
        try:
            fit.fit()
        except ValueError:
            return None
        return _Curve(x, whole, np.clip(fit.outputs.fitted_values, 0, 1))

    def resample(self) -> Iterator[Array]:
        """Yield weights of rows from draws of rows, or of one unit fewer than each stratum has."""
        random, size = np.random.default_rng(_SEED), self.counts
        row_unit = np.arange(len(size))
        # The places of units, the size of their stratum, and the number of draws from it.
        strata = [(row_unit, size.sum(), size.sum())]
        if self.units is not None and self.unit is not None:
            row_unit = self.unit
            # If nothing is drawn, or a single unit has all rows, values do not vary.
            units = self.units
            if len(units.size) == 1 or not units.vary.all() or units.size.max() == 1:
                return
            size = np.ones(len(units.size), np.int64)
            strata = []
            for stratum in np.unique(units.stratum):
                inside = np.flatnonzero(units.stratum == stratum)
                number = int(units.size[inside[0]])
                strata.append((inside, number, max(number - 1, 1)))
        for _ in range(_REPLICATES):
            times = np.zeros(len(size))
            for inside, total, drawn in strata:
                # The others of the stratum have no rows of the group.
                others = total - size[inside].sum()
                shares = np.append(size[inside], others)[: None if others else -1] / total
                often = random.multinomial(drawn, shares)[: len(inside)]
                times[inside] = often * total / drawn / size[inside]
            yield self.weights * times[row_unit]


def _number_units(sample: Sampling, order: Ints) -> tuple[Ints, _Units]:
    """Return the place of the sampling unit of each row among those of a segment, by stratum."""
    if sample.replicates is not None:
        # A single unit gives no limits.
        whole = _Units(np.zeros(1, np.int64), np.ones(1), np.ones(1, dtype=bool))
        return np.zeros(len(order), np.int64), whole
    found, unit = np.unique(sample.unit[order], return_inverse=True)
    stratum = sample.stratum[found]
    by_stratum = np.argsort(stratum, kind="stable")
    place = np.empty_like(by_stratum)
    place[by_stratum] = np.arange(len(found))
    stratum = stratum[by_stratum]
    size, fraction = sample.size[stratum], sample.fraction[stratum]
    is_lonely = (size == 1) & (fraction < 1) & (sample.lonely != "certainty")
    return place[unit], _Units(stratum, size, ~is_lonely)


def _limit(points: _Points, measure: Callable[[_Curve], Array], number: int, level: Level) -> Array:
    """Return values of the curve and their limits by resampling, in three rows."""
    unknown = np.full((3, number), np.nan)
    curve = points.fit(points.weights) if len(points.weights) else None
    if curve is None:
        return unknown
    values = measure(curve)
    if not np.isfinite(values).all():
        return unknown
    curves = (points.fit(weights) for weights in points.resample())
    drawn = [measure(each) for each in curves if each is not None]
    drawn = [each for each in drawn if np.isfinite(each).all()]
    # Resampled limits hold at a single look only.
    if len(drawn) > _REPLICATES // 2 and level.looks is None:
        ends = np.quantile(drawn, [level.error / 2, 1 - level.error / 2], axis=0)
        return np.stack([values, *ends])
    return np.stack([values, *unknown[1:]])
