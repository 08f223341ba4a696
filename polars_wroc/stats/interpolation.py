"""Polynomials through exact values of a smooth function, as Polars expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import polars as pl

from polars_wroc.plans.steps import Fields, let

_NODES = 24
_POSITION = "__position"


def polynomial(coefficients: Sequence[float], position: pl.Expr) -> pl.Expr:
    """Evaluate a polynomial, from the coefficient of the lowest power to that of the highest."""

    def value(field: Fields) -> pl.Expr:
        total: pl.Expr = pl.lit(0.0)
        for coefficient in reversed(coefficients):
            total = total * field(_POSITION) + coefficient
        return total

    return let({_POSITION: position}, value)


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
