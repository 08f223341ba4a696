"""Estimates with limits on a scale without ends: the logit in a range, the logarithm above 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.formulas import max_of, min_of, when
from polars_wroc.stats.proportions import Limits


class Range(NamedTuple):
    """The ends of the range of an estimate; the upper one may be infinite."""

    low: pl.Expr
    high: pl.Expr

    def scaled(self, value: pl.Expr) -> pl.Expr:
        """Transform a value: its logit between the ends, or the logarithm of what it is above."""
        above, below = value - self.low, self.high - value
        return (above / when(below == math.inf).then(1.0).otherwise(below)).log()

    def unscaled(self, place: pl.Expr) -> pl.Expr:
        """Transform a value back."""
        width = self.high - self.low
        logit = width / (1 + (-place).exp())
        return self.low + when(width == math.inf).then(place.exp()).otherwise(logit)

    def slope(self, value: pl.Expr) -> pl.Expr:
        """By how much the value changes with its place on the scale."""
        above, below = value - self.low, self.high - value
        share = below / (self.high - self.low)
        return above * when(below == math.inf).then(1.0).otherwise(share)


class OneLimit(NamedTuple):
    """The limit of an estimate on one side; the ``error`` is negative below it."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    end: pl.Expr
    error: pl.Expr

    @property
    def spread(self) -> pl.Expr:
        """About one standard error."""
        within = Range(self.low, self.high)
        return (within.slope(within.unscaled(self.end)) * self.error).abs()

    @property
    def furthest(self) -> pl.Expr:
        """The largest distance of the limit."""
        below = when(self.error < 0)
        return below.then(self.value - self.low).otherwise(self.high - self.value)

    def distance(self, quantile: pl.Expr) -> pl.Expr:
        """Distance of the limit from the estimate."""
        limit = Range(self.low, self.high).unscaled(self.end + quantile * self.error)
        return (self.value - limit).abs()


class Transformed(NamedTuple):
    """An estimate in a range, with its standard error on the scale of the range.

    The lower limit is so many errors below ``least``, and the upper one above ``most``.
    """

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    least: pl.Expr
    most: pl.Expr
    error: pl.Expr

    @classmethod
    def of(cls, value: pl.Expr, within: Range, centre: pl.Expr, variance: pl.Expr) -> Transformed:
        """Center limits at the value and at another ``centre`` on the scale, if these differ."""
        own = within.scaled(value)
        own = when(own.is_finite()).then(own).otherwise(centre)
        known = when(value.is_not_null() & centre.is_finite() & (variance > 0))
        error = known.then(variance.sqrt())
        return cls(value, *within, min_of(own, centre), max_of(own, centre), error)

    @property
    def within(self) -> Range:
        """The range."""
        return Range(self.low, self.high)

    def limits(self, quantile: pl.Expr) -> Limits:
        """Confidence limits; null where there is no error."""
        margin = quantile * self.error
        low = self.within.unscaled(self.least - margin)
        high = self.within.unscaled(self.most + margin)
        known = when(margin.is_not_null())
        return Limits(known.then(min_of(low, self.value)), known.then(max_of(high, self.value)))

    def one_limit(self, below: pl.Expr) -> OneLimit:
        """Refer to the lower limit where a condition holds, else to the upper one."""
        end = when(below).then(self.least).otherwise(self.most)
        error = when(below).then(-self.error).otherwise(self.error)
        return OneLimit(self.value, *self.within, end, error)
