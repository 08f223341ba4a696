"""The smallest difference of two proportions or AUCs that a test would have found.

A test at a level finds a difference with a probability, its power, that grows with the difference.
An AUC with an effective size has about the variance of a proportion of so many rows. The estimate
that is compared is below that of the reference by the difference; the test is computed with the
variance at the mean of both, the power with that of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.distributions import normal_quantile

POWER = 0.8
_POWER_QUANTILE = normal_quantile(POWER)
# Newton steps: they give nine digits, and at least four where the solution is within a thousandth
# of the largest difference.
_STEPS = 5
# The largest difference has an infinite slope if the variance there is 0.
_START, _END = 1 - 1e-3, 1 - 1e-12
_LEAST = 1e-300


class Comparison(NamedTuple):
    """An estimate that is compared with that of a reference; ``largest`` is the largest difference.

    An inverse size is 1 divided by an effective sample size.
    """

    reference: pl.Expr
    inverse_size: pl.Expr
    reference_inverse_size: pl.Expr
    largest: pl.Expr


class _Terms(NamedTuple):
    """Terms of the equation that do not depend on the difference.

    Variances of proportions are ``p * (1 - p)`` times an inverse size, which is multiplied by the
    square of a quantile here: of ``both`` estimates in the test, and of the ``own`` one and that of
    the ``fixed`` reference in the power.
    """

    reference: pl.Expr
    both: pl.Expr
    own: pl.Expr
    fixed: pl.Expr
    largest: pl.Expr


@dataclass(frozen=True)
class Detectable:
    """Named comparisons, each tested two-sided at a normal quantile, which is a column."""

    comparisons: Callable[[Fields], Mapping[str, Comparison]]
    names: tuple[str, ...]
    quantile: str

    @property
    def steps(self) -> list[Step]:
        """Steps to the columns `difference`."""
        improve = [self._improve] * _STEPS
        return [self._terms, self._start, *improve, self._found]

    def difference(self, name: str) -> str:
        """Column of the smallest difference; null where none up to the largest would be found."""
        return f"__detectable_{name}"

    def _terms(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for name, (reference, own, other, largest) in self.comparisons(field).items():
            fixed = reference * (1 - reference) * other * _POWER_QUANTILE**2
            both = (own + other) * field(self.quantile) ** 2
            terms = _Terms(reference, both, own * _POWER_QUANTILE**2, fixed, largest)
            columns |= {_column(name, part): value for part, value in terms._asdict().items()}
        return columns

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        """Start at the solution for equal variances of the test and of the power."""
        columns: dict[str, pl.Expr] = {}
        for name in self.names:
            terms = _terms_of(name, field)
            reference, both, _, _, largest = terms
            size = both * (1 + _POWER_QUANTILE / field(self.quantile)) ** 2
            middle = size * (reference - 0.5)
            root = (middle**2 + (4 + size) * size * reference * (1 - reference)).sqrt()
            start = (middle + root) / (2 + size / 2)
            columns[self.difference(name)] = pl.min_horizontal(start, _START * largest)
            test, power = _deviations(terms, largest)
            columns[_column(name, "exists")] = (largest > 0) & (test + power <= largest)
        return columns

    def _improve(self, field: Fields) -> dict[str, pl.Expr]:
        """Take Newton's step; the equation is convex, so that all but the first come from above."""
        columns: dict[str, pl.Expr] = {}
        for name in self.names:
            terms, difference = _terms_of(name, field), field(self.difference(name))
            reference, both, own, _, largest = terms
            test, power = _deviations(terms, difference)
            centre = reference - difference - 0.5
            slope = 1 - both * (centre + difference / 2) / test / 2 - own * centre / power
            improved = difference - (difference - test - power) / slope
            columns[self.difference(name)] = improved.clip(_LEAST, _END * largest)
        return columns

    def _found(self, field: Fields) -> dict[str, pl.Expr]:
        return {
            self.difference(name): pl.when(field(_column(name, "exists"))).then(
                field(self.difference(name))
            )
            for name in self.names
        }


def _deviations(terms: _Terms, difference: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Multiples of the standard deviation that a test assumes, and of the true one."""
    middle, below = terms.reference - difference / 2, terms.reference - difference
    test = (middle * (1 - middle) * terms.both).sqrt()
    return test, (below * (1 - below) * terms.own + terms.fixed).sqrt()


def _terms_of(name: str, field: Fields) -> _Terms:
    return _Terms(*(field(_column(name, part)) for part in _Terms._fields))


def _column(name: str, part: str) -> str:
    return f"__detectable_{part}_{name}"
