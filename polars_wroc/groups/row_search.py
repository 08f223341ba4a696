"""The number of rows from which on a condition holds: the search, and the condition of each target.

The inverse sizes of a segment and of its reference fall as rows are added to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.looks import Looks, with_level
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import SKEWNESS, Sized, score_sizes
from polars_wroc.plans.formulas import Columns, Fields, Formula, first_of, max_of, when
from polars_wroc.stats.difference_tests import Comparison, Deviations
from polars_wroc.stats.distributions import normal_quantile, z_quantile
from polars_wroc.stats.proportions import margin

# More rows than nearly anybody has, and halvings of the logarithm of their number.
MOST, _STEPS = 10**9, 40
OE_RATIO = "oe_ratio"
# The number that a target assumes.
ASSUMES = {"ratio_below": "impact", "no_worse_by": "changed"}
# The inverse sizes of the limits and of the test of so many rows.
_Sizes: TypeAlias = tuple[pl.Expr, pl.Expr, pl.Expr]


@dataclass(frozen=True)
class Goal:
    """A target and its number, and the other numbers that are given."""

    target: str
    number: float
    given: Mapping[str, float]
    level: float
    power: float
    tests: int | None

    @property
    def assumes(self) -> str | None:
        """Name what the target assumes."""
        return ASSUMES.get(self.target)

    @property
    def other(self) -> float:
        """The number that it assumes."""
        return self.given[str(self.assumes)]

    def check(self, needed: Mapping[str, bool], of: str) -> None:
        """Raise if a number that is needed is not given, or one that is not is."""
        for name, is_needed in needed.items():
            if is_needed != (name in self.given):
                rule = "be given" if is_needed else "not be given"
                found = f"{self.given[name]:g}" if name in self.given else "None"
                msg = f"`{name}` must {rule} for `{self.target}` {of}; found {found}"
                raise ValueError(msg)

    def check_metric(self, metric: str | None, known: Sequence[str], of: str) -> str:
        """Raise for a metric that the target does not apply to."""
        if metric is None or metric not in known:
            hint, listed = arguments.did_you_mean(metric, known), ", ".join(known) or "none"
            msg = f"`metric` must be out of {listed} for `{self.target}` {of}; found {metric!r}"
            raise ValueError(msg + hint)
        return metric

    def quantile(self, tests: int, tails: int = 2) -> float:
        """Quantile of one of so many tests; at repeated looks when all planned rows are seen."""
        level = with_level(self.level, 1 - 2 * (1 - self.level) / tests / tails)
        return z_quantile(level.at(level.planned) if isinstance(level, Looks) else level)

    @property
    def compares(self) -> bool:
        """Whether the reference needs rows too."""
        return self.target in ("gap", "ratio_below", "alike_within")

    @property
    def of_power(self) -> float:
        """Normal quantile of the power; within a margin, to be on the right side of both ends."""
        both = self.target == "alike_within"
        return normal_quantile((1 + self.power) / 2 if both else self.power)


def skew_of(field: Fields) -> pl.Expr:
    """Return the factor of the correction for skewness, which rates do not have."""
    return when(field("metric") == ROC_AUC.column).then(SKEWNESS).otherwise(0.0)


def compared(field: Fields, sizes: tuple[pl.Expr, pl.Expr]) -> Comparison:
    """Compare with the reference; ``sizes`` are the inverse ones in a test."""
    other, none = field("other"), 0.0 * field("other")
    least = when(field("metric") == ROC_AUC.column).then(ROC_AUC.least).otherwise(0.0)
    return Comparison(other, sizes, sizes, (none, none), other - least)


def searched(field: Fields, goal: Goal, *, has_aucs: bool) -> Formula[Columns]:
    """Find the smallest number of rows for which the condition of the target holds."""
    search = _Search(field, goal, has_aucs)
    condition: Callable[[pl.Expr], Formula[pl.Expr]] = getattr(search, goal.target, search.none)
    none = 0.0 * field("z")
    low, high = yield [none, none + math.log(MOST)]
    for _ in range(_STEPS):
        (middle,) = yield [(low + high) / 2]
        holds = yield from condition(middle.exp())
        low, high = yield [
            when(holds).then(low).otherwise(middle),
            when(holds).then(middle).otherwise(high),
        ]
    holds = yield from condition(high.exp())
    return {"found": first_of(when(holds).then(high.exp()), search.by_error())}


@dataclass(frozen=True)
class _Search:
    """Conditions on a number of rows, from the columns of `_ROW`."""

    field: Fields
    goal: Goal
    # Whether all rows are of AUCs, or none is.
    has_aucs: bool

    def by_error(self) -> pl.Expr:
        """Return the number of rows for an error that falls with their root."""
        goal, field, number = self.goal, self.field, pl.lit(self.goal.number)
        quantile = field("z_one") if goal.target == "alike_within" else field("z")
        if goal.target == "half_width":
            # The limits of the observed-to-expected ratio are symmetric on its logarithm.
            of_ratio = when(field("metric") == OE_RATIO).then(math.asinh(goal.number))
            number = of_ratio.otherwise(goal.number)
        elif goal.target == "se":
            quantile = 0.0 * quantile + 1.0
        else:
            quantile = quantile + goal.of_power
        return max_of((quantile * field("error") / number) ** 2, 1.0 + 0.0 * field("error"))

    def none(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Refuse any number, for targets that errors alone tell."""
        (no,) = yield [rows < 0]
        return no

    def half_width(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Whether the interval is as narrow."""
        low, high, _ = yield from self._sizes(rows)
        limits = self._sized(self.field("value"), low, high).limits(self.field("z"))
        return limits.high - limits.low <= 2 * self.goal.number

    def gap(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Whether the gap is found."""
        (_, _, own), (_, _, other) = yield from self._both(rows)
        comparison = compared(self.field, (own, other))
        gap = self.goal.number / self.field("part")
        given = comparison, self.field("z"), self.goal.of_power
        of_test, of_power = (yield from Deviations.of(*given)).at(gap)
        return (gap < comparison.largest) & (of_test + of_power <= gap)

    def ratio_below(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Whether the ratio is shown to be on its side of the bound."""
        bound, impact = self.goal.number, self.goal.other
        own, other = yield from self._both(rows)
        value, reference, z = impact * self.field("other"), self.field("other"), self.field("z")
        one = self._sized(value, *own[:2]).limits(z)
        two = self._sized(reference, *other[:2]).limits(z)
        difference = bound * reference - value
        distances = one.high - value, bound * (reference - two.low)
        if impact > bound:
            distances = value - one.low, bound * (two.high - reference)
        spreads = (value * (1 - value) * own[2], bound**2 * reference * (1 - reference) * other[2])
        spread = (spreads[0] + spreads[1]).sqrt()
        reached = margin(*distances) + self.goal.of_power * spread
        return (difference.abs() > 0) & (value <= 1) & (reached <= difference.abs())

    def alike_within(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Whether equal values are shown to be alike."""
        own, other = yield from self._both(rows)
        value, z = self.field("other"), self.field("z_one")
        one, two = (self._sized(value, *sizes[:2]).limits(z) for sizes in (own, other))
        furthest = max_of(
            margin(value - one.low, two.high - value), margin(one.high - value, value - two.low)
        )
        spread = (value * (1 - value) * (max_of(*own[:2]) + max_of(*other[:2]))).sqrt()
        reached = furthest + self.goal.of_power * spread
        return reached <= self.goal.number / self.field("part")

    def no_worse_by(self, rows: pl.Expr) -> Formula[pl.Expr]:
        """Whether equally many changes either way are shown to be no loss; only of assumptions."""
        # Rows of a table have the error of their gap instead.
        share = self.goal.given.get("changed", 0.0) / 2
        size = self.field("test") / rows
        value = share + 0.0 * size
        limits = self._sized(value, size, size).limits(self.field("z"))
        correlation = 0.0 * size - share / (1 - share)
        loss = margin(share - limits.low, limits.high - share, correlation)
        (reached,) = yield [loss + self.goal.of_power * (2 * share * size).sqrt()]
        return reached <= self.goal.number

    def _sized(self, value: pl.Expr, low: pl.Expr, high: pl.Expr) -> Sized:
        return Sized(value, 1 - value, low, high, skew_of(self.field))

    def _both(self, rows: pl.Expr) -> Formula[tuple[_Sizes, _Sizes]]:
        own = yield from self._sizes(rows)
        other = yield from self._sizes(rows * self.field("kappa"))
        return own, other

    def _sizes(self, rows: pl.Expr) -> Formula[_Sizes]:
        """Return the inverse sizes of the limits and of the test of so many rows."""
        low, high, test = yield [self.field(name) / rows for name in ("low", "high", "test")]
        if not self.has_aucs:
            return low, high, test
        # Multiples of those that are planned.
        plan = yield from planned_sizes(self.field, rows)
        low, high, test = (
            one * rows * planned for one, planned in zip((low, high, test), plan, strict=True)
        )
        # With the sizes in a test, which are smaller, a planned test would not have the power.
        assumed = when(self.field("have").is_null())
        return low, high, assumed.then(max_of(low, high)).otherwise(test)


def planned_sizes(field: Fields, rows: pl.Expr) -> Formula[_Sizes]:
    """Return the inverse sizes of an AUC of normal scores with equal variances in both classes."""
    auc, moments = field("auc"), {}
    complement = 1 - auc
    for side in CLASSES:
        h2 = 1 / (rows * field(side))
        first, second = complement * h2, field("second") * h2
        moments[side] = Moments(h2, first, second, h2, second - complement * first)
    sizes = yield from score_sizes(auc, complement, moments)
    return sizes.low, sizes.high, sizes.test
