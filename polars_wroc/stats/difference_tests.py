"""P-values adjusted for many tests, and the smallest gap to be detected."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.plans.formulas import Formula, min_of, when
from polars_wroc.plans.queries import FrameT
from polars_wroc.stats.distributions import normal_quantile

POWER = 0.8
POWER_QUANTILE = normal_quantile(POWER)
# Newton steps: they mostly give nine digits, and at least four.
_STEPS = 5
# The largest difference has an infinite slope if the variance there is 0.
_START, _END = 1 - 1e-3, 1 - 1e-12
_LEAST = 1e-300


class Comparison(NamedTuple):
    """An estimate that is compared with that of a reference; ``largest`` is the largest difference.

    An inverse size is 1 divided by an effective sample size: in the common value (``pool``), and
    for an estimate of 0; it grows by the ``slope`` up to an estimate of 1.
    """

    reference: pl.Expr
    pools: tuple[pl.Expr, pl.Expr]
    sizes: tuple[pl.Expr, pl.Expr]
    slopes: tuple[pl.Expr, pl.Expr]
    largest: pl.Expr


class Deviations(NamedTuple):
    """The standard deviations of a `Comparison`, times the quantiles of a test and of its power.

    Variances of proportions are ``p * (1 - p)`` times an inverse size: of both estimates in the
    test, where the common value is below the reference by a ``share`` of the difference, and of
    each in the power.
    """

    reference: pl.Expr
    share: pl.Expr
    both: pl.Expr
    both_slope: pl.Expr
    own: pl.Expr
    own_slope: pl.Expr
    fixed: pl.Expr

    @classmethod
    def of(
        cls, comparison: Comparison, quantile: pl.Expr, power: float = POWER_QUANTILE
    ) -> Formula[Deviations]:
        """Prepare them for a test and a ``power`` at these normal quantiles."""
        reference, pools, sizes, slopes, _ = comparison
        parts = yield [
            pools[1] / (pools[0] + pools[1]),
            (sizes[0] + sizes[1]) * quantile**2,
            (slopes[0] + slopes[1]) * quantile**2,
            sizes[0] * power**2,
            slopes[0] * power**2,
            reference * (1 - reference) * (sizes[1] + slopes[1] * reference) * power**2,
        ]
        return cls(reference, *parts)

    def at(self, difference: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return that of the test and that of its power; a detected difference is their sum."""
        middle, below = self.reference - self.share * difference, self.reference - difference
        of_test = middle * (1 - middle) * (self.both + self.both_slope * middle)
        of_own = below * (1 - below) * (self.own + self.own_slope * below)
        return of_test.sqrt(), (of_own + self.fixed).sqrt()


def detectable(comparison: Comparison, quantile: pl.Expr) -> Formula[pl.Expr]:
    """Find the smallest difference to be detected, tested two-sided at a normal quantile.

    It is null where none up to the largest would be detected.
    """
    reference, *_, largest = comparison
    deviations = yield from Deviations.of(comparison, quantile)
    share, both, both_slope, own, own_slope = deviations[1:6]
    # Start at the solution for sizes as at the reference and equal variances in the power.
    size = (both + both_slope * reference) * (1 + POWER_QUANTILE / quantile) ** 2
    middle, scale = size * share * (2 * reference - 1), 1 + size * share**2
    root = (middle**2 + 4 * scale * size * reference * (1 - reference)).sqrt()
    test, power = deviations.at(largest)
    start = min_of((middle + root) / (2 * scale), _START * largest)
    difference, exists = yield [start, (largest > 0) & (test + power <= largest)]
    for _ in range(_STEPS):
        # Newton's step; the equation is convex, so that all but the first come from above.
        test, power = deviations.at(difference)
        middle, below = reference - share * difference, reference - difference
        of_test = share * _slope(middle, both, both_slope)
        slope = 1 + of_test / test / 2 + _slope(below, own, own_slope) / power / 2
        improved = difference - (difference - test - power) / slope
        (difference,) = yield [improved.clip(_LEAST, _END * largest)]
    return when(exists).then(difference)


def _slope(value: pl.Expr, size: pl.Expr, slope: pl.Expr) -> pl.Expr:
    """Derivative by the value of ``value * (1 - value) * (size + slope * value)``."""
    return (1 - 2 * value) * size + slope * value * (2 - 3 * value)


Adjust: TypeAlias = Literal["holm", "bh", "none"]


def check_options(level: float, adjust: Adjust) -> float:
    """Check the options that all tests of differences share, and return the level."""
    arguments.option("adjust", adjust, get_args(Adjust))
    return arguments.level(level)


def adjusted(table: FrameT, method: Adjust) -> FrameT:
    """Add p-values adjusted for all tests of the table, and sort the rows by p-value.

    ``"holm"`` controls the family-wise error rate, ``"bh"`` (Benjamini and Hochberg) the false
    discovery rate. Null p-values do not count as tests.
    """
    p = pl.col("p_value")
    tests, rank = p.count(), pl.int_range(1, pl.len() + 1)
    values = {
        "holm": ((tests - rank + 1) * p).cum_max(),
        "bh": (tests / rank * p).cum_min(reverse=True),
        "none": p,
    }
    return table.sort(p, nulls_last=True).with_columns(
        pl.when(p.is_not_null()).then(values[method].clip(upper_bound=1.0)).alias("p_adjusted")
    )


def is_significant(p_adjusted: pl.Expr, level: float) -> pl.Expr:
    """Whether a difference is significant after adjustment; null where it is not tested."""
    return p_adjusted <= 1 - level
