"""Rows of an audit in descending order of the score, and sums over its segments.

The finest segments are the combinations of all attributes. Sums that do not depend on ranks are
computed once for these and added up; AUCs and curves are computed from the rows of each segment.
Part of the rows, in a range of scores, gives parts of the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints
from polars_wroc.audits.calibration_tests import Calibration
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.buckets import BucketRows, move_to_buckets, number_groups, sort_groups
from polars_wroc.groups.categories import Grouping
from polars_wroc.groups.known_categories import pool_unknown
from polars_wroc.metrics.auc_sums import (
    MAXIMA,
    AucSums,
    auc_influences,
    measure_aucs,
    sum_reached,
)
from polars_wroc.metrics.calibration import (
    CalibrationSlopes,
    CalibrationSums,
    LogitBins,
    bin_logits,
    fit_slopes,
    merge_bins,
    sum_calibration,
)
from polars_wroc.metrics.mean_sums import count_classes
from polars_wroc.metrics.segments import Decisions, Numbering, Segments, sum_decisions
from polars_wroc.queries import ROUNDING
from polars_wroc.ranking.curve import CELLS
from polars_wroc.records import join_records, map_arrays
from polars_wroc.rows import Rows
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import (
    FloatType,
    RowCounts,
    ScoreBins,
    SegmentRows,
    Steps,
    add_blocks,
    map_steps,
)
from polars_wroc.threads import map_in_threads
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.rules import Rule

CURVE_POINTS = 200
# Their ends and the origin are so many points.
_PARTS = (CURVE_POINTS - 1) // 2
# Points this little beyond a part, relative to its length, still belong to it.
_ROUNDING = 5e-10
# Temporary arrays of so many rows fit into the processor's cache.
_BLOCK_ROWS = 1 << 15
# With so many rows per finest segment, their bins are few enough to be added up.
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
    # The first rows almost always contain all values.
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
    """The complete rows of one score in descending order, and the rows they were taken from.

    ``place`` is the original place of each row, ``finest`` the number of its finest segment, and
    ``missing`` the number of incomplete rows of each finest segment.
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

    @property
    def are_probabilities(self) -> bool:
        """Whether all scores are from 0 to 1, up to rounding."""
        if len(self.score) == 0:
            return True
        return bool(self.score[0] <= 1 + ROUNDING and self.score[-1] >= -ROUNDING)

    def segments(self, numbering: Numbering) -> SegmentRows:
        """Return the rows, segment by segment, still in descending order of the score."""
        if numbering.size == 1:
            found = BucketRows(
                np.array([0, len(self.score)]), self.place, [self.score, self.weight]
            )
            order: Ints | slice = slice(None)
        else:
            finest_number = numbering.number.astype(_smallest_type(numbering.size))
            found = move_to_buckets(
                finest_number[self.finest], numbering.size, [self.score, self.weight]
            )
            order = found.places
        looks_up = self.rows.sample is not None or self.rows.selected is not None
        # Places are not needed unless something is looked up in the original rows.
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
            in_order=True,
            score_type=self.score_type,
        )


