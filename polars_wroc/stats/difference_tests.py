"""Tests and intervals of differences, many at once, and the smallest gap to be detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.plans.formulas import (
    Fields,
    Step,
    all_of,
    first_of,
    let,
    max_of,
    min_of,
    when,
    with_lists,
)
from polars_wroc.plans.queries import FrameT
from polars_wroc.stats.distributions import (
    normal_quantile,
    quantile_to_picked,
    student_p_value,
    student_quantile,
    two_sided_p_value,
)
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    TOLERANCE,
    Estimate,
    difference_limits,
    logit_limits,
    shrunk,
)

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
        quantile = student_quantile((1 + level) / 2, self.df)
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
    p_value = student_p_value(t, df.clip(lower_bound=1.0))
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
    z, margin = difference / se, student_quantile((1 + level) / 2, df) * se
    return {
        "difference": difference,
        "difference_se": se,
        "difference_low": known.then(difference - margin),
        "difference_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(student_p_value(z, df)).when(no_difference).then(1.0),
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


class _Table(NamedTuple):
    """A table of four, so turned that one number alone has the fewest expected rows.

    Of ``total`` rows, ``rows`` are in the smaller group and ``outcomes`` have the rarer outcome;
    ``both`` have both.
    """

    total: pl.Expr
    rows: pl.Expr
    outcomes: pl.Expr
    both: pl.Expr


def equal_proportions(field: Fields, exact: Exact = "mid-p") -> pl.Expr:
    """Two-sided p-value of the test that two proportions of different rows are equal.

    The fields are their `numbers_of_rows`. The test is by their pooled variance where at least five
    rows are expected in each cell of the table of four; otherwise Fisher's ``exact`` test, if all
    numbers are whole. The p-value is null if they are not, as with weights.
    """
    sizes, counts = (
        [field(f"{part}_{side}") for side in ("one", "other")] for part in ("size", "count")
    )
    pooled = (counts[0] + counts[1]) / (sizes[0] + sizes[1])
    variance = pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])
    table = _table(sizes, counts)
    # Products of whole numbers are exact; the quotient that is expected in a cell is not.
    normal = table.rows * table.outcomes >= _FEWEST_EXPECTED * table.total
    whole = all_of(x == x.round() for x in sizes + counts)
    # The exact test is computed for no rows where it is not needed.
    needed = when((variance > 0) & whole & ~normal)
    turned = {name: needed.then(number) for name, number in table._asdict().items()}
    return (
        when(variance == 0)
        .then(1.0)
        .when(normal)
        .then(two_sided_p_value(field("difference") / variance.sqrt()))
        .otherwise(let(turned, lambda field: _exact_p_value(*map(field, turned), exact=exact)))
    )


def numbers_of_rows(one: Sample, other: Sample) -> dict[str, pl.Expr]:
    """Numbers of rows of two proportions, and of those that are counted, and the difference."""
    return {
        "size_one": _whole(one.size),
        "size_other": _whole(other.size),
        "count_one": _whole(one.value * one.size),
        "count_other": _whole(other.value * other.size),
        "difference": one.value - other.value,
    }


def _whole(number: pl.Expr) -> pl.Expr:
    """Remove rounding from numbers of rows, so that it never chooses the test."""
    nearest = number.round()
    near = (number - nearest).abs() <= _ROUNDING * (1 + number)
    return when(near).then(nearest).otherwise(number)


def _table(sizes: list[pl.Expr], counts: list[pl.Expr]) -> _Table:
    total, outcomes = sizes[0] + sizes[1], counts[0] + counts[1]
    first_is_smaller, rare = sizes[0] <= sizes[1], 2 * outcomes <= total
    rows = min_of(sizes)
    both = when(first_is_smaller).then(counts[0]).otherwise(counts[1])
    return _Table(
        total,
        rows,
        min_of(outcomes, total - outcomes),
        when(rare).then(both).otherwise(rows - both),
    )


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


# With a smaller effective number of rows of the rarer outcome the likelihood ratio may decide.
_FEWEST_EFFECTIVE = 5


@dataclass(frozen=True)
class CommonValueTest:
    """Test that two rates or two AUCs of different rows are equal, with the variance if they were.

    The fields of each of two ``sides`` are its ``value``, the ``complement``, the inverse size
    ``pool`` that weights it in the common value, and for AUCs ``size_test``, that in the test.
    Rates have none: it follows from the mean weights of their ``events`` and ``non_events`` as
    multiples of that of all rows, and ``inverse_df`` is 1 divided by their degrees of freedom.
    From few rows the root of the likelihood ratio replaces a larger z.
    """

    sides: tuple[str, str]

    @property
    def p_value(self) -> str:
        """Column of the p-value, which `steps` add."""
        return "__common_p_value"

    @property
    def inverse_df(self) -> str:
        """Column of 1 divided by the degrees of freedom of the test, which `steps` add."""
        return "__common_inverse_df"

    @property
    def steps(self) -> list[Step]:
        """Steps to the columns `p_value` and `inverse_df`."""
        return [self._common, self._sizes, self._statistics, self._result]

    def _each(self, name: str, field: Fields) -> tuple[pl.Expr, pl.Expr]:
        one, other = (field(f"{name}_{side}") for side in self.sides)
        return one, other

    def _common(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the common value, its complement, and how heavy events and others are in both."""
        pools = self._each("pool", field)
        columns: dict[str, pl.Expr] = {}
        for name, heavier in (("value", "events"), ("complement", "non_events")):
            values, weights = self._each(name, field), self._each(heavier, field)
            mean = values[0] * pools[1] + values[1] * pools[0]
            columns[f"__common_{name}"] = mean / (pools[0] + pools[1])
            numbers = [value / pool for value, pool in zip(values, pools, strict=True)]
            both = numbers[0] + numbers[1]
            mean = (numbers[0] * weights[0] + numbers[1] * weights[1]) / both
            mean = when(both > 0).then(mean).otherwise(1.0)
            columns[f"__common_{heavier}"] = shrunk(both, 1.0, mean)
        return columns

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the inverse sizes at the common value."""
        columns: dict[str, pl.Expr] = {}
        for side in self.sides:
            pool = field(f"pool_{side}")
            at_zero, at_one = (
                shrunk(
                    field(f"{name}_{side}"),
                    pool,
                    field(f"{heavier}_{side}"),
                    field(f"__common_{heavier}"),
                )
                for name, heavier in (("value", "events"), ("complement", "non_events"))
            )
            of_rate = field("__common_complement") * at_zero + field("__common_value") * at_one
            columns[f"__common_size_{side}"] = first_of(field(f"size_test_{side}"), of_rate)
        return columns

    def _statistics(self, field: Fields) -> dict[str, pl.Expr]:
        one, other = self._each("__common_size", field)
        both = one + other
        spread = field("__common_value") * field("__common_complement")
        complements = self._each("complement", field)
        # Near 1 complements have more digits.
        z = (complements[0] - complements[1]).abs() / (spread * both).sqrt()
        terms = []
        for name in ("value", "complement"):
            values = self._each(name, field)
            mean = (values[0] * other + values[1] * one) / both
            for value, size in zip(values, (one, other), strict=True):
                term = value * (value / mean).log() / size
                terms.append(when(value > 0).then(term).otherwise(0.0))
        few = min_of(field("__common_value"), field("__common_complement")) < _FEWEST_EFFECTIVE * (
            max_of(one, other)
        )
        few |= field(f"size_test_{self.sides[0]}").is_not_null()
        root = (2 * reduce(add, terms)).clip(lower_bound=0.0).sqrt()
        lost = [share.fill_null(0.0) for share in self._each("inverse_df", field)]
        df = (one / both) ** 2 * lost[0] + (other / both) ** 2 * lost[1]
        smaller = when(few).then(min_of(z, root)).otherwise(z)
        some = when(both.is_not_null() & spread.is_not_null())
        return {
            "__common_z": some.then(when(spread > 0).then(smaller).otherwise(0.0)),
            self.inverse_df: when(df >= EQUAL_WEIGHTS).then(df).otherwise(0.0),
        }

    def _result(self, field: Fields) -> dict[str, pl.Expr]:
        z, lost = field("__common_z"), field(self.inverse_df)
        weighted = when(lost > 0)
        students = student_p_value(z, weighted.then(1 / lost))
        return {self.p_value: weighted.then(students).otherwise(two_sided_p_value(z))}


POWER = 0.8
_POWER_QUANTILE = normal_quantile(POWER)
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


class _Terms(NamedTuple):
    """Terms of the equation that do not depend on the difference.

    Variances of proportions are ``p * (1 - p)`` times an inverse size, which is multiplied by the
    square of a quantile here: of ``both`` estimates in the test, and of the ``own`` one in the
    power, each at 0 and how it grows up to 1; and of the ``fixed`` reference in the power. The
    common value is below the reference by a ``share`` of the difference.
    """

    reference: pl.Expr
    share: pl.Expr
    both: pl.Expr
    both_slope: pl.Expr
    own: pl.Expr
    own_slope: pl.Expr
    fixed: pl.Expr
    largest: pl.Expr


@dataclass(frozen=True)
class Detectable:
    """The smallest difference to be detected, tested two-sided at a normal quantile, a column."""

    comparison: Callable[[Fields], Comparison]
    quantile: str
    # Column of the smallest difference; null where none up to the largest would be detected.
    difference: ClassVar[str] = "__detectable"

    @property
    def steps(self) -> list[Step]:
        """Steps to the column `difference`."""
        return [self._terms, self._start, *[self._improve] * _STEPS, self._found]

    def _terms(self, field: Fields) -> dict[str, pl.Expr]:
        reference, pools, sizes, slopes, largest = self.comparison(field)
        test, power = field(self.quantile) ** 2, _POWER_QUANTILE**2
        terms = _Terms(
            reference,
            pools[1] / (pools[0] + pools[1]),
            (sizes[0] + sizes[1]) * test,
            (slopes[0] + slopes[1]) * test,
            sizes[0] * power,
            slopes[0] * power,
            reference * (1 - reference) * (sizes[1] + slopes[1] * reference) * power,
            largest,
        )
        return {_column(part): value for part, value in terms._asdict().items()}

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        """Start at the solution for sizes as at the reference and equal variances in the power."""
        terms = _terms_of(field)
        reference, share, largest = terms.reference, terms.share, terms.largest
        size = terms.both + terms.both_slope * reference
        size *= (1 + _POWER_QUANTILE / field(self.quantile)) ** 2
        middle, scale = size * share * (2 * reference - 1), 1 + size * share**2
        root = (middle**2 + 4 * scale * size * reference * (1 - reference)).sqrt()
        test, power = _deviations(terms, largest)
        exists = (largest > 0) & (test + power <= largest)
        start = min_of((middle + root) / (2 * scale), _START * largest)
        return {self.difference: start, _column("exists"): exists}

    def _improve(self, field: Fields) -> dict[str, pl.Expr]:
        """Take Newton's step; the equation is convex, so that all but the first come from above."""
        terms, difference = _terms_of(field), field(self.difference)
        test, power = _deviations(terms, difference)
        middle, below = terms.reference - terms.share * difference, terms.reference - difference
        of_test = terms.share * _slope(middle, terms.both, terms.both_slope)
        of_own = _slope(below, terms.own, terms.own_slope)
        slope = 1 + of_test / test / 2 + of_own / power / 2
        improved = difference - (difference - test - power) / slope
        return {self.difference: improved.clip(_LEAST, _END * terms.largest)}

    def _found(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.difference: when(field(_column("exists"))).then(field(self.difference))}


def _deviations(terms: _Terms, difference: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Multiples of the standard deviation that a test assumes, and of the true one."""
    middle, below = terms.reference - terms.share * difference, terms.reference - difference
    test = middle * (1 - middle) * (terms.both + terms.both_slope * middle)
    own = below * (1 - below) * (terms.own + terms.own_slope * below)
    return test.sqrt(), (own + terms.fixed).sqrt()


def _slope(value: pl.Expr, size: pl.Expr, slope: pl.Expr) -> pl.Expr:
    """Derivative by the value of ``value * (1 - value) * (size + slope * value)``."""
    return (1 - 2 * value) * size + slope * value * (2 - 3 * value)


def _terms_of(field: Fields) -> _Terms:
    return _Terms(*(field(_column(part)) for part in _Terms._fields))


def _column(part: str) -> str:
    return f"__detectable_{part}"


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
