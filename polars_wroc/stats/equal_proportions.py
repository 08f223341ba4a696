"""Test that two proportions are equal: by their pooled variance or, from few rows, exactly."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.plans.steps import Fields, as_struct, let
from polars_wroc.stats.distributions import two_sided_p_value

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


def equal_proportions_p_value(one: Sample, other: Sample) -> pl.Expr:
    """Two-sided p-value of the test that two proportions of different rows are equal.

    By their pooled variance where at least five rows are expected in each cell of the table of
    four. Otherwise Fisher's exact test with the mid-p, if all numbers are whole; the p-value is
    null if they are not, as with weights.
    """
    return let(_numbers(one, other), partial(_p_value, exact="mid-p"))


def equal_proportions_test(one: Sample, other: Sample, exact: Exact) -> pl.Expr:
    """Test of `equal_proportions_p_value` as a struct, with the z-value and the method.

    The fields are ``z``, null without variance, ``p_value`` and ``p_method``, which is ``"z"`` or
    the ``exact`` one.
    """

    def test(field: Fields) -> pl.Expr:
        variance = _variance(field)
        z = pl.when(variance > 0).then(field("difference") / variance.sqrt())
        p_value = _p_value(field, exact)
        method = pl.when(_is_normal(field)).then(pl.lit("z"))
        known = pl.when(p_value.is_not_null())
        return as_struct(
            {
                "z": z,
                "p_value": p_value,
                "p_method": known.then(method.otherwise(pl.lit(exact))),
            }
        )

    return let(_numbers(one, other), test)


def _numbers(one: Sample, other: Sample) -> dict[str, pl.Expr]:
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
    return pl.when(near).then(nearest).otherwise(number)


def _sizes_and_counts(field: Fields) -> tuple[list[pl.Expr], list[pl.Expr]]:
    sizes, counts = (
        [field(f"{part}_{side}") for side in ("one", "other")] for part in ("size", "count")
    )
    return sizes, counts


def _variance(field: Fields) -> pl.Expr:
    """Pooled variance of the difference."""
    sizes, counts = _sizes_and_counts(field)
    pooled = (counts[0] + counts[1]) / (sizes[0] + sizes[1])
    return pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])


def _is_normal(field: Fields) -> pl.Expr:
    """Whether enough rows are expected in each cell of the table of four."""
    table = _table(*_sizes_and_counts(field))
    # Products of whole numbers are exact; the quotient that is expected is not.
    return table.rows * table.outcomes >= _FEWEST_EXPECTED * table.total


def _p_value(field: Fields, exact: Exact) -> pl.Expr:
    variance, normal = _variance(field), _is_normal(field)
    sizes, counts = _sizes_and_counts(field)
    whole = pl.all_horizontal(x == x.round() for x in sizes + counts)
    # The exact test is computed for no rows where it is not needed.
    needed = (variance > 0) & whole & ~normal
    turned = {
        name: pl.when(needed).then(number).otherwise(0.0)
        for name, number in _table(sizes, counts)._asdict().items()
    }
    return (
        pl.when(variance == 0)
        .then(1.0)
        .when(normal)
        .then(two_sided_p_value(field("difference") / variance.sqrt()))
        .when(needed)
        .then(let(turned, partial(_exact_p_value, exact=exact)))
    )


def _table(sizes: list[pl.Expr], counts: list[pl.Expr]) -> _Table:
    total, outcomes = sizes[0] + sizes[1], counts[0] + counts[1]
    first_is_smaller, rare = sizes[0] <= sizes[1], 2 * outcomes <= total
    rows = pl.min_horizontal(sizes)
    both = pl.when(first_is_smaller).then(counts[0]).otherwise(counts[1])
    return _Table(
        total,
        rows,
        pl.min_horizontal(outcomes, total - outcomes),
        pl.when(rare).then(both).otherwise(rows - both),
    )


def _exact_p_value(field: Fields, exact: Exact) -> pl.Expr:
    """Add up the probabilities of less likely numbers, and all or half of equally likely ones."""
    total, rows, outcomes, both = (field(name) for name in _Table._fields)
    own = both.clip(upper_bound=_LARGEST).cast(pl.Int64)
    most = pl.min_horizontal(rows, outcomes, own + _FURTHER).cast(pl.Int64)
    numbers = pl.int_ranges(1, most + 1).cast(pl.List(pl.Float64))
    # The probability of each number as a multiple of that of the number before.
    above = (numbers * -1 + (rows + 1)) * (numbers * -1 + (outcomes + 1))
    ratios = above / (numbers * (numbers + (total - rows - outcomes)))
    element = pl.element()
    logs = pl.concat_list(pl.lit(0.0), ratios.list.eval(element.log()))
    logs = logs.list.eval(element.cum_sum())
    compared = logs - logs.list.get(own)
    less_likely = pl.when(element < -_AS_LIKELY).then(element.exp())
    as_likely = element.exp() / (1 if exact == "fisher" else 2)
    counted = less_likely.when(element <= _AS_LIKELY).then(as_likely).otherwise(0.0)
    return compared.list.eval(counted).list.sum() / compared.list.eval(element.exp()).list.sum()
