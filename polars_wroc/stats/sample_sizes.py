"""Sample sizes: the rows needed for a width, a gap, an equivalence or a margin.

An inverse size is 1 divided by an effective sample size. Those behind limits are found from the
limits themselves, and fall as rows are added to a segment and its reference in proportion. Each
target is a condition that, once it holds, holds for all larger numbers of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.aucs import SKEWNESS, Auc, ClassMoments
from polars_wroc.stats.contrasts import combine_margins
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.power import GapTest
from polars_wroc.stats.rates import Sample
from polars_wroc.stats.solve import first_place

# More rows than nearly anybody has.
MOST_ROWS = 10**9
# Times that a range of numbers of rows is halved, enough for ten digits
_DIGITS = 40


class InverseSizes(NamedTuple):
    """The inverse sizes of the lower limit, of the upper limit, and of a test."""

    low: Array
    high: Array
    test: Array


def invert_limits(
    value: Array, low: Array, high: Array, quantile: float, skewness: float
) -> InverseSizes:
    """Return the inverse sizes of a value, given its `Wilson` limits at a normal quantile.

    Where a limit equals the value or 0, its inverse size is that of the other limit. A test has the
    larger of both.
    """
    first = _invert_low(value, 1 - value, low, quantile, skewness)
    second = _invert_low(1 - value, value, 1 - high, quantile, skewness)
    first = np.where(np.isnan(first), second, first)
    second = np.where(np.isnan(second), first, second)
    return InverseSizes(first, second, np.maximum(first, second))


def _invert_low(value: Array, complement: Array, limit: Array, z: float, skewness: float) -> Array:
    """Return the inverse size that gives a lower limit; NaN if none does."""
    # Solve p - s d r - l = z sqrt(r l (1 - l)), a quadratic equation in the root of r; p is the
    # value, l the limit, r the inverse size, s = (z^2 - 1) skewness and d = max(1 - 2 p, 0)
    shift = max(z**2 - 1, 0.0) * skewness * np.maximum(complement - value, 0.0)
    distance = np.maximum(value - limit, 0.0)
    spread = z * np.sqrt(np.maximum(limit * (1 - limit), 0.0))
    size = (2 * distance / (spread + np.sqrt(spread**2 + 4 * shift * distance))) ** 2
    return np.where(np.isfinite(size) & (size > 0), size, np.nan)


def square_placements(auc: Array) -> Array:
    """Return the mean squares of the complements of placement values, for given AUCs.

    Scores are normal with equal variances in both classes.
    """
    complement = 1 - auc
    owens_t = scipy.special.owens_t(scipy.special.ndtri(complement), 1 / np.sqrt(3))
    # The probability that two standard normal variables with a correlation of one half are both
    # below the quantile of the complement
    return np.asarray(complement - 2 * owens_t)


@dataclass(frozen=True)
class AucPlan:
    """AUCs of normal scores with equal variances in both classes, given the classes' shares.

    ``second`` is from `square_placements`. A ``cautious`` test uses the inverse sizes of limits,
    which are larger than its own.
    """

    value: Array
    second: Array
    positives: float = 1.0
    negatives: float = 1.0
    cautious: bool = False

    def limit_sizes(self, rows: Array) -> tuple[Array, Array]:
        """Return the inverse sizes of the lower and the upper limit with a number of rows."""
        auc = self._plan_auc(rows)
        return auc.limit_size("low"), auc.limit_size("high")

    def test_size(self, rows: Array) -> Array:
        """Return the inverse size of a test with a number of rows."""
        if self.cautious:
            return np.maximum(*self.limit_sizes(rows))
        return self._plan_auc(rows).sample().at_zero

    def _plan_auc(self, rows: Array) -> Auc:
        complement = 1 - self.value
        pos, neg = (
            _plan_moments(complement, self.second, 1 / (rows * share))
            for share in (self.positives, self.negatives)
        )
        return Auc(self.value, complement, pos, neg)


def _plan_moments(complement: Array, second: Array, h2: Array) -> ClassMoments:
    x1, x2 = complement * h2, second * h2
    return ClassMoments(h2, x1, x2, h2, x2 - complement * x1)


@dataclass(frozen=True)
class RowSizes:
    """Inverse sizes that fall as rows are added, from the inverse sizes of a single row.

    With a ``plan`` of AUCs, ``one_row`` are the ratios of the observed to the planned sizes.
    """

    one_row: InverseSizes
    plan: AucPlan | None = None

    @classmethod
    def from_limits(
        cls,
        value: Array,
        limits: tuple[Array, Array],
        rows: Array,
        quantile: float,
        plan: AucPlan | None = None,
    ) -> RowSizes:
        """Return the sizes of values, given their limits at a quantile and numbers of rows."""
        skewness = 0.0 if plan is None else SKEWNESS
        sizes = invert_limits(value, *limits, quantile, skewness)
        if plan is None:
            return cls(InverseSizes(*(size * rows for size in sizes)))
        planned = InverseSizes(*plan.limit_sizes(rows), plan.test_size(rows))
        found = zip(sizes, planned, strict=True)
        return cls(InverseSizes(*(size / each for size, each in found)), plan)

    @property
    def skewness(self) -> float:
        """The factor of the skewness correction of limits, 0 for rates."""
        return 0.0 if self.plan is None else SKEWNESS

    def estimate(self, value: Array, rows: Array) -> Wilson:
        """Return a value with the limits it would have with a number of rows."""
        planned = (1 / rows, 1 / rows) if self.plan is None else self.plan.limit_sizes(rows)
        low, high = self.one_row.low * planned[0], self.one_row.high * planned[1]
        return Wilson(value, 1 - value, low, high, skewness=self.skewness)

    def sample(self, value: Array, rows: Array) -> Sample:
        """Return a value with the sizes of a test with a number of rows."""
        planned = 1 / rows if self.plan is None else self.plan.test_size(rows)
        size = self.one_row.test * planned
        return Sample(value, 1 - value, size, size, size)


def find_rows(holds: Callable[[Array], Mask], number: int, *, digits: int = _DIGITS) -> Array:
    """Return for each value the fewest rows, at least 1, from which on its condition holds.

    The number of rows is not rounded; NaN where more than `MOST_ROWS` are needed.
    """

    def holds_at(logarithm: Array) -> Mask:
        return holds(np.exp(logarithm))

    last = np.full(number, np.log(MOST_ROWS))
    found = first_place(holds_at, np.zeros(number), last, digits=digits)
    return np.where(holds_at(last), np.exp(found), np.nan)


def find_rows_for_width(
    value: Array, sizes: RowSizes, half_width: float, quantile: Array | float
) -> Array:
    """Return the rows for limits with a given half-width."""

    def is_narrow(rows: Array) -> Mask:
        low, high = sizes.estimate(value, rows).limits(quantile)
        return np.asarray(high - low <= 2 * half_width)

    return find_rows(is_narrow, len(value))


@dataclass(frozen=True)
class RowsPlan:
    """A segment and the rest, with equal values; the rest has ``kappa`` times as many rows.

    A gap is ``part`` times the difference of the segment and the rest: less than 1 if the reference
    includes the segment.
    """

    value: Array
    sizes: RowSizes
    kappa: Array
    part: Array

    def find_rows_for_gap(
        self, gap: float, quantile: Array | float, power: float, *, least: float
    ) -> Array:
        """Return the rows of segments that detect a gap below the reference.

        Values below the ``least`` do not exist: 0.5 for AUCs.
        """
        difference = gap / self.part

        def is_detected(rows: Array) -> Mask:
            own, other = (self.sizes.sample(self.value, each) for each in (rows, rows * self.kappa))
            reach = GapTest(own, other, quantile, power).reach(difference)
            return (difference < self.value - least) & (reach <= difference)

        return find_rows(is_detected, len(self.value))

    def find_rows_for_equivalence(
        self, margin: float, quantile: Array | float, power: float, *, digits: int = _DIGITS
    ) -> Array:
        """Return the rows of segments that show, with some power, equivalence within a margin.

        Both one-sided tests use the same quantile.
        """
        z_power = scipy.special.ndtri((1 + power) / 2)

        def is_shown(rows: Array) -> Mask:
            return self._reach(rows, quantile, z_power) <= margin / self.part

        return find_rows(is_shown, len(self.value), digits=digits)

    def _reach(self, rows: Array, quantile: Array | float, z_power: float) -> Array:
        """Return how far from 0 a limit of the difference is at most, with the given power."""
        # The segment and the rest, along the axis before the axis of segments
        both = np.stack([rows, rows * self.kappa], axis=-2)
        estimate = self.sizes.estimate(self.value, both)
        low, high = estimate.limits(quantile)
        below, above = self.value - low, high - self.value
        furthest = np.maximum(
            combine_margins(below[..., 0, :], above[..., 1, :]),
            combine_margins(above[..., 0, :], below[..., 1, :]),
        )
        size = np.maximum(estimate.low, estimate.high)
        variance = self.value * (1 - self.value) * size.sum(axis=-2)
        return np.asarray(furthest + z_power * np.sqrt(variance))


def find_rows_for_margin(changed: float, margin: float, quantile: float, power: float) -> Array:
    """Return the rows that show that an equally good new score is not worse by the margin.

    A share ``changed`` of the rows is decided differently, half of it for the worse.
    """
    share = np.array([changed / 2])
    z_power = scipy.special.ndtri(power)

    def is_shown(rows: Array) -> Mask:
        low, high = Wilson(share, 1 - share, 1 / rows, 1 / rows).limits(quantile)
        # Gained rows are not lost ones: rho = -p / (1 - p)
        loss = combine_margins(share - low, high - share, -share / (1 - share))
        return np.asarray(loss + z_power * np.sqrt(2 * share / rows) <= margin)

    return find_rows(is_shown, len(share))


def find_rows_for_error(error: Array, target: float, quantile: Array | float) -> Array:
    """Return the rows for an error that falls with their square root, given that of a single row.

    With these rows the error times the quantile is the target.
    """
    return np.maximum((quantile * error / target) ** 2, 1.0)
