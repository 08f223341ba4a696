"""Rows of an audit from the highest score down, and the sums over those of its segments.

The finest segments are those of all attributes crossed. Sums that do not depend on ranks are taken
over these once and added up; AUCs and curves are those of the rows of each segment. A part of the
rows, in a range of scores, gives parts of the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.groups.categories import Grouping
from polars_wroc.metrics.auc_sums import AucSums, auc_influences, sum_reached
from polars_wroc.metrics.calibration import (
    FEW_ROWS,
    CalibrationSlopes,
    CalibrationSums,
    LogitBins,
    bin_logits,
    fit_slopes,
    sum_calibration,
)
from polars_wroc.metrics.segments import Decisions, Segments, count_classes
from polars_wroc.rows import Rows, number_groups
from polars_wroc.stats.designs import Influence
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import (
    OutsideWeights,
    RowCounts,
    ScoreBins,
    SegmentRows,
    Steps,
    add_blocks,
    map_steps,
)
from polars_wroc.thresholds.cells import Cells, sum_cells_at, sum_decided_cells
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.rules import Rule

CURVE_POINTS = 200
# Their ends and the origin are so many points.
_PARTS = (CURVE_POINTS - 1) // 2
# Points are in a part that they are so little beyond, in parts.
_ROUNDING = 5e-10
_MAXIMA = frozenset({"distance"})
# From so many rows on the sort is worth threads.
_MANY_ROWS = 1 << 18
RecordT = TypeVar("RecordT")


class FinestSegments(NamedTuple):
    """The keys of the finest segments, sorted, and the number of each row's segment."""

    keys: pl.DataFrame
    number: Ints


def number_finest(keys: pl.DataFrame) -> FinestSegments:
    """Return the finest segments of rows, given all their keys."""
    if keys.height == 0 or keys.width == 0:
        return FinestSegments(*number_groups(keys))
    values, code, size = [], np.zeros(keys.height, np.int64), 1
    for key in keys.columns:
        distinct, of_key = _number_values(keys[key])
        values.append(distinct)
        code = code * len(distinct) + of_key
        size *= len(distinct)
        if size > keys.height:
            return FinestSegments(*number_groups(keys))
    there = np.bincount(code, minlength=size) > 0
    places = np.unravel_index(np.flatnonzero(there), [len(each) for each in values])
    finest = pl.DataFrame([each[place] for each, place in zip(values, places, strict=True)])
    return FinestSegments(finest, (there.cumsum() - 1)[code])


