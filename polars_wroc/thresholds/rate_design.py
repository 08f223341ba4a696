"""Influences of sampling units on rates, and their variances by the design of a survey."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import polars as pl

from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.design_variance import design_df, residual
from polars_wroc.stats.proportions import RatesByDesign
from polars_wroc.thresholds.registry import RATES


def rate_variance(rate: str) -> str:
    """Column of the variance of a rate."""
    return f"__design_variance_{rate}"


def rate_influence(rate: str) -> str:
    """Column of the influence of a sampling unit on a rate."""
    return f"__influence_{rate}"


# How `Proportions` use these columns.
BY_DESIGN = RatesByDesign(lambda rate, field: field(rate_variance(rate)), design_df)


def rate_influences(
    rates: Iterable[str], keys: Sequence[str], name: Callable[[str], str] = str
) -> list[Step]:
    """Steps from the cells of units to their influences; ``name`` renames cells and rates.

    Null where the denominator of a rate is 0.
    """
    parts = {rate: (RATES[rate].counted, RATES[rate].cells) for rate in rates}

    def in_unit(cells: Iterable[str], field: Fields) -> pl.Expr:
        return pl.sum_horizontal(field(name(cell)) for cell in cells)

    def totals(field: Fields) -> dict[str, pl.Expr]:
        return {
            _total(part, name(rate)): over(in_unit(cells, field).sum(), keys)
            for rate, both in parts.items()
            for part, cells in zip(("counted", "all"), both, strict=True)
        }

    def influences(field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for rate, (counted, cells) in parts.items():
            of_counted, of_all = (field(_total(part, name(rate))) for part in ("counted", "all"))
            expected = of_counted / of_all * in_unit(cells, field)
            left = residual(in_unit(counted, field), expected)
            columns[rate_influence(name(rate))] = pl.when(of_all > 0).then(left / of_all)
        return columns

    return [totals, influences]


def _total(part: str, rate: str) -> str:
    return f"__{part}_total_{rate}"
