"""Tests and intervals of differences, many at once, and the smallest gap to be detected."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.plans.formulas import (
    Formula,
    all_of,
    cases,
    first_of,
    max_of,
    min_of,
    when,
    with_lists,
)
from polars_wroc.plans.queries import FrameT
from polars_wroc.stats.distributions import (
    normal_quantile,
    p_value_at,
    student_p_value,
    t_quantile,
    two_sided_p_value,
)
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    TOLERANCE,
    Estimate,
    Side,
    difference_limits,
    logit_limits,
    shrunk,
)
from polars_wroc.stats.studentized_range import quantile_to_picked

CONTRAST_COLUMNS = (
    "difference",
    "difference_se",
    "difference_low",
    "difference_high",
    "z",
    "p_value",
)


class AucEstimate(NamedTuple):
    """An AUC, 1 - AUC, the variance of the AUC and the degrees of freedom of the variance."""

    auc: pl.Expr
    one_minus_auc: pl.Expr
    variance: pl.Expr
    df: pl.Expr

    @property
    def slope(self) -> pl.Expr:
        """Derivative of the logit of the AUC."""
        return 1 / (self.auc * self.one_minus_auc)

    def limits(self, level: float, picked_from: pl.Expr | None = None) -> Estimate:
        """Confidence interval by Student's t distribution on the logit."""
        quantile = t_quantile(level, self.df)
        if picked_from is not None:
            quantile = quantile_to_picked(level, picked_from, self.df)
        margin = quantile * self.variance.sqrt()
        return Estimate(self.auc, *logit_limits(self.auc, self.one_minus_auc, margin))


def auc_difference_test(
    one: AucEstimate,
    other: AucEstimate,
    variance: pl.Expr,
    level: float,
    picked_from: pl.Expr | None = None,
) -> dict[str, pl.Expr]:
    """Confidence interval and test of the difference of two AUCs, given its ``variance``.

    The test is Student's t on the difference of the logits, and the interval combines the
    intervals of both AUCs. In small groups the level holds on the logit, not on the AUC itself.
    Limits allow for another one that is the highest of so many, ``picked_from``.
    """
    covariance = (one.variance + other.variance - variance) / 2
    # Roots and proportions, since products of variances may underflow.
    correlation = covariance / (one.variance.sqrt() * other.variance.sqrt())
    sides = one.limits(level, picked_from), other.limits(level, picked_from)
    limits = difference_limits(*sides, correlation)
    logits = [(area.auc / area.one_minus_auc).log() for area in (one, other)]
    parts = [area.variance * area.slope**2 for area in (one, other)]
    both = parts[0] + parts[1]
    logit_variance = both - 2 * covariance * one.slope * other.slope
    df = 1 / ((parts[0] / both) ** 2 / one.df + (parts[1] / both) ** 2 / other.df)
    t = (logits[0] - logits[1]) / logit_variance.sqrt()
    known = when(variance > 0)
    p_value = p_value_at(level, student_p_value(t, df.clip(lower_bound=1.0)))
    return {
        "difference": when(variance.is_not_null()).then(one.auc - other.auc),
        "difference_se": variance.sqrt(),
        "difference_low": known.then(limits.low.fill_nan(None)),
        "difference_high": known.then(limits.high.fill_nan(None)),
        "p_value": known.then(p_value.fill_nan(None)),
    }


def contrast(
    difference: pl.Expr, variance: pl.Expr, level: float, df: pl.Expr
) -> dict[str, pl.Expr]:
    """Confidence interval and test of a difference by Student's t, as `CONTRAST_COLUMNS`.

    ``df`` are the degrees of freedom of the variance, 1 or more. With a variance of 0, interval and
    ``z`` are null; the p-value is 1 for a difference of 0, else null.
    """
    se = variance.sqrt()
    known = when(se > 0)
    no_difference = (se == 0) & (difference.abs() <= TOLERANCE)
    z, margin = difference / se, t_quantile(level, df) * se
    return {
        "difference": difference,
        "difference_se": se,
        "difference_low": known.then(difference - margin),
        "difference_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(p_value_at(level, student_p_value(z, df)))
        .when(no_difference)
        .then(1.0),
    }


