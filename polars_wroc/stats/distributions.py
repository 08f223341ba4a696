"""Normal, Student's t and chi-squared distribution, as constants and as Polars expressions.

Polars has none of them. The first two are smooth enough for one polynomial through exact values
from mpmath, so that plans hold no Python functions and all groups are computed at once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import polars as pl

from polars_wroc.stats.interpolation import interpolate, polynomial

# Half of the nodes of the tail polynomial lie where z / sqrt(2) is below this.
_TAIL_SCALE = 2.0


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def student_quantile(probability: float, df: pl.Expr) -> pl.Expr:
    """Quantile of Student's t distribution for 1 or more degrees of freedom, whole or not.

    Its logarithm is smooth in 1/df on [0, 1]. For probabilities between 0.5005 and 0.99995
    the relative error is below 1e-9, and mostly below 1e-12.
    """
    return polynomial(_student_coefficients(probability), 2 / df - 1).exp()


def normal_score(t: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Transform a t statistic into an approximately standard normal one.

    Wallace's transformation: two-sided p-values are off by at most 0.016 for one degree of
    freedom, 0.0007 for five and 0.00003 for thirty.
    """
    size = (df * (t**2 / df).log1p()).sqrt()
    return t.sign() * (8 * df + 1) / (8 * df + 3) * size


def student_score(z: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Transform a standard normal quantile into one of Student's t distribution, approximately.

    The inverse of `normal_score`. Quantiles from 2 to 3.5 are too far from 0, by at most 1.1 % from
    seven degrees of freedom on, 0.1 % from twenty.
    """
    size = z * (8 * df + 3) / (8 * df + 1)
    grown = size**2 / df
    # Written so that a small exponent keeps its digits: exp(x) - 1 = 2 exp(x / 2) sinh(x / 2).
    return z.sign() * (df * 2 * (grown / 2).exp() * (grown / 2).sinh()).sqrt()


def chi_squared_p_value(statistic: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Probability that a chi-squared variable is at least as large as ``statistic``.

    For whole degrees of freedom a finite sum: each two more add a term of a Poisson distribution.
    The relative error is below 1e-12 for up to 199 degrees of freedom and p-values from 1e-12 on.
    Null without a degree of freedom.
    """
    half, odd = statistic / 2, df % 2
    shift = odd / 2
    # In the sum of logarithms the first stands for the gamma function of ``1 + shift``.
    first = pl.when(odd == 1).then(math.lgamma(1.5)).otherwise(0.0)
    numbers = pl.int_ranges(1, df // 2).cast(pl.List(pl.Float64)) + shift
    divisors = pl.concat_list(first, numbers.list.eval(pl.element().log()))
    divisors = divisors.list.eval(pl.element().cum_sum())
    powers = pl.int_ranges(0, df // 2).cast(pl.List(pl.Float64)) + shift
    terms = (powers * half.log() - half - divisors).list.eval(pl.element().exp())
    tail = pl.when(odd == 1).then(two_sided_p_value(statistic.sqrt())).otherwise(0.0)
    some = pl.when(df > 1).then(terms.list.sum()).otherwise(0.0)
    positive = pl.when(statistic > 0).then((tail + some).clip(upper_bound=1.0)).otherwise(1.0)
    return pl.when(statistic.is_not_null() & (df > 0)).then(positive)


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
def _tail_coefficients() -> tuple[float, ...]:
    # Imported here, since it takes 0.2 seconds and only tests need it.
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
