"""Rates of weighted rows: the sizes behind their limits, and tests that two are equal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.levels import Level

# Whether an exact test counts half of the equally likely tables, or all of them.
Exact: TypeAlias = Literal["mid-p", "fisher"]

_SHARE_OF_TIES: dict[Exact, float] = {"mid-p": 0.5, "fisher": 1.0}

# If 1 divided by the degrees of freedom is below this, all weights are equal up to rounding.
EQUAL_WEIGHTS = 1e-9
# The rounding error of whole numbers, from weights, effective sizes and rates.
_ROUNDING = 1e-9
# Below this a sum of squared or cubed weights may have lost terms to underflow.
LEAST_SQUARES = 1e-290
# Pseudo-rows stand for heavy rows that may be missing from the sample.
_PSEUDO_ROWS_OF_TEST, _PSEUDO_ROWS_OF_LIMITS = 2, 1
# With fewer effective or expected rows in a cell of a 2x2 table, no normal approximation is used.
_FEWEST_ROWS = 5
# Tables are equally likely if the logarithms of their probabilities differ by less.
_AS_LIKELY = 1e-7
# With fewer expected rows in a cell, more than `_LARGEST_CELL` have a probability below 1e-200, and
# `_FURTHER` more than observed are less than 1e-80 times as likely. Both are left out.
_LARGEST_CELL, _FURTHER = 200, 100


@dataclass(frozen=True)
class Count:
    """Sum of the weights of some rows, sum of their squares, and number of the rows."""

    weight: Array
    squares: Array
    rows: Array

    def __add__(self, other: Count) -> Count:
        return Count(
            self.weight + other.weight, self.squares + other.squares, self.rows + other.rows
        )

    @property
    def inverse_size(self) -> Array:
        """1 divided by Kish's effective sample size; NaN where weights over- or underflow."""
        known = np.isfinite(self.weight + self.squares) & (self.squares >= LEAST_SQUARES)
        # rho = S / W^2
        return np.where(known, self.squares / self.weight / self.weight, np.nan)

    @property
    def inverse_df(self) -> Array:
        """1 divided by the degrees of freedom; 0 for equal weights."""
        # 1 / df = rho - 1 / n
        lost = self.inverse_size - 1 / self.rows
        return np.where(lost < EQUAL_WEIGHTS, 0.0, lost)


class Sample(NamedTuple):
    """A rate or an AUC and its complement, with 1 divided by effective sample sizes.

    ``pool`` is its weight in a common value. The other two hold if the common value were 0 and if
    it were 1, and change linearly in between. ``inverse_df`` is 0 for equal weights, and for AUCs.
    """

    value: Array
    complement: Array
    pool: Array
    at_zero: Array
    at_one: Array
    inverse_df: Array | float = 0.0

    def size_at(self, value: Array, complement: Array) -> Array:
        """Return 1 divided by the effective size at a common value."""
        return complement * self.at_zero + value * self.at_one


class Equality(NamedTuple):
    """The test that two values are equal: its p-value and its degrees of freedom."""

    p_value: Array
    df: Array


