"""Calibration slope, intercept and O:E with their limits, by statsmodels and NumPy."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import statsmodels.api as sm

Array: TypeAlias = Any
Z = 1.959963984540054


def sample(seed: int, rows: int = 400, digits: int = 9) -> pl.DataFrame:
    """Weighted rows of three groups, with a score that promises a bit too much."""
    random = np.random.default_rng(seed)
    s = random.beta(1, 2, rows).round(digits)
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "y": random.random(rows) < 0.8 * s,
            "s": s,
            "w": random.lognormal(size=rows, sigma=0.5),
        }
    )


class Coefficient(NamedTuple):
    """A coefficient with the standard errors of the model and of its residuals (HC0)."""

    value: float
    of_model: float
    of_residuals: float

    @property
    def se(self) -> float:
        """The larger standard error."""
        return max(self.of_model, self.of_residuals)


def coefficient(columns: Array, y: Array, w: Array, squares: Array, offset: Any) -> Coefficient:
    """The last coefficient of a weighted logistic regression; ``squares`` are those of weights."""
    family = sm.families.Binomial()
    model = sm.GLM(y, columns, family=family, offset=offset, var_weights=w)
    params = model.fit(maxiter=100, tol=1e-13).params
    mean = 1 / (1 + np.exp(-(columns @ params) - (0 if offset is None else offset)))
    bread = np.linalg.inv((columns * (w * mean * (1 - mean))[:, None]).T @ columns)
    influence = columns @ bread[:, -1]
    errors = (
        math.sqrt((squares * influence**2 * size).sum())
        for size in (mean * (1 - mean), (y - mean) ** 2)
    )
    return Coefficient(params[-1], *errors)


def slope(y: Array, s: Array, w: Array, squares: Array) -> Coefficient:
    """The calibration slope."""
    x = np.log(s / (1 - s))
    return coefficient(np.column_stack([np.ones_like(x), x]), y, w, squares, None)


def intercept(y: Array, s: Array, w: Array, squares: Array) -> Coefficient:
    """The calibration intercept, with the slope held at 1."""
    x = np.log(s / (1 - s))
    return coefficient(np.ones((len(x), 1)), y, w, squares, x)


def oe_ratio(y: Array, s: Array, w: Array, squares: Array) -> list[float]:
    """The ratio and its limits: where its square of differences is that of the variance.

    The variance is that of labels with the probability ``R * s``, for a ratio ``R``. Where the
    residuals vary more, it is so much larger, and limits on the logarithm are held too.
    """
    expected = (w * s).sum()
    r = (w * y).sum() / expected
    of_residuals = (squares * (y - r * s) ** 2).sum() / expected**2
    a, b = ((squares * s**power).sum() / expected**2 for power in (1, 2))
    more = max(0.0, of_residuals - (a * r - b * r**2))
    if more < 1e-12 * of_residuals:
        more = 0.0
    low, high = np.sort(np.roots([1 + Z**2 * b, -2 * r - Z**2 * a, r**2 - Z**2 * more]).real)
    if more:
        factor = math.exp(Z * math.sqrt(of_residuals) / r)
        low, high = min(low, r / factor), max(high, r * factor)
    return [r, max(low, 0.0), high]


def error_limits(y: Array, s: Array, w: Array, z: float) -> tuple[float, float]:
    """Return limits of the mean error, which with uneven weights contain those by the ratio."""
    h = w / w.sum()
    mean, rate = (h * s).sum(), (h * y).sum()
    value = mean - rate
    margin = z * np.sqrt((h**2 * (s - y - value) ** 2).sum())
    if np.ptp(w) == 0:
        return value - margin, value + margin
    t = s / mean
    a, b = z**2 * (h**2 * t).sum(), z**2 * (h**2 * t**2).sum()
    residuals = z**2 * (h**2 * (y - rate * t) ** 2).sum()
    excess = max(residuals - rate * (a - rate * b), 0.0)
    low, high = sorted(np.roots([1 + b, -2 * rate - a, rate**2 - excess]))
    if excess > 0:
        factor = np.exp(np.sqrt(residuals) / rate)
        low, high = min(low, rate / factor), max(high, rate * factor)
    return min(value - margin, mean - high), max(value + margin, mean - max(low, 0.0))
