"""Rows of an audit from the highest score down, and the sums over those of its segments.

The finest segments are those of all attributes crossed. Sums that do not depend on ranks are taken
over these once and added up; AUCs and curves are those of the rows of each segment. A part of the
rows, in a range of scores, gives parts of the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.buckets import BucketRows, move_to_buckets, number_groups, sort_groups
from polars_wroc.groups.categories import Grouping
from polars_wroc.metrics.auc_sums import MAXIMA, AucSums, auc_influences, sum_reached
from polars_wroc.metrics.calibration import (
    CalibrationSlopes,
    CalibrationSums,
    LogitBins,
    bin_logits,
    fit_slopes,
    merge_bins,
    sum_calibration,
)
from polars_wroc.metrics.segments import (
    Decisions,
    Numbering,
    Segments,
    count_classes,
)
from polars_wroc.queries import ROUNDING
from polars_wroc.records import join_records
from polars_wroc.rows import Rows
from polars_wroc.stats.designs import Influence
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import (
    FloatType,
    OutsideWeights,
    RowCounts,
    ScoreBins,
    SegmentRows,
    Steps,
    add_blocks,
    map_steps,
)
from polars_wroc.threads import map_in_threads
from polars_wroc.thresholds.cells import Cells, sum_cells_at, sum_decided_cells
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.rules import Rule

CURVE_POINTS = 200
# Their ends and the origin are so many points.
_PARTS = (CURVE_POINTS - 1) // 2
# Points are in a part that they are so little beyond, in parts.
_ROUNDING = 5e-10
# Temporary arrays of so many rows fit into the cache of a processor.
_BLOCK_ROWS = 1 << 15
# With so many rows in each of the finest segments their bins are few enough to be added up.
_BINNED_ROWS = 10_000


class FinestSegments(NamedTuple):
    """The keys of the finest segments, sorted, and the number of each row's segment."""

    keys: pl.DataFrame
    number: NDArray[np.integer[Any]]


def number_finest(keys: pl.DataFrame) -> FinestSegments:
    """Return the finest segments of rows, given all their keys."""
    if keys.height == 0 or keys.width == 0:
        return FinestSegments(*number_groups(keys))
    values, code, size = [], np.zeros(keys.height, np.uint8), 1
    for distinct, number in map_in_threads(_number_values, keys.get_columns(), fewest=2):
        values.append(distinct)
        size *= len(distinct)
        if size > keys.height:
            return FinestSegments(*number_groups(keys))
        small = _smallest_type(size + 1)
        code = code.astype(small) * small(len(distinct)) + number.astype(small)
    there = np.bincount(code, minlength=size) > 0
    places = np.unravel_index(np.flatnonzero(there), [len(each) for each in values])
    finest = pl.DataFrame([each[place] for each, place in zip(values, places, strict=True)])
    return FinestSegments(finest, (there.cumsum() - 1).astype(code.dtype)[code])


def _number_values(values: pl.Series) -> tuple[pl.Series, NDArray[np.integer[Any]]]:
    """Return the distinct values of a column, sorted, and the number of each row's value."""
    if values.dtype != pl.String:
        groups, of_row = number_groups(values.to_frame())
        return groups.to_series(), of_row
    # The first rows nearly always have all values.
    known = values.head(_BLOCK_ROWS).unique().drop_nulls().sort()
    number = values.cast(pl.Enum(known), strict=False).to_physical()
    if number.null_count() > values.null_count():
        known = values.unique().drop_nulls().sort()
        number = values.cast(pl.Enum(known)).to_physical()
    if not values.has_nulls():
        return known, number.to_numpy()
    # Null comes first.
    distinct = pl.concat([values.clear().extend_constant(None, 1), known])
    return distinct, (number.cast(pl.UInt32) + 1).fill_null(0).to_numpy()


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
    score_type: FloatType

    @cached_property
    def sizes(self) -> Array:
        """The number of rows in each of the finest segments."""
        return np.bincount(self.finest, minlength=len(self.missing)).astype(np.float64)

    @property
    def are_probabilities(self) -> bool:
        """Whether all scores are from 0 to 1, but for rounding."""
        if len(self.score) == 0:
            return True
        return bool(self.score[0] <= 1 + ROUNDING and self.score[-1] >= -ROUNDING)

    def segments(self, numbering: Numbering, outside: OutsideWeights | None = None) -> SegmentRows:
        """Return the rows of each segment next to each other, still from the highest score down.

        ``outside`` are weights of the segments in other ranges of scores.
        """
        if numbering.size == 1:
            found = BucketRows(
                np.array([0, len(self.score)]), self.place, [self.score, self.weight]
            )
            order: Ints | slice = slice(None)
        else:
            of_finest = numbering.number.astype(_smallest_type(numbering.size))
            found = move_to_buckets(
                of_finest[self.finest], numbering.size, [self.score, self.weight]
            )
            order = found.places
        looks_up = self.rows.sample is not None or self.rows.selected is not None
        # Without anything to look up in the order of all rows, their places are not needed.
        place = self.place[order] if looks_up else found.places
        score, weight = found.columns
        return SegmentRows(
            numbering.keys,
            found.starts,
            place,
            score,
            weight,
            numbering.add(self.missing).astype(np.int64),
            None if self.counts is None else self.counts.at(order),
            None if self.bins is None else self.bins.at(order),
            outside,
            in_order=True,
            score_type=self.score_type,
        )