# How an exact test counts tables that are as likely as the one observed: half, or fully.
Exact: TypeAlias = Literal["mid-p", "fisher"]

# With fewer expected rows in a cell of the table of four, the normal approximation is poor.
_FEWEST_EXPECTED = 5
# How far whole numbers may be off, by the rounding of weights, effective sizes and rates.
_ROUNDING = 1e-9
# Tables are as likely as each other if the logarithms of their probabilities differ by less.
_AS_LIKELY = 1e-7
# With fewer expected rows in a cell, a number of rows above `_LARGEST` has a probability below
# 1e-200, and one more than `_FURTHER` above the observed number is less than 1e-80 times as likely
# as that. Both are left out.
_LARGEST, _FURTHER = 200, 100


class Sample(NamedTuple):
    """A proportion and its sample size, which need not be whole."""

    value: pl.Expr
    size: pl.Expr


def equal_proportions(one: Sample, other: Sample, exact: Exact = "mid-p") -> Formula[pl.Expr]:
    """Two-sided p-value of the test that two proportions of different rows are equal.

    The test is by their pooled variance where at least five rows are expected in each cell of the
    table of four; otherwise Fisher's ``exact`` test, if all numbers are whole. The p-value is null
    if they are not, as with weights.
    """
    samples = one, other
    *numbers, difference = yield [
        *(_whole(each.size) for each in samples),
        *(_whole(each.value * each.size) for each in samples),
        one.value - other.value,
    ]
    sizes, counts = numbers[:2], numbers[2:]
    total, outcomes = sizes[0] + sizes[1], counts[0] + counts[1]
    pooled = outcomes / total
    variance = pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])
    # The table of four is so turned that one number alone has the fewest expected rows: of those in
    # the smaller group the ones with the rarer outcome.
    rows, rare = min_of(sizes), min_of(outcomes, total - outcomes)
    both = when(sizes[0] <= sizes[1]).then(counts[0]).otherwise(counts[1])
    both = when(2 * outcomes <= total).then(both).otherwise(rows - both)
    # Products of whole numbers are exact; the quotient that is expected in a cell is not.
    normal = rows * rare >= _FEWEST_EXPECTED * total
    # The exact test is computed for no rows where it is not needed.
    needed = when((variance > 0) & all_of(x == x.round() for x in numbers) & ~normal)
    total, rows, rare, both = yield [needed.then(each) for each in (total, rows, rare, both)]
    return cases(
        (variance == 0, pl.lit(1.0)),
        (normal, two_sided_p_value(difference / variance.sqrt())),
        otherwise=_exact_p_value(total, rows, rare, both, exact=exact),
    )


def _whole(number: pl.Expr) -> pl.Expr:
    """Remove rounding from numbers of rows, so that it never chooses the test."""
    nearest = number.round()
    near = (number - nearest).abs() <= _ROUNDING * (1 + number)
    return when(near).then(nearest).otherwise(number)


@with_lists
def _exact_p_value(
    total: pl.Expr, rows: pl.Expr, outcomes: pl.Expr, both: pl.Expr, *, exact: Exact
) -> pl.Expr:
    """Add up the probabilities of less likely numbers, and all or half of equally likely ones."""
    own = both.clip(upper_bound=_LARGEST).cast(pl.Int64)
    most = min_of(rows, outcomes, own + _FURTHER).cast(pl.Int64)
    numbers = pl.int_ranges(1, most + 1).cast(pl.List(pl.Float64))
    # The probability of each number as a multiple of that of the number before.
    above = (numbers * -1 + (rows + 1)) * (numbers * -1 + (outcomes + 1))
    ratios = above / (numbers * (numbers + (total - rows - outcomes)))
    element = pl.element()
    logs = pl.concat_list(pl.lit(0.0), ratios.list.eval(element.log()))
    logs = logs.list.eval(element.cum_sum())
    compared = logs - logs.list.get(own)
    less_likely = when(element < -_AS_LIKELY).then(element.exp())
    as_likely = element.exp() / (1 if exact == "fisher" else 2)
    counted = less_likely.when(element <= _AS_LIKELY).then(as_likely).otherwise(0.0)
    return compared.list.eval(counted).list.sum() / compared.list.eval(element.exp()).list.sum()


