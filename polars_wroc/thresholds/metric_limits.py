"""Limits of metrics that are smooth functions of the four cells, by the delta method.

The influence of a row is the derivative of the metric by the weight in its cell. Derivatives are
central differences of the formula in the registry, on the scale of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.formulas import Columns, Fields, Formula, kept, max_of, when
from polars_wroc.ranking.curve import CELLS, ROWS, SQUARES
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    Estimate,
    Limits,
    Range,
    Transformed,
    is_exact,
    mixture,
    predictive_value,
)
from polars_wroc.thresholds.registry import Confusion, RateMetric, ThresholdMetric

# The cells of each class.
OF_POSITIVES, OF_NEGATIVES = ("tp", "fn"), ("fp", "tn")
# Effective rows that are added to each cell.
_PSEUDO_ROWS = 0.5
# Relative change of a cell: a difference of numbers of about the same size keeps ten digits.
_STEP = 2.0**-17


class Slopes(NamedTuple):
    """A metric with a pseudo-row in each cell, on its scale, and its slope by each cell."""

    centre: pl.Expr
    within: Range
    slopes: Sequence[pl.Expr]


@dataclass(frozen=True)
class SampledCells:
    """Weights in the cells, and their squares, from which a ``matrix`` of metrics is made.

    By a design with the ``covariance`` of the shares of two cells in the weight of all rows.
    """

    weights: Mapping[str, pl.Expr]
    squares: Mapping[str, pl.Expr]
    matrix: Callable[[Columns], Confusion]
    covariance: Callable[[str, str], pl.Expr] | None = None

    @property
    def total(self) -> pl.Expr:
        """The weight of all rows."""
        return sum_of(self.weights[cell] for cell in CELLS)

    @property
    def mean_weight(self) -> pl.Expr:
        """The mean weight of the rows, weighted by the weights; null if it is not exact."""
        squares = sum_of(self.squares[cell] for cell in CELLS)
        return when(is_exact(squares)).then(squares / self.total)

    def slopes(self, metrics: Sequence[ThresholdMetric]) -> Formula[dict[str, Slopes]]:
        """Differentiate metrics where each cell has half an effective row more."""
        added = _PSEUDO_ROWS * self.mean_weight
        cells = yield from kept({cell: self.weights[cell] + added for cell in CELLS})
        steps = [(cell, sign) for cell in CELLS for sign in (-1, 1)]
        changed = yield from kept({(c, sign): cells[c] * (1 + sign * _STEP) for c, sign in steps})
        middle = self.matrix(cells)
        matrices = {None: middle} | {at: self.matrix(cells | {at[0]: changed[at]}) for at in steps}
        # All metrics in the same steps, which takes less time to plan.
        values = yield from kept(
            {
                (metric.name, at): metric.formula(of)
                for metric in metrics
                for at, of in matrices.items()
            }
            # Columns, whether they are numbers or depend on the threshold.
            | {
                (metric.name, end): value + 0.0 * middle.total
                for metric in metrics
                for end, value in zip(Range._fields, metric.bounds(middle), strict=True)
            }
        )
        found = {}
        for name in [metric.name for metric in metrics]:
            within = Range(*(values[name, end] for end in Range._fields))
            at = {step: within.scaled(values[name, step]) for step in steps}
            slopes = [(at[c, 1] - at[c, -1]) / (2 * _STEP * cells[c]) for c in CELLS]
            found[name] = Slopes(within.scaled(values[name, None]), within, slopes)
        columns = [column for of in found.values() for column in (of.centre, *of.slopes)]
        columns = [*(yield columns)]
        return {
            name: Slopes(columns[first], of.within, columns[first + 1 : first + 5])
            for first, (name, of) in zip(range(0, len(columns), 5), found.items(), strict=True)
        }

    def variance(self, of: Slopes) -> pl.Expr:
        """Compute the variance of a metric on its scale; by a design at least that of rows."""
        pseudo = _PSEUDO_ROWS * self.mean_weight**2
        added = sum_of(slope**2 * pseudo for slope in of.slopes)
        of_rows = sum_of(
            slope**2 * self.squares[cell] for cell, slope in zip(CELLS, of.slopes, strict=True)
        )
        if self.covariance is None:
            return of_rows + added
        by_design = covariance_of(of, of, self.covariance) * self.total**2
        known = when(by_design.is_not_null())
        return known.then(max_of(by_design, of_rows) + added)

    def estimates(
        self, values: Mapping[str, pl.Expr], metrics: Sequence[ThresholdMetric]
    ) -> Formula[dict[str, Transformed]]:
        """Compute the errors of metrics whose values are known."""
        slopes = yield from self.slopes(metrics)
        return {name: self.estimate(values[name], of) for name, of in slopes.items()}

    def estimate(self, value: pl.Expr, of: Slopes) -> Transformed:
        """Compute the error of a metric."""
        return Transformed.of(value, of.within, of.centre, self.variance(of))


def matrix_of(
    threshold: pl.Expr, cells: Columns, predictive: tuple[pl.Expr, pl.Expr] | None = None
) -> Confusion:
    """Make a confusion matrix of its cells and the weights of both classes."""
    weights = (cells[name] for name in (*CELLS, POSITIVES, NEGATIVES))
    return Confusion(threshold, *weights, predictive=predictive)


def class_sums(cells: Columns) -> Columns:
    """Add up the cells of each class."""
    classes = {POSITIVES: OF_POSITIVES, NEGATIVES: OF_NEGATIVES}
    return {name: sum_of(cells[cell] for cell in of) for name, of in classes.items()}


def sum_of(terms: Iterable[pl.Expr]) -> pl.Expr:
    """Add up terms, none of which is null."""
    return reduce(add, terms)


def covariance_of(one: Slopes, other: Slopes, covariance: Callable[[str, str], pl.Expr]) -> pl.Expr:
    """Combine the covariances of cells to that of two metrics."""
    return sum_of(
        slope * another * covariance(cell, second)
        for cell, slope in zip(CELLS, one.slopes, strict=True)
        for second, another in zip(CELLS, other.slopes, strict=True)
    )


def lost_rows(field: Fields) -> pl.Expr:
    """Return 1 divided by the degrees of freedom of metrics of weighted rows; 0 for equal ones."""
    weights, squares, rows = (sum_of(map(field, names)) for names in (CELLS, SQUARES, ROWS))
    lost = squares / weights / weights - 1 / rows
    return when(lost >= EQUAL_WEIGHTS).then(lost).otherwise(0.0)


def rate_in_population(rate: RateMetric, tpr: Estimate, fpr: Estimate, prevalence: float) -> Limits:
    """Limit a rate where the proportion of positives is ``prevalence``.

    A rate of all rows is a mean of those of both classes, and a predictive value follows from their
    ratio; a rate of one class is the same in any population.
    """
    shares = {"tp": tpr, "fn": _complement(tpr), "fp": fpr, "tn": _complement(fpr)}
    if rate.sample_sizes == ("rows",):
        positives, negatives = (
            _sum_of([shares[cell] for cell in cells if cell in rate.counted], 0 * other.value)
            for cells, other in ((OF_POSITIVES, fpr), (OF_NEGATIVES, tpr))
        )
        return mixture(positives, negatives, prevalence)
    (counted,), (other,) = rate.counted, rate.others
    if rate.sample_sizes in {("positives",), ("negatives",)}:
        return Limits(shares[counted].low, shares[counted].high)
    odds = prevalence / (1 - prevalence)
    odds = odds if counted in OF_POSITIVES else 1 / odds
    return predictive_value(shares[counted], shares[other], odds)


def _complement(rate: Estimate) -> Estimate:
    return Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low)


def _sum_of(cells: list[Estimate], zero: pl.Expr) -> Estimate:
    """Add up the shares of some cells of one class: of none it is ``zero``, of both 1 more."""
    return cells[0] if len(cells) == 1 else Estimate(*(zero + float(bool(cells)),) * 3)
