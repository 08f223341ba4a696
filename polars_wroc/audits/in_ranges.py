"""Audits of more rows than fit into memory: measured in ranges of scores, and added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints
from polars_wroc.audits.audit_rows import AuditRows, refuse_no_rows
from polars_wroc.audits.measure import Measured, make_tables, measure_score, read_rules
from polars_wroc.audits.ranked_segments import (
    CurveParts,
    DescendingRows,
    FinestSums,
    MeasuredSegments,
    Numbering,
    join_parts,
    join_records,
    number_finest,
    rank_rows,
    sum_decisions,
    sum_finest,
    sum_ranks,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.audits.words import required_values
from polars_wroc.buckets import number_groups
from polars_wroc.config import Division
from polars_wroc.counts.score_sums import HIGH, LOW, check_labels
from polars_wroc.groups.categories import Grouping
from polars_wroc.inputs.columns import MODEL
from polars_wroc.inputs.rows import MISSING_MARKS, MissingRows, count_missing
from polars_wroc.inputs.rows import Rows as PlannedRows
from polars_wroc.looks import Looks
from polars_wroc.metrics.auc_sums import AucSums
from polars_wroc.metrics.calibration import LogitBins, add_bins, bin_logits, fit_bins
from polars_wroc.metrics.score_ranges import (
    CountedParts,
    ScoreRange,
    require_unchanged,
    rows_by_score,
)
from polars_wroc.metrics.segments import Decisions, Segments
from polars_wroc.queries import collect
from polars_wroc.rows import read_counted
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import FloatType, OutsideWeights, SegmentRows, pool_steps
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.choice import choose_points
from polars_wroc.thresholds.rules import Rule

# Memory of a row of a range.
BYTES_IN_RANGE = 250
# From here on several whole numbers round to the same float.
_EXACT_FLOATS = 2**53
RecordT = TypeVar("RecordT")


class RankedPart(NamedTuple):
    """What a range of scores adds to the segments of a division that depends on their scores.

    Other scores than probabilities have no bins of logits.
    """

    keys: pl.DataFrame
    aucs: AucSums
    curves: CurveParts
    bins: LogitBins | None


class CurvePoint(NamedTuple):
    """A point of a curve: its threshold, and the weights of both classes selected."""

    threshold: float
    tp: float
    fp: float


@dataclass(frozen=True)
class RangeOfScore:
    """What a range adds to the audit of a score.

    Sums are those of the finest segments, which have the ``keys``; parts are those of each
    division. If a rule chooses the threshold, there is the ``best`` point of the range instead of
    cells, and the ``totals`` of both classes in all ranges.
    """

    keys: pl.DataFrame
    sums: FinestSums
    parts: Sequence[RankedPart]
    best: CurvePoint | None
    totals: Array


RangeSums = Mapping[str, RangeOfScore]


@np.errstate(all="ignore")
def sum_range(each: ScoreRange, rows: PlannedRows, plan: AuditPlan) -> RangeSums:
    """Read the rows of a range once, and return what it adds to the audit of each score."""
    return {
        model: _sum_score(_take_model(each, model), descending, keys, plan)
        for model, descending, keys in _rank_range(rows, plan.score_types)
    }


@np.errstate(all="ignore")
def sum_cells_in_range(
    _: ScoreRange, rows: PlannedRows, decisions: Mapping[str, Decisions]
) -> dict[str, tuple[pl.DataFrame, Cells]]:
    """Return the cells of the finest segments in a range, for each score."""
    found = {}
    for model, descending, keys in _rank_range(rows):
        segments = descending.segments(Numbering(keys, np.arange(keys.height)))
        found[model] = keys, sum_decisions(segments, descending.rows, decisions[model])
    return found


def _rank_range(
    rows: PlannedRows, score_types: Sequence[FloatType] = ()
) -> list[tuple[str, DescendingRows, pl.DataFrame]]:
    """Return the rows of each score from the highest down, with the keys of finest segments."""
    columns = replace(read_counted(rows), score_types=score_types)
    arrays = AuditRows([columns], [collect(columns.plan)], columns.models).arrays
    ranked = []
    for model, each in arrays.items():
        finest = number_finest(each.keys)
        ranked.append((model, rank_rows(each, model, finest), finest.keys))
    return ranked


def _take_model(each: ScoreRange, model: str) -> ScoreRange:
    """Return a range with the weights above and below it of one score."""
    if MODEL not in each.above.columns:
        return each
    is_model = pl.col(MODEL).cast(pl.String) == model
    return replace(each, above=each.above.filter(is_model), below=each.below.filter(is_model))


def _sum_score(
    each: ScoreRange, descending: DescendingRows, keys: pl.DataFrame, plan: AuditPlan
) -> RangeOfScore:
    every = descending.segments(Numbering(keys, np.arange(keys.height)))
    decisions = None
    if isinstance(plan.choice, float):
        decisions = Decisions(plan.choice)
    parts = []
    for grouping in plan.groupings:
        rows = descending.segments(Numbering.of(keys, grouping.keys))
        # The bins leave some rows out, which ranks among the rows of other ranges do not allow.
        bins = bin_logits(rows, BIN_WIDTHS[-1]) if descending.are_probabilities else None
        ranks = sum_ranks(replace(rows, outside=each.outside(rows)))
        parts.append(RankedPart(rows.segments, *ranks, bins))
    all_rows = descending.segments(Numbering.of(keys, []))
    outside = each.outside(all_rows)
    best = None
    if isinstance(plan.choice, Rule):
        best = _find_best(all_rows, outside, plan.choice)
    return RangeOfScore(
        keys,
        sum_finest(every, descending.rows, decisions, calibrated=True),
        parts,
        best,
        outside.totals[:, 0],
    )


def _find_best(rows: SegmentRows, outside: OutsideWeights, rule: Rule) -> CurvePoint | None:
    """Return the best point of all rows in a range, by a rule; None if it allows none."""
    steps = pool_steps(rows)
    tp, fp = outside.above + steps.w.cumsum(axis=1)
    totals = np.broadcast_to(outside.totals, (2, len(tp)))
    if not len(tp):
        return None
    place = int(choose_points(tp, fp, np.array([0, len(tp)]), rule, totals)[0])
    if place < 0:
        return None
    # Zero has one sign.
    return CurvePoint(float(steps.score[place]) + 0.0, float(tp[place]), float(fp[place]))


def choose_of_ranges(parts: Sequence[RangeOfScore], rule: Rule) -> Decisions:
    """Return the decisions at the best of the best points of ranges, from the highest down."""
    points = [
        CurvePoint(np.inf, 0.0, 0.0),
        *(part.best for part in parts if part.best is not None),
    ]
    threshold, tp, fp = (np.array(values) for values in zip(*points, strict=True))
    totals = np.repeat(parts[0].totals[:, np.newaxis], len(points), axis=1)
    place = int(choose_points(tp, fp, np.array([0, len(points)]), rule, totals)[0])
    return Decisions(float(threshold[place]) if place >= 0 else np.nan, selects=place > 0)


@dataclass(frozen=True)
class AddedScore:
    """The sums of a score over all ranges, from the highest down."""

    finest: pl.DataFrame
    decisions: Decisions | None
    sums: FinestSums
    parts: Sequence[RangeOfScore]
    groupings: Sequence[Grouping]

    def measure(self, grouping: Grouping) -> MeasuredSegments:
        """Return the segments of a division."""
        numbering = Numbering.of(self.finest, grouping.keys)
        ranked = [part.parts[self.groupings.index(grouping)] for part in self.parts]
        numbers = _find_numbers([each.keys for each in ranked], numbering)
        aucs = _add_aucs([each.aucs for each in ranked], numbers)
        curves = [
            replace(each.curves, segment=number[each.curves.segment])
            for each, number in zip(ranked, numbers, strict=True)
        ]
        sums = self.sums.add(numbering)
        segments = self._make_segments(numbering, sums, aucs)
        thinned = join_parts(curves, aucs.weight)
        bins = [
            replace(each.bins, segment=number[each.bins.segment])
            for each, number in zip(ranked, numbers, strict=True)
            if each.bins is not None
        ]
        if len(bins) < len(ranked):
            return MeasuredSegments(segments, thinned)
        slopes = fit_bins(add_bins(bins), numbering.size)
        return MeasuredSegments(segments, thinned, sums.calibration, slopes)

    def measure_cells(self, numbering: Numbering) -> Segments:
        """Return segments with their cells alone."""
        return self._make_segments(numbering, self.sums.add(numbering), None)

    def _make_segments(
        self, numbering: Numbering, sums: FinestSums, aucs: AucSums | None
    ) -> Segments:
        return Segments(numbering.keys, sums.rows, sums.missing, aucs, sums.cells, self.decisions)


def add_ranges_of_score(
    parts: Sequence[RangeOfScore],
    decisions: Decisions | None,
    groupings: Sequence[Grouping],
) -> AddedScore:
    """Return the sums of a score over all ranges."""
    numbering = Numbering(*number_groups(pl.concat([part.keys for part in parts])))
    joined = join_records([part.sums for part in parts])
    sums = joined.add(numbering)
    return AddedScore(numbering.keys, decisions, sums, parts, groupings)


def _find_numbers(keys: Sequence[pl.DataFrame], numbering: Numbering) -> list[Ints]:
    """Return the numbers of segments of each range among those of all."""
    if not numbering.keys.width:
        return [np.zeros(1, np.int64) for _ in keys]
    _, number = number_groups(pl.concat([numbering.keys, *keys]))
    ends = np.cumsum([numbering.size, *(each.height for each in keys)])[:-1]
    return np.split(number, ends)[1:]


def _add_aucs(parts: Sequence[AucSums], numbers: Sequence[Ints]) -> AucSums:
    """Return the sums of ranges added up over segments; of distances the largest."""
    numbering = Numbering(pl.DataFrame(), np.concatenate(numbers))
    joined = join_records(parts)
    order = np.argsort(numbering.number, kind="stable")
    starts = np.flatnonzero(np.diff(numbering.number[order], prepend=-1))
    added = {}
    for each in fields(AucSums):
        values = getattr(joined, each.name)
        combine = np.fmax if each.name == "distance" else np.add
        if values is not None:
            added[each.name] = combine.reduceat(values[..., order], starts, axis=-1)
    return AucSums(**added)


@np.errstate(all="ignore")
def measure_in_ranges(
    parts: Sequence[PlannedRows], plan: AuditPlan, division: Division, level: float
) -> tuple[Measured, float]:
    """Return the tables of an audit in ranges of scores, and the level at the rows seen."""
    keys = parts[0].keys
    marks = [part.regrouped([*part.group_keys, MISSING_MARKS]) for part in parts]
    counted = CountedParts.of(marks, division)
    counts = collect(check_labels(counted.counts.lazy(), []))
    _require_exact_scores(counts)
    if not counts.select(pl.sum_horizontal("n_pos", "n_neg").sum()).item():
        refuse_no_rows(int(counts["n_missing"].sum()), required_values(recorded=False))
    unmarked = [replace(part, frame=part.frame.drop(MISSING_MARKS)) for part in parts]
    counted = replace(counted, parts=unmarked, counts=counts)
    ranges = counted.cut(keys, BYTES_IN_RANGE)
    sums = counted.measure(ranges, partial(sum_range, plan=plan), keys)
    require_unchanged(ranges, [_count_rows(each) for each in sums])
    if isinstance(level, Looks) and not level.is_known:
        level = level.at(_count_seen(sums))
    rules = read_rules(plan, level)
    scores = _add_scores(sums, ranges, counted, plan)
    measured = [
        measure_score(score, place, model, plan, rules)
        for place, (model, score) in enumerate(scores.items())
    ]
    several = bool(parts[0].model_keys)
    missing = _count_missing(counts, marks[0], plan)
    return make_tables(measured, plan, rules, missing, several=several), level


def _require_exact_scores(counts: pl.DataFrame) -> None:
    """Raise for whole numbers that floats do not hold."""
    if not counts.schema[LOW].is_integer() or not counts.height:
        return
    largest = counts.select(pl.max_horizontal(pl.col(LOW, HIGH).abs().max())).item()
    if largest is not None and largest > _EXACT_FLOATS:
        found = f"{largest}: rank it, as in pl.col(...).rank('dense')"
        checks.reject("score", "hold whole numbers up to 2**53", found)


def _count_rows(sums: RangeSums) -> pl.DataFrame:
    """Return the numbers of complete and of other rows in a range, of all scores."""
    n = sum(each.sums.rows.sum() for each in sums.values())
    n_missing = sum(each.sums.missing.sum() for each in sums.values())
    return pl.DataFrame({"n": [n], "n_missing": [n_missing]})


def _count_seen(sums: Sequence[RangeSums]) -> float:
    """Return how many complete rows there are, for the score with most."""
    totals = [sum(each[model].sums.rows.sum() for each in sums) for model in sums[0]]
    return float(max([1.0, *totals]))


def _add_scores(
    sums: Sequence[RangeSums],
    ranges: Sequence[ScoreRange],
    counted: CountedParts,
    plan: AuditPlan,
) -> dict[str, AddedScore]:
    """Return the sums of each score over all ranges, with the cells at its threshold."""
    by_model = {model: [each[model] for each in sums] for model in sums[0]}
    decisions: dict[str, Decisions | None] = dict.fromkeys(by_model)
    if isinstance(plan.choice, float):
        decisions = dict.fromkeys(by_model, Decisions(plan.choice))
    if isinstance(plan.choice, Rule):
        chosen = {model: choose_of_ranges(each, plan.choice) for model, each in by_model.items()}
        by_model = _sum_chosen_cells(by_model, chosen, ranges, counted)
        decisions |= chosen
    return {
        model: add_ranges_of_score(each, decisions[model], plan.groupings)
        for model, each in by_model.items()
    }


def _sum_chosen_cells(
    parts: Mapping[str, Sequence[RangeOfScore]],
    decisions: Mapping[str, Decisions],
    ranges: Sequence[ScoreRange],
    counted: CountedParts,
) -> dict[str, list[RangeOfScore]]:
    """Return the sums of ranges with the cells at chosen thresholds.

    Only ranges are read again that one of the thresholds may divide.
    """
    thresholds = np.array([each.threshold for each in decisions.values()])
    undivided = [_undivided(each, counted.counts, thresholds) for each in ranges]
    task = partial(sum_cells_in_range, decisions=decisions)
    found = counted.measure(undivided, task, counted.parts[0].keys)
    completed = {}
    for model, each in parts.items():
        completed[model] = [
            replace(part, sums=replace(part.sums, cells=_align(part.keys, *cells[model])))
            for part, cells in zip(each, found, strict=True)
        ]
    return completed


def _align(keys: pl.DataFrame, others: pl.DataFrame, cells: Cells) -> Cells:
    """Return cells in the order of these keys."""
    numbering = Numbering(*number_groups(pl.concat([keys, others])))
    own, other = np.split(numbering.number, [keys.height])
    place = np.full(numbering.keys.height, -1)
    place[other] = np.arange(others.height)
    return cells.at(place[own])


def _count_missing(counts: pl.DataFrame, marked: PlannedRows, plan: AuditPlan) -> MissingRows:
    """Count the rows that miss a value from the counts of marked rows."""
    rows = rows_by_score(counts.lazy(), marked.keys, marked.model_keys)
    return count_missing(collect(rows.frame), marked.names, plan.scores)


def _undivided(each: ScoreRange, counts: pl.DataFrame, thresholds: Array) -> ScoreRange:
    """Let the counts of a range that no threshold divides stand for its rows."""
    low, high = each.span.low, each.span.high
    if each.known is not None:
        return each
    if np.any((thresholds >= float(low)) & (thresholds <= float(high))):
        return each
    return replace(each, known=counts.filter(pl.col(LOW).is_between(low, high)))