@with_lists
def mcnemar_mid_p(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Mid-p of McNemar's exact test, from the numbers of rows that change either way."""
    total, least = one + other, min_of(one, other).cast(pl.Int64)
    numbers = pl.int_ranges(1, least + 1).cast(pl.List(pl.Float64))
    element = pl.element()
    ratios = (numbers * -1 + (total + 1)) / numbers
    logs = pl.concat_list(pl.lit(0.0), ratios.list.eval(element.log()))
    logs = logs.list.eval(element.cum_sum()) - total * math.log(2)
    probabilities = logs.list.eval(element.exp())
    return 2 * probabilities.list.sum() - probabilities.list.last()


# With a smaller effective number of rows of the rarer outcome the likelihood ratio may decide.
_FEWEST_EFFECTIVE = 5


def common_value_test(one: Side, other: Side) -> Formula[tuple[pl.Expr, pl.Expr]]:
    """Test that two rates or two AUCs are equal, with the variance if they were.

    Inverse sizes ``pool`` weight them in the common value. From few rows the root of the likelihood
    ratio replaces a larger z. Returns the p-value, and 1 divided by its degrees of freedom.
    """
    sides = one, other
    kept: list[pl.Expr] = []
    for values, weights in (
        ((one.value, other.value), (one.events, other.events)),
        ((one.complement, other.complement), (one.non_events, other.non_events)),
    ):
        numbers = values[0] / one.pool, values[1] / other.pool
        both = numbers[0] + numbers[1]
        heavier = (numbers[0] * weights[0] + numbers[1] * weights[1]) / both
        heavier = when(both > 0).then(heavier).otherwise(1.0)
        mean = values[0] * other.pool + values[1] * one.pool
        kept += [mean / (one.pool + other.pool), shrunk(both, 1.0, heavier)]
    value, events, complement, non_events = yield kept
    sizes = []
    for side in sides:
        at_zero = shrunk(side.value, side.pool, side.events, events)
        at_one = shrunk(side.complement, side.pool, side.non_events, non_events)
        sizes.append(first_of(side.size_test, complement * at_zero + value * at_one))
    sizes = [*(yield sizes)]
    both, spread = sizes[0] + sizes[1], value * complement
    # Near 1 complements have more digits.
    z = (one.complement - other.complement).abs() / (spread * both).sqrt()
    terms = []
    for values in ((one.value, other.value), (one.complement, other.complement)):
        mean = (values[0] * sizes[1] + values[1] * sizes[0]) / both
        for each, size in zip(values, sizes, strict=True):
            terms.append(when(each > 0).then(each * (each / mean).log() / size).otherwise(0.0))
    few = min_of(value, complement) < _FEWEST_EFFECTIVE * max_of(sizes)
    few |= one.size_test.is_not_null()
    root = (2 * reduce(add, terms)).clip(lower_bound=0.0).sqrt()
    smaller = when(few).then(min_of(z, root)).otherwise(z)
    lost = [side.inverse_df.fill_null(0.0) for side in sides]
    df = (sizes[0] / both) ** 2 * lost[0] + (sizes[1] / both) ** 2 * lost[1]
    some = when(both.is_not_null() & spread.is_not_null())
    z, inverse_df = yield [
        some.then(when(spread > 0).then(smaller).otherwise(0.0)),
        when(df >= EQUAL_WEIGHTS).then(df).otherwise(0.0),
    ]
    weighted = when(inverse_df > 0)
    students = student_p_value(z, weighted.then(1 / inverse_df))
    return weighted.then(students).otherwise(two_sided_p_value(z)), inverse_df


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