@dataclass(frozen=True)
class Rate:
    """The share of the weight in events.

    ``cubes`` is the sum of the cubed weights of all rows. With a survey design the rate has the
    design's ``variance``, and limits with ``design_df``.
    """

    events: Count
    others: Count
    cubes: Array
    variance: Array | None = None
    design_df: Array | float | None = None

    @cached_property
    def all(self) -> Count:
        """All rows."""
        return self.events + self.others

    @cached_property
    def value(self) -> Array:
        """The rate; NaN without rows or where weights overflow."""
        return np.where(np.isfinite(self.all.weight), self.events.weight / self.all.weight, np.nan)

    @cached_property
    def complement(self) -> Array:
        """1 less the rate, computed without cancellation."""
        return np.where(np.isfinite(self.all.weight), self.others.weight / self.all.weight, np.nan)

    @cached_property
    def inverse_size(self) -> Array:
        """1 divided by Kish's effective size or, with a design, by a smaller size."""
        kish = self.all.inverse_size
        if self.variance is None:
            return kish
        return find_inverse_size(self.variance, self.value, self.complement, kish)

    @property
    def inverse_df(self) -> Array:
        """1 divided by the degrees of freedom of weighted rows; 0 for equal weights."""
        return self.all.inverse_df

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of the limits."""
        return 1 / self.inverse_df if self.design_df is None else self.design_df

    @property
    def heaviness(self) -> tuple[Array, Array]:
        """The heaviness of events and of others, relative to all rows; 1 without any."""
        # g1 / rho = A / (W X) / (S / W^2)
        mean = self.all.squares / self.all.weight
        events, others = (
            np.where(each.weight > 0, each.squares / each.weight / mean, 1.0)
            for each in (self.events, self.others)
        )
        return events, others

    @property
    def unevenness(self) -> Array:
        """The unevenness of weights: 1 if all are equal, more where few rows have most weight.

        It is the mean weight of rows drawn by their squared weights, divided by the mean weight of
        rows drawn by their weights. NaN where cubes of weights over- or underflow.
        """
        squares, weight = self.all.squares, self.all.weight
        known = np.isfinite(self.cubes) & (self.cubes >= LEAST_SQUARES)
        # c = (C / S) / (S / W)
        uneven = np.where(known, np.maximum(self.cubes / squares / (squares / weight), 1.0), np.nan)
        return np.where(self.inverse_df == 0, 1.0, uneven)

    @property
    def numbers(self) -> tuple[Array, Array]:
        """The effective numbers of events and of others."""
        # kappa1 = p / rho, kappa0 = (1 - p) / rho
        return self.value / self.inverse_size, self.complement / self.inverse_size

    @property
    def has_few_events(self) -> Mask:
        """Whether there are so few weighted events or others that the heaviest may be missing."""
        fewest = np.minimum(self.value, self.complement)
        return np.asarray((self.inverse_df > 0) & (fewest < _FEWEST_ROWS * self.inverse_size))

    def sample(self, events: Array | float = 1.0, others: Array | float = 1.0) -> Sample:
        """Return the rate with 1 divided by its effective size if it were 0, and if it were 1.

        The heaviness of few rows is uncertain: it is shrunk to ``events`` and ``others``, or to the
        observed heaviness if that is larger.
        """
        rho = at_zero = at_one = self.inverse_size
        if self.variance is None:
            # r(0) = G1 and r(1) = G0
            at_zero = rho * _shrink(self.numbers[0], self.heaviness[0], events)
            at_one = rho * _shrink(self.numbers[1], self.heaviness[1], others)
        return Sample(self.value, self.complement, rho, at_zero, at_one, self.inverse_df)

    def estimate(self) -> Wilson:
        """Return the rate with Wilson's limits."""
        return self._estimate(self.value, self.complement, self.df)

    def estimate_near(self, value: Array, df: Array | float = np.inf) -> Wilson:
        """Return a rate near the rate of these rows, for example interpolated on a curve.

        Its effective size and the heaviness of events and others come from these rows.
        """
        return self._estimate(value, 1 - value, df)

    def _estimate(self, value: Array, complement: Array, df: Array | float) -> Wilson:
        rho = self.inverse_size
        if self.variance is not None:
            return Wilson(value, complement, rho, rho, df=df)
        sizes = []
        for share, heaviness in zip((value, complement), self.heaviness, strict=True):
            # r(0) = G1 with G1 / rho = (kappa1 (g1 / rho) + c max(g1 / rho, 1)) / (kappa1 + 1)
            missing = self.unevenness * np.maximum(heaviness, 1.0)
            together = _add_pseudo_rows(share / rho, heaviness, missing, _PSEUDO_ROWS_OF_LIMITS)
            sizes.append(rho * together)
        at_zero, at_one = sizes
        return Wilson(value, complement, at_zero, at_zero, at_one - at_zero, df=df)


def find_inverse_size(variance: Array, value: Array, complement: Array, kish: Array) -> Array:
    """Return 1 divided by the effective size of a rate with a variance, at most Kish's size.

    The variance of a rate of 0 or 1 says nothing.
    """
    # r = max(v / (p (1 - p)), h2)
    spread = value * complement
    size = np.where(spread > 0, np.maximum(variance / spread, kish), kish)
    return np.where(np.isnan(variance), np.nan, size)


def _shrink(number: Array, heavier: Array, least: Array | float) -> Array:
    """Return the heaviness of a number of rows in a test: shrunk to a larger one."""
    # G1 / rho = (kappa1 (g1 / rho) + 2 max(g1 / rho, 1)) / (kappa1 + 2)
    return _add_pseudo_rows(number, heavier, np.maximum(heavier, least), _PSEUDO_ROWS_OF_TEST)


def _add_pseudo_rows(number: Array, heaviness: Array, added: Array, rows: float) -> Array:
    """Return the heaviness of a number of rows with pseudo-rows of the heaviness ``added``."""
    return np.asarray((number * heaviness + rows * added) / (number + rows))


