"""Confidence limits of differences and ratios from the limits of two estimates (MOVER)."""

from __future__ import annotations

import math
from typing import NamedTuple

import polars as pl


class Limits(NamedTuple):
    """The ends of an interval."""

    low: pl.Expr
    high: pl.Expr


class Estimate(NamedTuple):
    """A value and the ends of its interval."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr


def difference_limits(one: Estimate, other: Estimate, correlation: pl.Expr | None = None) -> Limits:
    """Interval of the difference of two estimates, independent or not, from that of each.

    Donner and Zou's method of variance estimates recovery: what each side of each interval
    says about the variance there is added up.
    """
    difference = one.value - other.value

    def margin(own: pl.Expr, others: pl.Expr) -> pl.Expr:
        squares = own**2 + others**2
        if correlation is not None:
            squares = (squares - 2 * correlation * own * others).clip(lower_bound=0.0)
        return squares.sqrt()

    below = margin(one.value - one.low, other.high - other.value)
    above = margin(one.high - one.value, other.value - other.low)
    return Limits(difference - below, difference + above)


def ratio_limits(one: Estimate, other: Estimate) -> Limits:
    """Interval of the ratio of two independent shares: of the difference of their logarithms."""
    logs = [Estimate(*(part.log() for part in estimate)) for estimate in (one, other)]
    limits = difference_limits(logs[0], logs[1])
    # Where a share is nothing, its logarithm says nothing about how much it may be.
    nothing, unbounded = one.value == 0, other.value == 0
    low = pl.when(nothing).then(0.0).when(unbounded).then(one.low / other.high)
    high = pl.when(unbounded).then(math.inf).when(nothing).then(one.high / other.low)
    known = pl.when(one.high.is_not_null() & other.high.is_not_null())
    return Limits(
        known.then(low.otherwise(limits.low.exp())), known.then(high.otherwise(limits.high.exp()))
    )
