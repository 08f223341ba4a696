"""Sums over the rows of segments, from which mean losses and mean scores follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from polars_wroc import checks
from polars_wroc.arrays import Array, Mask
from polars_wroc.inputs.columns import SCORE, score_column
from polars_wroc.inputs.frames import precision
from polars_wroc.queries import ROUNDING
from polars_wroc.records import map_arrays
from polars_wroc.rows import Columns, Rows, Sampling, replicate_rows
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.mean_differences import StandardizedSums, standardize
from polars_wroc.stats.means import Mean
from polars_wroc.stats.rates import Count
from polars_wroc.steps import RowPowers, SegmentRows


@dataclass(frozen=True)
class MeanSums:
    """Sums over the rows of segments, from which the weighted mean of values v follows.

    ``first`` is the sum of w v, ``cross`` of w^2 v and ``second`` of w^2 v^2. With a design,
    ``unit_whole`` and ``unit_first`` are the sums of w and of w v in each sampling unit; with
    replicate weights, the sums by the full weights, then by each replicate.
    """

    whole: Count
    first: Array
    cross: Array
    second: Array
    unit_whole: Array | None = None
    unit_first: Array | None = None

    def combine(self, function: Callable[[Array], Array]) -> MeanSums:
        """Return sums that are functions of these, for example the sums of all other segments."""
        return map_arrays(self, function)  # type: ignore[no-any-return]

    def mean(self, units: SamplingUnits | None = None) -> Mean:
        """Return the means, with variances and degrees of freedom of a design if there is one."""
        mean = Mean(self.whole, self.first, self.cross, self.second)
        if units is None:
            return mean
        influence = self.influence(units)
        return replace(
            mean, design_variance=units.variance(influence), design_df=units.df(influence)
        )

    def influence(self, units: SamplingUnits) -> Influence:
        """Return the influences of sampling units on the means."""
        assert self.unit_whole is not None
        assert self.unit_first is not None
        return units.ratio_influence(self.unit_first, self.unit_whole)


def sum_values(rows: SegmentRows, values: Array, sample: Sampling | None = None) -> MeanSums:
    """Return the sums over each segment of a value of each row."""
    n, weight, squares = rows.powers
    units: list[Array] = []
    if sample is not None:
        units = [sum_in_units(rows, sample, each) for each in (1.0, values)]
    return MeanSums(
        Count(rows.total(weight), rows.total(squares), rows.total(n)),
        rows.total(weight * values),
        rows.total(squares * values),
        rows.total(squares * values**2),
        *units,
    )


def count_classes(rows: SegmentRows) -> Array:
    """Return the numbers of positives and of negatives in each segment."""
    sides = np.stack([rows.weight > 0, rows.weight < 0]).astype(np.float64)
    return rows.total(sides if rows.counts is None else sides * rows.counts.n)


def count_where(rows: SegmentRows, powers: RowPowers, holds: Mask) -> Count:
    """Return the weight and the number of the rows of each segment where a condition holds."""
    n, weight, squares = (np.where(holds, each, 0.0) for each in powers)
    return Count(rows.total(weight), rows.total(squares), rows.total(n))


def sum_scores(
    rows: SegmentRows, sample: Sampling | None = None, *, count_weights: bool = False
) -> StandardizedSums:
    """Return the sums over each segment from which standardized mean differences follow.

    ``count_weights`` says that weights are numbers of rows.
    """
    number, weight, squares = rows.powers
    cubes = rows.cubes
    if count_weights and rows.counts is None:
        squares = cubes = weight
    whole = squares.sum()
    z = standardize(rows.score, weight, squares)
    powers = np.stack([z**power for power in range(5)])
    units = unit_squares = None
    if sample is not None:
        units = np.stack([sum_in_units(rows, sample, each) for each in powers[:3]])
        if sample.replicates is not None:
            weights = [np.abs(each.weight) for each in replicate_rows(sample, rows)]
            each_squared = weights if count_weights else [each**2 for each in weights]
            unit_squares = np.stack([rows.total(each) for each in each_squared])
    return StandardizedSums(
        rows.total(weight * powers[:3]),
        rows.total(squares * powers),
        rows.total(cubes / whole**1.5 * powers),
        rows.total(number),
        units,
        unit_squares,
    )


def sum_in_units(rows: SegmentRows, sample: Sampling, values: Array | Mask | float) -> Array:
    """Return sums of weights times values over the rows of each sampling unit and segment.

    With replicate weights they are the sums by the full weights, then by each replicate.
    """
    if sample.replicates is not None:
        weights = [np.abs(each.weight) for each in replicate_rows(sample, rows)]
        return np.stack([rows.total(np.asarray(weight * values)) for weight in weights])
    shape = len(sample.stratum), rows.number
    place = sample.unit[rows.order] * rows.number + rows.segment
    sums = np.bincount(place, np.abs(rows.weight) * values, shape[0] * shape[1])
    return sums.astype(np.float64, copy=False).reshape(shape)


def _square_errors(score: Array, is_positive: Mask, precision: float) -> Array:  # noqa: ARG001
    return np.asarray((score - is_positive) ** 2)


def _take_logarithms(score: Array, is_positive: Mask, precision: float) -> Array:
    inside = np.clip(score, precision, 1 - precision)
    return np.where(is_positive, -np.log(inside), -np.log1p(-inside))


# Losses of rows by their scores and classes. A score closer to 0 or 1 than the machine precision of
# its type is taken to be that far away.
ROW_LOSSES: dict[str, Callable[[Array, Mask, float], Array]] = {
    "brier_score": _square_errors,
    "log_loss": _take_logarithms,
}


def require_probabilities(score: Array, argument: str = "score", column: str | None = None) -> None:
    """Raise for a score that is not a probability, beyond rounding; NaN is missing."""
    invalid = score[(score < -ROUNDING) | (score > 1 + ROUNDING)]
    if len(invalid):
        where = "" if column is None else f" in column {column!r}"
        checks.reject(argument, "be a probability, from 0 to 1", f"{invalid[0]}{where}")


def require_all_probabilities(rows: Rows) -> None:
    """Raise for a row with a score, by any model, that is not a probability."""
    for model, score in rows.scores.items():
        require_probabilities(score, column=model)


def read_precision(columns: Columns) -> dict[str, float]:
    """Return the machine precision of the scores of each model, by their types."""
    schema = columns.plan.collect_schema()
    if columns.is_counted:
        return dict.fromkeys(columns.models, precision(schema[SCORE]))
    types = [schema[score_column(number)] for number in range(len(columns.models))]
    return {model: precision(dtype) for model, dtype in zip(columns.models, types, strict=True)}