def equal_rates(one: Rate, other: Rate, level: Level, exact: Exact = "mid-p") -> Equality:
    """Test that two rates of different rows are equal.

    Rows of equal weights are compared as a 2x2 table, others at a common rate. At repeated looks
    the p-value comes from the level at which limits of the difference exclude 0. The degrees of
    freedom are always those of the test at a common rate.
    """
    p_value, df = equal_weighted_rates(one, other, level)
    if level.looks is not None:
        # Effective sizes that do not change with the rate, and the smaller degrees of freedom
        own, reference = (replace(each.estimate(), slope=0.0) for each in (one, other))
        fewer = 1 / np.maximum(one.inverse_df, other.inverse_df)
        return Equality(Contrast(own, reference).p_value(level, fewer), df)
    # Frequency weights may add up to small numbers that are not whole, and have no table.
    table_p_value = compare_tables(one, other, exact)
    is_table = (one.inverse_df == 0) & (other.inverse_df == 0) & ~np.isnan(table_p_value)
    return Equality(np.where(is_table, table_p_value, p_value), df)


def equal_weighted_rates(one: Rate, other: Rate, level: Level) -> Equality:
    """Test that two weighted rates of different rows are equal, at their common rate."""
    events, others = _share_heaviness(one, other)
    # Gamma1_g and Gamma0_g
    return equal_values(one.sample(events, others), other.sample(events, others), level)


def _share_heaviness(one: Rate, other: Rate) -> tuple[Array, Array]:
    """Return the heaviness of the events of both rates together, and of the others."""
    shared = []
    for a, b, heavy_a, heavy_b in zip(
        one.numbers, other.numbers, one.heaviness, other.heaviness, strict=True
    ):
        # eta1 = (kappa1_a (g1_a / rho_a) + kappa1_b (g1_b / rho_b)) / (kappa1_a + kappa1_b)
        mean = np.where(a + b == 0, 1.0, (a * heavy_a + b * heavy_b) / (a + b))
        shared.append(_shrink(a + b, mean, 1.0))
    return shared[0], shared[1]


def equal_values(one: Sample, other: Sample, level: Level, *, few: bool = False) -> Equality:
    """Test that two values of different rows are equal, with their variance if they are.

    For few effective rows of the rarer outcome, and always for AUCs, the root of the likelihood
    ratio replaces a larger z.
    """
    # m = (p_a / rho_a + p_b / rho_b) / (1 / rho_a + 1 / rho_b)
    value = _weighted_mean((one.value, other.value), (one.pool, other.pool))
    complement = _weighted_mean((one.complement, other.complement), (one.pool, other.pool))
    # r_g = (1 - m) Gamma1_g + m Gamma0_g
    sizes = one.size_at(value, complement), other.size_at(value, complement)
    both = sizes[0] + sizes[1]
    # z = |p_a - p_b| / sqrt(m (1 - m) (r_a + r_b)); near 1 complements have more digits.
    z = np.abs(one.complement - other.complement) / np.sqrt(value * complement * both)
    root = _likelihood_root(one, other, sizes)
    rare = np.minimum(value, complement) < _FEWEST_ROWS * np.maximum(*sizes)
    z = np.where(rare | few, np.minimum(z, root), z)
    z = np.where(value * complement == 0, 0.0 * both, z)
    # 1 / df = sum r_g^2 (rho_g - 1 / n_g) / (sum r_g)^2
    lost = (sizes[0] / both) ** 2 * one.inverse_df + (sizes[1] / both) ** 2 * other.inverse_df
    df = 1 / np.where(lost < EQUAL_WEIGHTS, 0.0, lost)
    return Equality(level.p_value(z, df), df)


def _likelihood_root(one: Sample, other: Sample, sizes: tuple[Array, Array]) -> Array:
    # G^2 = 2 sum_g (p_g ln(p_g / M) + (1 - p_g) ln((1 - p_g) / (1 - M))) / r_g
    half = np.zeros_like(one.value)
    for values in ((one.value, other.value), (one.complement, other.complement)):
        # M = sum(p_g / r_g) / sum(1 / r_g)
        mean = _weighted_mean(values, sizes)
        half += scipy.special.xlogy(values[0], values[0] / mean) / sizes[0]
        half += scipy.special.xlogy(values[1], values[1] / mean) / sizes[1]
    return np.asarray(np.sqrt(np.maximum(2 * half, 0)))


