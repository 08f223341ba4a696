"""Confusion matrices of sampling units, and the variances of rates that follow from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import SurveyDesign
from polars_wroc.plans.steps import in_columns
from polars_wroc.ranking.curve import CELLS
from polars_wroc.stats.design_variance import linear_variances, unit_totals
from polars_wroc.thresholds.confusion_metrics import weights_in_cells
from polars_wroc.thresholds.rate_design import rate_influence, rate_influences, rate_variance
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.search import is_selected, rows_at


def rate_variances(
    cells: pl.LazyFrame,
    keys: Sequence[str],
    design: SurveyDesign,
    rates: Collection[str] = tuple(RATES),
) -> pl.LazyFrame:
    """Compute the variance of each rate, `rate_variance`, from the cells of units."""
    influences = in_columns(cells, rate_influences(rates, keys))
    products = {rate_variance(rate): (rate_influence(rate), rate_influence(rate)) for rate in rates}
    return linear_variances(influences, keys, design, products)


def unit_cells(rows: Rows, thresholds: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Compute the cells of each sampling unit with rows of a group, at its thresholds."""
    cells = weights_in_cells(class_weights(pl.col(WEIGHT)), is_selected())
    sums = {name: weight.sum() for name, weight in cells.items()}
    totals = unit_totals(rows_at(rows, thresholds), keys, sums)
    return totals.filter(pl.sum_horizontal(CELLS) > 0)
