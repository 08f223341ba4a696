"""Influences of sampling units on rates, and their variances by the design of a survey."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import polars as pl

from polars_wroc.inputs.survey_design import Design
from polars_wroc.stats.design_variance import design_df, ratio_influence
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
    rates: Iterable[str], keys: Sequence[str], design: Design, name: Callable[[str], str] = str
) -> dict[str, pl.Expr]:
    """Columns of the influences of units, from their cells; ``name`` renames cells and rates.

    Null where the denominator of a rate is 0.
    """

    def weight_in(cells: Iterable[str]) -> pl.Expr:
        return pl.sum_horizontal(name(cell) for cell in cells)

    return {
        rate_influence(name(rate)): ratio_influence(
            weight_in(RATES[rate].counted), weight_in(RATES[rate].cells), keys, design
        )
        for rate in rates
    }
