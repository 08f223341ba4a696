"""Weighted rates with their limits, and limits of differences and ratios of estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.formulas import Columns, Fields, Formula, max_of, min_of, when
from polars_wroc.stats.distributions import t_quantile, z_quantile

# Higher correlations are not credible from few rows or sampling units, and would let the limits of
# two estimates near 0 or 1 all but cancel out.
_MOST_CORRELATED = 0.95


class Limits(NamedTuple):
    """Lower and upper confidence limit."""

    low: pl.Expr
    high: pl.Expr


class Estimate(NamedTuple):
    """An estimate and its confidence limits."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr


def difference_limits(one: Estimate, other: Estimate, correlation: pl.Expr | None = None) -> Limits:
    """Confidence limits of the difference of two estimates, from the limits of each.

    Donner and Zou's method of variance estimates recovery (MOVER): the distance from an estimate
    to its limit gives the variance on that side. Without ``correlation`` the two are independent.
    """
    difference = one.value - other.value
    below = margin(one.value - one.low, other.high - other.value, correlation)
    above = margin(one.high - one.value, other.value - other.low, correlation)
    return Limits(difference - below, difference + above)


def margin(one: pl.Expr, other: pl.Expr, correlation: pl.Expr | None = None) -> pl.Expr:
    """Distance of a difference from its limit, from the distances of both estimates from theirs."""
    squares = one**2 + other**2
    if correlation is not None:
        squares = (squares - 2 * correlation * one * other).clip(lower_bound=0.0)
    return squares.sqrt()


