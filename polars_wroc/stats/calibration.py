"""The ratio of observed to expected positives, with limits if scores are off by a factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.stats.estimates import Limits

# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class RateOfScores:
    """A rate p of positives whose probabilities would be p t, with scores t whose mean is 1.

    It is the ratio of observed to expected positives of the scores t. With weights h that add up to
    1, ``scores`` is the sum of h^2 t, ``squares`` the sum of h^2 t^2, and ``residuals`` the sum of
    h^2 (y - p t)^2.
    """

    value: Array
    scores: Array
    squares: Array
    residuals: Array
    df: float = np.inf

    def limits(self, quantile: Array | float) -> Limits:
        """Return the rates P with (p - P)^2 = z^2 V(P), V(P) = sum h^2 P t (1 - P t).

        Where the residuals vary more than V(p), the excess is added to V, and the limits reach at
        least as far as limits of the logarithm with the variance of the residuals.
        """
        p = self.value
        z2 = np.square(quantile)
        a, b = z2 * self.scores, z2 * self.squares
        model, residuals = p * (a - p * b), z2 * self.residuals
        excess = residuals - model
        # With equal scores both are the same up to rounding.
        is_more = excess > _ROUNDING * (residuals + p * (a + p * b))
        excess = np.where(is_more, excess, 0.0)
        # P^2 (1 + b) - P (2 p + a) + p^2 - excess = 0
        root = np.sqrt(np.maximum(model, residuals) + b * excess + a**2 / 4)
        end = p + a / 2 + root
        low, high = np.maximum(p**2 - excess, 0) / end, end / (1 + b)
        # In that case no multiple of the scores fits.
        factor = np.exp(np.where(is_more, np.sqrt(residuals) / np.where(is_more, p, 1.0), 0.0))
        return Limits(np.minimum(low, p / factor), np.maximum(high, p * factor))
