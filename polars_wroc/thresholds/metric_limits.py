"""Limits of metrics that are smooth functions of the four cells, by the delta method.

The influence of a row is the derivative of the metric by the weight in its cell. Derivatives are
central differences of the formula in the registry, on the scale of its range.
"""

from __future__ import annotations

import polars as pl

from polars_wroc.plans.formulas import Columns
from polars_wroc.ranking.curve import CELLS
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.thresholds.registry import Confusion


def matrix_of(
    threshold: pl.Expr, cells: Columns, predictive: tuple[pl.Expr, pl.Expr] | None = None
) -> Confusion[pl.Expr]:
    """Make a confusion matrix of its cells and the weights of both classes."""
    weights = (cells[name] for name in (*CELLS, POSITIVES, NEGATIVES))
    return Confusion(threshold, *weights, predictive=predictive)