def _smallest_type(size: int) -> type[np.unsignedinteger[Any]]:
    """Return a type for so many numbers; small ones are sorted fast."""
    if size <= np.iinfo(np.uint8).max + 1:
        return np.uint8
    return np.uint16 if size <= np.iinfo(np.uint16).max + 1 else np.uint32


def rank_rows(rows: Rows, model: str, finest: FinestSegments) -> DescendingRows:
    """Return the complete rows of a score from the highest down."""
    score, weight, complete = rows.scores[model], rows.weight, rows.complete(model)
    size = finest.keys.height
    number = finest.number.astype(_smallest_type(size), copy=False)
    missing, taken = np.zeros(size), None
    if not complete.all():
        lost = ~complete
        missing = np.round(np.bincount(number[lost], rows.n[lost], size))
        taken = np.flatnonzero(complete)
        score, weight, number = score[taken], weight[taken], number[taken]
    one_group = np.zeros(len(score), np.uint16)
    found = sort_groups(one_group, 1, [score, weight, number])
    place = found.places if taken is None else taken[found.places]
    score, weight, ranked_number = found.columns
    return DescendingRows(
        rows,
        place,
        score,
        weight,
        ranked_number,
        missing,
        None if rows.counts is None else rows.counts.at(place),
        None if rows.bins is None else rows.bins.at(place).merged(score),
        rows.score_types.get(model, np.float64),
    )


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
        of_classes, of_segments = np.zeros((2, rows.number)), np.zeros(rows.number)
        bounds = None if rows.bins is None else of_segments
        sums = AucSums(
            n=of_classes,
            weight=of_classes,
            squares=of_classes,
            cubes=of_classes,
            first=of_classes,
            second=of_classes,
            misranked=of_segments,
            ranked=of_segments,
            precision=of_segments,
            distance=of_segments,
            lowest=bounds,
            highest=bounds,
        )
        return sums, CurveParts(np.zeros(0, np.int64), of_segments[:0], of_classes[:, :0])
    found = add_blocks(((each, part[0]) for each, part in blocks), rows.number, maxima=MAXIMA)
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
    if call.sample is not None or len(rows.score) <= _BLOCK_ROWS:
        return _sum_block(rows, call, decisions, calibrated=calibrated)

    @np.errstate(all="ignore")
    def sum_part(block: SegmentRows) -> FinestSums:
        return _sum_block(block, call, decisions, calibrated=calibrated)

    numbers, blocks = zip(*_cut_rows(rows), strict=True)
    sums = join_records(map_in_threads(sum_part, blocks))
    return sums.add(Numbering(rows.segments, np.concatenate(numbers)))


def _cut_rows(rows: SegmentRows) -> Iterator[tuple[Ints, SegmentRows]]:
    """Yield rows of some segments, and the numbers of these; large ones are cut into parts.

    Missing rows are those of the last part.
    """
    first = 0
    for start in range(0, len(rows.score), _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, len(rows.score))
        # Segments without rows are in the last block if they come last.
        after = rows.number if stop == len(rows.score) else int(np.searchsorted(rows.starts, stop))
        ends = rows.starts[first : after + 1].clip(start, stop)
        segments = np.arange(first, after)
        is_last = rows.starts[1:][segments] <= stop
        part = slice(start, stop)
        yield (
            segments,
            SegmentRows(
                rows.segments[first:after],
                ends - start,
                rows.order[part],
                rows.score[part],
                rows.weight[part],
                np.where(is_last, rows.missing[segments], 0),
                None if rows.counts is None else rows.counts.at(part),
                None if rows.bins is None else rows.bins.at(part),
                in_order=rows.in_order,
                score_type=rows.score_type,
            ),
        )
        first = after if rows.starts[after] == stop else after - 1


