"""Standardized mean differences: distances of mean scores in standard deviations of all scores.

The variance is linearised: it adds up the squared influences of rows on both means and on the
standard deviation, with Satterthwaite's (1946) degrees of freedom of the rows that carry the
variance. Scores are standardized first: z is the distance of a score from the mean of all rows, in
standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.records import map_arrays
from polars_wroc.stats.designs import Influence, SamplingUnits, Units, replicate_influence
from polars_wroc.stats.estimates import Wald
from polars_wroc.stats.rates import Count
from polars_wroc.stats.references import Reference

# With fewer effective rows in a segment or in its reference, limits are too narrow.
FEWEST_SCORES = 25
# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class StandardizedSums:
    """Sums over the rows of segments, of weights and squared weights times powers of z.

    ``first`` are the sums of w z^k for k = 0, 1, 2, and ``second`` the sums of w^2 z^k for k = 0 to
    4, with w in place of w^2 if weights are numbers of rows. ``third`` are the sums of w^3 z^k,
    divided by the sum of all w^2 to the power of 1.5. With a design, ``units`` are the sums
    of w z^k in each sampling unit and, with replicate weights, ``unit_squares`` the sums of squared
    weights: power, unit, segment.
    """

    first: Array
    second: Array
    third: Array
    rows: Array
    units: Array | None = None
    unit_squares: Array | None = None

    @property
    def count(self) -> Count:
        """The rows."""
        return Count(self.first[0], self.second[0], self.rows)

    @property
    def mean(self) -> Array:
        """The means of z."""
        return np.asarray(self.first[1] / self.first[0])

    def combine(self, function: Callable[[Array], Array]) -> StandardizedSums:
        """Return sums that are functions of these, for example the sums of all other segments."""
        return map_arrays(self, function)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class MeanDifference:
    """Mean scores of segments and of their references, with the variance of the difference."""

    own: Array
    other: Array
    variance: Array
    df: Array | float
    effective_rows: tuple[Array, Array]

    def estimate(self, share: Array | float = 1.0) -> Wald:
        """Return a share of the differences with limits."""
        return Wald(share * (self.own - self.other), share * np.sqrt(self.variance), df=self.df)


def compare_means(
    sums: StandardizedSums, reference: Reference, units: SamplingUnits | None = None
) -> MeanDifference:
    """Return the differences between the mean scores of segments and of their references.

    Differences are NaN without a standard deviation of all scores; variances also where squared
    weights over- or underflow, or only rounding is left.
    """
    other = sums.combine(reference.add_others)
    sizes = sums.count.inverse_size, other.count.inverse_size
    if units is None:
        variance, df = _find_variance(sums, other, sizes, reference)
    else:
        influence = _find_influence(sums, other, units)
        variance, df = units.variance(influence), units.df(influence)
        # Units whose influences differ by rounding only have no variance.
        variance = np.where(variance > _ROUNDING**2, variance, np.nan)
    variance = np.where(np.isnan(sizes[0] + sizes[1]), np.nan, variance)
    return MeanDifference(sums.mean, other.mean, variance, df, (1 / sizes[0], 1 / sizes[1]))


def _find_variance(
    own: StandardizedSums, other: StandardizedSums, sizes: tuple[Array, Array], reference: Reference
) -> tuple[Array, Array]:
    """Return the variances of differences for independent rows, with their degrees of freedom."""
    # D = mu_1 - mu_0, and its influences in units of w:
    # (z - mu_1) / W_1 - D / (2 W) (z^2 - q) in the segment,
    # -(z - mu_0) / W_0 - D / (2 W) (z^2 - q) in the reference, with q = sum(w z^2) / W of all rows
    total, _, squares = own.first.sum(axis=-1, keepdims=True)
    q, slope = squares / total, (own.mean - other.mean) / 2 / total
    parts = []
    for sign, sums, h2 in ((1.0, own, sizes[0]), (-1.0, other, sizes[1])):
        scale = sign / sums.first[0]
        influence = slope * q - scale * sums.mean, scale, -slope
        # In each group squares are too small by the factor 1 - h2, like squares about its own mean.
        parts.append(_add_squares(sums.second, influence) / (1 - h2))
    spread = _add_squares(own.second, (q, 0.0, -1.0))
    neither = spread.sum() - spread - reference.add_others(spread)
    neither = np.where(neither > _ROUNDING * spread.sum(), neither, 0.0)
    variance = parts[0] + parts[1] + slope**2 * neither
    whole = own.second[0].sum()
    lost = [
        (part / variance) ** 2 * np.maximum(h2 / (1 - h2), _find_concentration(sums, whole))
        for part, h2, sums in zip(parts, sizes, (own, other), strict=True)
    ]
    return variance, np.maximum(1 / (lost[0] + lost[1]), 1.0)


def _find_concentration(sums: StandardizedSums, whole: Array) -> Array:
    """Return 1 divided by the number of rows that carry the variances of means.

    ``whole`` is the sum of w^2 over all rows. A few heavy rows far from the mean may carry most of
    a variance, which is then uncertain, and mostly too small.
    """
    # 1 / k = sum w^4 d^4 / (sum w^2 d^2)^2, d = z - mu, where counts of scores lack w^4:
    # sum w^4 d^4 is at least (sum w^3 d^4)^2 / sum w^2 d^4, and the same for equal weights.
    mean = sums.mean
    squares = _add_squares(sums.second, (-mean, 1.0, 0.0)) / whole
    second, third = (
        _add_squares(powers, (mean**2, -2 * mean, 1.0))
        for powers in (sums.second / whole, sums.third)
    )
    is_known = (squares > 0) & (second > 0)
    return np.where(is_known, np.minimum(third**2 / second / squares**2, 1.0), 0.0)


def _add_squares(
    powers: Array, polynomial: tuple[Array | float, Array | float, Array | float]
) -> Array:
    """Return sums of w^2 (a + b z + c z^2)^2 from the sums of w^2 z^k; 0 within rounding."""
    a, b, c = polynomial
    terms = [
        a * a * powers[0],
        2 * a * b * powers[1],
        (b * b + 2 * a * c) * powers[2],
        2 * b * c * powers[3],
        c * c * powers[4],
    ]
    total, size = sum(terms), sum(np.abs(term) for term in terms)
    return np.where(total > _ROUNDING * size, total, 0.0)


def _find_influence(
    own: StandardizedSums, other: StandardizedSums, units: SamplingUnits
) -> Influence:
    """Return the influences of sampling units on the differences."""
    assert own.units is not None
    assert other.units is not None
    whole = own.units.sum(axis=-1, keepdims=True)
    if not isinstance(units, Units):
        assert own.unit_squares is not None
        squares = own.unit_squares.sum(axis=-1, keepdims=True)
        difference = own.units[1] / own.units[0] - other.units[1] / other.units[0]
        return replicate_influence(difference / np.sqrt(_find_scatter(whole, squares)))
    difference = own.mean - other.mean
    own_mean = units.ratio_influence(own.units[1], own.units[0])
    other_mean = units.ratio_influence(other.units[1], other.units[0])
    everywhere = np.broadcast_to(whole, own.units.shape)
    # The standard deviation is the root of a mean of squares.
    mean_square = units.ratio_influence(everywhere[2], everywhere[0])
    return own_mean - other_mean - mean_square * (difference / 2)


def _find_scatter(sums: Array, squares: Array) -> Array:
    """Return unbiased variances, given sums of weights times powers of values.

    NaN where there is none, for example for a single row.
    """
    weight, first, second = sums
    # V = (sum w z^2 - (sum w z)^2 / W) / (W - S / W)
    free = weight - squares / weight
    free = np.where(free > _ROUNDING * weight, free, np.nan)
    return np.asarray((second - first**2 / weight) / free)


def standardize(values: Array, weight: Array, squares: Array) -> Array:
    """Return values as distances from their weighted mean, in standard deviations.

    ``squares`` are squared weights, or the weights themselves if these are numbers of rows, for an
    unbiased variance. NaN without a variance above 0.
    """
    total = weight.sum()
    # The mean of equal values must not differ from them by rounding.
    lowest, highest = values.min(initial=np.inf), values.max(initial=-np.inf)
    mean = np.clip((weight @ values) / total, lowest, highest)
    away = values - mean
    sums = np.stack([total, weight @ away, weight @ away**2])
    variance = _find_scatter(sums, squares.sum())
    return np.where((variance > 0) & np.isfinite(variance), away / np.sqrt(variance), np.nan)
