"""Confusion matrices of sampling units, and the variances of rates that follow from them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import Design
from polars_wroc.stats.design_variance import linear_variances, unit_sums
from polars_wroc.thresholds.confusion_metrics import weights_in_cells
from polars_wroc.thresholds.rate_design import rate_influence, rate_influences, rate_variance
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.search import is_selected, rows_at


def rate_variances(cells: pl.LazyFrame, keys: Sequence[str], design: Design) -> pl.LazyFrame:
    """Compute the variance of each rate, `rate_variance`, from the cells of units."""
    influences = cells.with_columns(**rate_influences(RATES, keys, design))
    products = {rate_variance(rate): (rate_influence(rate), rate_influence(rate)) for rate in RATES}
    return linear_variances(influences, keys, design, products)


def unit_cells(rows: Rows, thresholds: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Compute the cells of each sampling unit or replicate of a group, at its thresholds."""
    assert rows.design is not None

    def cells(weight: pl.Expr) -> dict[str, pl.Expr]:
        inside = weights_in_cells(class_weights(weight), is_selected())
        return {name: of_row.sum() for name, of_row in inside.items()}

    return unit_sums(rows_at(rows, thresholds), keys, cells, rows.design)
