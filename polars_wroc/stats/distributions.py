"""Normal, Student's t, chi-squared and studentized range distributions, for plans."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce, wraps
from statistics import NormalDist
from typing import Any, ParamSpec, cast

import numpy as np
import polars as pl

from polars_wroc.plans.formulas import Fields, Values, let, max_of, min_of, values_of, when

_P = ParamSpec("_P")
_NODES = 24
_POSITION, _POWER_OF_PART = "__position", "__power"
# Of a part of a polynomial.
_TERMS = 4


def with_lists(formula: Callable[_P, pl.Expr]) -> Callable[_P, pl.Expr]:
    """Let a formula with lists, which only expressions can hold, take `Values` too.

    It is null where one of its columns is.
    """

    @wraps(formula)
    def of_both(*columns: _P.args, **options: _P.kwargs) -> pl.Expr:
        if not any(isinstance(each, Values) for each in columns):
            return formula(*columns, **options)
        values = [values_of(each) for each in columns]
        (rows,) = np.broadcast_shapes((1,), *(each.array.shape for each in values))
        known = np.broadcast_to(reduce(operator.and_, (each.is_known() for each in values)), rows)
        result = np.zeros(rows)
        if known.any():
            arrays = {str(i): np.broadcast_to(v.array, rows)[known] for i, v in enumerate(values)}
            expressions = cast("Any", map(pl.col, arrays))
            table = pl.DataFrame(arrays).select(formula(*expressions, **options))
            result[known] = table.to_series().to_numpy()
        return cast("pl.Expr", Values(result, ~known))

    return of_both


def polynomial(coefficients: Sequence[float], position: pl.Expr) -> pl.Expr:
    """Evaluate a polynomial, from the coefficient of the lowest power to that of the highest.

    In parts, since an expression takes time to plan that grows with the square of its depth.
    """

    def horner(terms: Sequence[pl.Expr | float], power: pl.Expr) -> pl.Expr:
        *others, highest = terms
        # Of a single term too an expression.
        total = power * 0.0 + highest
        for term in reversed(others):
            total = total * power + term
        return total

    def value(field: Fields) -> pl.Expr:
        parts = [
            horner(coefficients[first : first + _TERMS], field(_POSITION))
            for first in range(0, len(coefficients), _TERMS)
        ]
        return horner(parts, field(_POWER_OF_PART))

    return let({_POSITION: position, _POWER_OF_PART: position**_TERMS}, value)


def interpolate(function: Callable[[float], float]) -> tuple[float, ...]:
    """Coefficients of the polynomial through a function at the Chebyshev nodes on [-1, 1]."""
    angles = [math.pi * (i + 0.5) / _NODES for i in range(_NODES)]
    values = [function(math.cos(angle)) for angle in angles]
    powers = [0.0] * _NODES
    before, current = [0.0] * _NODES, [1.0] + [0.0] * (_NODES - 1)
    for degree in range(_NODES):
        terms = [v * math.cos(degree * a) for v, a in zip(values, angles, strict=True)]
        weight = math.fsum(terms) * (1 if degree == 0 else 2) / _NODES
        powers = [p + weight * c for p, c in zip(powers, current, strict=True)]
        # T(n + 1) = 2 x T(n) - T(n - 1), but T(1) = x.
        factor = 1 if degree == 0 else 2
        shifted = [0.0, *current[:-1]]
        before, current = (
            current,
            [factor * s - b for s, b in zip(shifted, before, strict=True)],
        )
    return tuple(powers)


# Half of the nodes of the tail polynomial lie where z / sqrt(2) is below this.
_TAIL_SCALE = 2.0
# The same for quantiles, as a function of the root of the logarithm of the tail.
_ROOT_SCALE = 2.0
# Quantiles are known for tails from this one to 0.5.
_LEAST_TAIL = 1e-16
_LARGEST_ROOT = math.sqrt(-2 * math.log(2 * _LEAST_TAIL))
# Where to cut off the tail of t with one degree of freedom, which falls as exp(-z**2 / 4), and the
# number of values of the integrand.
_TAIL_WIDTH, _TAIL_NODES = 11.0, 40


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def upper_quantile(tail: pl.Expr) -> pl.Expr:
    """Quantile that a standard normal variable exceeds with a probability of at most 0.5.

    It is ``s = sqrt(-2 * log(2 * tail))`` times a smooth function of ``1 / (c + s)``, which a
    polynomial approximates. The error is below 1e-10 for tails from 1e-16 on; of larger ones than
    0.5 the quantile is 0, as of 0.5.
    """
    root = (-2 * (2 * tail.clip(_LEAST_TAIL, 0.5)).log()).sqrt()
    place = _ROOT_SCALE / (_ROOT_SCALE + root)
    least = _ROOT_SCALE / (_ROOT_SCALE + _LARGEST_ROOT)
    return root * polynomial(_root_coefficients(), (2 * place - least - 1) / (1 - least))


def student_quantile(probability: float, df: pl.Expr) -> pl.Expr:
    """Quantile of Student's t distribution for 1 or more degrees of freedom, whole or not.

    Its logarithm is smooth in 1/df on [0, 1]. For probabilities between 0.5005 and 0.99995
    the relative error is below 1e-9, and mostly below 1e-12.
    """
    return polynomial(_student_coefficients(probability), 2 / df - 1).exp()


@with_lists
def student_p_value(t: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Probability that Student's t is at least as far from 0 as ``t``, for 1 or more ``df``.

    An integral over z, where ``exp(-z**2 / 2)`` is the density of t up to a constant: the rest of
    the integrand is smooth for all degrees of freedom. The relative error is below 1e-11.
    """

    def tail(field: Fields) -> pl.Expr:
        z, df, width = field("z"), field("df"), field("width")
        nodes, weights = (pl.lit(pl.Series([values])) for values in _quadrature())
        # Of all nodes at once, in lists.
        step = width * nodes
        beyond = z + step
        # The derivative of t by z, up to a constant; exp(x) - 1 = 2 exp(x / 2) sinh(x / 2).
        at = pl.element()
        grown = (beyond * beyond / (df + 1)).list.eval((at * 0.75).exp() / (at / 2).sinh().sqrt())
        shrunk = (step * (z + step / 2)).list.eval((-pl.element()).exp())
        total = (weights * beyond * grown * shrunk).list.sum()
        density = polynomial(_density_coefficients(), 2 / df - 1).exp() / math.sqrt(math.pi)
        scale = density * df.sqrt() / (df + 1)
        return (scale * width * total * (-(z**2) / 2).exp()).clip(upper_bound=1.0)

    z = ((df + 1) * (t**2 / df).log1p()).sqrt()
    # Beyond this the integrand is below 1e-13 of its start.
    width = (z**2 + _TAIL_WIDTH**2).sqrt() - z
    return let({"z": z, "df": df, "width": width}, tail)


