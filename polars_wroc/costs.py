"""The two costs of a wrong decision, and the prevalence that they are weighed with."""

from __future__ import annotations

import sys
from typing import NamedTuple

import polars as pl

from polars_wroc import options

_LARGEST = sys.float_info.max


class Costs(NamedTuple):
    """Costs of a false negative and of a false positive, as shares of both."""

    fn: float
    fp: float

    def expected(self, fnr: pl.Expr, fpr: pl.Expr, prevalence: pl.Expr | float) -> pl.Expr:
        """Write what a decision costs on average."""
        return self.fn * prevalence * fnr + self.fp * (1 - prevalence) * fpr


def read_costs(cost_fn: float | None, cost_fp: float | None) -> Costs:
    """Check the costs; with one of them given the other is what it lacks to 1."""
    if cost_fn is None and cost_fp is None:
        msg = "`cost_fn` or `cost_fp` must be given; found neither"
        raise ValueError(msg)
    if cost_fn is None:
        fp = options.number("cost_fp", cost_fp, low=0, high=1)
        return Costs(1 - fp, fp)
    if cost_fp is None:
        fn = options.number("cost_fn", cost_fn, low=0, high=1)
        return Costs(fn, 1 - fn)
    fn = options.number("cost_fn", cost_fn, low=0, high=_LARGEST)
    fp = options.number("cost_fp", cost_fp, low=0, high=_LARGEST)
    largest = max(fn, fp)
    if largest == 0:
        msg = "`cost_fn` and `cost_fp` must not both be 0; found 0 and 0"
        raise ValueError(msg)
    # The larger is divided out first, since the sum may be too large for a number.
    both = fn / largest + fp / largest
    return Costs(fn / largest / both, fp / largest / both)


def target_prevalence(value: float | None) -> float | None:
    """Check the share of positives in the population that is meant, if not the data's."""
    if value is None:
        return None
    return options.number("prevalence", value, low=0, high=1, open_ends=True)
