"""Estimates: values of segments with confidence limits at any quantile."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from polars_wroc.arrays import Array, Ints, Mask

_RecordT = TypeVar("_RecordT", "Wilson", "Wald", "Scale")
# Fixed-point iterations for the effective size at a limit.
_ITERATIONS = 4


class Limits(NamedTuple):
    """Lower and upper confidence limits."""

    low: Array
    high: Array


def name_limits(name: str) -> tuple[str, str, str]:
    """Return the names of the columns of values and of their limits."""
    return name, f"{name}_low", f"{name}_high"


def limit_columns(name: str, value: Array, limits: Limits) -> dict[str, Array]:
    """Return a dict of the columns of values and their limits."""
    return dict(zip(name_limits(name), (value, *limits), strict=True))


class Estimate(Protocol):
    """A value of each segment, with degrees of freedom and limits at any quantile."""

    @property
    def value(self) -> Array:
        """The values."""

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of their variances."""

    def limits(self, quantile: Array | float) -> Limits:
        """Return the confidence limits at a two-sided quantile."""


@dataclass(frozen=True)
class Wilson:
    """A rate or an AUC, whose variance depends on its value like that of a proportion.

    ``low`` and ``high`` are 1 divided by the effective sample size of each limit if the value were
    0; they grow by ``slope`` up to a value of 1. ``skewness`` scales the correction of the far
    limit: 0 for rates, 1/12 for AUCs, which is half the factor of Edgeworth's expansion.
    """

    value: Array
    complement: Array
    low: Array
    high: Array
    slope: Array | float = 0.0
    skewness: float = 0.0
    df: Array | float = np.inf

    def limits(self, quantile: Array | float) -> Limits:
        """Return Wilson's limits, each with the effective size at the limit."""
        # m <- p; four times m <- W(p, r(m), t), where 1/r(m) is the effective size at m
        low = high = self.value
        for _ in range(_ITERATIONS if np.any(self.slope) else 1):
            low_size = self.low + low * self.slope
            high_size = self.high + high * self.slope
            low = _wilson_low(self.value, self.complement, low_size, quantile, self.skewness)
            high = 1 - _wilson_low(self.complement, self.value, high_size, quantile, self.skewness)
        # Rounding must not exclude the value.
        return Limits(np.minimum(low, self.value), np.maximum(high, self.value))

    def at(self, places: Ints) -> Wilson:
        """Return the estimates of some segments, of which one may occur several times."""
        return _take(self, places)


def _wilson_low(
    value: Array, complement: Array, size: Array, z: Array | float, skewness: float
) -> Array:
    """Return Wilson's lower limit; the upper limit is 1 less the complement's lower limit."""
    z2 = np.square(z)
    p = value
    if skewness:
        # p = max(0, theta - s max(1 - 2 theta, 0) r) with s = (z^2 - 1) skewness
        shift = skewness * np.maximum(z2 - 1, 0) * np.maximum(complement - value, 0) * size
        p = np.maximum(value - shift, 0)
    # W-(p, r, z) = (p + z^2 r / 2 - sqrt(p (1 - p) z^2 r + z^4 r^2 / 4)) / (1 + z^2 r)
    extra = z2 * size
    root = np.sqrt(extra * p * (1 - p) + extra**2 / 4)
    return np.asarray(np.maximum((p + extra / 2 - root) / (1 + extra), 0))


@dataclass(frozen=True)
class Scale:
    """A scale on which errors are symmetric: the identity unless the range has a lower end.

    With both ends it is the logit between them, with only a lower end the logarithm.
    """

    low: Array | float = -np.inf
    high: Array | float = np.inf

    @property
    def is_identity(self) -> bool:
        """Whether the scale is the identity."""
        return bool(np.all(np.isinf(self.low)))

    def transform(self, value: Array) -> Array:
        """Return values on the scale."""
        if self.is_identity:
            return value
        above, below = value - self.low, self.high - value
        return np.asarray(np.log(above / np.where(np.isinf(below), 1.0, below)))

    def invert(self, place: Array) -> Array:
        """Return the values that belong to numbers on the scale."""
        if self.is_identity:
            return place
        width = self.high - np.asarray(self.low)
        logit = np.where(np.isinf(width), 0.0, width) / (1 + np.exp(-place))
        return np.asarray(self.low + np.where(np.isinf(width), np.exp(place), logit))

    def slope(self, value: Array) -> Array:
        """Return the derivative of values with respect to the scale."""
        if self.is_identity:
            return np.ones_like(value)
        above, below = value - self.low, self.high - value
        share = below / (self.high - np.asarray(self.low))
        return np.asarray(above * np.where(np.isinf(below), 1.0, share))


