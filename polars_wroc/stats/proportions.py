"""Intervals of rates: Wilson's, for weighted shares and for points of a curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.differences import Estimate, Limits, difference_limits, ratio_limits
from polars_wroc.stats.distributions import normal_quantile

# What may be rounding in a rate that is compared with a limit or with another rate.
TOLERANCE = 1e-12
# Below this a sum of powers of weights may have lost terms that are too small for a number.
_LEAST_SUM = 1e-290


@dataclass(frozen=True)
class WeightedCount:
    """Rows that a rate counts: their weight and the sum of its squares."""

    weight: pl.Expr
    squares: pl.Expr

    def __add__(self, other: WeightedCount) -> WeightedCount:
        return WeightedCount(self.weight + other.weight, self.squares + other.squares)


def wilson(rate: pl.Expr, size: pl.Expr, level: float) -> Limits:
    """Wilson's interval of a rate among ``size`` rows, which need not be whole.

    Null where the size is.
    """
    quantile = normal_quantile((1 + level) / 2)
    extra = quantile**2 / size
    centre = (rate + extra / 2) / (1 + extra)
    margin = (extra * rate * (1 - rate) + extra**2 / 4).sqrt() / (1 + extra)
    known = pl.when(size.is_not_null())
    # Rounding must not keep a rate of 0 or 1 out of its interval.
    return Limits(
        low=known.then(pl.min_horizontal((centre - margin).clip(lower_bound=0.0), rate)),
        high=known.then(pl.max_horizontal((centre + margin).clip(upper_bound=1.0), rate)),
    )


def logit_limits(share: pl.Expr, missing: pl.Expr, margin: pl.Expr) -> Limits:
    """Interval on the logit of a share, which lacks ``missing`` to 1, of a margin on the share."""
    on_logit = margin / (share * missing)
    logit = (share / missing).log()
    return Limits(*(1 / (1 + (-(logit + side)).exp()) for side in (-on_logit, on_logit)))


def is_exact(powers: pl.Expr) -> pl.Expr:
    """Whether a sum of powers of weights is neither too small nor too large for a number."""
    return (powers >= _LEAST_SUM) & powers.is_finite()


def effective_sample_size(weight: pl.Expr, squares: pl.Expr) -> pl.Expr:
    """Kish's number of rows of equal weight that are sure as these.

    Null where the squares of the weights are too small or too large for a number.
    """
    return pl.when(is_exact(squares)).then(weight * (weight / squares))


def effective_share(part: WeightedCount, others: WeightedCount) -> tuple[pl.Expr, pl.Expr]:
    """Share that a part of the rows has of them and the others, and how many rows it is sure as.

    That is the smaller of Kish's effective number of rows and the number that would give the
    share its linearised variance. Both are null where there are no rows, or more weight than a
    number; the second where `effective_sample_size` is.
    """
    both = part + others
    known = pl.when((both.weight > 0) & both.weight.is_finite())
    rate, rest = part.weight / both.weight, others.weight / both.weight
    spread = (rest**2 * part.squares + rate**2 * others.squares) / both.squares
    least = pl.when(spread > 0).then(pl.min_horizontal(1.0, rate * rest / spread)).otherwise(1.0)
    kish = effective_sample_size(both.weight, both.squares)
    return known.then(rate), known.then(kish * least)


@dataclass(frozen=True)
class Proportions:
    """Named shares with Wilson's intervals: ``parts`` gives what each counts and the others."""

    parts: Callable[[Fields], Mapping[str, tuple[WeightedCount, WeightedCount]]]
    level: float

    @property
    def steps(self) -> list[Step]:
        """From the weights of rows to what `share` refers to."""
        return [self._values, self._limits]

    def _values(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for name, (part, others) in self.parts(field).items():
            value, size = effective_share(part, others)
            columns |= {_of_share(name, "value"): value, _of_share(name, "size"): size}
        return columns

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for name in self.parts(field):
            value, size = (field(_of_share(name, part)) for part in ("value", "size"))
            for end, limit in wilson(value, size, self.level)._asdict().items():
                columns[_of_share(name, end)] = limit
        return columns


class Proportion(NamedTuple):
    """A rate with its interval, and how many rows it is sure as."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    size: pl.Expr

    @property
    def estimate(self) -> Estimate:
        """The rate with its interval alone."""
        return Estimate(self.value, self.low, self.high)


def proportion(name: str, field: Fields) -> Proportion:
    """Refer to what the steps of `Shares` have computed."""
    return Proportion(*(field(_of_share(name, part)) for part in Proportion._fields))


def _of_share(name: str, part: str) -> str:
    return f"__share_{name}_{part}"


def in_population(tpr: Estimate, fpr: Estimate, prevalence: float) -> dict[str, Estimate]:
    """Rates in a population of known prevalence, where only those of the classes are uncertain.

    Predictive values follow from the ratios of both classes' rates, the others from their sums.
    """
    fnr, tnr = (Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low) for rate in (tpr, fpr))
    odds = prevalence / (1 - prevalence)
    return {
        "tpr": tpr,
        "fpr": fpr,
        "ppv": _share_of_first(tpr, fpr, odds),
        "npv": _share_of_first(tnr, fnr, 1 / odds),
        "selection_rate": _mixture(tpr, fpr, prevalence),
        "accuracy": _mixture(tpr, tnr, prevalence),
    }


def _share_of_first(one: Estimate, other: Estimate, odds: float) -> Estimate:
    """What one class has of all that both select, from the odds of the classes."""
    # From the other to one: where the other selects nothing, all there is comes from one.
    ratio = other.value / one.value
    limits = ratio_limits(other, one)
    low, value, high = (1 / (1 + each / odds) for each in (limits.high, ratio, limits.low))
    known = pl.when((one.value > 0) | (other.value > 0))
    return Estimate(known.then(value), known.then(low), known.then(high))


def _mixture(one: Estimate, other: Estimate, share: float) -> Estimate:
    """Mean of two independent rates, the first with a share of the weight."""
    parts = Estimate(*(share * each for each in one))
    minus = Estimate(*((share - 1) * each for each in (other.value, other.high, other.low)))
    return Estimate(parts.value - minus.value, *difference_limits(parts, minus))
