"""Confusion matrices of sampling units, and the variances of rates that follow from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import Design
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.stats.design_variance import linear_variances, unit_sums
from polars_wroc.thresholds.confusion_metrics import weights_in_cells
from polars_wroc.thresholds.rate_design import rate_influence, rate_influences, rate_variance
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.search import confusion_at, is_selected, rows_at


def rate_variances(
    cells: pl.LazyFrame,
    keys: Sequence[str],
    design: Design,
    rates: Collection[str] = tuple(RATES),
) -> pl.LazyFrame:
    """Compute the variance of each rate, `rate_variance`, from the cells of units."""
    influences = cells.with_columns(**rate_influences(rates, keys, design))
    products = {rate_variance(rate): (rate_influence(rate), rate_influence(rate)) for rate in rates}
    return linear_variances(influences, keys, design, products)


def unit_cells(rows: Rows, thresholds: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Compute the cells of each sampling unit or replicate of a group, at its thresholds."""
    assert rows.design is not None

    def cells(weight: pl.Expr) -> dict[str, pl.Expr]:
        inside = weights_in_cells(class_weights(weight), is_selected())
        return {name: of_row.sum() for name, of_row in inside.items()}

    return unit_sums(rows_at(rows, thresholds), keys, cells, rows.design)


def cells_of_groups(rows: Rows, thresholds: pl.LazyFrame) -> pl.LazyFrame:
    """Return the cells of each group, with the variances of rates if there is a design."""
    cells = confusion_at(rows, thresholds)
    if rows.design is None:
        return cells
    of_units = unit_cells(rows, thresholds, rows.keys)
    return join_on_keys(cells, rate_variances(of_units, rows.keys, rows.design), rows.keys)
