"""Normal and Student's t distribution, as constants and as Polars expressions.

Polars has neither. Each function is smooth enough for one polynomial through exact values from
mpmath, so that plans hold no Python functions and all groups are computed at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import polars as pl

from polars_wroc.plans.steps import Fields, let

_NODES = 24
# Half of the nodes of the tail polynomial lie where z / sqrt(2) is below this.
_TAIL_SCALE = 2.0
_POSITION = "__position"


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def student_quantile(probability: float, df: pl.Expr) -> pl.Expr:
    """Quantile of Student's t distribution for 1 or more degrees of freedom, whole or not.

    Its logarithm is smooth in 1/df on [0, 1]. For probabilities between 0.5005 and 0.99995
    the relative error is below 1e-9, and mostly below 1e-12.
    """
    return _polynomial(_student_coefficients(probability), 2 / df - 1).exp()


def normal_score(t: pl.Expr, df: pl.Expr) -> pl.Expr:
    """Transform a t statistic into an approximately standard normal one.

    Wallace's transformation: two-sided p-values are off by at most 0.016 for one degree of
    freedom, 0.0007 for five and 0.00003 for thirty.
    """
    size = (df * (t**2 / df).log1p()).sqrt()
    return t.sign() * (8 * df + 1) / (8 * df + 3) * size


def two_sided_p_value(z: pl.Expr) -> pl.Expr:
    """Probability that a standard normal variable is at least as far from 0 as ``z``.

    Divided by ``exp(-z**2 / 2)`` it is a smooth function of ``1 / (c + abs(z))``, which a
    polynomial approximates. The relative error is below 1e-12.
    """
    scaled = z.abs() / math.sqrt(2)
    place = _TAIL_SCALE / (_TAIL_SCALE + scaled)
    tail = place * _polynomial(_tail_coefficients(), 2 * place - 1).exp()
    return (tail * (-scaled * scaled).exp()).clip(upper_bound=1.0)


def _polynomial(coefficients: Sequence[float], position: pl.Expr) -> pl.Expr:
    def value(field: Fields) -> pl.Expr:
        total: pl.Expr = pl.lit(0.0)
        for coefficient in reversed(coefficients):
            total = total * field(_POSITION) + coefficient
        return total

    return let({_POSITION: position}, value)


def _interpolate(function: Callable[[float], float]) -> tuple[float, ...]:
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


@lru_cache(maxsize=64)
def _student_coefficients(probability: float) -> tuple[float, ...]:
    return _interpolate(lambda x: math.log(_student_quantile(probability, (x + 1) / 2)))


@lru_cache(maxsize=1)
def _tail_coefficients() -> tuple[float, ...]:
    # Imported here, since it takes 0.2 seconds and only tests need it.
    import mpmath  # noqa: PLC0415

    def log_tail(position: float) -> float:
        place = (position + 1) / 2
        with mpmath.workdps(30):
            scaled = mpmath.mpf(_TAIL_SCALE) / place - _TAIL_SCALE
            return float(mpmath.log(mpmath.erfc(scaled) / place) + scaled**2)

    return _interpolate(log_tail)


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
