"""Confidence levels: quantiles and p-values, at one look at the data or at every look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import scipy

from polars_wroc.arrays import Array, Mask
from polars_wroc.looks import ConfidenceLevel, Looks
from polars_wroc.stats.solve import first_place

# One if an error probability belongs to one end of an interval or test, two if both share it.
Tails: TypeAlias = Literal[1, 2]

# Wald limits do not hold at every look with fewer rows of a class.
FEWEST_AT_LOOKS = 100
# The error of one of several tests; a larger one would have an infinite quantile.
_LARGEST_ERROR = 0.999
# Farther from 0, a double cannot hold the probability of a normal variable.
_LARGEST_NORMAL = 37.0
# SciPy's quantile of Student's t is wrong beyond, for example with 3 degrees of freedom at 1e-170.
_LARGEST_STUDENT = 1e50
# The relative rounding error of effective numbers of rows.
_ROUNDING = 1e-12
# The two groups of a single pair, where nothing is picked.
_PAIR = 2


@dataclass(frozen=True)
class RepeatedLooks:
    """Every look at growing data, of which ``seen`` of the ``planned`` rows are available.

    Normal quantiles are replaced by those of an asymptotic confidence sequence (Waudby-Smith,
    Arbour, Sinha, Kennedy and Ramdas 2024, Annals of Statistics 52, 2613-2640), from Robbins'
    (1970) mixture of normal laws.
    """

    planned: float
    seen: float

    def time(self, error: Array | float) -> Array:
        """Return the rows seen, in units that make limits tightest at the planned rows."""
        # x = t r with t = seen / planned and r = -2 log(a) + log(1 - 2 log(a))
        log = -2 * np.log(error)
        return np.asarray((log + np.log1p(log)) * (self.seen / self.planned))

    def quantile(self, error: Array | float) -> Array:
        """Return the substitute for the two-sided normal quantile of an error probability."""
        error = np.minimum(error, _LARGEST_ERROR)
        x = self.time(error)
        # c = sqrt((1 + 1 / x) log((1 + x) / a^2))
        quantile = np.sqrt((1 + 1 / x) * (np.log1p(x) - 2 * np.log(error)))
        return np.asarray(np.minimum(quantile, _LARGEST_NORMAL))


@dataclass(frozen=True)
class Level:
    """The error probability of limits and tests, at one look or at every look."""

    error: float
    looks: RepeatedLooks | None = None

    @classmethod
    def of(cls, level: ConfidenceLevel) -> Level:
        """Return the level of a number, or of repeated looks with a known number of rows seen."""
        if not isinstance(level, Looks):
            return cls(1 - level)
        if not isinstance(level.seen, float):
            msg = f"the number of rows seen must be known; found {level}"
            raise TypeError(msg)
        return cls(1 - level.level, RepeatedLooks(level.planned, level.seen))

    @classmethod
    def at_look(cls, level: ConfidenceLevel, count_rows: Callable[[], float]) -> Level:
        """Return the level of a number, or of a look at rows that may have to be counted."""
        if isinstance(level, Looks) and not level.is_known:
            level = level.at(count_rows())
        return cls.of(level)

    def at_planned_rows(self) -> Level:
        """Return the level of the same looks once the planned rows have been seen."""
        if self.looks is None:
            return self
        return Level(self.error, RepeatedLooks(self.looks.planned, self.looks.planned))

    def enough(self, *rows: Array, least: float = 0.0) -> Mask:
        """Return whether Wald limits hold: at repeated looks, with at least 100 rows of each class.

        At a single look they need ``least`` rows.
        """
        least = self.fewest_rows(least)
        fewest = np.minimum.reduce(np.broadcast_arrays(*rows))
        if least == 0:
            return np.ones(fewest.shape, dtype=bool)
        return np.asarray(fewest >= least * (1 - _ROUNDING))

    def fewest_rows(self, least: float) -> float:
        """Return the number of rows that Wald limits need, ``least`` at a single look."""
        return least if self.looks is None else FEWEST_AT_LOOKS

    def quantile(
        self, df: Array | float = np.inf, *, tests: Array | float = 1, tails: Tails = 2
    ) -> Array:
        """Return the quantile of Student's t for one of several tests that share the error.

        With ``tails=1`` it is the quantile of a one-sided test.
        """
        return student_quantile(self._normal(self.error / np.asarray(tests) * (2 / tails)), df)

    def independent_quantile(self, limits: Array | float, df: Array | float = np.inf) -> Array:
        """Return the quantile of one of several independent limits that hold together.

        They share the error by Sidak's formula or, at repeated looks, by Bonferroni's.
        """
        if self.looks is not None:
            return self.quantile(df, tests=limits)
        # 1 - (1 - a)^(1/m)
        error = -np.expm1(np.log1p(-self.error) / np.asarray(limits))
        return student_quantile(self._normal(error), df)

    def joint_quantile(
        self, groups: Array | float, df: Array | float = np.inf, *, metrics: Array | float = 1
    ) -> Array:
        """Return the quantile of limits that hold for the differences of all pairs of groups.

        It is Tukey's quantile: the quantile of the range of normal values divided by the square
        root of 2, converted to Student's t with the ``df`` of a pair (`welch_df`). NaN below two
        groups.
        """
        numbers = np.asarray(groups, dtype=float)
        if self.looks is not None:
            pairs = np.where(numbers > 1, numbers * (numbers - 1) / 2, np.nan)
            return self.quantile(df, tests=metrics * pairs)
        z = _range_quantile(self.error / np.asarray(metrics), numbers)
        return student_quantile(z, df)

    def picked_quantile(self, groups: Array | float, df: Array | float = np.inf) -> Array:
        """Return the quantile of a difference to the best of several groups, which was picked.

        NaN or two groups mean that nothing was picked.
        """
        numbers = np.asarray(groups, dtype=float)
        return np.where(numbers > _PAIR, self.joint_quantile(numbers, df), self.quantile(df))

    def p_value(self, z: Array | float, df: Array | float = np.inf) -> Array:
        """Return the two-sided p-value of a statistic that has Student's t distribution."""
        return self.sequential_p_value(2 * scipy.special.stdtr(df, -np.abs(z)))

    def sequential_p_value(self, p_value: Array) -> Array:
        """Return the p-value that holds at every look, given the p-value of this look alone."""
        if self.looks is None:
            return p_value
        x, z = self.looks.time(self.error), scipy.special.ndtri(p_value / 2)
        # The least a for this x whose quantile is at most z
        return np.asarray(np.minimum(np.sqrt(1 + x) * np.exp(-(z**2) * (x / (1 + x)) / 2), 1.0))

    def _normal(self, error: Array) -> Array:
        if self.looks is not None:
            return self.looks.quantile(error)
        return np.asarray(-scipy.special.ndtri(np.minimum(error, 1.0) / 2))


