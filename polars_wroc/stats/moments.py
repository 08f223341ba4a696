"""Weighted means, variances and higher moments of groups of rows, combined without cancellation.

Each group has its moments about its own mean, so that no sum is a small difference of large ones,
whatever is added to all values. Powers are summed with the squared weights, of which the variances
of estimates consist, or with the weights themselves if these are numbers of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.formulas import Fields, Formula
from polars_wroc.plans.queries import aggregate, join_on_keys, over
from polars_wroc.stats.proportions import ROUNDING

_LEAST, _MOST, _CENTRE = "__least", "__most", "__centre"
_POWERS = range(5)
_PARTS = ("weight", "centre", "squares", *(f"power_{power}" for power in _POWERS))


class Moments(NamedTuple):
    """Moments of the values of some rows about a ``centre``.

    ``squares`` is the weighted sum of squared deviations, and ``powers`` are those of the powers
    from 0 to 4 with squared weights. The centre is the mean where nothing else is said.
    """

    weight: pl.Expr
    centre: pl.Expr
    squares: pl.Expr
    powers: tuple[pl.Expr, ...]

    def about(self, centre: pl.Expr) -> Moments:
        """Move moments about the mean to another centre."""
        shift = self.centre - centre
        squares = self.squares + self.weight * shift**2
        return Moments(self.weight, centre, squares, self._powers_about(shift))

    def about_mean(self, mean: pl.Expr) -> Moments:
        """Move moments about another centre to the mean."""
        shift = self.centre - mean
        least = ROUNDING * self.squares
        squares = self.squares - self.weight * shift**2
        squares = pl.when(squares > least).then(squares).otherwise(0.0)
        return Moments(self.weight, mean, squares, self._powers_about(shift))

    def _powers_about(self, shift: pl.Expr) -> tuple[pl.Expr, ...]:
        """Expand the powers of the deviations plus a shift."""
        return tuple(
            reduce(
                add,
                (
                    math.comb(power, lower) * shift ** (power - lower) * self.powers[lower]
                    for lower in range(power + 1)
                ),
            )
            for power in _POWERS
        )

    @property
    def variance(self) -> pl.Expr:
        """Unbiased variance; with one row there is none."""
        freedom = self.weight - self.powers[0] / self.weight
        return pl.when(freedom > ROUNDING * self.weight).then(self.squares / freedom)

    def kept(self) -> Formula[Moments]:
        """Keep the moments in a formula."""
        weight, centre, squares, *powers = yield [
            *(self.weight, self.centre, self.squares),
            *self.powers,
        ]
        return Moments(weight, centre, squares, tuple(powers))

    def columns(self, name: str) -> dict[str, pl.Expr]:
        """Name the moments of ``name``."""
        values = (self.weight, self.centre, self.squares, *self.powers)
        return {_column(name, part): value for part, value in zip(_PARTS, values, strict=True)}


def moments(name: str, field: Fields) -> Moments:
    """Refer to the columns of the moments of ``name``."""
    weight, centre, squares, *powers = (field(_column(name, part)) for part in _PARTS)
    return Moments(weight, centre, squares, tuple(powers))


def moment_columns(name: str) -> list[str]:
    """Columns of the moments of ``name``, which `combined` needs."""
    return [*moments(name, pl.col).columns(name), _LEAST, _MOST]


def moments_of_rows(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    name: str,
    value: pl.Expr,
    weight: pl.Expr,
    squared: pl.Expr,
    added: dict[str, pl.Expr],
) -> pl.LazyFrame:
    """Compute the moments of a value in each group; rows with a null weight do not count.

    ``squared`` are the weights of the powers; ``added`` are other aggregates.
    """
    # The rows are read once for both passes.
    rows = rows.cache()
    some = value.filter(weight.is_not_null())
    ends = {_LEAST: some.min(), _MOST: some.max()}
    mean = _mean((weight * value).sum(), weight.sum(), *ends.values())
    means = aggregate(rows, keys, {_CENTRE: mean, **ends})
    deviation = value - pl.col(_CENTRE)
    of_group = Moments(
        weight.sum(),
        pl.col(_CENTRE).first(),
        (weight * deviation**2).sum(),
        tuple((squared * deviation**power).sum() for power in _POWERS),
    )
    joined = join_on_keys(rows, means, keys, maintain_order="none")
    first = {end: pl.col(end).first() for end in ends}
    return aggregate(joined, keys, of_group.columns(name) | first | added)


def combined(
    parts: pl.LazyFrame, keys: Sequence[str], name: str, added: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Combine the moments of parts to those of groups, with other aggregates ``added``."""
    part = moments(name, pl.col)
    least, most = over(pl.col(_LEAST).min(), keys), over(pl.col(_MOST).max(), keys)
    total, weight = over((part.weight * part.centre).sum(), keys), over(part.weight.sum(), keys)
    centred = parts.with_columns(_mean(total, weight, least, most).alias(_CENTRE))
    moved = centred.with_columns(**part.about(pl.col(_CENTRE)).columns(name))
    sums = {column: pl.col(column).sum() for column in part.columns(name)}
    sums[_column(name, "centre")] = pl.col(_CENTRE).first()
    first = {_LEAST: pl.col(_LEAST).min(), _MOST: pl.col(_MOST).max()}
    return aggregate(moved, keys, sums | first | added)


def others(whole: Moments, part: Moments) -> Moments:
    """Moments of the rows of a whole that are not in a part, about the mean of the whole.

    Both are about that; what rounding may have left is 0.
    """

    def less(one: pl.Expr, other: pl.Expr) -> pl.Expr:
        left = one - other
        return pl.when(left.abs() > ROUNDING * one.abs()).then(left).otherwise(0.0)

    return Moments(
        less(whole.weight, part.weight),
        whole.centre,
        less(whole.squares, part.squares),
        tuple(less(*powers) for powers in zip(whole.powers, part.powers, strict=True)),
    )


def _mean(total: pl.Expr, weight: pl.Expr, least: pl.Expr, most: pl.Expr) -> pl.Expr:
    """Divide; rounding must not make the mean of equal values another one."""
    mean = total / weight
    inside = pl.when(mean.is_finite()).then(mean.clip(least, most)).otherwise(mean)
    return pl.when(weight > 0).then(inside)


def _column(name: str, part: str) -> str:
    return f"__{part}_of_{name}"
