"""Weighted rates with their limits, and limits of differences and ratios of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.formulas import Fields, Step, max_of, min_of, when
from polars_wroc.stats.distributions import normal_quantile, student_quantile, student_score

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


def reported_ratio(ratio: Estimate, denominator: pl.Expr) -> Estimate:
    """Make a ratio null where its denominator is 0, and its upper limit where it is infinite."""
    defined = when(denominator > 0)
    bounded = when((denominator > 0) & ratio.high.is_finite())
    return Estimate(defined.then(ratio.value), ratio.low, bounded.then(ratio.high))


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


def logit_limits(value: pl.Expr, one_minus_value: pl.Expr, margin: pl.Expr) -> Limits:
    """Confidence limits computed on the logit, for a ``margin`` on the scale of the value."""
    on_logit = margin / (value * one_minus_value)
    logit = (value / one_minus_value).log()
    return Limits(*(1 / (1 + (-(logit + side)).exp()) for side in (-on_logit, on_logit)))


def normal_limits(field: Fields, errors: Mapping[str, pl.Expr], level: float) -> dict[str, pl.Expr]:
    """Normal limits of values that are fields, given their standard errors."""
    quantile = normal_quantile((1 + level) / 2)
    return {
        f"{name}_{end}": field(name) + side * quantile * error
        for name, error in errors.items()
        for end, side in (("low", -1), ("high", 1))
    }


def is_exact(powers: pl.Expr) -> pl.Expr:
    """Whether a sum of powers of weights neither overflows nor underflows."""
    return (powers >= _LEAST_SUM) & powers.is_finite()


def effective_sample_size(weight: pl.Expr, squares: pl.Expr) -> pl.Expr:
    """Kish's effective sample size.

    Null where the sum of the squared weights overflows or underflows.
    """
    return when(is_exact(squares)).then(weight * (weight / squares))


class RateSize(NamedTuple):
    """What the precision of a weighted rate rests on.

    ``inverse`` is 1 divided by Kish's effective sample size. The mean weights of the events and of
    the ``others``, each weighted by the weights, are so many times that of all rows. ``inverse_df``
    is 1 divided by the degrees of freedom; 0 for equal weights.
    """

    inverse: pl.Expr
    events: pl.Expr
    others: pl.Expr
    inverse_df: pl.Expr


def rate_and_size(part: WeightedCount, others: WeightedCount) -> tuple[pl.Expr, RateSize]:
    """A weighted rate, of ``part`` in ``part`` and ``others``, and its size.

    Null where there are no rows or the weights overflow; the size also where their squares overflow
    or underflow.
    """
    both = part + others
    known = when((both.weight > 0) & both.weight.is_finite())
    exact = when(is_exact(both.squares) & both.weight.is_finite())
    mean = both.squares / both.weight
    inverse = exact.then(mean / both.weight)
    events, non_events = (
        when(each.weight > 0).then(each.squares / each.weight / mean).otherwise(1.0)
        for each in (part, others)
    )
    lost = inverse - 1 / both.rows
    inverse_df = when(lost >= EQUAL_WEIGHTS).then(lost).otherwise(0.0)
    return known.then(part.weight / both.weight), RateSize(inverse, events, non_events, inverse_df)


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


def inverse_sizes(value: pl.Expr, size: RateSize) -> tuple[pl.Expr, pl.Expr]:
    """Inverse sizes if the true rate were 0 and if it were 1; in between they change linearly."""
    at_zero = shrunk(value, size.inverse, size.events)
    return at_zero, shrunk(1 - value, size.inverse, size.others)


def rate_quantile(probability: float, inverse_df: pl.Expr) -> pl.Expr:
    """Quantile for a rate of weighted rows: Student's t; the normal one for equal weights."""
    weighted = when(inverse_df > 0).then(student_quantile(probability, 1 / inverse_df))
    return weighted.otherwise(normal_quantile(probability))


def rate_score(z: pl.Expr, inverse_df: pl.Expr) -> pl.Expr:
    """Transform a normal quantile to that of a rate of weighted rows: see `student_score`."""
    return when(inverse_df > 0).then(student_score(z, 1 / inverse_df)).otherwise(z)


def rate_columns(
    part: WeightedCount, others: WeightedCount, variance: pl.Expr | None = None
) -> dict[str, pl.Expr]:
    """A rate with all that its limits and tests rest on; by a design with its ``variance``.

    The rate is the ``value``, with its ``complement``; ``pool`` weights it in a common value;
    ``size_low`` and ``size_high`` are its inverse size if it were 0, which grows by ``slope`` up to
    1; the others are those of `RateSize`.
    """
    value, size = rate_and_size(part, others)
    at_zero, at_one = inverse_sizes(value, size)
    pool = size.inverse
    if variance is not None:
        pool = at_zero = at_one = 1 / size_by_design(value, 1 / size.inverse, variance)
    return {
        "value": value,
        "complement": 1 - value,
        "pool": pool,
        "size_low": at_zero,
        "size_high": at_zero,
        "slope": at_one - at_zero,
        "events": size.events,
        "non_events": size.others,
        "inverse_df": size.inverse_df,
    }


# So many times the limits improve the size that they rest on.
_ITERATIONS = 4