def student_score(z: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Transform a standard normal quantile into one of Student's t distribution, approximately.

    By Wallace's (1959) transformation. Quantiles from 2 to 3.5 are too far from 0, by at most 1.1 %
    from seven degrees of freedom on, 0.1 % from twenty.
    """

    def score(field: Fields) -> pl.Expr:
        z, df = field("z"), field("df")
        half = (z * (8 * df + 3) / (8 * df + 1)) ** 2 / df / 2
        # Written so that a small exponent keeps its digits: exp(x) - 1 = 2 exp(x / 2) sinh(x / 2).
        return z.sign() * (df * 2 * half.exp() * half.sinh()).sqrt()

    return let({"z": z, "df": df}, score)


@with_lists
def chi_squared_p_value(statistic: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Probability that a chi-squared variable is at least as large as ``statistic``.

    For whole degrees of freedom a finite sum: each two more add a term of a Poisson distribution.
    The relative error is below 1e-12 for up to 199 degrees of freedom and p-values from 1e-12 on.
    Null without a degree of freedom.
    """
    half = statistic / 2
    numbers, powers = _of_terms(df)
    # The first stands for the gamma function, at 1.5 where ``df`` is odd.
    divisors = _cumulated_logs(df, pl.lit(math.lgamma(1.5)), numbers)
    terms = powers * half.log() - half - divisors
    tail = _added_terms(statistic, df, terms, two_sided_p_value(statistic.sqrt()))
    return when(statistic.is_not_null() & (df > 0)).then(tail)


@with_lists
def f_p_value(statistic: pl.Expr, df: pl.Expr, df_of_variance: pl.Expr) -> pl.Expr:
    """Probability that a variable of the F distribution is at least ``statistic / df``.

    As of chi-squared, but divided by an estimated variance with at least 1 degree of freedom; where
    that has many, it is the same. For whole ``df`` a finite sum, to which the p-value of Student's
    t is added where they are odd. The relative error is below 1e-11 for up to 199 of them and
    p-values from 1e-12 on. Null without a degree of freedom.
    """
    half = df_of_variance / 2
    # Powers of the proportions of both sums of squares in their total.
    of_variance = -(statistic / df_of_variance).log1p()
    of_statistic = -(df_of_variance / statistic).log1p()
    gamma = polynomial(_density_coefficients(), 2 / df_of_variance - 1) + half.log() / 2
    numbers, powers = _of_terms(df)
    # The first stands for the ratio of gamma functions.
    ratios = (numbers + (half - 1)) / numbers
    factors = _cumulated_logs(df, gamma - math.lgamma(1.5), ratios)
    terms = powers * of_statistic + half * of_variance + factors
    of_t = student_p_value(statistic.sqrt(), df_of_variance)
    known = statistic.is_not_null() & df_of_variance.is_not_null() & (df > 0)
    return when(known).then(_added_terms(statistic, df, terms, of_t))


def _of_terms(df: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the numbers of the terms of a finite sum but for the first, and their powers."""
    numbers, powers = (
        pl.int_ranges(first, df // 2).cast(pl.List(pl.Float64)) + df % 2 / 2 for first in (1, 0)
    )
    return numbers, powers


def _cumulated_logs(df: pl.Expr, first_if_odd: pl.Expr, values: pl.Expr) -> pl.Expr:
    """Add up the logarithms of lists of values, after a first that is 0 for even ``df``."""
    first = when(df % 2 == 1).then(first_if_odd).otherwise(0.0)
    logs = pl.concat_list(first, values.list.eval(pl.element().log()))
    return logs.list.eval(pl.element().cum_sum())


def _added_terms(
    statistic: pl.Expr, df: pl.Expr, logs_of_terms: pl.Expr, tail_if_odd: pl.Expr
) -> pl.Expr:
    """Add the terms to the tail of one degree of freedom, where ``df`` is odd."""
    terms = logs_of_terms.list.eval(pl.element().exp())
    some = when(df > 1).then(terms.list.sum()).otherwise(0.0)
    tail = when(df % 2 == 1).then(tail_if_odd).otherwise(0.0)
    return when(statistic > 0).then((tail + some).clip(upper_bound=1.0)).otherwise(1.0)


def two_sided_p_value(z: pl.Expr) -> pl.Expr:
    """Probability that a standard normal variable is at least as far from 0 as ``z``.

    Divided by ``exp(-z**2 / 2)`` it is a smooth function of ``1 / (c + abs(z))``, which a
    polynomial approximates. The relative error is below 1e-12.
    """
    scaled = z.abs() / math.sqrt(2)
    place = _TAIL_SCALE / (_TAIL_SCALE + scaled)
    tail = place * polynomial(_tail_coefficients(), 2 * place - 1).exp()
    return (tail * (-scaled * scaled).exp()).clip(upper_bound=1.0)


@lru_cache(maxsize=64)
def _student_coefficients(probability: float) -> tuple[float, ...]:
    return interpolate(lambda x: math.log(_student_quantile(probability, (x + 1) / 2)))


@lru_cache(maxsize=1)
def _root_coefficients() -> tuple[float, ...]:
    least = _ROOT_SCALE / (_ROOT_SCALE + _LARGEST_ROOT)

    def quantile_by_root(position: float) -> float:
        place = (1 + least + position * (1 - least)) / 2
        root = _ROOT_SCALE / place - _ROOT_SCALE
        return -normal_quantile(math.exp(-(root**2) / 2) / 2) / root

    return interpolate(quantile_by_root)


@lru_cache(maxsize=1)
def _density_coefficients() -> tuple[float, ...]:
    """Of the logarithm of the density of t at 0 times ``sqrt(2 * pi)``, which 1 / df tells."""

    def log_density(position: float) -> float:
        half = 1 / (position + 1)
        return math.lgamma(half + 0.5) - math.lgamma(half) - math.log(half) / 2

    return interpolate(log_density)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[list[float], list[float]]:
    """Nodes and weights of Fejer's rule on [0, 1]."""
    angles = [math.pi * (i + 0.5) / _TAIL_NODES for i in range(_TAIL_NODES)]
    harmonics = range(1, _TAIL_NODES // 2 + 1)
    weights = [
        1 - 2 * math.fsum(math.cos(2 * k * angle) / (4 * k**2 - 1) for k in harmonics)
        for angle in angles
    ]
    return [(1 - math.cos(a)) / 2 for a in angles], [weight / _TAIL_NODES for weight in weights]


@lru_cache(maxsize=1)
def _tail_coefficients() -> tuple[float, ...]:
    # Imported here, since that takes 0.2 seconds and only p-values need it.
    import mpmath  # noqa: PLC0415

    def log_tail(position: float) -> float:
        place = (position + 1) / 2
        with mpmath.workdps(30):
            scaled = mpmath.mpf(_TAIL_SCALE) / place - _TAIL_SCALE
            return float(mpmath.log(mpmath.erfc(scaled) / place) + scaled**2)

    return interpolate(log_tail)


def _student_quantile(probability: float, inverse_df: float) -> float:
    """Solve for the quantile, which lies between the normal and the Cauchy quantile."""
    import mpmath  # noqa: PLC0415

    df = 1 / inverse_df
    tails = 2 * (1 - probability)

    def excess(log_quantile: float) -> Any:
        share = df / (df + mpmath.exp(2 * log_quantile))
        return mpmath.log(mpmath.betainc(df / 2, 0.5, 0, share, regularized=True) / tails)

    low = math.log(normal_quantile(probability))
    high = math.log(math.tan(math.pi * (probability - 0.5)))
    root: Any = mpmath.findroot(excess, (low - 1e-3, high + 1e-3), solver="illinois", tol=1e-26)
    return math.exp(float(root))


# The quantile is known for so many groups.
MOST_GROUPS = 10_000
# Its logarithm is smooth in this power of the number of groups.
_POWER = -0.25
_FEWEST, _MOST = 2**_POWER, MOST_GROUPS**_POWER
# Normal values that the integral is taken over.
_LEAST_NORMAL, _STEP, _STEPS = -7.0, 0.1, 160
_NORMALS = [_LEAST_NORMAL + _STEP * i for i in range(_STEPS + 1)]
_SQRT_2 = math.sqrt(2)
# The last step to a solution, whose error is far smaller.
_LAST_STEP = 1e-10


def simultaneous_quantile(level: float, groups: pl.Expr) -> pl.Expr:
    """Quantile at which limits of each group give limits of all differences between them.

    The quantile of the studentised range with infinite degrees of freedom, divided by the square
    root of 2: for two groups the two-sided normal quantile. The relative error is below 2e-9 for
    levels from 0.5 on, and below 2e-8 for all. Null for one group, and for more than `MOST_GROUPS`.
    """
    known = groups.is_between(2, MOST_GROUPS)
    position = (2 * groups.cast(pl.Float64) ** _POWER - _FEWEST - _MOST) / (_MOST - _FEWEST)
    return when(known).then(polynomial(_coefficients(level), position).exp())


def quantile_to_picked(level: float, groups: pl.Expr, df: pl.Expr | None = None) -> pl.Expr:
    """Quantile of limits of a difference to the highest of so many groups, which was picked.

    It is the simultaneous one; with ``df`` that of Student's t, approximately. Of two groups, or
    without a number of them, it is the two-sided quantile.
    """
    alone: pl.Expr | float = normal_quantile((1 + level) / 2)
    joint = simultaneous_quantile(level, groups)
    if df is not None:
        alone, joint = student_quantile((1 + level) / 2, df), student_score(joint, df)
    return when(groups > 2).then(joint).otherwise(alone)  # noqa: PLR2004


# Where the probability of a range is integrated: normal values, counted from half of the range.
_FROM_HALF = [-7.0 + 0.125 * i for i in range(125)]
# A range of more groups than this, divided by the root of the p-value, nearly always exceeds it.
_SATURATED = 1.6


def picked(p_value: pl.Expr, groups: pl.Expr) -> pl.Expr:
    """Adjust the p-value of a difference to the highest of so many groups, which was picked.

    It is the probability that the range of equal groups exceeds the difference, divided by the
    number of comparisons with the highest: Bonferroni's or Holm's method then makes it Tukey's
    test. Of two groups, or without a number of them, it is the p-value itself. The relative error
    is below 1e-8 for p-values from 1e-15 on and up to `MOST_GROUPS`.

    Where the range of all groups exceeds the difference nearly always, that of fewer groups gives
    the larger value, which Holm's method needs once the others are shown to be different. Then the
    number of groups is about the one that gives the largest, within 3 %.
    """

    def adjusted(field: Fields) -> pl.Expr:
        p, groups = field("p"), field("groups")
        # Below, the ratio of both values hardly changes.
        known = p.clip(lower_bound=2 * _LEAST_TAIL)
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


def root_of(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where a rising function is 0, by false position with halved weights (Illinois)."""
    at_low, at_high = function(low), function(high)
    before, place, side = low, high, 0
    while abs(place - before) > _LAST_STEP * place:
        before, place = place, (low * at_high - high * at_low) / (at_high - at_low)
        value = function(place)
        if value > 0:
            high, at_high = place, value
            at_low /= 2 if side > 0 else 1
        else:
            low, at_low = place, value
            at_high /= 2 if side < 0 else 1
        side = 1 if value > 0 else -1
    return place
