"""The costs of false negatives and false positives, and the prevalence that weights them."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.inputs import arguments


class Costs(NamedTuple):
    """Costs of a false negative and of a false positive, which add up to 1."""

    fn: float
    fp: float

    def expected(self, fnr: pl.Expr, fpr: pl.Expr, prevalence: pl.Expr | float) -> pl.Expr:
        """Return the expected cost of a decision."""
        return self.fn * prevalence * fnr + self.fp * (1 - prevalence) * fpr


def read_costs(cost_fn: float | None, cost_fp: float | None) -> Costs:
    """Check the costs; if only one is given, the other is 1 minus it."""
    fn, fp = (
        None if value is None else arguments.number(name, value, low=0, finite=True)
        for name, value in (("cost_fn", cost_fn), ("cost_fp", cost_fp))
    )
    if fn is None and fp is None:
        msg = "`cost_fn` or `cost_fp` must be given; found neither"
        raise ValueError(msg)
    if fn is None:
        assert fp is not None
        return Costs(_one_minus("cost_fp", fp, "cost_fn"), fp)
    if fp is None:
        return Costs(fn, _one_minus("cost_fn", fn, "cost_fp"))
    largest = max(fn, fp)
    if largest == 0:
        msg = "`cost_fn` and `cost_fp` must not both be 0; found 0 and 0"
        raise ValueError(msg)
    # The larger is divided out first, since the sum may overflow.
    both = fn / largest + fp / largest
    return Costs(fn / largest / both, fp / largest / both)


def _one_minus(name: str, cost: float, other: str) -> float:
    if cost > 1:
        msg = f"`{name}` must be at most 1 where `{other}` is not given; found {cost:g}"
        raise ValueError(msg)
    return 1 - cost


def target_prevalence(value: float | None) -> float | None:
    """Check the prevalence in the target population; None is that of the data."""
    if value is None:
        return None
    return arguments.number("prevalence", value, low=0, high=1, open_ends=True)
