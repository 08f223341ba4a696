"""Sums over rows that have an old and a new score, from which the changes of metrics follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Mask
from polars_wroc.metrics.mean_sums import (
    ROW_LOSSES,
    count_classes,
    count_where,
    require_probabilities,
    sum_in_units,
    sum_values,
)
from polars_wroc.metrics.paired_aucs import place_scores
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows, Sampling
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.means import Mean
from polars_wroc.stats.paired import PairedAuc
from polars_wroc.stats.rates import Count
from polars_wroc.steps import SegmentRows

OLD_SCORE, NEW_SCORE = "old", "new"
# The pairs of cells a row may be in, by the old and by the new decision.
_OLD_CELLS = ("tp", "tp", "fn", "fn", "fp", "fp", "tn", "tn")
_NEW_CELLS = ("tp", "fn", "tp", "fn", "fp", "tn", "fp", "tn")


@dataclass(frozen=True)
class PairedRows:
    """Rows with an old and a new score; a row without both is missing.

    ``selected`` says which rows the old and the new score select. ``precisions`` are the machine
    precisions of both scores, at which logarithms are cut off.
    """

    rows: Rows
    selected: tuple[Mask, Mask] | None = None
    precisions: tuple[float, float] = (0.0, 0.0)

    def losses(self, name: str) -> tuple[Array, Array]:
        """Return the losses of rows by both scores; raise for one that is no probability."""
        complete, positive = ~np.isnan(self.rows.weight), self.rows.weight > 0
        scores = self.rows.scores[OLD_SCORE], self.rows.scores[NEW_SCORE]
        for model, score in zip((OLD_SCORE, NEW_SCORE), scores, strict=True):
            require_probabilities(score[complete], model)
        old, new = (
            ROW_LOSSES[name](score, positive, precision)
            for score, precision in zip(scores, self.precisions, strict=True)
        )
        return old, new


@dataclass(frozen=True)
class ValueChanges:
    """Changes of the values of rows in each segment, and the weighted means of the values.

    ``gained`` are the rows whose value rises, ``lost`` the rows whose value falls, among all rows
    with a value. ``size`` is the sum of w |d| of the changes d, and ``largest`` the largest |d|;
    changes between cells do not have it.
    """

    old: Array
    new: Array
    mean: Mean
    gained: Count
    lost: Count
    size: Array
    largest: Array | None = None


@dataclass(frozen=True)
class PairedCells:
    """Sums over the rows in each cell by the old decision and each cell by the new one.

    ``weight``, ``squares`` and ``rows`` have a row for each pair of cells and a column for each
    segment. With a design, ``unit_weights`` are the weights in its sampling ``units``: pair, unit,
    segment; with replicate weights, the first unit has the full weights, and each other one the
    weights of a replicate.
    """

    weight: Array
    squares: Array
    rows: Array
    units: SamplingUnits | None = None
    unit_weights: Array | None = None

    def count(self, old: Sequence[str] = CELLS, new: Sequence[str] = CELLS) -> Count:
        """Return the rows in some cells by the old decision and in some by the new one."""
        places = _find_pairs(old, new)
        weight, squares, rows = (
            values[places].sum(axis=0) for values in (self.weight, self.squares, self.rows)
        )
        return Count(weight, squares, rows)

    def weight_of_units(self, old: Sequence[str] = CELLS, new: Sequence[str] = CELLS) -> Array:
        """Return the weight of these rows in each sampling unit of each segment."""
        assert self.unit_weights is not None
        return np.asarray(self.unit_weights[_find_pairs(old, new)].sum(axis=0))

    def influence(self, part: Sequence[str], whole: Sequence[str], model: str) -> Influence:
        """Return the influences of units on the share of cells by the decision of one score."""
        assert self.units is not None
        part_weight, whole_weight = (
            self.weight_of_units(**{model: cells}) for cells in (part, whole)
        )
        return self.units.ratio_influence(part_weight, whole_weight, self.weight_of_units())

    def changes(self, values: Mapping[str, float]) -> ValueChanges:
        """Return the changes of rows' values, given the values of cells; other cells have none.

        Rows must have a value with both scores or with neither.
        """
        whole = self.count(old=[*values])
        old, new = (
            np.array([values.get(cell, 0.0) for cell in cells])
            for cells in (_OLD_CELLS, _NEW_CELLS)
        )
        d = new - old
        mean = Mean(whole, d @ self.weight, d @ self.squares, d**2 @ self.squares)
        if self.units is not None:
            assert self.unit_weights is not None
            changes = np.einsum("p,pus->us", d, self.unit_weights)
            with_values = self.weight_of_units(old=[*values])
            influence = self.units.ratio_influence(changes, with_values, self.weight_of_units())
            variance, df = self.units.variance(influence), self.units.df(influence)
            mean = replace(mean, design_variance=variance, design_df=df)
        return ValueChanges(
            old @ self.weight / whole.weight,
            new @ self.weight / whole.weight,
            mean,
            self._count_where(d > 0),
            self._count_where(d < 0),
            np.abs(d) @ self.weight,
        )

    def _count_where(self, pairs: Mask) -> Count:
        return Count(pairs @ self.weight, pairs @ self.squares, pairs @ self.rows)


def _find_pairs(old: Sequence[str], new: Sequence[str]) -> list[int]:
    pairs = enumerate(zip(_OLD_CELLS, _NEW_CELLS, strict=True))
    return [place for place, (before, after) in pairs if before in old and after in new]


@dataclass(frozen=True)
class AucChange:
    """The AUCs of both scores, and their difference."""

    old: Array
    new: Array
    difference: PairedAuc


@dataclass(frozen=True)
class PairedSegments:
    """Sums over the rows of segments; ``n`` are the numbers of positives and of negatives.

    Rows without a label count in ``all_cells``, for metrics that need no label.
    """

    keys: pl.DataFrame
    n: Array
    aucs: AucChange | None = None
    cells: PairedCells | None = None
    all_cells: PairedCells | None = None
    losses: Mapping[str, ValueChanges] = field(default_factory=dict)


def measure_pairs(
    paired: PairedRows, keys: Sequence[str], *, aucs: bool, losses: Iterable[str]
) -> PairedSegments:
    """Return the sums over the rows of each segment from which metrics and their changes follow."""
    rows = paired.rows
    segments = rows.segments(keys, OLD_SCORE)
    cells = all_cells = None
    if paired.selected is not None:
        old, new = (each[segments.order] for each in paired.selected)
        cells = all_cells = sum_paired_cells(segments, old, new, rows.sample)
        if rows.lack_labels:
            every = rows.ignore_labels().segments(keys, OLD_SCORE)
            old, new = (each[every.order] for each in paired.selected)
            all_cells = sum_paired_cells(every, old, new, rows.sample)
    return PairedSegments(
        segments.segments,
        count_classes(segments),
        _measure_auc_change(rows, keys) if aucs else None,
        cells,
        all_cells,
        {name: _sum_changes(segments, paired.losses(name), rows.sample) for name in losses},
    )


def _measure_auc_change(rows: Rows, keys: Sequence[str]) -> AucChange:
    placed = place_scores(rows, keys, (OLD_SCORE, NEW_SCORE))
    old, new = (1 - placed.complement(model) for model in (OLD_SCORE, NEW_SCORE))
    return AucChange(old, new, placed.difference(NEW_SCORE, OLD_SCORE))


def sum_paired_cells(
    rows: SegmentRows, old: Mask, new: Mask, sample: Sampling | None = None
) -> PairedCells:
    """Return the sums of each pair of cells, given which rows the old and the new score selects."""
    pair = 4 * (rows.weight < 0) + 2 * (~old).astype(np.int64) + ~new
    pairs, number = len(_OLD_CELLS), rows.number
    place = pair * number + rows.segment

    n, weight, squares = (
        np.bincount(place, values, pairs * number).astype(np.float64).reshape(pairs, number)
        for values in rows.powers
    )
    if sample is None:
        return PairedCells(weight, squares, n)
    units = np.stack([sum_in_units(rows, sample, pair == each) for each in range(pairs)])
    return PairedCells(weight, squares, n, sample.units, units)


def _sum_changes(
    rows: SegmentRows, values: tuple[Array, Array], sample: Sampling | None
) -> ValueChanges:
    """Return the changes of values, given the values of all rows by both scores."""
    old, new = (each[rows.order] for each in values)
    d, powers = new - old, rows.powers
    mean = sum_values(rows, d, sample).mean(None if sample is None else sample.units)
    largest = np.zeros(rows.number)
    np.maximum.at(largest, rows.segment, np.abs(d))
    return ValueChanges(
        rows.total(powers.weight * old) / mean.whole.weight,
        rows.total(powers.weight * new) / mean.whole.weight,
        mean,
        count_where(rows, powers, d > 0),
        count_where(rows, powers, d < 0),
        rows.total(powers.weight * np.abs(d)),
        largest,
    )
