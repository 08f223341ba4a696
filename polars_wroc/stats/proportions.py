"""Weighted proportions with Wilson intervals, and limits of their differences and ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.queries import Fields, Step
from polars_wroc.stats.distributions import normal_quantile, student_quantile

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
    known = pl.when((one > 0) & (other > 0) & covariance.is_not_null())
    return known.then(correlation).otherwise(0.0)


def ratio_limits(one: Estimate, other: Estimate, correlation: pl.Expr | None = None) -> Limits:
    """Confidence limits of the ratio of two proportions; without ``correlation`` independent.

    Donner and Zou's (2012) too: the ratios r for which the limits of ``one - r * other`` include
    0, so that those of the ratio exclude 1 exactly where those of the difference exclude 0. The
    lower limit is 0 where that of ``one`` is, and the upper is infinite where the lower limit of
    ``other`` is 0. Null where an estimate has no limits.
    """
    known = pl.when(one.high.is_not_null() & other.high.is_not_null())
    lowest, inverse = (_lowest_ratio(*each, correlation) for each in ((one, other), (other, one)))
    return Limits(known.then(lowest), known.then(1 / inverse))


def reported_ratio(ratio: Estimate, denominator: pl.Expr) -> Estimate:
    """Make a ratio null where its denominator is 0, and so its upper limit where it is infinite."""
    defined = pl.when(denominator > 0)
    bounded = pl.when((denominator > 0) & ratio.high.is_finite())
    return Estimate(defined.then(ratio.value), defined.then(ratio.low), bounded.then(ratio.high))


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
    return pl.when(one.low > 0).then(one.value * kept / (middle + root)).otherwise(0.0)


# Largest difference of two rates that may be due to rounding.
TOLERANCE = 1e-12
# Below this proportion of its terms a difference of sums is rounding error.
ROUNDING = 1e-13
# Of Student's t, for proportions with the variance of a design.
_QUANTILE = "__quantile_of_proportions"
# Below this a sum of powers of weights may have lost terms to underflow.
_LEAST_SUM = 1e-290


@dataclass(frozen=True)
class WeightedCount:
    """Sum of the weights of some rows, and sum of their squares."""

    weight: pl.Expr
    squares: pl.Expr

    def __add__(self, other: WeightedCount) -> WeightedCount:
        return WeightedCount(self.weight + other.weight, self.squares + other.squares)


def wilson(rate: pl.Expr, size: pl.Expr, quantile: pl.Expr | float) -> Limits:
    """Wilson's confidence limits of a rate, for a sample size that need not be whole.

    ``quantile`` is that of the normal distribution. Null where the rate, the size or the quantile
    is null, or the size is 0.
    """
    low, high = wilson_ends(rate, 1 / size, quantile)
    # Rounding must not exclude a rate of 0 or 1 from its interval.
    return Limits(
        pl.when(low.is_finite()).then(pl.min_horizontal(low, rate)),
        pl.when(high.is_finite()).then(pl.max_horizontal(high, rate)),
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
    return pl.when(is_exact(squares)).then(weight * (weight / squares))


def value_and_sizes(part: WeightedCount, others: WeightedCount) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """A weighted proportion, of ``part`` in ``part`` and ``others``, and its effective sample size.

    First Kish's, then the smaller of that and the one that would give the proportion its linearised
    variance. All are null where there are no rows or the weights overflow, the sizes also where
    `effective_sample_size` is null.
    """
    both = part + others
    known = pl.when((both.weight > 0) & both.weight.is_finite())
    rate, other_rate = part.weight / both.weight, others.weight / both.weight
    spread = (other_rate**2 * part.squares + rate**2 * others.squares) / both.squares
    ratio = pl.min_horizontal(1.0, rate * other_rate / spread)
    factor = pl.when(spread > 0).then(ratio).otherwise(1.0)
    kish = effective_sample_size(both.weight, both.squares)
    return known.then(rate), known.then(kish), known.then(kish * factor)


def size_by_design(value: pl.Expr, kish: pl.Expr, variance: pl.Expr) -> pl.Expr:
    """Sample size that gives a proportion its variance by a design, at most Kish's.

    Null where the variance is; a variance of 0 says nothing.
    """
    spread = value * (1 - value)
    size = pl.when((spread > 0) & (variance > 0)).then(pl.min_horizontal(spread / variance, kish))
    return pl.when(variance.is_not_null()).then(size.otherwise(kish))


@dataclass(frozen=True)
class RatesByDesign:
    """What the design of a survey says: the variance of each proportion, and their df."""

    variance: Callable[[str, Fields], pl.Expr]
    df: Callable[[Fields], pl.Expr]


@dataclass(frozen=True)
class Proportions:
    """Named proportions with Wilson intervals.

    For each name ``parts`` returns the count in the numerator, and that of all other rows. Other
    ``estimates`` of some proportions have intervals of the same effective sample sizes. By the
    ``design`` of a survey quantiles are those of Student's t.
    """

    parts: Callable[[Fields], Mapping[str, tuple[WeightedCount, WeightedCount]]]
    level: float
    estimates: Callable[[Fields], Mapping[str, pl.Expr]] = lambda _: {}
    design: RatesByDesign | None = None

    @property
    def steps(self) -> list[Step]:
        """Steps from sums of weights to the columns that `proportion` refers to."""
        at = [] if self.design is None else [self._students]
        return [self._values, *at, self._limits]

    def _values(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        estimates = self.estimates(field)
        for name, (part, others) in self.parts(field).items():
            value, kish, size = value_and_sizes(part, others)
            if self.design is not None:
                size = size_by_design(value, kish, self.design.variance(name, field))
            value = estimates.get(name, value)
            columns |= {
                proportion_column(name, "value"): value,
                proportion_column(name, "size"): size,
            }
        return columns

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        quantile = normal_quantile(self._tail) if self.design is None else field(_QUANTILE)
        for name in self.parts(field):
            value, size = (field(proportion_column(name, part)) for part in ("value", "size"))
            for end, limit in wilson(value, size, quantile)._asdict().items():
                columns[proportion_column(name, end)] = limit
        return columns

    @property
    def _tail(self) -> float:
        return (1 + self.level) / 2

    def _students(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the quantile of Student's t, which all limits need."""
        assert self.design is not None
        return {_QUANTILE: student_quantile(self._tail, self.design.df(field))}


class Proportion(NamedTuple):
    """A proportion with its confidence limits and its effective sample size."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    size: pl.Expr

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
    known = pl.when((one.value > 0) | (other.value > 0))
    return Limits(*(known.then(1 / (1 + end / odds)) for end in (ratio.high, ratio.low)))


def mixture(one: Estimate, other: Estimate, share: float) -> Limits:
    """Weighted mean of two independent rates; ``share`` is the weight of the first."""
    parts = Estimate(*(share * each for each in one))
    minus = Estimate(*((share - 1) * each for each in (other.value, other.high, other.low)))
    return difference_limits(parts, minus)
