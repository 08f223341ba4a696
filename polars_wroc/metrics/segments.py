"""Sums over the segments of a partition, from which all compared metrics follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.buckets import number_groups
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY
from polars_wroc.metrics.auc_sums import AucSums, auc_influences, estimate_aucs, measure_aucs
from polars_wroc.metrics.mean_sums import (
    ROW_LOSSES,
    MeanSums,
    count_classes,
    require_probabilities,
    sum_scores,
    sum_values,
)
from polars_wroc.records import join_records, map_arrays
from polars_wroc.rows import Rows
from polars_wroc.stats.aucs import Auc
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.mean_differences import StandardizedSums
from polars_wroc.stats.rates import Rate
from polars_wroc.steps import OutsideWeights, SegmentRows, find_changes
from polars_wroc.thresholds.cells import Cells, sum_cells_at, sum_decided_cells
from polars_wroc.thresholds.registry import RateMetric, ThresholdMetric


@dataclass(frozen=True)
class Decisions:
    """The decisions on rows: by a ``threshold`` of the score, or recorded ones.

    If not ``selects``, no row is selected.
    """

    threshold: float = np.nan
    selects: bool = True
    recorded: bool = False


@dataclass(frozen=True)
class Needs:
    """The sums to measure in each segment.

    ``losses`` are names of mean losses, which depend on the machine ``precision`` of the scores of
    each model. If ``count_weights``, weights are numbers of rows, with a design too.
    """

    aucs: bool = True
    decisions: Decisions | None = None
    losses: Sequence[str] = ()
    scores: bool = False
    precision: Mapping[str, float] = field(default_factory=dict)
    count_weights: bool = False


@dataclass(frozen=True)
class Segments:
    """The segments of a partition: their keys, and sums over their rows.

    ``rows`` are the numbers of positives and of negatives. With a design there are its ``units``,
    the ``influence`` of each on the AUCs, and the cells of each. Rows without a label count in
    ``all_rows``, ``all_cells`` and ``scores``, for metrics that need no label.
    """

    keys: pl.DataFrame
    rows: Array
    missing: Array
    aucs: AucSums | None = None
    cells: Cells | None = None
    decisions: Decisions | None = None
    units: SamplingUnits | None = None
    influence: Influence | None = None
    losses: Mapping[str, MeanSums] = field(default_factory=dict)
    scores: StandardizedSums | None = None
    # None where all rows have a label.
    all_rows: Array | None = None
    all_cells: Cells | None = None

    @property
    def number(self) -> int:
        """The number of segments."""
        return int(self.rows.shape[-1])

    def have_rows(self, metric: Metric) -> Mask:
        """Return whether each segment has rows that a metric can use."""
        return self._count("rows", metric) > 0

    def same_decision(self, metric: ThresholdMetric) -> str | None:
        """Return why a metric says nothing: all rows that it can use have the same decision."""
        cells = self.cells_of(metric)
        selected, rejected = (
            cells.count(names).rows.sum() for names in (("tp", "fp"), ("fn", "tn"))
        )
        if selected == 0 and rejected > 0:
            return NOBODY
        return EVERYBODY if rejected == 0 and selected > 0 else None

    def at(self, places: slice) -> Segments:
        """Return some of the segments."""
        sums = replace(self, keys=self.keys[places], units=None)
        taken: Segments = map_arrays(sums, lambda values: values[..., places])
        return replace(taken, units=self.units)

    def cells_of(self, metric: Metric) -> Cells:
        """Return the cells from which a metric of decisions is computed."""
        assert self.cells is not None
        return self.cells if metric.needs_label or self.all_cells is None else self.all_cells

    def sizes(self, metric: Metric) -> dict[SampleSize, Array]:
        """Return the numbers of rows of each kind that a metric uses."""
        return {kind: self._count(kind, metric) for kind in metric.sample_sizes}

    def _count(self, kind: SampleSize, metric: Metric) -> Array:
        if kind == "rows":
            if self.all_rows is not None and not metric.needs_label:
                return self.all_rows
            return np.asarray(self.rows.sum(axis=0))
        if kind in ("positives", "negatives"):
            return np.asarray(self.rows[0 if kind == "positives" else 1])
        cells = self.cells_of(metric)
        return cells.count(("tp", "fp") if kind == "selected" else ("fn", "tn")).rows

    def rates(self, metrics: Sequence[RateMetric]) -> Rate:
        """Return rates of decisions, all segments of one after another."""
        return join_records(
            [
                self.cells_of(metric).rate(metric.counted, metric.others, self.units)
                for metric in metrics
            ]
        )

    @property
    def auc(self) -> Auc:
        """The AUCs of the segments, with all that limits and tests need."""
        assert self.aucs is not None
        if self.units is None:
            return estimate_aucs(self.aucs)
        assert self.influence is not None
        variance = self.units.variance(self.influence)
        return estimate_aucs(self.aucs, variance, self.units.df(self.influence))


@dataclass(frozen=True)
class Numbering:
    """The keys of segments, and the segment's number for each of the finest segments."""

    keys: pl.DataFrame
    number: Ints

    @classmethod
    def of(cls, finest: pl.DataFrame, keys: Sequence[str]) -> Numbering:
        """Return the segments with the same values of some keys of the finest segments."""
        if not keys:
            return cls(pl.DataFrame(), np.zeros(finest.height, np.int64))
        return cls(*number_groups(finest.select(keys)))

    @classmethod
    def from_finest(cls, finest: pl.DataFrame) -> Numbering:
        """Return the finest segments themselves."""
        return cls(finest, np.arange(finest.height))

    @classmethod
    def from_parts(cls, keys: Sequence[pl.DataFrame]) -> Numbering:
        """Return the segments that occur in parts of the rows, for example in ranges of scores.

        The finest segments are the segments of all parts, one after another.
        """
        if not keys[0].width:
            return cls(pl.DataFrame(), np.zeros(len(keys), np.int64))
        return cls(*number_groups(pl.concat(keys, how="vertical_relaxed")))

    @property
    def size(self) -> int:
        """The number of segments."""
        return self.keys.height if self.keys.width else 1

    @property
    def is_finest(self) -> bool:
        """Whether each segment is one of the finest, in their order."""
        return np.array_equal(self.number, np.arange(len(self.number)))

    def add(self, values: Array) -> Array:
        """Add up values of the finest segments over each segment, along the last axis."""
        return self._combine(values, np.add)

    def largest(self, values: Array) -> Array:
        """Return the largest value, 0 or more, of the finest segments in each segment."""
        return self._combine(values, np.fmax)

    def _combine(self, values: Array, combine: np.ufunc) -> Array:
        order, starts = self._order
        if not len(starts):
            return np.zeros((*values.shape[:-1], self.size))
        combined: Array = combine.reduceat(values[..., order], starts, axis=-1)
        return combined

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """The order of the finest segments by segment, and the first place of each segment."""
        order = np.argsort(self.number, kind="stable")
        return order, np.flatnonzero(find_changes(self.number[order]))


