"""Limits of smooth functions of the cells of confusion matrices, by the delta method.

The influence of a row is the derivative of the function by the weight in its cell, where each cell
has half an effective row more, on the scale of the function's range. Arrays of cells have a row for
each of tp, fp, fn and tn, and a column for each segment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polars_wroc.stats.arrays import Array
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.estimates import Scale, Wald
from polars_wroc.stats.rates import Count

# Effective rows that are added to each cell.
_PSEUDO_ROWS = 0.5
# Relative change of a cell: a difference of numbers of about the same size keeps ten digits.
_STEP = 2.0**-17


@dataclass(frozen=True)
class CellFunction:
    """A function of the weights tp, fp, fn and tn, and the scale of its range."""

    formula: Callable[[Array, Array, Array, Array], Array]
    scale: Scale


@dataclass(frozen=True)
class CellValue:
    """Values of a function of cells, and on its scale its slopes by the weight in each cell.

    Slopes and the ``centre`` on the scale are those with pseudo-rows, each with the squared weight
    ``pseudo_square``. ``count`` are all rows, and ``squares`` their squared weights in each cell.
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
        """What the pseudo-rows add to the variance."""
        return np.asarray((self.slopes**2).sum(axis=0) * self.pseudo_square)

    def estimate(
        self, design_variance: Array | None = None, design_df: Array | float | None = None
    ) -> Wald:
        """Return the values with limits on the scale, by a design if its variance is given.

        By a design the variance is at least that of independent rows.
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


_PROPORTION, _CORRELATION, _RATIO = Scale(0.0, 1.0), Scale(-1.0, 1.0), Scale(0.0)


def _divide(part: Array, whole: Array) -> Array:
    return np.where(whole > 0, part / whole, np.nan)


def _mcc(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    # From rates, since a product of four weights may overflow: MCC = sqrt(PPV TPR TNR NPV)
    # - sqrt(FDR FNR FPR FOR)
    right = (
        _divide(tp, tp + fp) * _divide(tp, tp + fn) * _divide(tn, tn + fp) * _divide(tn, tn + fn)
    )
    wrong = (
        _divide(fp, tp + fp) * _divide(fn, tp + fn) * _divide(fp, tn + fp) * _divide(fn, tn + fn)
    )
    return np.asarray(np.sqrt(right) - np.sqrt(wrong))


def _youden(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return _divide(tp, tp + fn) - _divide(fp, fp + tn)


def _balanced_accuracy(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return (_divide(tp, tp + fn) + _divide(tn, fp + tn)) / 2


def _markedness(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return _divide(tp, tp + fp) + _divide(tn, tn + fn) - 1


def _f1(tp: Array, fp: Array, fn: Array, _: Array) -> Array:
    return _divide(2 * tp, 2 * tp + fp + fn)


def _f2(tp: Array, fp: Array, fn: Array, _: Array) -> Array:
    return _divide(5 * tp, 5 * tp + 4 * fn + fp)


def _jaccard(tp: Array, fp: Array, fn: Array, _: Array) -> Array:
    return _divide(tp, tp + fp + fn)


def _lift(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return _divide(_divide(tp, tp + fp), _divide(tp + fn, tp + fp + fn + tn))


def _positive_likelihood_ratio(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return _divide(_divide(tp, tp + fn), _divide(fp, fp + tn))


def _negative_likelihood_ratio(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    return _divide(_divide(fn, tp + fn), _divide(tn, fp + tn))


CELL_FUNCTIONS: dict[str, CellFunction] = {
    "balanced_accuracy": CellFunction(_balanced_accuracy, _PROPORTION),
    "f1": CellFunction(_f1, _PROPORTION),
    "f2": CellFunction(_f2, _PROPORTION),
    "jaccard": CellFunction(_jaccard, _PROPORTION),
    "mcc": CellFunction(_mcc, _CORRELATION),
    "youden": CellFunction(_youden, _CORRELATION),
    "markedness": CellFunction(_markedness, _CORRELATION),
    "lift": CellFunction(_lift, _RATIO),
    "lr_pos": CellFunction(_positive_likelihood_ratio, _RATIO),
    "lr_neg": CellFunction(_negative_likelihood_ratio, _RATIO),
}


def net_benefit(odds: Array | float) -> CellFunction:
    """Return the net benefit, in which a false positive costs the odds of the threshold."""

    def formula(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        total = tp + fp + fn + tn
        return _divide(tp, total) - _divide(fp, total) * odds

    return CellFunction(formula, Scale(-np.asarray(odds), 1.0))
