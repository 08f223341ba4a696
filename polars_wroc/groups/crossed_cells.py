"""Sums over the rows of each combination of attributes, of which segments are sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    In a sample a cell has the rows of one sampling ``unit``.
    """

    keys: pl.DataFrame
    sums: ValueSums | ErrorSums
    unit: Ints | None = None


@dataclass(frozen=True)
class SearchNeeds:
    """The metric of a search, with the decisions that a rate needs.

    A loss needs the machine ``precision`` of the score.
    """

    metric: Metric
    decisions: Decisions | None
    precision: float


def sum_crossed_cells(
    rows: Rows, keys: Sequence[str], model: str, needs: SearchNeeds
) -> CrossedCells:
    """Return the sums over complete rows of each combination of the keys."""
    complete = rows.complete(model)
    rows = rows if complete.all() else rows.at(complete)
    # In the order of the rows, since all are in one segment.
    together = rows.segments([], model)
    taken: Mask | None = None
    if isinstance(needs.metric, RateMetric):
        taken, values = _find_outcomes(rows, together, needs.metric, needs.decisions)
    elif needs.metric.name == CALIBRATION_ERROR:
        require_probabilities(together.score)
        values = _find_errors(together)
    else:
        require_probabilities(together.score)
        values = _find_losses(together, needs)
    return _add_up_cells(rows, keys, values, taken)


def _find_outcomes(
    rows: Rows, together: SegmentRows, metric: RateMetric, decisions: Decisions | None
) -> tuple[Mask, dict[str, Array]]:
    """Return which rows are in the denominator of a rate, and what is summed over these."""
    assert decisions is not None
    if decisions.recorded:
        assert rows.selected is not None
        selected = rows.selected
    else:
        selected = select_rows(together, decisions.threshold) & decisions.selects
    cell = number_cells(together, selected)
    is_counted, is_base = (np.isin(CELLS, names)[cell] for names in (metric.counted, metric.cells))
    powers = _find_powers(together)
    return is_base, powers | {"first": np.where(is_counted, powers["weight"], 0.0)}


def _find_errors(together: SegmentRows) -> dict[str, Array]:
    """Return what is summed over rows for calibration in the large."""
    powers = _find_powers(together)
    weight, squares, cubes = (powers[name] for name in ("weight", "squares", "cubes"))
    score = together.score
    spread = score * (1 - score)
    return {
        "n": powers["n"],
        "weight": weight,
        "squares": squares,
        "first": weight * (score - (together.weight > 0)),
        "promised": weight * score,
        "spread": squares * spread,
        "third": cubes * spread * (1 - 2 * score),
    }


def _find_losses(together: SegmentRows, needs: SearchNeeds) -> dict[str, Array]:
    """Return what is summed over rows for a mean loss."""
    powers = _find_powers(together)
    loss = ROW_LOSSES[needs.metric.name](together.score, together.weight > 0, needs.precision)
    weight, squares = powers["weight"], powers["squares"]
    return powers | {
        "first": weight * loss,
        "second": weight * loss**2,
        "third": weight * loss**3,
        "cross_first": squares * loss,
        "cross_second": squares * loss**2,
    }


def _find_powers(together: SegmentRows) -> dict[str, Array]:
    """Return the number of rows that each row stands for, and the powers of its weight."""
    weight = np.abs(together.weight)
    if together.counts is None:
        number, squares, cubes = np.ones(len(weight)), weight**2, weight**3
    else:
        number, squares, cubes = together.counts
    return {"n": number, "weight": weight, "squares": squares, "cubes": cubes}


def _add_up_cells(
    rows: Rows, keys: Sequence[str], values: Mapping[str, Array], taken: Mask | None
) -> CrossedCells:
    columns = [pl.Series(name, each) for name, each in values.items()]
    groups = [*keys]
    if rows.sample is not None:
        columns.append(pl.Series(_UNIT, rows.sample.unit))
        groups.append(_UNIT)
    table = rows.keys.select(keys).with_columns(columns).lazy()
    if taken is not None:
        table = table.filter(pl.Series(taken))
    # In one order, which decides the last digits of sums of cells
    sums = table.group_by(groups).agg(pl.col(*values).sum()).sort(groups)
    cells = collect(sums, reproducible=True)
    unit = None if rows.sample is None else cells[_UNIT].to_numpy()
    return CrossedCells(cells.select(keys), _read_sums(cells.select([*values])), unit)


def _read_sums(cells: pl.DataFrame) -> ValueSums | ErrorSums:
    """Return the sums of cells; the powers of values that are 0 or 1 are the same."""
    sums: dict[str, Any] = {each.name: each.to_numpy() for each in cells}
    if "promised" in sums:
        return ErrorSums(**sums)
    if "second" not in sums:
        return ValueSums(**sums, second=sums["first"], third=sums["first"])
    cross = CrossSums(sums.pop("cross_first"), sums.pop("cross_second"))
    return ValueSums(**sums, cross=cross)