def _number_values(values: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the distinct values of a column, sorted, and the number of each row's value."""
    if values.dtype != pl.String:
        groups, number = number_groups(values.to_frame())
        return groups.to_series(), number
    distinct = values.unique().sort()
    known = distinct.drop_nulls()
    # Null comes first.
    code = values.cast(pl.Enum(known)).to_physical().cast(pl.Int64)
    return distinct, (code + len(distinct) - len(known)).fill_null(0).to_numpy()


class Numbering(NamedTuple):
    """The keys of segments, and the number of the segment that has each of the finest ones."""

    keys: pl.DataFrame
    number: Ints

    @classmethod
    def of(cls, finest: pl.DataFrame, keys: Sequence[str]) -> Numbering:
        """Return the segments with the same values of some keys of the finest ones."""
        if not keys:
            return cls(pl.DataFrame(), np.zeros(finest.height, np.int64))
        return cls(*number_groups(finest.select(keys)))

    @property
    def size(self) -> int:
        """The number of segments."""
        return self.keys.height if self.keys.width else 1

    def add(self, values: Array) -> Array:
        """Add up values of the finest segments over each segment, along the last axis."""
        order = np.argsort(self.number, kind="stable")
        starts = np.flatnonzero(np.diff(self.number[order], prepend=-1))
        if not len(starts):
            return np.zeros((*values.shape[:-1], self.size))
        return np.add.reduceat(values[..., order], starts, axis=-1)


@dataclass(frozen=True)
class DescendingRows:
    """The complete rows of one score from the highest down, and what they were taken from.

    ``place`` is the place of each row among all, ``finest`` the number of its finest segment, and
    ``missing`` the number of incomplete rows of each of these.
    """

    rows: Rows
    place: Ints
    score: Array
    weight: Array
    finest: Ints
    missing: Array
    counts: RowCounts | None
    bins: ScoreBins | None

    @property
    def are_probabilities(self) -> bool:
        """Whether all scores are from 0 to 1."""
        return len(self.score) == 0 or bool(self.score[0] <= 1 and self.score[-1] >= 0)

    def segments(self, numbering: Numbering, outside: OutsideWeights | None = None) -> SegmentRows:
        """Return the rows of each segment next to each other, still from the highest score down.

        ``outside`` are weights of the segments in other ranges of scores.
        """
        number = numbering.number.astype(_smallest_type(numbering.size))
        segment = number[self.finest]
        size = np.bincount(segment, minlength=numbering.size)
        order: Ints | slice = slice(None)
        if numbering.size > 1:
            order = np.argsort(segment, kind="stable")
        return SegmentRows(
            numbering.keys,
            np.append(0, size.cumsum()),
            self.place[order],
            self.score[order],
            self.weight[order],
            numbering.add(self.missing).astype(np.int64),
            None if self.counts is None else self.counts.at(order),
            None if self.bins is None else self.bins.at(order),
            outside,
            in_order=True,
        )


def _smallest_type(size: int) -> type[np.unsignedinteger[Any]]:
    """Return a type for so many numbers; small ones are sorted fast."""
    if size <= np.iinfo(np.uint8).max + 1:
        return np.uint8
    return np.uint16 if size <= np.iinfo(np.uint16).max + 1 else np.uint32


def rank_rows(rows: Rows, model: str, finest: FinestSegments) -> DescendingRows:
    """Return the complete rows of a score from the highest down."""
    score, complete = rows.scores[model], rows.complete(model)
    size = finest.keys.height
    if complete.all():
        missing = np.zeros(size)
        place = _sort_down(score)
    else:
        lost = ~complete
        missing = np.round(np.bincount(finest.number[lost], rows.n[lost], size))
        there = np.flatnonzero(complete)
        place = there[_sort_down(score[there])]
    return DescendingRows(
        rows,
        place,
        score[place],
        rows.weight[place],
        finest.number.astype(_smallest_type(size))[place],
        missing,
        None if rows.counts is None else rows.counts.at(place),
        None if rows.bins is None else rows.bins.at(place),
    )


def _sort_down(score: Array) -> Ints:
    """Return the places of scores from the highest down."""
    if len(score) < _MANY_ROWS:
        return np.argsort(score)[::-1]
    order: Ints = pl.Series(score).arg_sort(descending=True).to_numpy().astype(np.int64)
    return order


@dataclass(frozen=True)
class CurveParts:
    """Points of thinned curves: the segment of each, its threshold, and the weights selected."""

    segment: Ints
    threshold: Array
    selected: Array

    def at(self, places: Any) -> CurveParts:
        """Return some of the points."""
        return CurveParts(self.segment[places], self.threshold[places], self.selected[:, places])


def join_parts(parts: Sequence[CurveParts], totals: Array) -> CurveParts:
    """Return parts of curves of which each was thinned, from the highest score down, as one."""
    points = CurveParts(
        np.concatenate([each.segment for each in parts]),
        np.concatenate([each.threshold for each in parts]),
        np.concatenate([each.selected for each in parts], axis=1),
    )
    points = points.at(np.argsort(points.segment, kind="stable"))
    is_start = np.diff(points.segment, prepend=-1) != 0
    totals = totals[:, points.segment]
    return points.at(_keep_ends(points.selected, totals, np.flatnonzero(is_start)))


def _keep_ends(selected: Array, totals: Array, starts: Ints) -> Ints:
    """Return the places of the first and the last point in each part of each curve.

    The length of a curve, measured as fpr + tpr, is cut into equal parts. Between the two points
    the area changes by less than half of the rectangle that they span. ``starts`` are the places
    of the first points of the curves.
    """
    parts = np.where(totals > 0, _PARTS / 2 / totals, 0.0)
    part = selected[0] * parts[0]
    part += selected[1] * parts[1]
    # The last digits of sums of weights depend on the order of the rows.
    part -= _ROUNDING
    np.ceil(part, out=part)
    np.fmax(part, 1.0, out=part)
    is_first = np.ones(len(part), dtype=bool)
    np.not_equal(part[1:], part[:-1], out=is_first[1:])
    is_first[starts] = True
    is_end = is_first.copy()
    is_end[:-1] |= is_first[1:]
    is_end[-1:] = True
    return np.flatnonzero(is_end)


def _rank_steps(steps: Steps) -> tuple[Mapping[str, Array], CurveParts]:
    """Return the sums of `AucSums` over some steps of segments, and points of their curves."""
    reached = steps.weights_reached
    places = _keep_ends(reached, steps.spread(steps.totals), steps.starts)
    segment = np.searchsorted(steps.starts, places, side="right") - 1
    points = CurveParts(segment, steps.score[places], reached[:, places])
    return sum_reached(steps, reached), points


@np.errstate(all="ignore")
def sum_ranks(rows: SegmentRows) -> tuple[AucSums, CurveParts]:
    """Return the sums of segments that depend on ranks, and the thinned curves."""
    blocks = map_steps(rows, _rank_steps)
    if not blocks:
        none = np.zeros((2, rows.number))
        flat = none[0]
        bounds = (None, None) if rows.bins is None else (flat, flat)
        sums = AucSums(none, none, none, none, none, none, flat, flat, flat, flat, *bounds)
        return sums, CurveParts(np.zeros(0, np.int64), flat[:0], none[:, :0])
    found = add_blocks(((each, part[0]) for each, part in blocks), rows.number, maxima=_MAXIMA)
    totals = found["weight"] if rows.outside is None else rows.outside.totals
    parts = [replace(part, segment=each[part.segment]) for each, (_, part) in blocks]
    return AucSums(**found), join_parts(parts, totals)


@dataclass(frozen=True)
class FinestSums:
    """Sums over the rows of the finest segments, which do not depend on ranks."""

    rows: Array
    missing: Array
    cells: Cells | None
    calibration: CalibrationSums | None

    def add(self, numbering: Numbering) -> FinestSums:
        """Return the sums of segments of which each has some of the finest."""
        return FinestSums(
            numbering.add(self.rows),
            numbering.add(self.missing),
            None if self.cells is None else self.cells.combine(numbering.add),
            None if self.calibration is None else self.calibration.combine(numbering.add),
        )


def sum_finest(
    rows: SegmentRows, call: Rows, decisions: Decisions | None, *, calibrated: bool
) -> FinestSums:
    """Return the sums over the rows of each segment, by a design also over sampling units."""
    return FinestSums(
        count_classes(rows),
        rows.missing.astype(np.float64),
        None if decisions is None else sum_decisions(rows, call, decisions),
        sum_calibration(rows, call.sample) if calibrated else None,
    )


def sum_decisions(rows: SegmentRows, call: Rows, decisions: Decisions) -> Cells:
    """Return the cells of each segment, by a design also those of sampling units."""
    if decisions.recorded:
        return sum_decided_cells(rows, call, call.sample)
    selects = None if decisions.selects else np.zeros(rows.number, dtype=bool)
    return sum_cells_at(rows, decisions.threshold, call.sample, selects=selects)


@dataclass(frozen=True)
class MeasuredSegments:
    """The segments of one division and score: sums, thinned curves and calibration."""

    segments: Segments
    curves: CurveParts | None = None
    calibration: CalibrationSums | None = None
    slopes: CalibrationSlopes | None = None


@dataclass(frozen=True)
class RankedRows:
    """The rows of one score, to be measured in any division of the finest segments.

    ``sums`` and ``bins`` are those of the finest segments; by a design there are no sums of these,
    since each sampling unit has its own. Without labels it ``has_ranks`` that mean nothing.
    """

    descending: DescendingRows
    finest: pl.DataFrame
    decisions: Decisions | None
    calibrated: bool
    has_ranks: bool
    sums: FinestSums | None
    bins: LogitBins | None

    @property
    def rows(self) -> Rows:
        """All rows."""
        return self.descending.rows

    def measure(self, grouping: Grouping) -> MeasuredSegments:
        """Return the segments of a division."""
        numbering = Numbering.of(self.finest, grouping.keys)
        rows = None
        if self.has_ranks or self.sums is None:
            rows = self.descending.segments(numbering)
        sums = self._sum(numbering, rows)
        aucs = curves = influence = None
        if self.has_ranks and rows is not None:
            aucs, curves = sum_ranks(rows)
            if self.rows.sample is not None:
                influence = auc_influences(self.rows, rows)
        slopes = None
        if self.calibrated and rows is not None:
            slopes = fit_slopes(rows, self.bins, numbering.number)
            if self.rows.sample is not None:
                # The errors are those of independent rows.
                slopes = replace(slopes, error=np.full(numbering.size, np.nan))
        segments = self._make_segments(numbering, sums, aucs, influence)
        return MeasuredSegments(segments, curves, sums.calibration, slopes)

    def measure_cells(self, numbering: Numbering) -> Segments:
        """Return segments with their cells alone."""
        rows = self.descending.segments(numbering) if self.sums is None else None
        return self._make_segments(numbering, self._sum(numbering, rows), None, None)

    def _sum(self, numbering: Numbering, rows: SegmentRows | None) -> FinestSums:
        if self.sums is not None:
            return self.sums.add(numbering)
        assert rows is not None
        return sum_finest(rows, self.rows, self.decisions, calibrated=self.calibrated)

    def _make_segments(
        self,
        numbering: Numbering,
        sums: FinestSums,
        aucs: AucSums | None,
        influence: Influence | None,
    ) -> Segments:
        sample = self.rows.sample
        return Segments(
            numbering.keys,
            sums.rows,
            sums.missing,
            aucs,
            sums.cells,
            self.decisions,
            None if sample is None else sample.units,
            influence,
        )


def rank_score(rows: Rows, model: str, plan: AuditPlan) -> RankedRows:
    """Return the rows of a score, with the sums over their finest segments."""
    finest = number_finest(rows.keys)
    descending = rank_rows(rows, model, finest)
    calibrated = plan.labeled and rows.bins is None and descending.are_probabilities
    every = Numbering(finest.keys, np.arange(finest.keys.height))
    decisions = _find_decisions(descending, plan)
    sums = bins = None
    if rows.sample is None or calibrated:
        segments = descending.segments(every)
        if rows.sample is None:
            sums = sum_finest(segments, rows, decisions, calibrated=calibrated)
        if calibrated and len(descending.score) > FEW_ROWS:
            bins = bin_logits(segments, BIN_WIDTHS[0])
    return RankedRows(descending, finest.keys, decisions, calibrated, plan.labeled, sums, bins)


def _find_decisions(descending: DescendingRows, plan: AuditPlan) -> Decisions | None:
    """Return the decisions by a score; a rule chooses one threshold for all rows."""
    choice = plan.choice
    if plan.recorded:
        return Decisions(recorded=True)
    if choice is None:
        return None
    if not isinstance(choice, Rule):
        return Decisions(choice)
    number = np.zeros(descending.missing.size, np.int64)
    all_rows = descending.segments(Numbering(pl.DataFrame(), number))
    chosen = choose_thresholds(all_rows, choice)
    return Decisions(float(chosen.value[0]), selects=bool(chosen.selects[0]))
