"""Studentized range distribution: limits and tests of all pairs of groups, for plans."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import polars as pl

from polars_wroc.inputs.looks import Looks
from polars_wroc.plans.formulas import Fields, let, max_of, min_of, when, with_lists
from polars_wroc.stats.distributions import (
    LEAST_TAIL,
    interpolate,
    polynomial,
    root_of,
    student_score,
    t_quantile,
    two_sided_p_value,
    upper_quantile,
    z_quantile,
)

# The quantile is known for so many groups.
MOST_GROUPS = 10_000
# Its logarithm is smooth in this power of the number of groups.
_POWER = -0.25
_FEWEST, _MOST = 2**_POWER, MOST_GROUPS**_POWER
# Normal values that the integral is taken over.
_LEAST_NORMAL, _STEP, _STEPS = -7.0, 0.1, 160
_NORMALS = [_LEAST_NORMAL + _STEP * i for i in range(_STEPS + 1)]
_SQRT_2 = math.sqrt(2)


def simultaneous_quantile(level: float, groups: pl.Expr, metrics: int = 1) -> pl.Expr:
    """Quantile at which limits of each group give limits of all differences between them.

    The quantile of the studentised range with infinite degrees of freedom, divided by the square
    root of 2: for two groups the two-sided normal quantile. The relative error is below 2e-9 for
    levels from 0.5 on, and below 2e-8 for all. Null for one group, and for more than `MOST_GROUPS`.
    Several ``metrics`` share the error, and at repeated looks all pairs of groups.
    """
    known = groups.is_between(2, MOST_GROUPS)
    if isinstance(level, Looks):
        pairs = groups * (groups - 1.0) / 2
        return when(known).then(level.quantile((1 - level) / metrics / pairs))
    position = (2 * groups.cast(pl.Float64) ** _POWER - _FEWEST - _MOST) / (_MOST - _FEWEST)
    return when(known).then(polynomial(_coefficients(1 - (1 - level) / metrics), position).exp())


def quantile_to_picked(level: float, groups: pl.Expr, df: pl.Expr | None = None) -> pl.Expr:
    """Quantile of limits of a difference to the highest of so many groups, which was picked.

    It is the simultaneous one; with ``df`` that of Student's t, approximately. Of two groups, or
    without a number of them, it is the two-sided quantile.
    """
    alone: pl.Expr | float = z_quantile(level)
    joint = simultaneous_quantile(level, groups)
    if df is not None:
        alone, joint = t_quantile(level, df), student_score(joint, df)
    return when(groups > 2).then(joint).otherwise(alone)  # noqa: PLR2004


# Where the probability of a range is integrated: normal values, counted from half of the range.
_FROM_HALF = [-7.0 + 0.125 * i for i in range(125)]
# A range of more groups than this, divided by the root of the p-value, nearly always exceeds it.
_SATURATED = 1.6


def picked(p_value: pl.Expr, groups: pl.Expr, level: float) -> pl.Expr:
    """Adjust the p-value of a difference to the highest of so many groups, which was picked.

    It is the probability that the range of equal groups exceeds the difference, divided by the
    number of comparisons with the highest: Bonferroni's or Holm's method then makes it Tukey's
    test. Of two groups, or without a number of them, it is the p-value itself. The relative error
    is below 1e-8 for p-values from 1e-15 on and up to `MOST_GROUPS`.

    Where the range of all groups exceeds the difference nearly always, that of fewer groups gives
    the larger value, which Holm's method needs once the others are shown to be different. Then the
    number of groups is about the one that gives the largest, within 3 %.

    At repeated looks it is multiplied by the number of pairs, divided by that of comparisons.
    """
    if isinstance(level, Looks):
        of_pairs = (p_value * groups.clip(lower_bound=2) / 2).clip(upper_bound=1.0)
        return when(groups.is_not_null()).then(of_pairs).otherwise(p_value)

    def adjusted(field: Fields) -> pl.Expr:
        p, groups = field("p"), field("groups")
        # Below, the ratio of both values hardly changes.
        known = p.clip(lower_bound=2 * LEAST_TAIL)
        counted = min_of(groups, _SATURATED / known.sqrt())
        several = when((groups > 2) & (counted > 2)).then(counted)  # noqa: PLR2004
        return max_of(p, _beyond_range(upper_quantile(known / 2), several) * (p / known))

    return let({"p": p_value, "groups": groups.cast(pl.Float64)}, adjusted)


@with_lists
def _beyond_range(z: pl.Expr, groups: pl.Expr) -> pl.Expr:
    """Probability that a range exceeds ``z``, in the deviation of a difference, per comparison."""
    half, others = z / _SQRT_2, groups - 1
    nodes, count = pl.lit(pl.Series([_FROM_HALF])), len(_FROM_HALF)
    # The largest value, and the one that the smallest is below if the range is exceeded.
    largest, smallest = nodes + half, nodes - half
    chances = pl.concat_list(largest, smallest).list.eval(_normal_probability(pl.element()))

    def integral(field: Fields) -> pl.Expr:
        at, others = pl.element(), field("others")
        chance = field("chances").list.head(count)
        # All others are below the largest, but not all of them above the other value.
        share = field("chances").list.tail(count) / chance
        logs = chance.list.eval(at.log()) * others + field("log_density")
        # 1 - exp(x) = -2 exp(x / 2) sinh(x / 2), of which the first factor is 0 far below 0.
        none = share.list.eval((-at.clip(upper_bound=1.0)).log1p()) * (others / 2)
        some = none.list.eval(at.clip(-40.0).exp() * at.clip(-40.0).sinh()) * -2
        total = (logs.list.eval(at.exp()) * some).list.sum()
        scale = (_FROM_HALF[1] - _FROM_HALF[0]) / math.sqrt(2 * math.pi)
        return scale * total * (others + 1) / others

    parts = {"chances": chances, "others": others, "log_density": largest * largest / -2}
    return let(parts, integral)


def _normal_probability(z: pl.Expr) -> pl.Expr:
    """Probability that a standard normal variable is below ``z``."""

    def below(field: Fields) -> pl.Expr:
        return when(field("z") > 0).then(1 - field("tail")).otherwise(field("tail"))

    return let({"z": z, "tail": two_sided_p_value(z) / 2}, below)


@lru_cache(maxsize=64)
def _coefficients(level: float) -> tuple[float, ...]:
    def log_quantile(position: float) -> float:
        powered = (_FEWEST + _MOST + position * (_MOST - _FEWEST)) / 2
        return math.log(quantile_of_pairs(level, powered ** (1 / _POWER)))

    return interpolate(log_quantile)


def quantile_of_pairs(level: float, groups: float) -> float:
    """Solve for the quantile, which lies between that of one pair and Bonferroni's of all pairs."""
    alpha, normal = 1 - level, NormalDist()
    low = -normal.inv_cdf(alpha / 2)
    high = -normal.inv_cdf(alpha / (groups * (groups - 1)))

    def excess(quantile: float) -> float:
        # On the logarithm, where it is nearly a straight line.
        return math.log(alpha / _probability_beyond(quantile, groups))

    return root_of(excess, low * (1 - 1e-3), high * (1 + 1e-3))


def _probability_beyond(quantile: float, groups: float) -> float:
    """Probability that the largest and the smallest of standard normal values are far apart.

    That is, by more than the quantile times the standard deviation of the difference of two.
    """
    within = 0.0
    for value, density, tail in _density_and_tail():
        # The others are above the largest value, or farther below it than allowed.
        outside = tail + math.erfc(quantile - value / _SQRT_2) / 2
        if outside < 1:
            within += density * math.exp((groups - 1) * math.log1p(-outside))
    return 1 - groups * within


@lru_cache(maxsize=1)
def _density_and_tail() -> list[tuple[float, float, float]]:
    scale = _STEP / math.sqrt(2 * math.pi)
    return [
        (value, scale * math.exp(-value * value / 2), math.erfc(value / _SQRT_2) / 2)
        for value in _NORMALS
    ]