def student_quantile(z: Array | float, df: Array | float) -> Array:
    """Return the quantile of Student's t with the same tail as a normal quantile above 0."""
    z, df = np.broadcast_arrays(np.asarray(z, dtype=float), np.asarray(df, dtype=float))
    tail = scipy.special.ndtr(-z)
    quantile = np.minimum(np.abs(scipy.special.stdtrit(df, tail)), _LARGEST_STUDENT)
    return np.where(np.isinf(df), z, quantile)


def welch_df(one: Array, one_df: Array | float, other: Array, other_df: Array | float) -> Array:
    """Return Welch's degrees of freedom of a difference, given both variances and their own.

    df = (V_a + V_b)^2 / (V_a^2 / df_a + V_b^2 / df_b); without variance the smaller of both.
    """
    # Shares of the variance, whose squares do not underflow
    share = one / (one + other)
    inverse = share**2 / one_df + (1 - share) ** 2 / other_df
    return np.where(one + other == 0, np.minimum(one_df, other_df), 1 / inverse)


# The nodes at which the density of the largest of several normal values is integrated.
_NODES, _STEP = np.linspace(-9.0, 9.0, 289, retstep=True)


def range_tail(z: Array | float, groups: Array | float) -> Array:
    """Return the probability that two of several normal values are far apart.

    They are ``z`` standard errors of a difference apart, or more, which is ``z * sqrt(2)``.
    """
    half = np.asarray(z, dtype=float)[..., np.newaxis] / np.sqrt(2)
    others = np.asarray(groups, dtype=float)[..., np.newaxis] - 1
    largest, lowest = half + _NODES, _NODES - half
    # P = K int phi(x) Phi(x)^(K-1) (1 - (1 - Phi(x - z sqrt 2) / Phi(x))^(K-1)) dx:
    # all others are below the largest value x, and not all of them are within the range of it.
    log_density = others * scipy.special.log_ndtr(largest) - largest**2 / 2 - np.log(2 * np.pi) / 2
    outside = np.minimum(scipy.special.ndtr(lowest) / scipy.special.ndtr(largest), 1.0)
    any_outside = -np.expm1(others * np.log1p(-outside))
    total = (np.exp(log_density) * any_outside).sum(axis=-1) * _STEP
    return np.asarray((others[..., 0] + 1) * total)


def _range_quantile(error: Array, groups: Array) -> Array:
    """Return the quantile that the range of several normal values exceeds with a probability."""
    error, groups = np.broadcast_arrays(error, np.nan_to_num(groups))
    pairs = zip(error.ravel().tolist(), groups.ravel().tolist(), strict=True)
    return np.array([_solve_range(*pair) for pair in pairs]).reshape(groups.shape)


# Most segments have the same number of groups, so the equation is solved once for them.
@lru_cache(maxsize=1024)
def _solve_range(error: float, groups: float) -> float:
    """Return the quantile for one error and number of groups."""
    if groups <= 1:
        return np.nan
    ends = np.zeros(1), np.array([_LARGEST_NORMAL])
    return float(first_place(lambda middle: range_tail(middle, groups) <= error, *ends)[0])


# A range of more groups than this, divided by the root of the p-value, nearly always exceeds it.
_SATURATED = 1.6
# Below this p-value the ratio of both probabilities is nearly constant.
_LEAST_P_VALUE = 2e-16


def adjust_picked(p_value: Array, groups: Array, level: Level) -> Array:
    """Return the p-value of a difference to the best of several groups, which was picked.

    It is the probability that the range of equal groups exceeds the difference, divided by the
    comparisons with the best: Bonferroni's or Holm's method then makes it Tukey's test. At repeated
    looks it is multiplied by the pairs, and divided by the comparisons. NaN or two ``groups`` leave
    it unchanged.
    """
    if level.looks is not None:
        all_pairs = np.minimum(p_value * np.maximum(groups, 2) / 2, 1.0)
        return np.where(np.isnan(groups), p_value, all_pairs)
    known = np.maximum(p_value, _LEAST_P_VALUE)
    # If more groups would almost always exceed the difference, fewer groups have the larger value,
    # which Holm's method needs once the other groups are shown to be different.
    several = np.minimum(groups, _SATURATED / np.sqrt(known))
    picked = (groups > _PAIR) & (several > _PAIR)
    p, known, several = p_value[picked], known[picked], several[picked]
    # P(Q_K > sqrt(2) z_p) / (K - 1)
    beyond = range_tail(-scipy.special.ndtri(known / 2), several) / (several - 1) * (p / known)
    adjusted = p_value.copy()
    adjusted[picked] = np.maximum(p, beyond)
    return adjusted