@dataclass(frozen=True)
class RateLimits:
    """Wilson's limits of a rate, each for the effective size that it would have itself.

    All are columns: ``size`` and ``slope`` are the inverse size for a rate of 0 and how much it is
    larger for a rate of 1. Limits are null where the rate, the size or the quantile is null, or the
    size is infinite.
    """

    value: str
    size: str
    slope: str
    quantile: str
    low: str
    high: str

    @property
    def steps(self) -> list[Step]:
        """Steps to the columns of both limits."""
        return [self._start, *[self._improve] * _ITERATIONS, self._finish]

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.low: field(self.value), self.high: field(self.value)}

    def _improve(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for name in Limits._fields:
            limit = getattr(self, name)
            size = field(self.size) + field(limit) * field(self.slope)
            ends = wilson_ends(field(self.value), size, field(self.quantile))
            columns[limit] = getattr(ends, name)
        return columns

    def _finish(self, field: Fields) -> dict[str, pl.Expr]:
        low, high = field(self.low), field(self.high)
        # Rounding must not exclude a rate of 0 or 1 from its interval.
        return {
            self.low: when(low.is_finite()).then(min_of(low, field(self.value))),
            self.high: when(high.is_finite()).then(max_of(high, field(self.value))),
        }


def in_parallel(several: Iterable[Sequence[Step]]) -> list[Step]:
    """Take the first steps of several lists together, then the second ones, and so on."""

    def together(steps: Sequence[Step]) -> Step:
        return lambda field: {k: v for step in steps for k, v in step(field).items()}

    return [together(steps) for steps in zip(*several, strict=True)]


def size_by_design(value: pl.Expr, kish: pl.Expr, variance: pl.Expr) -> pl.Expr:
    """Sample size that gives a proportion its variance by a design, at most Kish's.

    Null where the variance is; a variance of 0 says nothing.
    """
    spread = value * (1 - value)
    size = when((spread > 0) & (variance > 0)).then(min_of(spread / variance, kish))
    return when(variance.is_not_null()).then(size.otherwise(kish))


@dataclass(frozen=True)
class RatesByDesign:
    """What the design of a survey says: the variance of each proportion, and their df."""

    variance: Callable[[str, Fields], pl.Expr]
    df: Callable[[Fields], pl.Expr]


@dataclass(frozen=True)
class Proportions:
    """Named proportions with the intervals of `RateLimits`.

    For each name ``parts`` returns the count in the numerator, and that of all other rows. Other
    ``estimates`` of some proportions have intervals of the same effective sample sizes. By the
    ``design`` of a survey sizes and degrees of freedom are its own.
    """

    parts: Callable[[Fields], Mapping[str, tuple[WeightedCount, WeightedCount]]]
    level: float
    estimates: Callable[[Fields], Mapping[str, pl.Expr]] = lambda _: {}
    design: RatesByDesign | None = None

    def steps(self, names: Iterable[str]) -> list[Step]:
        """Steps from sums of weights to the columns that `proportion` refers to."""
        limits = (
            RateLimits(*(proportion_column(name, part) for part in Proportion._fields[:-1]))
            for name in names
        )
        return [self._values, *in_parallel(each.steps for each in limits)]

    def _values(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        estimates = self.estimates(field)
        for name, (part, others) in self.parts(field).items():
            variance = None if self.design is None else self.design.variance(name, field)
            rate = rate_columns(part, others, variance)
            quantile = rate_quantile(self._tail, rate["inverse_df"])
            if self.design is not None:
                quantile = student_quantile(self._tail, self.design.df(field))
            value = estimates.get(name, rate["value"])
            parts = {"value": value, "size": rate["size_low"], "quantile": quantile}
            parts |= {part: rate[part] for part in ("slope", "inverse_df")}
            columns |= {proportion_column(name, part): each for part, each in parts.items()}
        return columns

    @property
    def _tail(self) -> float:
        return (1 + self.level) / 2


class Proportion(NamedTuple):
    """A proportion with the columns of `RateLimits`, and 1 divided by its degrees of freedom."""

    value: pl.Expr
    size: pl.Expr
    slope: pl.Expr
    quantile: pl.Expr
    low: pl.Expr
    high: pl.Expr
    inverse_df: pl.Expr

    @property
    def effective_size(self) -> pl.Expr:
        """The effective sample size at the proportion itself."""
        return 1 / (self.size + self.value * self.slope)

    @property
    def estimate(self) -> Estimate:
        """The proportion with its confidence limits, without the size."""
        return Estimate(self.value, self.low, self.high)


def proportion(name: str, field: Fields) -> Proportion:
    """Refer to the columns of the steps of `Proportions`."""
    return Proportion(*(field(proportion_column(name, part)) for part in Proportion._fields))


def proportion_column(name: str, part: str) -> str:
    """Column of a part of a `Proportion`."""
    return f"__share_{name}_{part}"


def predictive_value(one: Estimate, other: Estimate, odds: float) -> Limits:
    """Proportion of one class among all selected, from the selection rates and class odds."""
    ratio = ratio_limits(other, one)
    known = when((one.value > 0) | (other.value > 0))
    return Limits(*(known.then(1 / (1 + end / odds)) for end in (ratio.high, ratio.low)))


def mixture(one: Estimate, other: Estimate, share: float) -> Limits:
    """Weighted mean of two independent rates; ``share`` is the weight of the first."""
    parts = Estimate(*(share * each for each in one))
    minus = Estimate(*((share - 1) * each for each in (other.value, other.high, other.low)))
    return difference_limits(parts, minus)
