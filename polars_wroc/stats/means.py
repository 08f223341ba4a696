"""Weighted means and shares of rows, and their changes if a new score replaces an old one.

Variances are linearised: the variance of a mean m of values v, with weights h that add up to 1, is
sum(h^2 (v - m)^2), from sums over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.contrasts import Contrast, correlate_shares, credible_correlation
from polars_wroc.stats.estimates import Limits, Scale, Wald, Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count, find_inverse_size

BRIER_SCALE, LOG_LOSS_SCALE = Scale(0.0, 1.0), Scale(0.0)
# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13
# With fewer effective rows that change, limits of unbounded losses are too narrow.
_FEWEST_LOSSES = 30
# If changed rows are this many times as heavy as all rows, limits of rates are too narrow.
_HEAVY = 2
# With a design, two pseudo-rows of a rate change: one from 0 to 1, one from 1 to 0.
_MOST_OF_RATE = 2.0


@dataclass(frozen=True)
class Share:
    """The share of a part in the weight of some rows and, with a design, its variance."""

    part: Count
    whole: Count
    design_variance: Array | None = None

    @property
    def value(self) -> Array:
        """The share; NaN without rows or where weights overflow."""
        known = np.isfinite(self.whole.weight)
        return np.where(known, self.part.weight / self.whole.weight, np.nan)

    @property
    def variance(self) -> Array:
        """The variance, by the design if there is one."""
        if self.design_variance is not None:
            return self.design_variance
        # sum h^2 (b - p)^2 with b = 1 in the part, else 0
        spread = self.part.squares * (1 - 2 * self.value) + self.value**2 * self.whole.squares
        return np.asarray(np.maximum(spread / self.whole.weight / self.whole.weight, 0))

    def estimate(self) -> Wilson:
        """Return the share with Wilson's limits, for the effective size implied by its variance."""
        complement = 1 - self.value
        size = find_inverse_size(self.variance, self.value, complement, self.whole.inverse_size)
        return Wilson(self.value, complement, size, size)


@dataclass(frozen=True)
class Difference:
    """A difference with its standard error, symmetric limits and a test by Student's t.

    If the error is 0, both limits are the difference.
    """

    value: Array
    error: Array
    df: Array | float = np.inf

    @property
    def gap(self) -> Array:
        """The difference, under the name that `Contrast` uses."""
        return self.value

    @property
    def z(self) -> Array:
        """The difference in units of its error; a difference of 0 gives 0 with any error."""
        return np.where((self.value == 0) & ~np.isnan(self.error), 0.0, self.value / self.error)

    def limits(self, quantile: Array | float) -> Limits:
        """Return the confidence limits at a two-sided quantile."""
        margin = quantile * self.error
        return Limits(self.value - margin, self.value + margin)

    def p_value(self, level: Level) -> Array:
        """Return the p-value of the test that there is no difference."""
        return level.p_value(self.z, self.df)


def change_of_rate(gained: Share, lost: Share) -> Contrast:
    """Return the change of a rate: new events minus rows that are no longer events.

    Both are shares of the same rows, from which their correlation follows.
    """
    rho = correlate_shares(gained.value, lost.value)
    return Contrast(gained.estimate(), lost.estimate(), correlation=rho)


def change_of_share(
    old: Share, new: Share, both: Count, both_part: Count, covariance: Array | None = None
) -> Contrast:
    """Return the change of a share whose rows change too, for example of precision.

    ``both`` are the rows in both wholes, ``both_part`` the rows in both parts. With a design, its
    ``covariance`` replaces the covariance of independent rows.
    """
    p, q = old.value, new.value
    if covariance is None:
        # sum h_old h_new (b - p) (b - q) over the rows of both wholes
        shared = p * q * both.squares + (1 - p - q) * both_part.squares
        covariance = shared / old.whole.weight / new.whole.weight
    rho = credible_correlation(covariance, old.variance, new.variance)
    return Contrast(new.estimate(), old.estimate(), correlation=rho)