def credible_correlation(covariance: pl.Expr, one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Correlation of two estimates from their covariance and variances, at most 0.95 in size.

    0 where a variance is 0 or unknown.
    """
    correlation = (covariance / (one.sqrt() * other.sqrt())).clip(
        -_MOST_CORRELATED, _MOST_CORRELATED
    )
    known = when((one > 0) & (other > 0) & covariance.is_not_null())
    return known.then(correlation).otherwise(0.0)


def ratio_limits(one: Estimate, other: Estimate, correlation: pl.Expr | None = None) -> Limits:
    """Confidence limits of the ratio of two proportions; without ``correlation`` independent.

    Donner and Zou's (2012) too: the ratios r for which the limits of ``one - r * other`` include
    0, so that those of the ratio exclude 1 exactly where those of the difference exclude 0. The
    lower limit is 0 where that of ``one`` is, and the upper is infinite where the lower limit of
    ``other`` is 0; if ``other`` itself is 0, the lower limit is that of ``one`` divided by the
    upper one of ``other``. Null where an estimate has no limits.
    """
    known = when(one.high.is_not_null() & other.high.is_not_null())
    lowest, inverse = (_lowest_ratio(*each, correlation) for each in ((one, other), (other, one)))
    lowest = when(other.value > 0).then(lowest).otherwise(one.low / other.high)
    return Limits(known.then(lowest), known.then(1 / inverse))


def _lowest_ratio(one: Estimate, other: Estimate, correlation: pl.Expr | None) -> pl.Expr:
    """Solve for the smallest ratio; the largest is the inverse of the smallest inverse ratio.

    Written without differences of nearly equal numbers, which a rate near 0 would lose.
    """
    share = one.low / one.value
    kept = share * (2 - share)
    middle = other.value
    if correlation is not None:
        middle -= correlation * (1 - share) * (other.high - other.value)
    root = (middle**2 - kept * other.high * (2 * other.value - other.high)).clip(0.0).sqrt()
    return when(one.low > 0).then(one.value * kept / (middle + root)).otherwise(0.0)


# Largest difference of two rates that may be due to rounding.
TOLERANCE = 1e-12
# Below this proportion of its terms a difference of sums is rounding error.
ROUNDING = 1e-13
# Below this a sum of powers of weights may have lost terms to underflow.
_LEAST_SUM = 1e-290


@dataclass(frozen=True)
class WeightedCount:
    """Sum of the weights of some rows, sum of their squares, and number of the rows."""

    weight: pl.Expr
    squares: pl.Expr
    rows: pl.Expr

    def __add__(self, other: WeightedCount) -> WeightedCount:
        return WeightedCount(
            self.weight + other.weight, self.squares + other.squares, self.rows + other.rows
        )


def wilson_ends(rate: pl.Expr, inverse_size: pl.Expr, quantile: pl.Expr | float) -> Limits:
    """Wilson's confidence limits of a rate, given 1 divided by its sample size.

    That is 0 where the rate is exact; where it is infinite the limits are NaN. Rounding may leave
    the rate just outside.
    """
    extra = quantile**2 * inverse_size
    root = (extra * rate * (1 - rate) + extra**2 / 4).sqrt()
    return Limits(
        ((rate + extra / 2 - root) / (1 + extra)).clip(lower_bound=0.0),
        ((rate + extra / 2 + root) / (1 + extra)).clip(upper_bound=1.0),
    )


def is_exact(powers: pl.Expr) -> pl.Expr:
    """Whether a sum of powers of weights neither overflows nor underflows."""
    return (powers >= _LEAST_SUM) & powers.is_finite()


# Pseudo-observations that are as heavy as the heaviest rows that there are.
_PSEUDO_ROWS = 2
# If 1 divided by the degrees of freedom is below this, all weights are equal but for rounding.
EQUAL_WEIGHTS = 1e-9


def shrunk(
    share: pl.Expr, inverse_size: pl.Expr | float, heavier: pl.Expr, least: pl.Expr | float = 1.0
) -> pl.Expr:
    """Inverse size for a rate near 0, from how much heavier the few events are.

    ``share`` is the rate, or its complement for one near 1. From few events little is known of
    their weights: they are shrunk towards the unfavourable value, ``least`` or what they are.
    """
    number = share / inverse_size
    total = number * heavier + _PSEUDO_ROWS * max_of(heavier, least)
    return inverse_size * total / (number + _PSEUDO_ROWS)


def rate_t_quantile(level: float, inverse_df: pl.Expr) -> pl.Expr:
    """Quantile for a rate of weighted rows: Student's t; the normal one for equal weights."""
    weighted = when(inverse_df > 0).then(t_quantile(level, 1 / inverse_df))
    return weighted.otherwise(z_quantile(level))


class Side(NamedTuple):
    """A rate or an AUC that is compared with another one of different rows.

    The inverse size ``pool`` weights it in a common value: of a rate 1 divided by Kish's effective
    sample size. ``size_low`` and ``size_high`` are those of the limits, of a rate that if it were
    0, which grows by ``slope`` up to 1. The mean weights of the events and of the others, each
    weighted by the weights, are so many times that of all rows. ``inverse_df`` is 1 divided by the
    degrees of freedom; 0 for equal weights. An AUC has none of the last four, and ``size_test`` is
    its inverse size in a test; for rates that follows from their events.
    """

    value: pl.Expr
    complement: pl.Expr
    pool: pl.Expr
    size_low: pl.Expr
    size_high: pl.Expr
    slope: pl.Expr = pl.lit(None, pl.Float64)
    events: pl.Expr = pl.lit(None, pl.Float64)
    non_events: pl.Expr = pl.lit(None, pl.Float64)
    inverse_df: pl.Expr = pl.lit(None, pl.Float64)
    size_test: pl.Expr = pl.lit(None, pl.Float64)


def rate_side(part: WeightedCount, others: WeightedCount, variance: pl.Expr | None = None) -> Side:
    """A weighted rate, of ``part`` in ``part`` and ``others``, with all that it rests on.

    By a design with its ``variance``. Null where there are no rows or the weights overflow; the
    sizes also where their squares overflow or underflow.
    """
    both = part + others
    known = when((both.weight > 0) & both.weight.is_finite())
    exact = when(is_exact(both.squares) & both.weight.is_finite())
    mean = both.squares / both.weight
    value = known.then(part.weight / both.weight)
    pool: pl.Expr = exact.then(mean / both.weight)
    events, non_events = (
        when(each.weight > 0).then(each.squares / each.weight / mean).otherwise(1.0)
        for each in (part, others)
    )
    lost = pool - 1 / both.rows
    inverse_df = when(lost >= EQUAL_WEIGHTS).then(lost).otherwise(0.0)
    # If the true rate were 0, and if it were 1; in between the inverse size changes linearly.
    at_zero, at_one = shrunk(value, pool, events), shrunk(1 - value, pool, non_events)
    if variance is not None:
        pool = at_zero = at_one = 1 / size_by_design(value, 1 / pool, variance)
    slope = at_one - at_zero
    return Side(value, 1 - value, pool, at_zero, at_zero, slope, events, non_events, inverse_df)


# So many times the limits improve the size that they rest on.
_ITERATIONS = 4


def rate_limits(
    value: pl.Expr, size: pl.Expr, slope: pl.Expr, quantile: pl.Expr
) -> Formula[Limits]:
    """Wilson's limits of a rate, each for the effective size that it would have itself.

    ``size`` and ``slope`` are the inverse size for a rate of 0 and how much it is larger for a rate
    of 1. Limits are null where the rate, the size or the quantile is null, or the size is infinite.
    """
    low = high = value
    for _ in range(_ITERATIONS):
        low, high = yield [
            wilson_ends(value, size + low * slope, quantile).low,
            wilson_ends(value, size + high * slope, quantile).high,
        ]
    # Rounding must not exclude a rate of 0 or 1 from its interval.
    return Limits(
        when(low.is_finite()).then(min_of(low, value)),
        when(high.is_finite()).then(max_of(high, value)),
    )


def size_by_design(value: pl.Expr, kish: pl.Expr, variance: pl.Expr) -> pl.Expr:
    """Sample size that gives a proportion its variance by a design, at most Kish's.

    Null where the variance is; a variance of 0 says nothing.
    """
    spread = value * (1 - value)
    size = when((spread > 0) & (variance > 0)).then(min_of(spread / variance, kish))
    return when(variance.is_not_null()).then(size.otherwise(kish))


class Proportion(NamedTuple):
    """A proportion with its limits, and what these rest on.

    The inverse size if it were 0 grows by the slope up to 1; ``inverse_df`` is 1 divided by its
    degrees of freedom.
    """

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    size: pl.Expr
    slope: pl.Expr
    inverse_df: pl.Expr

    @property
    def estimate(self) -> Estimate:
        """The proportion with its confidence limits, without the size."""
        return Estimate(self.value, self.low, self.high)

    @staticmethod
    def column(name: str, part: str) -> str:
        """Column of a part of a named proportion."""
        return f"__share_{name}_{part}"

    @classmethod
    def named(cls, name: str, field: Fields) -> Proportion:
        """Refer to the columns of a named proportion."""
        return cls(*(field(cls.column(name, part)) for part in cls._fields))

    def columns(self, name: str) -> Columns:
        """Name the parts."""
        return {self.column(name, part): value for part, value in self._asdict().items()}


def limited_rate(
    part: WeightedCount,
    others: WeightedCount,
    level: float,
    estimate: pl.Expr | None = None,
    design: tuple[pl.Expr, pl.Expr] | None = None,
) -> Formula[Proportion]:
    """Compute a rate, of ``part`` in ``part`` and ``others``, with its `rate_limits`.

    Another ``estimate`` has an interval of the same effective sample size. By the ``design`` of a
    survey, the variance of the rate and its degrees of freedom, these are its own.
    """
    variance, df = design or (None, None)
    rate = rate_side(part, others, variance)
    value, size, slope, inverse_df, quantile = yield [
        rate.value if estimate is None else estimate,
        *(rate.size_low, rate.slope, rate.inverse_df),
        rate_t_quantile(level, rate.inverse_df) if df is None else t_quantile(level, df),
    ]
    limits = yield from rate_limits(value, size, slope, quantile)
    low, high = yield [*limits]
    return Proportion(value, low, high, size, slope, inverse_df)


class Range(NamedTuple):
    """The ends of the range of an estimate; the upper one may be infinite."""

    low: pl.Expr
    high: pl.Expr

    def scaled(self, value: pl.Expr) -> pl.Expr:
        """Transform a value: its logit between the ends, or the logarithm of what it is above."""
        above, below = value - self.low, self.high - value
        return (above / when(below == math.inf).then(1.0).otherwise(below)).log()

    def slope(self, value: pl.Expr) -> pl.Expr:
        """By how much the value changes with its place on the scale."""
        above, below = value - self.low, self.high - value
        share = below / (self.high - self.low)
        return above * when(below == math.inf).then(1.0).otherwise(share)