def measure_segments(
    rows: Rows,
    keys: Sequence[str],
    model: str,
    needs: Needs,
    outside: Callable[[SegmentRows], OutsideWeights] | None = None,
) -> Segments:
    """Return the sums over the rows of each segment, by one of the scores.

    If the rows are a range of scores, ``outside`` returns the weights in other ranges.
    """
    segments = rows.segments(keys, model, ranks=needs.aucs)
    if outside is not None:
        segments = replace(segments, outside=outside(segments))
    if segments.bins is not None:
        segments = replace(segments, bins=segments.bins.merge_scores(segments.score))
    # Once more without labels, but in the same segments.
    unlabeled = rows.ignore_labels() if rows.lack_labels else rows
    every = unlabeled.segments(keys, model) if rows.lack_labels else segments
    sums = measure_aucs(segments) if needs.aucs else None
    sample, influence = rows.sample, None
    if needs.aucs and sample is not None:
        influence = auc_influences(rows, segments)
    return Segments(
        segments.segments,
        count_classes(segments) if sums is None else sums.n,
        segments.missing.astype(np.float64),
        sums,
        sum_decisions(rows, segments, needs.decisions),
        needs.decisions,
        None if sample is None else sample.units,
        influence,
        _sum_losses(rows, segments, model, needs),
        sum_scores(every, sample, count_weights=needs.count_weights) if needs.scores else None,
        count_classes(every).sum(axis=0) if rows.lack_labels else None,
        sum_decisions(unlabeled, every, needs.decisions) if rows.lack_labels else None,
    )


def sum_decisions(rows: Rows, segments: SegmentRows, decisions: Decisions | None) -> Cells | None:
    """Return the cells of each segment and, with a design, of its sampling units."""
    if decisions is None:
        return None
    if decisions.recorded:
        return sum_decided_cells(segments, rows, rows.sample)
    selects = None if decisions.selects else np.zeros(segments.number, dtype=bool)
    return sum_cells_at(segments, decisions.threshold, rows.sample, selects=selects)


def _sum_losses(rows: Rows, segments: SegmentRows, model: str, needs: Needs) -> dict[str, MeanSums]:
    if not needs.losses:
        return {}
    require_probabilities(rows.scores[model], column=model)
    is_positive, precision = segments.weight > 0, needs.precision[model]
    return {
        name: sum_values(
            segments, ROW_LOSSES[name](segments.score, is_positive, precision), rows.sample
        )
        for name in needs.losses
    }
