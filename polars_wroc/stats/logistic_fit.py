"""Logistic regressions of the label on the logit of the score, one for each of many groups.

There are two regressions of the same rows: the free one estimates the slope, the fixed one has a
slope of 1. Newton's method fits both to points in memory: the rows themselves, or points in bins of
the variable (the logit) that have the moments of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[Any]

# The last step changes the coefficients by less than this, relative to one plus their size, with a
# standardised variable.
_STEPS, _TOLERANCE = 30, 1e-8
# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13

# Widths of bins; the narrower ones are for slopes that are too steep for the wider ones.
BIN_WIDTHS = 0.1, 0.0125


def steepest(width: float) -> float:
    """Return the slope up to which a fit to bins of this width is exact up to rounding."""
    return 0.35 / width


class FitPoints(NamedTuple):
    """Points of groups, which are contiguous and begin at ``starts``.

    A point has a ``value`` of the variable, the weights of both classes there and the sums of their
    squares. Every group has points.
    """

    value: _Array
    pos: _Array
    neg: _Array
    squares_pos: _Array
    squares_neg: _Array
    starts: _Array

    def spread(self, values: _Array) -> _Array:
        """Return the values of groups, repeated for each of their points."""
        return np.repeat(values, np.diff(self.starts, append=len(self.value)))

    def total(self, terms: _Array) -> _Array:
        """Return the sum of the terms of the points of each group."""
        return np.add.reduceat(terms, self.starts)

    def powers(self, terms: _Array, highest: int) -> list[_Array]:
        """Return the sums of terms times the powers of the variable, from 0 on."""
        sums = [self.total(terms)]
        for _ in range(highest):
            terms = terms * self.value
            sums.append(self.total(terms))
        return sums

    def at(self, some: _Array) -> FitPoints:
        """Return the points of some of the groups."""
        if some.all():
            return self
        places = self.spread(some)
        counts = np.diff(self.starts, append=len(self.value))[some]
        columns = (column[places] for column in self[:-1])
        return FitPoints._make([*columns, np.cumsum(counts) - counts])


class _Coefficients(NamedTuple):
    """The coefficients of each group; NaN where there are none."""

    a: _Array
    b: _Array

    def probabilities(self, points: FitPoints) -> tuple[_Array, _Array]:
        """Return the probabilities of both classes at each point."""
        odds = np.exp(points.spread(self.a) + points.spread(self.b) * points.value)
        return 1 / (1 + 1 / odds), 1 / (1 + odds)


class FreeSlopes(NamedTuple):
    """The slopes of the free regressions of groups, with their variances and the information.

    NaN where there is no slope, like the ``intercept`` that goes with it. ``has_classes`` says
    where both classes have weight and every row has a value.
    """

    slope: _Array
    intercept: _Array
    variance: _Array
    information: _Array
    has_classes: _Array


class FixedSlopes(NamedTuple):
    """The intercepts of regressions with a slope of 1, and their variances; NaN without one."""

    intercept: _Array
    variance: _Array


class _StandardPoints(NamedTuple):
    """Points with standardised values and with weights that add up to 1 in each group.

    ``mean`` and ``sd`` describe the values, ``total`` is the weight, and ``odds`` is the logarithm
    of the odds of a positive; NaN without both classes, or with a value of NaN.
    """

    points: FitPoints
    mean: _Array
    sd: _Array
    total: _Array
    odds: _Array


def _standardise(points: FitPoints) -> _StandardPoints:
    value, pos, neg, squares_pos, squares_neg, starts = points
    positives, negatives = points.total(pos), points.total(neg)
    total, counts = positives + negatives, np.diff(starts, append=len(value))
    mean = points.total(value) / counts
    sd = np.sqrt(points.total((value - points.spread(mean)) ** 2) / counts)
    # Equal or nearly equal values are not standardised.
    differ = np.maximum.reduceat(value, starts) > np.minimum.reduceat(value, starts)
    sd = np.where(differ & (sd > 0), sd, 1.0)
    shares = points.spread(total)
    weights = pos / shares, neg / shares, squares_pos / shares**2, squares_neg / shares**2
    standardised = (value - points.spread(mean)) / points.spread(sd)
    odds = np.log(positives / negatives)
    odds[~np.isfinite(odds) | np.isnan(mean)] = np.nan
    return _StandardPoints(FitPoints(standardised, *weights, starts), mean, sd, total, odds)


def _fit_free(points: FitPoints, standard: _StandardPoints) -> _Coefficients:
    """Return the free regressions of standardised points, starting from the prevalence."""
    overlap = np.where(_overlap(points), standard.odds, np.nan)
    start = _Coefficients(overlap, np.zeros(len(overlap)))
    return _newton(standard.points, start, free=True)


@np.errstate(all="ignore")
def fit_free_slopes(points: FitPoints) -> FreeSlopes:
    """Return the slopes of the free regressions of each group of points.

    Values may be NaN, and so is then what follows from them.
    """
    standard = _standardise(points)
    free = _fit_free(points, standard)
    variance, information = _slope_precision(standard.points, free)
    return FreeSlopes(
        free.b / standard.sd,
        free.a - free.b * standard.mean / standard.sd,
        variance / standard.sd**2,
        information * standard.sd**2 * standard.total,
        ~np.isnan(standard.odds),
    )


@np.errstate(all="ignore")
def fit_fixed_slopes(points: FitPoints) -> FixedSlopes:
    """Return the intercepts of the regressions of each group of points with a slope of 1.

    Values may be NaN, and so is then what follows from them.
    """
    held, mean, sd, total, odds = _standardise(points)
    # Starting from the mean probability
    promised = points.total((points.pos + points.neg) / (1 + np.exp(-points.value))) / total
    # Exactly 0 or 1 would have an infinite logit.
    promised = np.clip(promised, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))
    start = odds - np.log(promised / (1 - promised)) + mean
    fit = _newton(held, _Coefficients(start, sd), free=False)
    return FixedSlopes(fit.a - mean, _intercept_variance(held, fit))


def _overlap(points: FitPoints) -> _Array:
    """Return whether the values of the classes of a group overlap."""
    lowest, highest = (
        [end.reduceat(np.where(w != 0, points.value, beyond), points.starts) for w in points[1:3]]
        for end, beyond in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    overlap: _Array = (lowest[0] < highest[1]) & (lowest[1] < highest[0])
    return overlap


def _newton(points: FitPoints, start: _Coefficients, *, free: bool) -> _Coefficients:
    """Return the coefficients of the regressions that converge."""
    found = np.full((2, len(start.a)), np.nan)
    going = np.flatnonzero(np.isfinite(start.a))
    some, now = points.at(np.isfinite(start.a)), np.array(start)[:, going]
    for _ in range(_STEPS):
        if not len(going):
            break
        step = _step(some, _Coefficients(*now), free=free)
        now = now + step
        small = (np.abs(step) <= _TOLERANCE * (1 + np.abs(now - step).sum(axis=0))).all(axis=0)
        found[:, going[small]] = now[:, small]
        # Groups that have converged, or never will, are left out.
        on = ~small & np.isfinite(now).all(axis=0)
        if not on.all():
            some, going, now = some.at(on), going[on], now[:, on]
    return _Coefficients(*found)


def _step(points: FitPoints, at: _Coefficients, *, free: bool) -> _Array:
    p, q = at.probabilities(points)
    h0, h1, h2 = points.powers((points.pos + points.neg) * p * q, 2)
    g0, g1 = points.powers(points.pos * q - points.neg * p, 1)
    if not free:
        return np.array([g0 / h0, np.zeros(len(g0))])
    determinant = h0 * h2 - h1**2
    # Equal values have no variance, and rounding must not look like one.
    determinant = np.where(determinant > _ROUNDING * h0 * h2, determinant, np.nan)
    step: _Array = np.array([h2 * g0 - h1 * g1, h0 * g1 - h1 * g0]) / determinant
    return step


def _squares(points: FitPoints, at: _Coefficients, highest: int) -> tuple[list[_Array], ...]:
    """Return the Hessian, and squared weights times squared residuals, observed and expected."""
    p, q = at.probabilities(points)
    residuals = points.squares_pos * q * q + points.squares_neg * p * p
    expected = (points.squares_pos + points.squares_neg) * p * q
    terms = (points.pos + points.neg) * p * q, residuals, expected
    return tuple(points.powers(each, highest) for each in terms)


def _slope_precision(points: FitPoints, at: _Coefficients) -> tuple[_Array, _Array]:
    """Return the variance of the slope, and the information on it.

    The variance is the larger of the sandwich estimate and its expectation under the model: small
    samples often lack the large squared residuals of rare rows, and only the sandwich allows for a
    curved relation.
    """
    (h0, h1, h2), *squares = _squares(points, at, 2)
    determinant = h0 * h2 - h1**2
    # The square of what a row moves it by, times the determinant, by powers of the variable.
    moved = h1**2, -2 * h0 * h1, h0**2
    sums = (sum(s * m for s, m in zip(each, moved, strict=True)) for each in squares)
    return np.maximum(*sums) / determinant**2, determinant / h0


def _intercept_variance(points: FitPoints, at: _Coefficients) -> _Array:
    (hessian,), (residuals,), (expected,) = _squares(points, at, 0)
    variance: _Array = np.maximum(residuals, expected) / hessian**2
    return variance
