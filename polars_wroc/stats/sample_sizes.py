"""Sample sizes: how many rows show that two values of different rows are equivalent.

The inverse effective sizes that limits rest on are found from the limits themselves, and fall as
rows are added to both sides alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.aucs import SKEWNESS, Auc, ClassMoments
from polars_wroc.stats.contrasts import combine_margins
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.solve import first_place

# More rows than nearly anybody has.
MOST_ROWS = 10**9
# Enough for six digits of their number, of which two are told.
_DIGITS = 26


class InverseSizes(NamedTuple):
    """1 divided by the effective sample sizes that the lower and the upper limit rest on."""

    low: Array
    high: Array

    def __mul__(self, factor: Array | float) -> InverseSizes:  # type: ignore[override]
        return InverseSizes(self.low * factor, self.high * factor)


def invert_limits(
    value: Array, low: Array, high: Array, quantile: float, skew: float
) -> InverseSizes:
    """Return the inverse sizes of a value whose limits are Wilson's at a quantile.

    Where a limit has no distance from the value, the size is that of the other one.
    """
    sizes = (
        _invert_low(value, 1 - value, low, quantile, skew),
        _invert_low(1 - value, value, 1 - high, quantile, skew),
    )
    first, second = sizes
    return InverseSizes(
        np.where(np.isnan(first), second, first), np.where(np.isnan(second), first, second)
    )


def _invert_low(value: Array, complement: Array, limit: Array, z: float, skew: float) -> Array:
    """Return the inverse size for which the lower limit of a value is this; NaN without any."""
    # p - s d r - l = z sqrt(r l (1 - l)), a quadratic equation in the root of r, where
    # s = (z^2 - 1) skewness and d = max(1 - 2 p, 0)
    shift = max(z**2 - 1, 0.0) * skew * np.maximum(complement - value, 0.0)
    distance = np.maximum(value - limit, 0.0)
    spread = z * np.sqrt(np.maximum(limit * (1 - limit), 0.0))
    size = (2 * distance / (spread + np.sqrt(spread**2 + 4 * shift * distance))) ** 2
    return np.where(np.isfinite(size) & (size > 0), size, np.nan)


def square_placements(auc: Array) -> Array:
    """Return the mean squares of the complements of placement values, for given AUCs.

    Scores are normal with equal variances in both classes.
    """
    complement = 1 - auc
    # The probability that two standard normal variables with a correlation of one half are both
    # below the quantile of the complement, by Owen's T
    below = complement - 2 * special.owens_t(special.ndtri(complement), 1 / np.sqrt(3))
    return np.where((complement > 0) & (complement < 1), below, complement)


def plan_aucs(value: Array, second: Array, rows: Array) -> Auc:
    """Return AUCs with so many rows of each class, and the ``second`` of `square_placements`."""
    complement, h2 = 1 - value, 1 / rows
    x1, x2 = complement * h2, second * h2
    moments = ClassMoments(h2, x1, x2, h2, x2 - complement * x1)
    return Auc(value, complement, moments, replace(moments))


@dataclass(frozen=True)
class EquivalenceSearch:
    """Looks for the rows of segments that show that they are alike within a margin.

    ``value`` is that of both sides, ``sizes`` are the inverse sizes of a single row, and the
    reference has ``kappa`` times as many rows. If it includes the segment, a gap is a ``part`` of
    the difference. AUCs have multiples of the sizes of `plan_aucs`, with a ``second``.
    """

    value: Array
    sizes: InverseSizes
    kappa: Array
    part: Array
    second: Array | None = None

    @classmethod
    def from_limits(
        cls,
        value: Array,
        limits: tuple[Array, Array],
        other: Array,
        rows: tuple[Array, Array],
        part: Array,
        quantile: float,
        *,
        are_aucs: bool,
    ) -> EquivalenceSearch:
        """Return the search for values with limits at a quantile, and those of their references.

        ``rows`` are those of both.
        """
        sizes = invert_limits(value, *limits, quantile, SKEWNESS if are_aucs else 0.0)
        kappa = rows[1] / rows[0]
        if not are_aucs:
            return cls(other, sizes * rows[0], kappa, part)
        second = square_placements(other)
        plan = _plan_sizes(other, second, rows[0])
        of_one = InverseSizes(sizes.low / plan.low, sizes.high / plan.high)
        return cls(other, of_one, kappa, part, second)

    def find(self, margin: float, quantile: float, power: float) -> Array:
        """Return the fewest rows of segments; NaN where more than `MOST_ROWS` are needed.

        Both one-sided tests at the quantile show it with the power.
        """
        z_power = special.ndtri((1 + power) / 2)

        def holds(logarithm: Array) -> Mask:
            return self._reach(np.exp(logarithm), quantile, z_power) <= margin / self.part

        last = np.full(self.value.shape, np.log(MOST_ROWS))
        found = np.exp(first_place(holds, np.zeros_like(last), last, digits=_DIGITS))
        return np.where(holds(last), found, np.nan)

    def _reach(self, rows: Array, quantile: float, z_power: float) -> Array:
        """Return how far from 0 a limit of the difference is at most, with the power."""
        # Both sides, the segment and its reference, along the axis before that of segments
        sizes = self._size(np.stack([rows, rows * self.kappa], axis=-2))
        value, skew = self.value, 0.0 if self.second is None else SKEWNESS
        low, high = Wilson(value, 1 - value, *sizes, skewness=skew).limits(quantile)
        below, above = value - low, high - value
        furthest = np.maximum(
            combine_margins(below[..., 0, :], above[..., 1, :]),
            combine_margins(above[..., 0, :], below[..., 1, :]),
        )
        variance = value * (1 - value) * np.maximum(*sizes).sum(axis=-2)
        return np.asarray(furthest + z_power * np.sqrt(variance))

    def _size(self, rows: Array) -> InverseSizes:
        if self.second is None:
            return self.sizes * (1 / rows)
        plan = _plan_sizes(self.value, self.second, rows)
        return InverseSizes(self.sizes.low * plan.low, self.sizes.high * plan.high)


def _plan_sizes(value: Array, second: Array, rows: Array) -> InverseSizes:
    auc = plan_aucs(value, second, rows)
    return InverseSizes(auc.limit_size("low"), auc.limit_size("high"))
