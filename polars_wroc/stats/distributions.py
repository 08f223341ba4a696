"""Normal and Student's t distributions, for plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import polars as pl

from polars_wroc.inputs.looks import Looks
from polars_wroc.plans.formulas import Fields, let

_SQRT_2 = math.sqrt(2)
_NODES = 24
_POSITION, _POWER_OF_PART = "__position", "__power"
# Of a part of a polynomial.
_TERMS = 4


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


# The same for quantiles, as a function of the root of the logarithm of the tail.
_ROOT_SCALE = 2.0
# Quantiles are known for tails from this one to 0.5.
LEAST_TAIL = 1e-16


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def upper_quantile(tail: pl.Expr, least: float = LEAST_TAIL) -> pl.Expr:
    """Quantile that a standard normal variable exceeds with a probability of at most 0.5.

    It is ``s = sqrt(-2 * log(2 * tail))`` times a smooth function of ``1 / (c + s)``, which a
    polynomial approximates. The error is below 1e-10 for tails from 1e-16 on; of larger ones than
    0.5 the quantile is 0, as of 0.5.
    """
    root = (-2 * (2 * tail.clip(least, 0.5)).log()).sqrt()
    place, first = _ROOT_SCALE / (_ROOT_SCALE + root), _first_place(least)
    return root * polynomial(_root_coefficients(least), (2 * place - first - 1) / (1 - first))


def _first_place(least: float) -> float:
    return _ROOT_SCALE / (_ROOT_SCALE + math.sqrt(-2 * math.log(2 * least)))


def z_quantile(level: float) -> float:
    """Two-sided normal quantile of a level, or what replaces it at repeated looks.

    All limits have it, or one with the same tail.
    """
    return level.own_quantile if isinstance(level, Looks) else normal_quantile((1 + level) / 2)


def t_quantile(level: float, df: pl.Expr) -> pl.Expr:
    """Two-sided quantile of Student's t for 1 or more degrees of freedom, whole or not.

    Its logarithm is smooth in 1/df on [0, 1]. For levels between 0.001 and 0.9999 the relative
    error is below 1e-9, and mostly below 1e-12.
    """
    return polynomial(_student_coefficients(z_quantile(level)), 2 / df - 1).exp()


@lru_cache(maxsize=64)
def _student_coefficients(z: float) -> tuple[float, ...]:
    return interpolate(lambda x: math.log(_student_quantile(z, (x + 1) / 2)))


@lru_cache(maxsize=2)
def _root_coefficients(least: float) -> tuple[float, ...]:
    first = _first_place(least)

    def quantile_by_root(position: float) -> float:
        place = (1 + first + position * (1 - first)) / 2
        root = _ROOT_SCALE / place - _ROOT_SCALE
        return -normal_quantile(math.exp(-(root**2) / 2) / 2) / root

    return interpolate(quantile_by_root)


def _student_quantile(z: float, inverse_df: float) -> float:
    """Solve for the quantile with the tails of a normal one, between that and Cauchy's."""
    import mpmath  # noqa: PLC0415

    df = 1 / inverse_df
    tails = math.erfc(z / _SQRT_2)

    def excess(log_quantile: float) -> Any:
        share = df / (df + mpmath.exp(2 * log_quantile))
        return mpmath.log(mpmath.betainc(df / 2, 0.5, 0, share, regularized=True) / tails)

    low, high = math.log(z), -math.log(math.tan(math.pi * tails / 2))
    root: Any = mpmath.findroot(excess, (low - 1e-3, high + 1e-3), solver="illinois", tol=1e-26)
    return math.exp(float(root))
