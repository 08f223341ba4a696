"""Confidence limits of differences and ratios from the limits of two estimates (MOVER)."""

from __future__ import annotations

import math
from typing import NamedTuple

import polars as pl


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


def ratio_limits(one: Estimate, other: Estimate) -> Limits:
    """Confidence limits of the ratio of two independent proportions, by their logarithms."""
    logs = [Estimate(*(part.log() for part in estimate)) for estimate in (one, other)]
    limits = difference_limits(logs[0], logs[1])
    # The logarithm of 0 has no limits: a limit of the ratio is then 0, infinite or a plain ratio.
    zero, unbounded = one.value == 0, other.value == 0
    low = pl.when(zero).then(0.0).when(unbounded).then(one.low / other.high)
    high = pl.when(unbounded).then(math.inf).when(zero).then(one.high / other.low)
    known = pl.when(one.high.is_not_null() & other.high.is_not_null())
    return Limits(
        known.then(low.otherwise(limits.low.exp())), known.then(high.otherwise(limits.high.exp()))
    )