def _weighted_mean(values: tuple[Array, Array], sizes: tuple[Array, Array]) -> Array:
    """Return the mean of two values, weighted by effective sizes, given as their inverses."""
    return (values[0] * sizes[1] + values[1] * sizes[0]) / (sizes[0] + sizes[1])


def compare_tables(one: Rate, other: Rate, exact: Exact = "mid-p") -> Array:
    """Return the p-value of the test that two rates of equally weighted rows are equal.

    It uses the pooled variance if five rows are expected in each cell of the 2x2 table, else
    Fisher's test. NaN where Fisher's test would need whole numbers, but they are not whole.
    """
    rows = _whole(1 / one.inverse_size), _whole(1 / other.inverse_size)
    events = _whole(one.numbers[0]), _whole(other.numbers[0])
    total, outcomes = rows[0] + rows[1], events[0] + events[1]
    pooled = outcomes / total
    variance = pooled * (1 - pooled) * (1 / rows[0] + 1 / rows[1])
    p_value = 2 * scipy.special.ndtr(-np.abs(one.value - other.value) / np.sqrt(variance))
    p_value = np.where(variance == 0, 1.0, p_value)
    # Products of whole numbers are exact; the quotient that is expected in a cell is not.
    rare = np.minimum(outcomes, total - outcomes)
    few = (np.minimum(*rows) * rare < _FEWEST_ROWS * total) & (variance > 0)
    whole = np.all([each == np.round(each) for each in (*rows, *events)], axis=0)
    p_value[few] = np.nan
    due = few & whole
    p_value[due] = fisher_p_value(events[0][due], rows[0][due], events[1][due], rows[1][due], exact)
    return p_value


def _whole(number: Array) -> Array:
    """Return numbers of rows without rounding errors, which must not decide on the test."""
    nearest = np.round(number)
    return np.where(np.abs(number - nearest) <= _ROUNDING * (1 + number), nearest, number)


def fisher_p_value(
    events: Array, rows: Array, other_events: Array, other_rows: Array, exact: Exact = "mid-p"
) -> Array:
    """Return the two-sided p-value of Fisher's test of tables with few rows in a cell.

    It adds up the probabilities of less likely tables, and all (Fisher) or half (mid-p) of the
    probabilities of equally likely ones.
    """
    total, outcomes = rows + other_rows, events + other_events
    # Tables are arranged so that the first cell has the fewest expected rows: the rarer outcome in
    # the smaller group.
    least_rows = np.minimum(rows, other_rows)
    least_outcomes = np.minimum(outcomes, total - outcomes)
    cell = np.where(rows <= other_rows, events, other_events)
    cell = np.where(2 * outcomes <= total, cell, least_rows - cell)
    logs = _log_likelihoods(total, least_rows, least_outcomes, cell)
    observed = np.minimum(cell, _LARGEST_CELL).astype(np.int64)
    logs -= np.take_along_axis(logs, observed[:, np.newaxis], axis=1)
    likelihoods = np.exp(logs)
    tied = np.where(np.abs(logs) <= _AS_LIKELY, likelihoods, 0.0).sum(axis=1)
    less = np.where(logs < -_AS_LIKELY, likelihoods, 0.0).sum(axis=1)
    return np.asarray((less + _SHARE_OF_TIES[exact] * tied) / likelihoods.sum(axis=1))


def _log_likelihoods(total: Array, rows: Array, outcomes: Array, cell: Array) -> Array:
    """Return logarithms of the hypergeometric probabilities of 0, 1, ... rows in the first cell.

    They are given up to a constant for each table, a row of the result.
    """
    most = np.minimum(np.minimum(rows, outcomes), np.minimum(cell, _LARGEST_CELL) + _FURTHER)
    numbers = np.arange(1, int(most.max(initial=0)) + 1)
    rows, outcomes, total = rows[:, np.newaxis], outcomes[:, np.newaxis], total[:, np.newaxis]
    # P(x) / P(x - 1) = (n - x + 1) (k - x + 1) / (x (N - n - k + x))
    ratios = (rows - numbers + 1) * (outcomes - numbers + 1) / numbers
    ratios = ratios / (total - rows - outcomes + numbers)
    possible = numbers <= most[:, np.newaxis]
    steps = np.where(possible, np.log(np.where(possible, ratios, 1.0)), -np.inf)
    logs = np.zeros((len(cell), numbers.size + 1))
    np.cumsum(steps, axis=1, out=logs[:, 1:])
    return logs