@dataclass(frozen=True)
class Wald:
    """A value with a standard ``error`` on a scale on which its limits are symmetric.

    They may have another ``centre`` than the value, for example with pseudo-rows; they then include
    both. They are NaN where the error is NaN.
    """

    value: Array
    error: Array
    scale: Scale = field(default_factory=Scale)
    centre: Array | None = None
    df: Array | float = np.inf

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits: the value plus and minus a number of errors on the scale."""
        own, centre = self.scale.transform(self.value), self._finite_centre
        # A value at an end of its range has no finite place on the scale.
        own = np.where(np.isfinite(own), own, centre)
        margin = quantile * self._known_error
        low = self.scale.invert(np.minimum(own, centre) - margin)
        high = self.scale.invert(np.maximum(own, centre) + margin)
        return Limits(np.minimum(low, self.value), np.maximum(high, self.value))

    @property
    def standard_error(self) -> Array:
        """The standard error of the value itself, by the delta method; NaN without one."""
        return self.scale.slope(self.value) * self._known_error

    @property
    def _finite_centre(self) -> Array:
        centre = self.scale.transform(self.value) if self.centre is None else self.centre
        return np.where(np.isfinite(centre), centre, np.nan)

    @property
    def _known_error(self) -> Array:
        known = (self.error > 0) & ~np.isnan(self._finite_centre)
        return np.where(known, self.error, np.nan)

    def at(self, places: Ints) -> Wald:
        """Return the estimates of some segments, of which one may occur several times."""
        return replace(_take(self, places), scale=_take(self.scale, places))


@dataclass(frozen=True)
class Scaled:
    """An estimate times a ``factor`` of 0 or more."""

    estimate: Estimate
    factor: Array | float

    @property
    def value(self) -> Array:
        """The values."""
        return self.factor * self.estimate.value

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of their variances."""
        return self.estimate.df

    def limits(self, quantile: Array | float) -> Limits:
        """Return the confidence limits at a two-sided quantile."""
        low, high = self.estimate.limits(quantile)
        return Limits(self.factor * low, self.factor * high)


@dataclass(frozen=True)
class FallbackEstimate:
    """An estimate with limits where these are known, and the limits of a fallback elsewhere."""

    first: Estimate
    fallback: Estimate
    is_known: Mask

    @property
    def value(self) -> Array:
        """The values."""
        return self.first.value

    @property
    def df(self) -> Array:
        """The degrees of freedom of their variances."""
        return np.where(self.is_known, self.first.df, self.fallback.df)

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits of one of both estimates."""
        both = zip(self.first.limits(quantile), self.fallback.limits(quantile), strict=True)
        low, high = (np.where(self.is_known, one, other) for one, other in both)
        return Limits(low, high)


@dataclass(frozen=True)
class WidenedEstimate:
    """An estimate whose limits, if ``is_widened``, reach at least as far as those of another one.

    Limits are unknown where its own are, and are its own where only the others are unknown.
    """

    first: Estimate
    other: Estimate
    is_widened: Mask

    @property
    def value(self) -> Array:
        """The values."""
        return self.first.value

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of the estimate itself."""
        return self.first.df

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits that are farther from the values."""
        own, other = self.first.limits(quantile), self.other.limits(quantile)
        low = np.where(self.is_widened & (other.low < own.low), other.low, own.low)
        high = np.where(self.is_widened & (other.high > own.high), other.high, own.high)
        return Limits(low, high)


def _take(record: _RecordT, places: Ints) -> _RecordT:
    """Return a record of arrays at some places; values shared by all segments stay."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    arrays: dict[str, Any] = {name: each for name, each in values.items() if np.ndim(each)}
    return replace(record, **{name: each[places] for name, each in arrays.items()})
