"""Differences and ratios of estimates: limits, and the level at which they exclude 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.estimates import Estimate, Limits, Wald
from polars_wroc.stats.levels import Level
from polars_wroc.stats.solve import first_place

# Higher correlations are not credible with few rows or sampling units, and would make the limits of
# two estimates near 0 or 1 almost cancel out.
_MOST_CORRELATED = 0.95
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Contrast:
    """An estimate of each segment minus the estimate of its reference.

    If the reference includes the segment, the gap is a ``share`` of the difference. ``slack`` is
    the possible error of the gap, because the order of scores within a bin is unknown; it widens
    the limits.
    """

    own: Estimate
    other: Estimate
    share: Array | float = 1.0
    correlation: Array | float = 0.0
    slack: Array | float = 0.0

    @property
    def gap(self) -> Array:
        """The difference from the reference."""
        return self.share * (self.own.value - self.other.value)

    @property
    def reference(self) -> Array:
        """The value of the reference."""
        if np.ndim(self.share) == 0 and self.share == 1:
            return self.other.value
        return (1 - self.share) * self.own.value + self.share * self.other.value

    @property
    def ratio(self) -> Array:
        """The ratio to the reference; NaN where the reference is 0."""
        ratio = self._include_own(self.own.value / self.other.value)
        return np.where(self.reference > 0, ratio, np.nan)

    @property
    def sign_is_known(self) -> Mask:
        """Whether the gap exceeds the slack by more than rounding."""
        beyond = np.abs(self.gap) - self.slack
        return np.asarray((self.slack == 0) | (beyond > _ROUNDING))

    def limits(
        self, quantile: Array | float, other_quantile: Array | float | None = None
    ) -> Limits:
        """Return the limits of the gap, at a common quantile or one for each estimate."""
        low, high = self._limits_without_slack(quantile, other_quantile)
        return Limits(low - self.slack, high + self.slack)

    def ratio_limits(
        self, quantile: Array | float, other_quantile: Array | float | None = None
    ) -> Limits:
        """Return the limits of the ratio; an upper limit without bound is infinite."""
        one, two = self._limits_of_sides(quantile, other_quantile)
        limits = find_ratio_limits(self.own.value, one, self.other.value, two, self.correlation)
        return Limits(*map(self._include_own, limits))

    def p_value(self, level: Level, df: Array | float = np.inf) -> Array:
        """Return the p-value: the level at which a limit is 0, with one quantile for both sides.

        The quantile is from Student's t with ``df``. NaN where there are no limits, or where the
        slack leaves the sign of the gap open.
        """
        gap = self.gap

        def includes_zero(place: Array) -> Mask:
            quantile = place / (1 - place)
            low, high = self._limits_without_slack(quantile)
            # Limits that overflow are farthest away.
            return np.where(gap > 0, ~(low > 0), ~(high < 0))

        # A quantile q is mapped to q / (1 + q), from 0 to 1.
        place = first_place(includes_zero, np.zeros_like(gap), np.ones_like(gap))
        p_value = np.where(gap == 0, 1.0, level.p_value(place / (1 - place), df))
        known = ~np.isnan(self._limits_without_slack(1.0).low) & self.sign_is_known
        return np.where(known, p_value, np.nan)

    def _limits_of_sides(
        self, quantile: Array | float, other_quantile: Array | float | None
    ) -> tuple[Limits, Limits]:
        second = quantile if other_quantile is None else other_quantile
        return self.own.limits(quantile), self.other.limits(second)

    def _limits_without_slack(
        self, quantile: Array | float, other_quantile: Array | float | None = None
    ) -> Limits:
        one, two = self._limits_of_sides(quantile, other_quantile)
        limits = find_gap_limits(self.own.value, one, self.other.value, two, self.correlation)
        return Limits(*(self.share * limit for limit in limits))

    def _include_own(self, ratio: Array) -> Array:
        """Return the ratio to a reference that includes the segment, from the ratio to others."""
        return np.asarray(1 / (1 - self.share + self.share / ratio))


@dataclass(frozen=True)
class GapEstimate:
    """The gap of a contrast of the same rows, as an estimate."""

    contrast: Contrast

    @property
    def value(self) -> Array:
        """The gaps."""
        return self.contrast.gap

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of both sides."""
        return self.contrast.own.df

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits of the gap, at a quantile of both sides."""
        return self.contrast.limits(quantile)


@dataclass(frozen=True)
class DirectContrast:
    """An estimate of each segment minus its reference, with its own error of ``difference``.

    The error does not follow from the errors of both sides. It has the attributes of a `Contrast`.
    """

    own: Estimate
    reference: Array
    difference: Wald
    share: float = 1.0
    slack: float = 0.0

    @property
    def gap(self) -> Array:
        """The difference from the reference."""
        return self.difference.value

    @property
    def ratio(self) -> Array:
        """The ratio to the reference, which is not defined."""
        return np.full_like(self.reference, np.nan)

    @property
    def sign_is_known(self) -> Mask:
        """Whether the gap is larger than the slack."""
        return np.ones(self.reference.shape, dtype=bool)

    def limits(
        self,
        quantile: Array | float,
        other: Array | float | None = None,  # noqa: ARG002
    ) -> Limits:
        """Return the limits of the gap, at the quantile of the segment."""
        return self.difference.limits(quantile)

    def ratio_limits(
        self,
        quantile: Array | float,  # noqa: ARG002
        other: Array | float | None = None,  # noqa: ARG002
    ) -> Limits:
        """Return the limits of the ratio, which are not defined."""
        return Limits(self.ratio, self.ratio)

    def p_value(self, level: Level, df: Array | float = np.inf) -> Array:
        """Return the p-value of Student's t test that there is no difference."""
        return level.p_value(self.gap / self.difference.standard_error, df)


