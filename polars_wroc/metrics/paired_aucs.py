"""AUCs of several scores on the same rows: from placement values to differences of two AUCs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints
from polars_wroc.metrics.auc_sums import auc_influences
from polars_wroc.rows import Rows, Sampling
from polars_wroc.stats.aucs import Auc
from polars_wroc.stats.designs import Influence, effective_carriers
from polars_wroc.stats.paired import PairedAuc, difference_influence
from polars_wroc.steps import SegmentRows, add_up, place_rows

# Placement values with a smaller relative difference are sums of the same weights, up to rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class ScoredRows:
    """Rows of segments with their placement values by several scores.

    ``misranked`` has for each score the complements of placement values: the share of the other
    class against which each row is ranked wrongly. The rows of a class of a segment are contiguous:
    ``starts`` are the places of the first positive and the first negative of each segment, followed
    by the number of rows. ``powers`` are the first four powers of the weights. With a design there
    is the ``unit`` of each row or, with replicate weights, the ``influences`` on each AUC.
    """

    keys: pl.DataFrame
    missing: Ints
    starts: Ints
    misranked: Mapping[str, Array]
    powers: tuple[Array, Array, Array, Array]
    n: Array
    sample: Sampling | None = None
    unit: Ints | None = None
    influences: Mapping[str, Influence] | None = None

    @cached_property
    def sums_of_powers(self) -> Array:
        """Sums of the powers of the weights: power, class, segment."""
        return np.stack([self.total(power) for power in self.powers])

    def total(self, values: Array) -> Array:
        """Return sums of values, in a row for positives and a row for negatives."""
        return add_up(values, self.starts).reshape(-1, 2).T

    def total_in_units(self, values: Array) -> tuple[Array, Array]:
        """Return sums of values over each sampling unit, of positives and of negatives."""
        assert self.sample is not None
        assert self.unit is not None
        groups, units = len(self.starts) - 1, len(self.sample.stratum)
        group = np.repeat(np.arange(groups), np.diff(self.starts))
        sums = np.bincount(self.unit * groups + group, values, units * groups)
        by_class = sums.astype(np.float64, copy=False).reshape(units, groups // 2, 2)
        return by_class[..., 0], by_class[..., 1]

    def complement(self, model: str) -> Array:
        """Return 1 - AUC of a score; NaN where a class has no weight."""
        weight = self.sums_of_powers[0, 0]
        misranked = self.total(self.powers[0] * self.misranked[model])[0]
        return np.asarray(np.clip(misranked / weight, 0.0, 1.0))

    def auc(self, model: str) -> Auc:
        """Return the AUC of a score with the moments of its variance."""
        x, complement = self.misranked[model], self.complement(model)
        weight, squares, cubes, _ = self.sums_of_powers
        return Auc.from_sums(
            1 - complement,
            complement,
            rows=self.n,
            weight=weight,
            squares=squares,
            cubes=cubes,
            first=self.total(self.powers[1] * x),
            second=self.total(self.powers[1] * x**2),
        )

    def difference(self, new: str, old: str) -> PairedAuc:
        """Return the AUC of one score minus the AUC of another."""
        x_old, x_new = self.misranked[old], self.misranked[new]
        d = x_old - x_new
        d = np.where(np.abs(d) <= _ROUNDING * np.maximum(x_old, x_new), 0.0, d)
        w, w2, _, w4 = self.powers
        weight, squares, cubes, _ = self.sums_of_powers
        paired = PairedAuc.from_sums(
            self.total(w * d)[0] / weight[0],
            weight=weight,
            squares=squares,
            cubes=cubes,
            first=self.total(w2 * d),
            second=self.total(w2 * d**2),
            fourth=self.total(w4 * d**4),
        )
        return paired if self.sample is None else self._add_design(paired, new, old, w * d)

    def _add_design(self, paired: PairedAuc, new: str, old: str, changes: Array) -> PairedAuc:
        """Return a difference with the variance of the design, given the changes of rows."""
        assert self.sample is not None
        units = self.sample.units
        if self.influences is not None:
            influence = self.influences[new] - self.influences[old]
            return paired.by_design(units.variance(influence), units.df(influence))
        unit_changes = self.total_in_units(changes)
        influence = difference_influence(self.total_in_units(self.powers[0]), unit_changes)
        carriers = effective_carriers(unit_changes[0]), effective_carriers(unit_changes[1])
        return paired.by_design(units.variance(influence), units.df(influence), carriers)


def require_all_scores(rows: Rows) -> Rows:
    """Return rows that count as missing for every score if they lack one."""
    have_all = ~np.logical_or.reduce([np.isnan(score) for score in rows.scores.values()])
    row_weight = rows.row_weight
    if row_weight is not None:
        row_weight = np.where(have_all, row_weight, np.nan)
    return replace(rows, weight=np.where(have_all, rows.weight, np.nan), row_weight=row_weight)


def have_same_scores(rows: Rows, one: str, other: str) -> bool:
    """Return whether two scores are the same in all complete rows."""
    complete = ~np.isnan(rows.weight)
    return np.array_equal(rows.scores[one][complete], rows.scores[other][complete])


def place_scores(rows: Rows, keys: Sequence[str], models: Sequence[str]) -> ScoredRows:
    """Return the rows of segments that have all scores, with their placement values."""
    segments = {model: rows.segments(keys, model) for model in models}
    first = segments[models[0]]
    # Rows have the same order in the segments of all scores.
    group = 2 * first.segment + (first.weight < 0)
    order = np.argsort(group, kind="stable")
    starts = np.append(0, np.bincount(group, minlength=2 * first.number).cumsum())
    powers = _raise_weights(first, order)
    n = first.n[order]
    unit, influences = None, None
    if rows.sample is not None and rows.sample.replicates is not None:
        influences = {model: auc_influences(rows, each) for model, each in segments.items()}
    elif rows.sample is not None:
        unit = rows.sample.unit[first.order][order]
    return ScoredRows(
        first.segments,
        first.missing,
        starts,
        {model: place_rows(each)[order] for model, each in segments.items()},
        powers,
        add_up(n, starts).reshape(-1, 2).T,
        rows.sample,
        unit,
        influences,
    )


def _raise_weights(rows: SegmentRows, order: Ints) -> tuple[Array, Array, Array, Array]:
    """Return the first four powers of the weights of rows in an order."""
    weight = np.abs(rows.weight)[order]
    if rows.counts is None:
        return weight, weight**2, weight**3, weight**4
    n, squares, cubes = rows.counts.at(order)
    # Each of the rows that a row stands for weighs 1.
    return weight, squares, cubes, n
