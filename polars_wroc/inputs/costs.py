"""The two costs of a wrong decision, and the prevalence that they are weighed with."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.inputs import arguments


class Costs(NamedTuple):
    """Costs of a false negative and of a false positive, as shares of both."""

    fn: float
    fp: float

    def expected(self, fnr: pl.Expr, fpr: pl.Expr, prevalence: pl.Expr | float) -> pl.Expr:
        """Write what a decision costs on average."""
        return self.fn * prevalence * fnr + self.fp * (1 - prevalence) * fpr


def read_costs(cost_fn: float | None, cost_fp: float | None) -> Costs:
    """Check the costs; with one of them given the other is what it lacks to 1."""
    fn, fp = (
        None if value is None else arguments.number(name, value, low=0, finite=True)
        for name, value in (("cost_fn", cost_fn), ("cost_fp", cost_fp))
    )
    if fn is None and fp is None:
        msg = "`cost_fn` or `cost_fp` must be given; found neither"
        raise ValueError(msg)
    if fn is None:
        assert fp is not None
        return Costs(_rest("cost_fp", fp, "cost_fn"), fp)
    if fp is None:
        return Costs(fn, _rest("cost_fn", fn, "cost_fp"))
    largest = max(fn, fp)
    if largest == 0:
        msg = "`cost_fn` and `cost_fp` must not both be 0; found 0 and 0"
        raise ValueError(msg)
    # The larger is divided out first, since the sum may be too large for a number.
    both = fn / largest + fp / largest
    return Costs(fn / largest / both, fp / largest / both)


def _rest(name: str, cost: float, other: str) -> float:
    if cost > 1:
        msg = f"`{name}` must be at most 1 where `{other}` is not given; found {cost:g}"
        raise ValueError(msg)
    return 1 - cost


def target_prevalence(value: float | None) -> float | None:
    """Check the share of positives in the population that is meant, if not the data's."""
    if value is None:
        return None
    return arguments.number("prevalence", value, low=0, high=1, open_ends=True)