@dataclass(frozen=True)
class Mean:
    """The weighted mean of values v of rows, from sums of w v, w^2 v and w^2 v^2.

    With a design it has the design's variance.
    """

    whole: Count
    first: Array
    cross: Array
    second: Array
    design_variance: Array | None = None
    design_df: Array | float | None = None

    @property
    def value(self) -> Array:
        """The mean; NaN without rows or where weights overflow."""
        known = np.isfinite(self.whole.weight)
        return np.where(known, self.first / self.whole.weight, np.nan)

    @property
    def variance(self) -> Array:
        """The variance, by the design if there is one."""
        if self.design_variance is not None:
            return self.design_variance
        return covariance_of_means(self, self, self.second)

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of the limits, which are infinite for equal weights."""
        return 1 / self.whole.inverse_df if self.design_df is None else self.design_df

    def estimate(self, scale: Scale | None = None) -> Wald:
        """Return the mean with limits that are symmetric on a scale, by default its own."""
        scale = Scale() if scale is None else scale
        error = np.sqrt(self.variance) / scale.slope(self.value)
        return Wald(self.value, error, scale, df=self.df)


def covariance_of_means(
    one: Mean, other: Mean, product: Array, shared: tuple[Count, Array, Array] | None = None
) -> Array:
    """Return the covariance of two means v and u of independent rows, 0 within rounding.

    ``product`` is the sum of w^2 v u over the rows of both. If not all rows belong to both, as for
    a segment and all rows, ``shared`` has the count and the sums of w^2 v and w^2 u of the shared
    rows.
    """
    rows, cross, other_cross = (one.whole, one.cross, other.cross) if shared is None else shared
    # sum h g (v - m) (u - n) = (sum w^2 v u + m n S - n sum w^2 v - m sum w^2 u) / (W X)
    terms = product + one.value * other.value * rows.squares
    crossed = other.value * cross + one.value * other_cross
    # Equal values leave nothing, and rounding must not look like a variance.
    none = np.abs(terms - crossed) <= _ROUNDING * (terms + np.abs(crossed))
    covariance = np.where(none, 0.0, terms - crossed) / one.whole.weight / other.whole.weight
    return np.where(np.isnan(rows.inverse_size), np.nan, covariance)


def change_of_mean(changes: Mean, most: Array | float) -> Difference:
    """Return the mean of changes of rows, which are at most ``most`` in size.

    Two pseudo-rows change as much as a row can, one up and one down: if few rows change, the
    variance of the rows alone would say that none can.
    """
    h2 = changes.whole.inverse_size
    if changes.design_variance is None:
        # V = sum h^2 (d - D)^2 / (1 - h2), which is unbiased
        variance = np.where(h2 < 1, changes.variance / (1 - h2), np.nan)
        df: Array | float = np.maximum(1 / h2 - 1, 1.0)
    else:
        variance, df = changes.design_variance, changes.df
    # V* = V + B^2 h2^2 / 2
    return Difference(changes.value, np.sqrt(variance + most**2 * h2**2 / 2), df)


def change_of_rate_by_design(changes: Mean) -> Difference:
    """Return the change of a rate with a design, as a mean of changes of 1, 0 and -1.

    Its variance is at least the variance of independent rows.
    """
    row_variance = covariance_of_means(changes, changes, changes.second)
    variance = np.maximum(changes.variance, row_variance)
    return change_of_mean(replace(changes, design_variance=variance), _MOST_OF_RATE)


def has_few_changed_losses(size: Array, second: Array) -> Mask:
    """Return whether too few rows change for an interval of unbounded losses.

    ``size`` is the sum of w |d| over the changes d, and ``second`` the sum of w^2 d^2.
    """
    # k = (sum h |d|)^2 / sum h^2 d^2
    return np.asarray(size**2 < _FEWEST_LOSSES * second)


def has_heavy_changed_rows(changed: Count, whole: Count) -> Mask:
    """Return whether changed rows are so heavy that limits of a rate are too narrow."""
    heavier = changed.weight / changed.rows > _HEAVY * whole.weight / whole.rows
    return np.asarray(heavier & (changed.rows > 0))


def relative_brier_slopes(brier: Array, share: Array) -> tuple[Array, Array]:
    """Return the derivatives of the logarithm of the relative Brier score.

    They are with respect to the Brier score and to the ``share`` of positives.
    """
    # d ln(b / (p (1 - p))) = db / b - (1 - 2 p) / (p (1 - p)) dp
    return 1 / brier, -(1 - 2 * share) / (share * (1 - share))


def relative_brier(
    brier: Mean, positives: Mean, product: Array, design_variance: Array | None = None
) -> Wald:
    """Return the Brier score divided by the Brier score of the prevalence, with log limits.

    ``positives`` is the mean of labels of 1 and 0, and ``product`` the sum of w^2 times loss and
    label. A variance by a design is the variance of the logarithm.
    """
    share = positives.value
    value = brier.value / (share * (1 - share))
    value = np.where(np.isfinite(value), value, np.nan)
    variance = design_variance
    if variance is None:
        a, b = relative_brier_slopes(brier.value, share)
        mixed = covariance_of_means(brier, positives, product)
        variance = a**2 * brier.variance + 2 * a * b * mixed + b**2 * positives.variance
    return Wald(value, np.sqrt(variance), LOG_LOSS_SCALE, df=brier.df)
