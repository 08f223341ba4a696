"""Sums over the rows of each combination of attributes, which add up to segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.inputs.metric import Metric
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.mean_sums import ROW_LOSSES, require_probabilities
from polars_wroc.metrics.segments import Decisions
from polars_wroc.queries import collect
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows
from polars_wroc.stats.part_means import CrossSums, ErrorSums, ValueSums
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import number_cells, select_rows
from polars_wroc.thresholds.registry import RateMetric

_UNIT = "__unit"


@dataclass(frozen=True)
class CrossedCells:
    """Sums over the rows of each combination of values of the attributes.

    In a sample, a cell has the rows of one sampling ``unit``.
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
    # In the order of the rows, since all rows are in one segment.
    together = rows.segments([], model)
    columns = rows.keys.select(keys)
    if rows.sample is not None:
        columns = columns.with_columns(pl.Series(_UNIT, rows.sample.unit))
    sums: ValueSums | ErrorSums
    if isinstance(metric, RateMetric):
        is_base, outcomes = _find_outcomes(rows, together, metric, decisions)
        cells, found = _add_up_cells(columns, [*_find_powers(together), outcomes], is_base)
        # The powers of values that are 0 or 1 are the same.
        n, weight, squares, cubes, first = found
        sums = ValueSums(n, weight, squares, cubes, first, first, first)
    elif metric.name == CALIBRATION_ERROR:
        cells, found = _add_up_cells(columns, _find_errors(together))
        sums = ErrorSums(*found)
    else:
        cells, found = _add_up_cells(columns, _find_losses(together, metric, precision))
        n, weight, squares, cubes, first, second, third, *cross = found
        sums = ValueSums(n, weight, squares, cubes, first, second, third, CrossSums(*cross))
    unit = None if rows.sample is None else cells[_UNIT].to_numpy()
    return CrossedCells(cells.select(keys), sums, unit)


def _add_up_cells(
    columns: pl.DataFrame, values: Sequence[Array], taken: Mask | None = None
) -> tuple[pl.DataFrame, list[Array]]:
    """Return the cell of each row, of all rows or of some, and the sums of values."""
    names = [f"__value_{number}" for number in range(len(values))]
    arrays = [pl.Series(name, each) for name, each in zip(names, values, strict=True)]
    table = columns.with_columns(arrays).lazy()
    if taken is not None:
        table = table.filter(pl.Series(taken))
    # Always in the same order, which decides the last digits of the sums of cells
    sums = table.group_by(columns.columns).agg(pl.col(names).sum()).sort(columns.columns)
    cells = collect(sums, reproducible=True)
    return cells.select(columns.columns), [cells[name].to_numpy() for name in names]


def _find_outcomes(
    rows: Rows, together: SegmentRows, metric: RateMetric, decisions: Decisions | None
) -> tuple[Mask, Array]:
    """Return which rows are in the denominator of a rate, and the weight in its numerator."""
    assert decisions is not None
    if decisions.recorded:
        assert rows.selected is not None
        selected = rows.selected
    else:
        selected = select_rows(together, decisions.threshold) & decisions.selects
    cell = number_cells(together, selected)
    is_counted, is_base = (np.isin(CELLS, names)[cell] for names in (metric.counted, metric.cells))
    return is_base, np.where(is_counted, np.abs(together.weight), 0.0)


def _find_errors(together: SegmentRows) -> list[Array]:
    """Return the values that `ErrorSums` adds up over rows, for calibration in the large."""
    require_probabilities(together.score)
    n, weight, squares, cubes = _find_powers(together)
    score = together.score
    spread = score * (1 - score)
    first = weight * (score - (together.weight > 0))
    third = cubes * spread * (1 - 2 * score)
    return [n, weight, squares, first, weight * score, squares * spread, third]


def _find_losses(together: SegmentRows, metric: Metric, precision: float) -> list[Array]:
    """Return the values that are added up over rows for a mean loss: `ValueSums`, `CrossSums`."""
    require_probabilities(together.score)
    n, weight, squares, cubes = _find_powers(together)
    loss = ROW_LOSSES[metric.name](together.score, together.weight > 0, precision)
    powers = weight * loss, weight * loss**2, weight * loss**3
    return [n, weight, squares, cubes, *powers, squares * loss, squares * loss**2]


def _find_powers(together: SegmentRows) -> tuple[Array, Array, Array, Array]:
    """Return the number of rows that each row stands for, and the powers of its weight."""
    return (*together.powers, together.cubes)
