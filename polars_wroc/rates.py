"""Intervals of rates: Wilson's, for weighted shares and for points of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.distributions import normal_quantile

# What may be rounding in a rate that is compared with a limit or with another rate.
TOLERANCE = 1e-12


class Limits(NamedTuple):
    """The ends of an interval."""

    low: pl.Expr
    high: pl.Expr


class Estimate(NamedTuple):
    """A value and the ends of its interval."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr


def difference_limits(one: Estimate, other: Estimate) -> Limits:
    """Interval of the difference of two independent estimates, from the interval of each.

    Donner and Zou's method of variance estimates recovery: what each side of each interval
    says about the variance there is added up.
    """
    difference = one.value - other.value
    below = ((one.value - one.low) ** 2 + (other.high - other.value) ** 2).sqrt()
    above = ((one.high - one.value) ** 2 + (other.value - other.low) ** 2).sqrt()
    return Limits(difference - below, difference + above)


def ratio_limits(one: Estimate, other: Estimate) -> Limits:
    """Interval of the ratio of two independent shares: of the difference of their logarithms."""
    logs = (Estimate(*(part.log() for part in estimate)) for estimate in (one, other))
    limits = difference_limits(*logs)
    # Where nothing was found the logarithm says nothing about how much more there may be.
    nothing = one.value == 0
    return Limits(
        low=pl.when(nothing).then(0.0).otherwise(limits.low.exp()),
        high=pl.when(nothing).then(one.high / other.low).otherwise(limits.high.exp()),
    )


@dataclass(frozen=True)
class Part:
    """Rows that a rate counts: their weight and the sum of its squares."""

    weight: pl.Expr
    squares: pl.Expr

    def __add__(self, other: Part) -> Part:
        return Part(self.weight + other.weight, self.squares + other.squares)


def wilson(rate: pl.Expr, size: pl.Expr, level: float) -> Limits:
    """Wilson's interval of a rate among ``size`` rows, which need not be whole."""
    quantile = normal_quantile((1 + level) / 2)
    extra = quantile**2 / size
    centre = (rate + extra / 2) / (1 + extra)
    margin = (extra * rate * (1 - rate) + extra**2 / 4).sqrt() / (1 + extra)
    # Rounding must not keep a rate of 0 or 1 out of its interval.
    return Limits(
        low=pl.min_horizontal((centre - margin).clip(lower_bound=0.0), rate),
        high=pl.max_horizontal((centre + margin).clip(upper_bound=1.0), rate),
    )


def effective_number(weight: pl.Expr, squares: pl.Expr) -> pl.Expr:
    """Kish's number of rows of equal weight that are sure as these."""
    return weight**2 / squares


def effective_share(part: Part, others: Part) -> tuple[pl.Expr, pl.Expr]:
    """Share that a part of the rows has of them and the others, and how many rows it is sure as.

    That is the smaller of Kish's effective number of rows and the number that would give the
    share its linearised variance. Both are null where there are no rows.
    """
    both = part + others
    known = pl.when(both.weight > 0)
    rate, rest = part.weight / both.weight, others.weight / both.weight
    kish = effective_number(both.weight, both.squares)
    variance = (rest**2 * part.squares + rate**2 * others.squares) / both.weight**2
    size = pl.when(variance > 0).then(pl.min_horizontal(kish, rate * rest / variance))
    return known.then(rate), known.then(size.otherwise(kish))
