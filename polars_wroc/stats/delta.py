"""Limits of smooth functions of confusion matrices, by the delta method.

The influence of a row is the derivative of the function with respect to the weight in its cell, on
the scale of the function's range, with half an effective row added to each cell. Arrays of cells
have a row for each of tp, fp, fn and tn, and a column for each segment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.estimates import Scale, Wald
from polars_wroc.stats.rates import Count

# Effective rows that are added to each cell.
_PSEUDO_ROWS = 0.5
# Relative change of a cell, at which a difference quotient keeps about ten digits.
_STEP = 2.0**-17


@dataclass(frozen=True)
class CellFunction:
    """A function of the weights tp, fp, fn and tn, and the scale of its range."""

    formula: Callable[[Array, Array, Array, Array], Array]
    scale: Scale


@dataclass(frozen=True)
class CellValue:
    """Values of a function of cells, and its slopes by the weight in each cell, on its scale.

    Slopes and the ``centre`` on the scale include pseudo-rows, each with the squared weight
    ``pseudo_square``. ``count`` has all rows, and ``squares`` the sums of squared weights in each
    cell.
    """

    value: Array
    centre: Array
    slopes: Array
    squares: Array
    pseudo_square: Array
    count: Count
    scale: Scale

    @property
    def row_variance(self) -> Array:
        """The variance of independent rows on the scale, without pseudo-rows."""
        return np.asarray((self.slopes**2 * self.squares).sum(axis=0))

    @property
    def pseudo_variance(self) -> Array:
        """The contribution of the pseudo-rows to the variance."""
        return np.asarray((self.slopes**2).sum(axis=0) * self.pseudo_square)

    def estimate(
        self, design_variance: Array | None = None, design_df: Array | float | None = None
    ) -> Wald:
        """Return the values with limits on the scale, given the variance of a design if any.

        With a design the variance is at least the variance of independent rows.
        """
        variance = self.row_variance
        if design_variance is not None:
            variance = np.maximum(design_variance, variance)
        df = 1 / self.count.inverse_df if design_df is None else design_df
        error = np.sqrt(variance + self.pseudo_variance)
        return Wald(self.value, error, self.scale, self.centre, df)

    def influence(
        self, units: SamplingUnits, cells: Array, present: Array | None = None
    ) -> Influence:
        """Return the influences of sampling units on the values, on the scale.

        ``cells`` are the weights in each cell, unit and segment.
        """
        # Z_u = sum_c slope_c W Z_uc, where Z_uc is the influence on the share of a cell in W
        whole = cells.sum(axis=0)
        slopes = self.slopes * self.count.weight
        influences: list[Influence] = [
            units.ratio_influence(cell, whole, present) * slope
            for slope, cell in zip(slopes, cells, strict=True)
        ]
        tp, fp, fn, tn = influences
        return tp + fp + fn + tn

    def covariance(self, other: CellValue, squares: Array) -> Array:
        """Return the covariance of two values on their scales, due to the rows of both.

        ``squares`` are the squared weights of these rows in each cell.
        """
        return np.asarray((self.slopes * other.slopes * squares).sum(axis=0))


def evaluate(function: CellFunction, weight: Array, squares: Array, rows: Array) -> CellValue:
    """Return the values of a function of cells with their slopes.

    The arguments are sums of weights, of squared weights and numbers of rows in each cell.
    """
    count = Count(weight.sum(axis=0), squares.sum(axis=0), rows.sum(axis=0))
    # The mean weight of rows, weighted by the weights; NaN where their squares are not exact
    mean = count.inverse_size * count.weight
    cells = weight + _PSEUDO_ROWS * mean
    slopes = []
    for number in range(len(cells)):
        places = []
        for factor in (1 - _STEP, 1 + _STEP):
            changed = cells.copy()
            changed[number] *= factor
            places.append(function.scale.transform(function.formula(*changed)))
        # Central difference
        slopes.append((places[1] - places[0]) / (2 * _STEP * cells[number]))
    return CellValue(
        value=function.formula(*weight),
        centre=function.scale.transform(function.formula(*cells)),
        slopes=np.stack(slopes),
        squares=squares,
        pseudo_square=_PSEUDO_ROWS * mean**2,
        count=count,
        scale=function.scale,
    )