def find_gap_limits(
    own: Array, own_limits: Limits, other: Array, other_limits: Limits, rho: Array | float = 0.0
) -> Limits:
    """Return the limits of the difference of two estimates with correlation ``rho``.

    The method of variance estimates recovery (MOVER): the distance of an estimate from its limit
    gives its standard error on that side (Zou and Donner 2008, Statistics in Medicine 27,
    1693-1702; Newcombe's method 10 for two proportions).
    """
    # L = a - b - sqrt((a - l_a)^2 + (u_b - b)^2 - 2 rho (a - l_a) (u_b - b))
    below = combine_margins(own - own_limits.low, other_limits.high - other, rho)
    # U = a - b + sqrt((u_a - a)^2 + (b - l_b)^2 - 2 rho (u_a - a) (b - l_b))
    above = combine_margins(own_limits.high - own, other - other_limits.low, rho)
    return Limits(own - other - below, own - other + above)


def combine_margins(own: Array, other: Array, rho: Array | float = 0.0) -> Array:
    """Return the margin of a difference of two estimates with margins and correlation ``rho``."""
    return np.sqrt(np.maximum(own**2 + other**2 - 2 * rho * own * other, 0))


def p_value_of_limits(gap: Array, limits: Limits, level: Level) -> Array:
    """Return the normal p-value of a gap, given its limits at one level.

    The standard error comes from the limit towards 0, so the p-value is below the error of the
    level exactly where the limits exclude 0.
    """
    distance = np.where(gap > 0, gap - limits.low, limits.high - gap)
    p_value = level.p_value(level.quantile() * np.abs(gap) / distance)
    return np.where(gap == 0, 1.0, np.where(distance > 0, p_value, np.nan))


def find_ratio_limits(
    own: Array, own_limits: Limits, other: Array, other_limits: Limits, rho: Array | float = 0.0
) -> Limits:
    """Return the limits of the ratio of two estimates of 0 or more, with correlation ``rho``.

    They are the ratios r for which the limits of ``own - r * other`` include 0 (Donner and Zou
    2012, Statistical Methods in Medical Research 21, 347-359), and so exclude 1 exactly where the
    limits of the difference exclude 0. The lower limit is 0 where the lower limit of ``own`` is 0;
    the upper limit is infinite where the lower limit of ``other`` is 0. If ``other`` is 0, the
    lower limit is the lower limit of ``own`` divided by the upper limit of ``other``.
    """
    low = _lowest_ratio(own, own_limits.low, other, other_limits.high, rho)
    low = np.where(other > 0, low, own_limits.low / other_limits.high)
    # The largest ratio is the inverse of the smallest inverse ratio.
    high = 1 / _lowest_ratio(other, other_limits.low, own, own_limits.high, rho)
    return Limits(low, high)


def _lowest_ratio(a: Array, low: Array, b: Array, high: Array, rho: Array | float) -> Array:
    # R = (A - sqrt(A^2 - l_a u_b (2 a - l_a) (2 b - u_b))) / (u_b (2 b - u_b)), where
    # A = a b - rho (a - l_a) (u_b - b). Multiplied by A + sqrt(...) and divided by a, because the
    # difference of nearly equal numbers would lose digits near 0.
    share = low / a
    factor = share * (2 - share)
    middle = b - rho * (1 - share) * (high - b)
    root = np.sqrt(np.maximum(middle**2 - factor * high * (2 * b - high), 0))
    return np.where(low == 0, 0.0 * high, a * factor / (middle + root))


def credible_correlation(covariance: Array, one: Array, other: Array) -> Array:
    """Return the correlation of two estimates, given both variances: at most 0.95 in size.

    It is 0 where a variance is 0 or unknown.
    """
    # Roots, since products of variances may underflow
    correlation = covariance / (np.sqrt(one) * np.sqrt(other))
    correlation = np.clip(correlation, -_MOST_CORRELATED, _MOST_CORRELATED)
    return np.where((one > 0) & (other > 0) & ~np.isnan(covariance), correlation, 0.0)


def correlate_shares(one: Array, other: Array) -> Array:
    """Return the correlation of the shares of two kinds of rows in the same sample.

    The more there are of one kind, the fewer there are of the other (Newcombe 1998, Statistics in
    Medicine 17, 2635-2650).
    """
    p, q = one, other
    # rho = -sqrt(p q / ((1 - p) (1 - q)))
    rho = -np.sqrt(p * q / ((1 - p) * (1 - q)))
    return np.where((p < 1) & (q < 1), rho, 0.0)