def _sum_block(
    rows: SegmentRows, call: Rows, decisions: Decisions | None, *, calibrated: bool
) -> FinestSums:
    calibration = sum_calibration(rows, call.sample) if calibrated else None
    if calibration is None:
        number = count_classes(rows)
    else:
        number = np.stack([calibration.positives.rows, calibration.negatives.rows])
    return FinestSums(
        number,
        rows.missing.astype(np.float64),
        None if decisions is None else sum_decisions(rows, call, decisions),
        calibration,
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
    since each sampling unit has its own, and there are no bins of many small segments. Without
    labels it ``has_ranks`` that mean nothing. The ``finest_rows`` are there if a division is that
    into the finest segments. ``unlabeled`` are all rows as if there were no labels, if some have
    none.
    """

    descending: DescendingRows
    finest: pl.DataFrame
    decisions: Decisions | None
    calibrated: bool
    has_ranks: bool
    sums: FinestSums | None
    bins: LogitBins | None
    finest_rows: SegmentRows | None
    unlabeled: RankedRows | None = None

    @property
    def rows(self) -> Rows:
        """All rows."""
        return self.descending.rows

    def measure(self, grouping: Grouping) -> MeasuredSegments:
        """Return the segments of a division."""
        numbering = Numbering.of(self.finest, grouping.keys)
        rows = None
        if self.has_ranks or self.sums is None:
            rows = self._divide(numbering)
        sums = self.add_sums(numbering, rows)
        aucs = curves = influence = None
        if self.has_ranks and rows is not None:
            aucs, curves = sum_ranks(rows)
            if self.rows.sample is not None:
                influence = auc_influences(self.rows, rows)
        slopes = None
        if self.calibrated and rows is not None:
            bins = None if self.bins is None else merge_bins(self.bins, numbering.number)
            slopes = fit_slopes(rows, bins)
            if self.rows.sample is not None:
                # The errors are those of independent rows.
                slopes = replace(slopes, error=np.full(numbering.size, np.nan))
        segments = self._make_segments(numbering, sums, aucs, influence)
        return MeasuredSegments(segments, curves, sums.calibration, slopes)

    def measure_cells(self, numbering: Numbering) -> Segments:
        """Return segments with their cells alone."""
        return self._make_segments(numbering, self.add_sums(numbering), None, None)

    def _divide(self, numbering: Numbering) -> SegmentRows:
        if self.finest_rows is not None and numbering.is_finest:
            return self.finest_rows
        return self.descending.segments(numbering)

    def add_sums(self, numbering: Numbering, rows: SegmentRows | None = None) -> FinestSums:
        """Return the sums of segments, of which the rows may be at hand."""
        if self.sums is not None:
            return self.sums.add(numbering)
        rows = self._divide(numbering) if rows is None else rows
        return sum_finest(rows, self.rows, self.decisions, calibrated=self.calibrated)

    def _make_segments(
        self,
        numbering: Numbering,
        sums: FinestSums,
        aucs: AucSums | None,
        influence: Influence | None,
    ) -> Segments:
        sample = self.rows.sample
        every = None if self.unlabeled is None else self.unlabeled.add_sums(numbering)
        return Segments(
            numbering.keys,
            sums.rows,
            sums.missing,
            aucs,
            sums.cells,
            self.decisions,
            None if sample is None else sample.units,
            influence,
            all_rows=None if every is None else every.rows.sum(axis=0),
            all_cells=None if every is None else every.cells,
        )


def rank_score(rows: Rows, model: str, plan: AuditPlan) -> RankedRows:
    """Return the rows of a score, with the sums over their finest segments."""
    finest = number_finest(rows.keys)
    descending = rank_rows(rows, model, finest)
    calibrated = plan.labeled and rows.bins is None and descending.are_probabilities
    every = Numbering(finest.keys, np.arange(finest.keys.height))
    decisions = _find_decisions(descending, plan)
    sums = bins = segments = None
    # The bins of many small segments would be as many as their rows.
    has_bins = calibrated and len(descending.score) > _BINNED_ROWS * finest.keys.height
    if rows.sample is None or has_bins:
        segments = descending.segments(every)
        if rows.sample is None:
            sums = sum_finest(segments, rows, decisions, calibrated=calibrated)
        if has_bins:
            bins = bin_logits(segments, BIN_WIDTHS[0])
    if not any(set(each.keys) == set(finest.keys.columns) for each in plan.groupings):
        segments = None
    unlabeled = None
    if rows.lack_labels and decisions is not None and not plan.labeled_only:
        unlabeled = _rank_unlabeled(rows.ignore_labels(), model, finest, decisions)
    return RankedRows(
        descending,
        finest.keys,
        decisions,
        calibrated,
        plan.labeled,
        sums,
        bins,
        segments,
        unlabeled,
    )


def _rank_unlabeled(
    rows: Rows, model: str, finest: FinestSegments, decisions: Decisions
) -> RankedRows:
    """Return rows without labels, of which only the decisions are measured."""
    descending = rank_rows(rows, model, finest)
    sums = None
    if rows.sample is None:
        every = Numbering(finest.keys, np.arange(finest.keys.height))
        sums = sum_finest(descending.segments(every), rows, decisions, calibrated=False)
    return RankedRows(
        descending,
        finest.keys,
        decisions,
        calibrated=False,
        has_ranks=False,
        sums=sums,
        bins=None,
        finest_rows=None,
    )


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
