"""Sums over the rows of each combination of attributes, of which segments are sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.buckets import number_groups
from polars_wroc.inputs.metric import Metric
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.mean_sums import ROW_LOSSES, require_probabilities
from polars_wroc.metrics.segments import Decisions
from polars_wroc.ranking.curve import CELLS
from polars_wroc.records import map_arrays
from polars_wroc.rows import Rows
from polars_wroc.stats.part_means import CrossSums, ErrorSums, ValueSums
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import number_cells, select_rows
from polars_wroc.thresholds.registry import RateMetric

_UNIT = "__unit"


@dataclass(frozen=True)
class CrossedCells:
    """Sums over the rows of each combination of values of the attributes.

    In a sample a cell has the rows of one sampling ``unit``.
    """

    keys: pl.DataFrame
    sums: ValueSums | ErrorSums
    unit: Ints | None = None


def sum_crossed_cells(
    rows: Rows,
    keys: Sequence[str],
    model: str,
    metric: Metric,
    decisions: Decisions | None,
    precision: float,
) -> CrossedCells:
    """Return the sums over complete rows of each combination of the keys.

    A rate needs ``decisions``, and a loss the machine ``precision`` of the score.
    """
    complete = rows.complete(model)
    rows = rows if complete.all() else rows.at(complete)
    # In the order of the rows, since all are in one segment.
    together = rows.segments([], model)
    columns = rows.keys.select(keys)
    if rows.sample is not None:
        columns = columns.with_columns(pl.Series(_UNIT, rows.sample.unit))
    is_base = outcomes = None
    if isinstance(metric, RateMetric):
        is_base, outcomes = _find_outcomes(rows, together, metric, decisions)
        columns = columns.filter(is_base)
    else:
        require_probabilities(together.score)
    cells, cell = number_groups(columns)

    def total(values: Array) -> Array:
        counted = values if is_base is None else values[is_base]
        return np.bincount(cell, counted, cells.height).astype(np.float64, copy=False)

    sums: ValueSums | ErrorSums
    if outcomes is not None:
        n, weight, squares, cubes, first = (
            total(each) for each in (*_find_powers(together), outcomes)
        )
        # The powers of values that are 0 or 1 are the same.
        sums = ValueSums(n, weight, squares, cubes, first, first, first)
    elif metric.name == CALIBRATION_ERROR:
        sums = map_arrays(_find_errors(together), total)
    else:
        sums = map_arrays(_find_losses(together, metric, precision), total)
    unit = None if rows.sample is None else cells[_UNIT].to_numpy()
    return CrossedCells(cells.select(keys), sums, unit)


def _find_outcomes(
    rows: Rows, together: SegmentRows, metric: RateMetric, decisions: Decisions | None
) -> tuple[Mask, Array]:
    """Return which rows are in the denominator of a rate, and the weight that counts."""
    assert decisions is not None
    if decisions.recorded:
        assert rows.selected is not None
        selected = rows.selected
    else:
        selected = select_rows(together, decisions.threshold) & decisions.selects
    cell = number_cells(together, selected)
    is_counted, is_base = (np.isin(CELLS, names)[cell] for names in (metric.counted, metric.cells))
    return is_base, np.where(is_counted, np.abs(together.weight), 0.0)


def _find_errors(together: SegmentRows) -> ErrorSums:
    """Return what is summed over rows for calibration in the large."""
    n, weight, squares, cubes = _find_powers(together)
    score = together.score
    spread = score * (1 - score)
    return ErrorSums(
        n,
        weight,
        squares,
        first=weight * (score - (together.weight > 0)),
        promised=weight * score,
        spread=squares * spread,
        third=cubes * spread * (1 - 2 * score),
    )


def _find_losses(together: SegmentRows, metric: Metric, precision: float) -> ValueSums:
    """Return what is summed over rows for a mean loss."""
    n, weight, squares, cubes = _find_powers(together)
    loss = ROW_LOSSES[metric.name](together.score, together.weight > 0, precision)
    powers = weight * loss, weight * loss**2, weight * loss**3
    cross = CrossSums(squares * loss, squares * loss**2)
    return ValueSums(n, weight, squares, cubes, *powers, cross)


def _find_powers(together: SegmentRows) -> tuple[Array, Array, Array, Array]:
    """Return the number of rows that each row stands for, and the powers of its weight."""
    n, weight, squares = together.powers
    cubes = weight**3 if together.counts is None else together.counts.cubes
    return n, weight, squares, cubes
