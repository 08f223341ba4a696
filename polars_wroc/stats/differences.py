"""Confidence limits of differences and ratios from the limits of two estimates (MOVER)."""

from __future__ import annotations

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
    """Confidence limits of the ratio of two independent proportions.

    Donner and Zou's (2012) too: the ratios r for which the limits of ``one - r * other`` include
    0, so that those of the ratio exclude 1 exactly where those of the difference exclude 0. The
    lower limit is 0 where that of ``one`` is, and the upper is infinite where the lower limit of
    ``other`` is 0. Null where an estimate has no limits.
    """
    known = pl.when(one.high.is_not_null() & other.high.is_not_null())
    return Limits(known.then(_lowest_ratio(one, other)), known.then(1 / _lowest_ratio(other, one)))


def _lowest_ratio(one: Estimate, other: Estimate) -> pl.Expr:
    """Solve for the smallest ratio; the largest is the inverse of the smallest inverse ratio.

    Written without differences of nearly equal numbers, which a rate near 0 would lose.
    """
    share = one.low / one.value
    kept = share * (2 - share)
    root = (other.value**2 - kept * other.high * (2 * other.value - other.high)).clip(0.0).sqrt()
    return pl.when(one.low > 0).then(one.value * kept / (other.value + root)).otherwise(0.0)