def _smallest_type(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest integer type for a number of values, which is sorted fastest."""
    if size <= np.iinfo(np.uint8).max + 1:
        return np.uint8
    return np.uint16 if size <= np.iinfo(np.uint16).max + 1 else np.uint32


def rank_rows(rows: Rows, model: str, finest: FinestSegments) -> DescendingRows:
    """Return the complete rows of a score in descending order."""
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
        None if rows.bins is None else rows.bins.at(place).merge_scores(score),
        rows.score_types.get(model, np.float64),
    )


@dataclass(frozen=True)
class CurveParts:
    """Points of thinned curves: segment, threshold and selected weights."""

    segment: Ints
    threshold: Array
    selected: Array

    def at(self, places: Any) -> CurveParts:
        """Return some of the points."""
        return CurveParts(self.segment[places], self.threshold[places], self.selected[:, places])


def join_parts(parts: Sequence[CurveParts], totals: Array) -> CurveParts:
    """Return the joined parts of thinned curves, given from the highest score down."""
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

    The length of a curve, measured as fpr + tpr, is cut into equal parts. Between two points the
    area changes by less than half of the rectangle that they span. ``starts`` are the places of the
    first points of the curves.
    """
    parts = np.where(totals > 0, _PARTS / 2 / totals, 0.0)
    part = selected[0] * parts[0]
    part += selected[1] * parts[1]
    # Rounded, since the last digits of sums of weights depend on the order of the rows.
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
        none = np.zeros(0)
        return measure_aucs(rows), CurveParts(none.astype(np.int64), none, np.zeros((2, 0)))
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
        """Return the sums of segments, each of which consists of some finest segments."""
        added: FinestSums = map_arrays(self, numbering.add)
        return added


def sum_finest(
    rows: SegmentRows, call: Rows, decisions: Decisions | None, *, calibrated: bool
) -> FinestSums:
    """Return the sums over the rows of each segment and, with a design, of sampling units."""

    @np.errstate(all="ignore")
    def sum_block(block: SegmentRows) -> FinestSums:
        calibration = sum_calibration(block, call.sample) if calibrated else None
        number = count_classes(block)
        return FinestSums(
            number, np.zeros(number.shape[-1]), sum_decisions(call, block, decisions), calibration
        )

    if call.sample is not None or len(rows.score) <= _BLOCK_ROWS:
        sums = sum_block(rows)
    else:
        numbers, blocks = zip(*_cut_rows(rows), strict=True)
        numbering = Numbering(rows.segments, np.concatenate(numbers))
        sums = join_records(map_in_threads(sum_block, blocks)).add(numbering)
    return replace(sums, missing=rows.missing.astype(np.float64))


def _cut_rows(rows: SegmentRows) -> Iterator[tuple[Ints, SegmentRows]]:
    """Yield rows of some segments, with the segments' numbers; large ones are cut into parts."""
    first = 0
    for start in range(0, len(rows.score), _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, len(rows.score))
        # Segments without rows at the end belong to the last block.
        after = rows.number if stop == len(rows.score) else int(np.searchsorted(rows.starts, stop))
        part = slice(start, stop)
        yield (
            np.arange(first, after),
            replace(
                rows,
                segments=rows.segments[first:after],
                starts=rows.starts[first : after + 1].clip(start, stop) - start,
                order=rows.order[part],
                score=rows.score[part],
                weight=rows.weight[part],
                missing=rows.missing[first:after],
                counts=None if rows.counts is None else rows.counts.at(part),
                bins=None if rows.bins is None else rows.bins.at(part),
            ),
        )
        first = after if rows.starts[after] == stop else after - 1


@dataclass(frozen=True)
class MeasuredSegments:
    """The segments of one division and score: sums, thinned curves and calibration.

    ``categories`` are the segments with pooled unknown values, which have cells only.
    """

    segments: Segments
    categories: Segments | None = None
    curves: CurveParts | None = None
    calibration: Calibration | None = None


def number_categories(
    finest: pl.DataFrame, grouping: Grouping, plan: AuditPlan
) -> Numbering | None:
    """Return the categories of a division whose impact ratios are requested."""
    if not grouping.keys or plan.settings.favorable in (None, "neither"):
        return None
    return Numbering(*number_groups(pool_unknown(finest, grouping, plan.unknown)))


def make_segments(
    numbering: Numbering,
    sums: FinestSums,
    decisions: Decisions | None,
    unlabeled: Cells | None,
    *,
    aucs: AucSums | None = None,
    units: SamplingUnits | None = None,
    influence: Influence | None = None,
) -> Segments:
    """Return segments with their sums, and the cells of their rows without a label."""
    all_cells = None
    if unlabeled is not None and sums.cells is not None:
        all_cells = sums.cells + unlabeled
    return Segments(
        keys=numbering.keys,
        rows=sums.rows,
        missing=sums.missing,
        aucs=aucs,
        cells=sums.cells,
        decisions=decisions,
        units=units,
        influence=influence,
        all_rows=None if all_cells is None else all_cells.count(CELLS).rows,
        all_cells=all_cells,
    )


@dataclass(frozen=True)
class RankedRows:
    """The rows of one score, with the sums over their finest segments.

    With a design there are no sums, since each sampling unit has its own. Many small segments have
    no ``bins``. ``finest_rows`` are kept if a division is into the finest segments.
    """

    descending: DescendingRows
    finest: pl.DataFrame
    decisions: Decisions | None
    calibrated: bool
    sums: FinestSums | None
    bins: LogitBins | None = None
    finest_rows: SegmentRows | None = None

    def divide(self, numbering: Numbering) -> SegmentRows:
        """Return the rows of segments."""
        if self.finest_rows is not None and numbering.is_finest:
            return self.finest_rows
        return self.descending.segments(numbering)

    def add_sums(self, numbering: Numbering, rows: SegmentRows | None = None) -> FinestSums:
        """Return the sums of segments, whose rows may be available."""
        if self.sums is not None:
            return self.sums.add(numbering)
        rows = self.divide(numbering) if rows is None else rows
        return sum_finest(rows, self.descending.rows, self.decisions, calibrated=self.calibrated)

    def fit_slopes(self, numbering: Numbering, rows: SegmentRows) -> CalibrationSlopes:
        """Return the calibration slopes of segments; with a design, without errors."""
        bins = None if self.bins is None else merge_bins(self.bins, numbering.number)
        slopes = fit_slopes(rows, bins)
        if self.descending.rows.sample is None:
            return slopes
        # These errors assume independent rows.
        return replace(slopes, error=np.full(numbering.size, np.nan))


def measure_ranked_divisions(rows: Rows, model: str, plan: AuditPlan) -> list[MeasuredSegments]:
    """Return the segments of each division of the rows of a score."""
    finest = number_finest(rows.keys)
    ranked, unlabeled = _rank_score(rows, model, finest, plan), None
    if rows.lack_labels and ranked.decisions is not None and not plan.labeled_only:
        unlabeled = _rank_unlabeled(rows, model, finest, ranked.decisions)
    return [_measure_division(ranked, unlabeled, grouping, plan) for grouping in plan.groupings]


def _rank_score(rows: Rows, model: str, finest: FinestSegments, plan: AuditPlan) -> RankedRows:
    """Return the rows of a score, with the sums over their finest segments."""
    descending = rank_rows(rows, model, finest)
    decisions = _find_decisions(descending, plan)
    calibrated = plan.settings.labeled and rows.bins is None and descending.are_probabilities
    # Many small segments would have as many bins as rows.
    has_bins = calibrated and len(descending.score) > _BINNED_ROWS * finest.keys.height
    sums = bins = segments = None
    if rows.sample is None or has_bins:
        segments = descending.segments(Numbering.from_finest(finest.keys))
        if rows.sample is None:
            sums = sum_finest(segments, rows, decisions, calibrated=calibrated)
        if has_bins:
            bins = bin_logits(segments, BIN_WIDTHS[0])
    if not any({*each.keys} == {*finest.keys.columns} for each in plan.groupings):
        segments = None
    return RankedRows(descending, finest.keys, decisions, calibrated, sums, bins, segments)


def _rank_unlabeled(
    rows: Rows, model: str, finest: FinestSegments, decisions: Decisions
) -> RankedRows:
    """Return the rows that lack only a label, of which only the decisions are measured."""
    every = rows.ignore_labels()
    is_unlabeled = every.complete(model) & ~rows.complete(model)
    number = finest.number[is_unlabeled]
    descending = rank_rows(every.at(is_unlabeled), model, FinestSegments(finest.keys, number))
    sums = None
    if rows.sample is None:
        segments = descending.segments(Numbering.from_finest(finest.keys))
        sums = sum_finest(segments, descending.rows, decisions, calibrated=False)
    return RankedRows(descending, finest.keys, decisions, calibrated=False, sums=sums)


def _measure_division(
    ranked: RankedRows, unlabeled: RankedRows | None, grouping: Grouping, plan: AuditPlan
) -> MeasuredSegments:
    """Return the segments of a division, and the categories of their impact ratios."""
    call, sample = ranked.descending.rows, ranked.descending.rows.sample
    units = None if sample is None else sample.units
    numbering = Numbering.of(ranked.finest, grouping.keys)
    rows = ranked.divide(numbering) if plan.settings.labeled or ranked.sums is None else None
    sums = ranked.add_sums(numbering, rows)
    aucs = curves = influence = calibration = None
    if plan.settings.labeled and rows is not None:
        aucs, curves = sum_ranks(rows)
        influence = None if sample is None else auc_influences(call, rows)
        if sums.calibration is not None:
            slopes = ranked.fit_slopes(numbering, rows)
            calibration = Calibration(sums.calibration, slopes, units)
    others = None if unlabeled is None else unlabeled.add_sums(numbering).cells
    whole = make_segments(
        numbering, sums, ranked.decisions, others, aucs=aucs, units=units, influence=influence
    )
    pooled, categories = number_categories(ranked.finest, grouping, plan), None
    if pooled is not None:
        others = None if unlabeled is None else unlabeled.add_sums(pooled).cells
        added = ranked.add_sums(pooled)
        categories = make_segments(pooled, added, ranked.decisions, others, units=units)
    return MeasuredSegments(whole, categories, curves, calibration)


def _find_decisions(descending: DescendingRows, plan: AuditPlan) -> Decisions | None:
    """Return the decisions by a score; a rule chooses one threshold for all rows."""
    choice = plan.choice
    if plan.settings.has_recorded_decisions:
        return Decisions(recorded=True)
    if choice is None:
        return None
    if not isinstance(choice, Rule):
        return Decisions(choice)
    number = np.zeros(descending.missing.size, np.int64)
    all_rows = descending.segments(Numbering(pl.DataFrame(), number))
    chosen = choose_thresholds(all_rows, choice)
    return Decisions(float(chosen.value[0]), selects=bool(chosen.selects[0]))
