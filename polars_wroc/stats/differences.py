"""Confidence limits of differences and ratios from the limits of two estimates (MOVER)."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

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
