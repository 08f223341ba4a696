"""Cells of confusion matrices: sums over the rows of segments, by decision and label.

A row is selected where its score is at least the threshold. Functions return a column for each
segment; `sum_cells_at_each` returns a column for each segment at each of several thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.ranking.curve import CELLS
from polars_wroc.records import map_arrays
from polars_wroc.rows import Rows, Sampling, replicate_rows
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.rates import Count, Rate
from polars_wroc.steps import SegmentRows, round_to_type

_ValueT = TypeVar("_ValueT", bound=np.generic)
# The most cells of sampling units in memory at the same time.
_UNITS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Cells:
    """Sums of powers of weights, and numbers of rows, in the cells of confusion matrices.

    Arrays have a row for each of tp, fp, fn and tn, and a column for each segment, or for each
    segment at each threshold. With a design, ``units`` are the weights in each sampling unit: cell,
    unit, segment; with replicate weights, the first unit has the full weights, and each other one
    the weights of a replicate. All are NaN without a threshold.
    """

    weight: Array
    squares: Array
    cubes: Array
    rows: Array
    units: Array | None = None

    def __add__(self, other: Cells) -> Cells:
        """Add the cells of other rows in the same columns, with the same design if any."""
        units = None
        if self.units is not None and other.units is not None:
            units = self.units + other.units
        return Cells(
            self.weight + other.weight,
            self.squares + other.squares,
            self.cubes + other.cubes,
            self.rows + other.rows,
            units,
        )

    def count(self, cells: Sequence[str]) -> Count:
        """Return the rows in some cells."""
        places = [CELLS.index(cell) for cell in cells]
        weight, squares, rows = (
            values[places].sum(axis=0) for values in (self.weight, self.squares, self.rows)
        )
        return Count(weight, squares, rows)

    def rate(
        self, counted: Sequence[str], others: Sequence[str], units: SamplingUnits | None = None
    ) -> Rate:
        """Return the share of the cells ``counted`` in these and the ``others``.

        With the ``units`` of a design it has the design's variance and degrees of freedom.
        """
        whole = [*counted, *others]
        cubes = self.cubes[[CELLS.index(cell) for cell in whole]].sum(axis=0)
        rate = Rate(self.count(counted), self.count(others), cubes)
        if units is None:
            return rate
        influence = self.influence(units, counted, whole)
        return replace(rate, variance=units.variance(influence), design_df=units.df(influence))

    def influence(
        self, units: SamplingUnits, counted: Sequence[str], whole: Sequence[str]
    ) -> Influence:
        """Return the influences of sampling units on the share of some cells in others."""
        return units.ratio_influence(
            self.unit_weight(counted), self.unit_weight(whole), self.unit_present
        )

    def unit_weight(self, cells: Sequence[str]) -> Array:
        """Return the weight of some cells in each sampling unit of each segment."""
        assert self.units is not None
        return np.asarray(self.units[[CELLS.index(cell) for cell in cells]].sum(axis=0))

    @property
    def unit_present(self) -> Array:
        """The weight of each sampling unit in each segment, above 0 where it has rows there."""
        return self.unit_weight(CELLS)

    def combine(self, function: Callable[[Array], Array]) -> Cells:
        """Return cells whose sums are functions of these, for example of all other segments.

        The function combines values along the last axis, the axis of segments.
        """
        return map_arrays(self, function)  # type: ignore[no-any-return]

    def at(self, places: Ints | Mask | slice) -> Cells:
        """Return the cells of some columns."""
        return self.combine(lambda values: values[..., places])


def select_rows(
    rows: SegmentRows, threshold: Array | float, *, argument: str = "threshold"
) -> Mask:
    """Return whether each row's score is at least the threshold, one for all or by segment.

    Scores are compared in the type they came in. No row is selected at a threshold of NaN. A
    threshold inside a bin of scores is refused.
    """
    each = _repeat_for_rows(rows, round_to_type(threshold, rows.score_type))
    if rows.bins is not None:
        _refuse_inside_bins(rows.score, rows.bins.high, each, argument)
    return rows.score >= each


def sum_cells(rows: SegmentRows, selected: Mask, sample: Sampling | None = None) -> Cells:
    """Return the cells of each segment, given the selected rows; with units if sampled."""
    place = number_cells(rows, selected) * rows.number + rows.segment

    def total(values: Array | None) -> Array:
        return _add_up(place, values, len(CELLS), rows.number)

    units = None if sample is None else sum_unit_cells(rows, selected, sample)
    return _make_cells(rows, total, units)


def sum_cells_at(
    rows: SegmentRows,
    threshold: Array | float,
    sample: Sampling | None = None,
    *,
    selects: Mask | None = None,
    argument: str = "threshold",
) -> Cells:
    """Return the cells of each segment at a common threshold or its own.

    Without ``selects``, a segment has no selected row at any threshold: the threshold is infinite
    at the origin of a curve, but so may be a score.
    """
    selected = select_rows(rows, threshold, argument=argument)
    if selects is not None:
        selected &= _repeat_for_rows(rows, selects)
    cells = sum_cells(rows, selected, sample)
    is_known = ~np.isnan(threshold)
    return cells.combine(lambda values: np.where(is_known, values, np.nan))


def split_segments(
    rows: SegmentRows, sample: Sampling | None
) -> Iterator[tuple[slice, SegmentRows]]:
    """Yield a few segments at a time, so that cells of sampling units fit into memory."""
    at_once = max(rows.number, 1)
    if sample is not None:
        at_once = max(_UNITS_AT_ONCE // max(len(sample.stratum), 1), 1)
    for first in range(0, max(rows.number, 1), at_once):
        stop = min(first + at_once, rows.number)
        yield slice(first, stop), rows.between(first, stop)


def sum_decided_cells(rows: SegmentRows, call: Rows, sample: Sampling | None = None) -> Cells:
    """Return the cells of each segment by the decisions recorded in the rows of a call."""
    assert call.selected is not None
    return sum_cells(rows, call.selected[rows.order], sample)


def sum_cells_at_each(
    rows: SegmentRows,
    thresholds: Array,
    *,
    argument: str = "threshold",
) -> Cells:
    """Return the cells of each segment at each of several descending thresholds.

    All thresholds of a segment are contiguous.
    """
    ascending = round_to_type(thresholds[::-1], rows.score_type)
    if rows.bins is not None:
        for threshold in ascending:
            _refuse_inside_bins(rows.score, rows.bins.high, threshold, argument)
    number, reached = rows.number, len(thresholds) + 1
    # The number of thresholds that a row reaches, and at which it is selected.
    place = np.searchsorted(ascending, rows.score, side="right")
    place += rows.segment * reached
    place += (rows.weight < 0) * (number * reached)

    def total(values: Array | None) -> Array:
        sums = _add_up(place, values, 2, number * reached)
        return _cumulate_over_thresholds(sums.reshape(2, number, reached))

    return _make_cells(rows, total)


def sum_unit_cells(rows: SegmentRows, selected: Mask, sample: Sampling) -> Array:
    """Return the weight in each cell of each sampling unit of each segment.

    With replicate weights the first unit has the full weights, and each other unit the weights of a
    replicate.
    """
    cell = number_cells(rows, selected)
    number = rows.number
    if sample.replicates is None:
        units = len(sample.stratum)
        column = sample.unit[rows.order] * number + rows.segment
        place = cell * (units * number) + column
        sums = _add_up(place, np.abs(rows.weight), len(CELLS), units * number)
        return sums.reshape(len(CELLS), units, number)
    place = cell * number + rows.segment
    replicates = [
        _add_up(place, np.abs(each.weight), len(CELLS), number)
        for each in replicate_rows(sample, rows)
    ]
    return np.stack(replicates, axis=1)


def _make_cells(
    rows: SegmentRows, total: Callable[[Array | None], Array], units: Array | None = None
) -> Cells:
    """Return cells of rows, given a function that adds up or counts rows in each cell."""
    weight, counts = np.abs(rows.weight), rows.counts
    if counts is not None:
        squares, cubes = total(counts.squares), total(counts.cubes)
        return Cells(total(weight), squares, cubes, total(counts.n), units)
    power = weight**2
    squares = total(power)
    # In place, because arrays of many rows are slow to allocate
    power *= weight
    return Cells(total(weight), squares, total(power), total(None), units)


def _repeat_for_rows(rows: SegmentRows, values: NDArray[_ValueT]) -> NDArray[_ValueT]:
    """Return a value for each row, given one for all or one for each segment."""
    if values.size == 1:
        return values.reshape(1)
    return np.repeat(values, np.diff(rows.starts))


def number_cells(rows: SegmentRows, selected: Mask) -> Ints:
    """Return the number of the cell of each row."""
    return 2 * (~selected).astype(np.int64) + (rows.weight < 0)


def _add_up(place: Ints, values: Array | None, rows: int, columns: int) -> Array:
    """Return sums or counts of values in the cells of a table of a given shape."""
    sums = np.bincount(place, values, rows * columns)
    return sums.astype(np.float64, copy=False).reshape(rows, columns)


def _cumulate_over_thresholds(sums: Array) -> Array:
    """Return cells at descending thresholds, from sums by class, segment and thresholds reached."""
    # Added up from both ends, since a difference would lose digits.
    selected = sums[..., ::-1].cumsum(axis=-1)[..., :-1]
    rejected = sums.cumsum(axis=-1)[..., :-1][..., ::-1]
    return np.concatenate([selected, rejected]).reshape(len(CELLS), -1)


def _refuse_inside_bins(low: Array, high: Array, threshold: Array, argument: str) -> None:
    """Raise for a threshold with scores of one bin on both sides of it."""
    inside = np.flatnonzero((low < threshold) & (threshold <= high))
    if len(inside):
        place = inside[0]
        value = np.broadcast_to(threshold, low.shape)[place]
        found = f"{value} in one from {low[place]} to {high[place]}"
        checks.reject(argument, "not be inside a bin of scores", found)
