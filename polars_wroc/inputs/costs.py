"""The costs of both kinds of wrong decisions."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.checks import reject

# Rates as columns of a plan, or as arrays.
_RateT = TypeVar("_RateT", pl.Expr, Array)


class Costs(NamedTuple):
    """Costs of a false negative and of a false positive, in the user's unit."""

    fn: float
    fp: float

    @property
    def unit_costs(self) -> Costs:
        """The costs divided by their sum, for choices that depend on their ratio."""
        if self.fn + self.fp == 1:
            return self
        # The larger is divided out first, since the sum may overflow.
        largest = max(self.fn, self.fp)
        both = self.fn / largest + self.fp / largest
        return Costs(self.fn / largest / both, self.fp / largest / both)

    def expected_cost(self, fnr: _RateT, fpr: _RateT, prevalence: _RateT | float) -> _RateT:
        """Return the expected cost of a decision."""
        return self.fn * prevalence * fnr + self.fp * (1 - prevalence) * fpr


def read_costs(
    fn: float | None, fp: float | None, names: tuple[str, str] = ("cost_fn", "cost_fp")
) -> Costs:
    """Return both costs; if only one is given, the other is 1 minus it."""
    of_fn, of_fp = names
    if fn is None and fp is None:
        msg = f"`{of_fn}` or `{of_fp}` must be given; found neither"
        raise ValueError(msg)
    if fn is None:
        assert fp is not None
        return Costs(_one_minus(of_fp, fp, of_fn), fp)
    if fp is None:
        return Costs(fn, _one_minus(of_fn, fn, of_fp))
    if fn == 0 and fp == 0:
        msg = f"`{of_fn}` and `{of_fp}` must not both be 0; found 0 and 0"
        raise ValueError(msg)
    return Costs(fn, fp)


def _one_minus(name: str, cost: float, other: str) -> float:
    if cost > 1:
        reject(name, f"be at most 1 where `{other}` is not given", f"{cost:g}")
    return 1 - cost
