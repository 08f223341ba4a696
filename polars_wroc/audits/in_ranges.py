"""Audits of more rows than fit into memory: measured in ranges of scores, and added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.audits.audit_rows import refuse_no_rows
from polars_wroc.audits.calibration_tests import Calibration
from polars_wroc.audits.measure import DividedScore, Measured, make_divided_scores, make_tables
from polars_wroc.audits.ranked_segments import (
    CurveParts,
    FinestSums,
    MeasuredSegments,
    join_parts,
    make_segments,
    number_categories,
    number_finest,
    rank_rows,
    sum_finest,
    sum_ranks,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.audits.words import required_values
from polars_wroc.config import Division
from polars_wroc.counts.score_sums import COUNTS, HIGH, LOW
from polars_wroc.inputs.columns import LABEL, ROW_COUNT, ROW_WEIGHT, score_column
from polars_wroc.inputs.rows import count_missing
from polars_wroc.looks import ConfidenceLevel, Looks
from polars_wroc.metrics.auc_sums import AucSums
from polars_wroc.metrics.calibration import LogitBins, add_bins, bin_logits, fit_bins
from polars_wroc.metrics.counted_parts import CountedParts, Part, count_parts
from polars_wroc.metrics.score_ranges import ScoreRange
from polars_wroc.metrics.segments import (
    Decisions,
    Needs,
    Numbering,
    measure_segments,
)
from polars_wroc.queries import aggregate, collect_all
from polars_wroc.ranking.curve import CELLS
from polars_wroc.records import join_records
from polars_wroc.rows import Rows
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import OutsideWeights, SegmentRows, pool_steps, round_to_type
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.choice import choose_points
from polars_wroc.thresholds.rules import Rule

# Memory of a row of a range.
BYTES_IN_RANGE = 150


class RankedPart(NamedTuple):
    """The contribution of a range of scores to the segments of a division, by score.

    Scores that are not probabilities have no bins of logits.
    """

    keys: pl.DataFrame
    aucs: AucSums
    curves: CurveParts
    bins: LogitBins | None


class CurvePoint(NamedTuple):
    """A point of a curve: its threshold, and the selected weights of both classes."""

    threshold: float
    tp: float
    fp: float


@dataclass(frozen=True)
class RangeOfScore:
    """The contribution of a range to the audit of a score.

    Sums are over the finest segments, which have the ``keys``; there are parts for each division.
    If a rule chooses the threshold, ``best`` is the best point of the range, in place of cells, and
    ``totals`` are the weights of both classes in all ranges.
    """

    keys: pl.DataFrame
    sums: FinestSums
    parts: Sequence[RankedPart]
    best: CurvePoint | None
    totals: Array


@np.errstate(all="ignore")
def sum_range(each: ScoreRange, rows: Rows, plan: AuditPlan) -> RangeOfScore:
    """Return the contribution of a range of scores to the audit of the score."""
    finest = number_finest(rows.keys)
    descending = rank_rows(rows, each.model, finest)
    parts = []
    for grouping in plan.groupings:
        segments = descending.segments(Numbering.of(finest.keys, grouping.keys))
        # Bins would leave out some rows, but ranks among the rows of other ranges need all of them.
        bins = bin_logits(segments, BIN_WIDTHS[-1]) if descending.are_probabilities else None
        ranks = sum_ranks(replace(segments, outside=each.outside(segments)))
        parts.append(RankedPart(segments.segments, *ranks, bins))
    all_rows = descending.segments(Numbering.of(finest.keys, []))
    outside = each.outside(all_rows)
    best = _find_best(all_rows, outside, plan.choice) if isinstance(plan.choice, Rule) else None
    decisions = Decisions(plan.choice) if isinstance(plan.choice, float) else None
    every = descending.segments(Numbering.from_finest(finest.keys))
    sums = sum_finest(every, rows, decisions, calibrated=True)
    return RangeOfScore(finest.keys, sums, parts, best, outside.totals[:, 0])


def _find_best(rows: SegmentRows, outside: OutsideWeights, rule: Rule) -> CurvePoint | None:
    """Return the best point of a range, by a rule; None if the rule allows none."""
    steps = pool_steps(rows)
    tp, fp = outside.above + steps.w.cumsum(axis=1)
    totals = np.broadcast_to(outside.totals, (2, len(tp)))
    if not len(tp):
        return None
    place = int(choose_points(tp, fp, np.array([0, len(tp)]), rule, totals)[0])
    if place < 0:
        return None
    # -0.0 becomes 0.0.
    return CurvePoint(float(steps.score[place]) + 0.0, float(tp[place]), float(fp[place]))


def choose_of_ranges(parts: Sequence[RangeOfScore], rule: Rule) -> Decisions:
    """Return the decisions at the best point of all ranges, given from the highest down."""
    points = [
        CurvePoint(np.inf, 0.0, 0.0),
        *(part.best for part in parts if part.best is not None),
    ]
    threshold, tp, fp = (np.array(values) for values in zip(*points, strict=True))
    totals = np.repeat(parts[0].totals[:, np.newaxis], len(points), axis=1)
    place = int(choose_points(tp, fp, np.array([0, len(points)]), rule, totals)[0])
    return Decisions(float(threshold[place]) if place >= 0 else np.nan, selects=place > 0)


class KeyedCells(NamedTuple):
    """The cells of segments, and the segments' keys."""

    keys: pl.DataFrame
    cells: Cells


def add_cells(parts: Sequence[KeyedCells]) -> Cells:
    """Return the cells of all segments in some parts, sorted by their keys."""
    numbering = Numbering.from_parts([each.keys for each in parts])
    return join_records([each.cells for each in parts]).combine(numbering.add)


def add_ranges(
    parts: Sequence[RangeOfScore],
    decisions: Decisions | None,
    cells: Cells | None,
    unlabeled: Sequence[KeyedCells],
    plan: AuditPlan,
) -> list[MeasuredSegments]:
    """Return the segments of each division of a score, from its ranges, highest first.

    ``cells`` are the cells of the finest segments at a threshold that a rule chose; ``unlabeled``
    are the cells of rows without a label, which are in no range.
    """
    finest = Numbering.from_parts([part.keys for part in parts])
    sums = join_records([part.sums for part in parts]).add(finest)
    if cells is not None:
        sums = replace(sums, cells=cells)
    others = None
    if unlabeled:
        none = Cells(*np.zeros((4, len(CELLS), finest.size)))
        others = add_cells([KeyedCells(finest.keys, none), *unlabeled])
    measured = []
    for place, grouping in enumerate(plan.groupings):
        numbering = Numbering.of(finest.keys, grouping.keys)
        ranked = _join_ranked([part.parts[place] for part in parts])
        added = sums.add(numbering)
        of_others = None if others is None else others.combine(numbering.add)
        whole = make_segments(numbering, added, decisions, of_others, aucs=ranked.aucs)
        pooled, categories = number_categories(finest.keys, grouping, plan), None
        if pooled is not None:
            of_others = None if others is None else others.combine(pooled.add)
            categories = make_segments(pooled, sums.add(pooled), decisions, of_others)
        calibration = None
        if ranked.bins is not None and added.calibration is not None:
            slopes = fit_bins(ranked.bins, numbering.size)
            calibration = Calibration(added.calibration, slopes)
        measured.append(MeasuredSegments(whole, categories, ranked.curves, calibration))
    return measured


def _join_ranked(parts: Sequence[RankedPart]) -> RankedPart:
    """Return the contribution of all ranges together to the segments of a division."""
    numbering = Numbering.from_parts([each.keys for each in parts])
    aucs = join_records([each.aucs for each in parts]).combine(numbering.add, numbering.largest)
    ends = np.cumsum([each.aucs.n.shape[-1] for each in parts])[:-1]
    numbers = np.split(numbering.number, ends)
    curves = [
        replace(each.curves, segment=number[each.curves.segment])
        for each, number in zip(parts, numbers, strict=True)
    ]
    bins = [
        replace(each.bins, segment=number[each.bins.segment])
        for each, number in zip(parts, numbers, strict=True)
        if each.bins is not None
    ]
    added = add_bins(bins) if len(bins) == len(parts) else None
    return RankedPart(numbering.keys, aucs, join_parts(curves, aucs.weight), added)


@np.errstate(all="ignore")
def measure_in_ranges(
    parts: Sequence[Part], plan: AuditPlan, division: Division, level: ConfidenceLevel
) -> tuple[Measured, ConfidenceLevel]:
    """Return the tables of an audit in ranges of scores, and the level at the rows seen."""
    counted = count_parts(parts, division)
    _require_rows(counted.counts)
    ranges = counted.cut(BYTES_IN_RANGE)
    sums = counted.measure(ranges, partial(sum_range, plan=plan))
    columns = parts[0].columns
    rows = counted.counts.with_columns(pl.sum_horizontal(COUNTS).alias(ROW_COUNT))
    missing = count_missing(rows, columns.names, plan.scores)
    lack_labels = missing.others["label"] > 0 and not plan.labeled_only
    scores = _measure_scores(ranges, sums, counted, plan, lack_labels=lack_labels)
    if isinstance(level, Looks) and not level.is_known:
        level = level.at(counted.most_complete_rows())
    rules, divided = plan.rules(level), list[DividedScore]()
    for place, (model, measured) in enumerate(scores.items()):
        divided += make_divided_scores(measured, place, model, plan, rules)
    return make_tables(divided, plan, rules, missing), level


def _require_rows(counts: pl.DataFrame) -> None:
    complete, missing = counts.select(
        pl.sum_horizontal("n_pos", "n_neg").sum(), pl.col("n_missing").sum()
    ).row(0)
    if not complete:
        refuse_no_rows(missing, required_values(recorded=False))


def _measure_scores(
    ranges: Sequence[ScoreRange],
    sums: Sequence[RangeOfScore],
    counted: CountedParts,
    plan: AuditPlan,
    *,
    lack_labels: bool,
) -> dict[str, list[MeasuredSegments]]:
    """Return the segments of each score in each division."""
    parts: dict[str, list[RangeOfScore]] = {model: [] for model in counted.models}
    for each, found in zip(ranges, sums, strict=True):
        parts[each.model].append(found)
    cells: Mapping[str, Cells] = {}
    decisions: Mapping[str, Decisions] = {}
    if isinstance(plan.choice, float):
        decisions = dict.fromkeys(parts, Decisions(plan.choice))
    if isinstance(plan.choice, Rule):
        decisions = {model: choose_of_ranges(own, plan.choice) for model, own in parts.items()}
        cells = _sum_cells(ranges, decisions, counted)
    unlabeled = list[Mapping[str, KeyedCells]]()
    if lack_labels and decisions:
        task = partial(_decide_unlabeled, decisions=decisions)
        unlabeled = [*counted.division.map(task, counted.parts)]
    return {
        model: add_ranges(
            own,
            decisions.get(model),
            cells.get(model),
            [each[model] for each in unlabeled],
            plan,
        )
        for model, own in parts.items()
    }


# Sums over the selected rows of segments, and over the others, as columns of a table.
_UNLABELED_SUMS = [
    f"__{sums}_{cell}" for sums in ("weight", "squares", "cubes", "rows") for cell in ("fp", "tn")
]


def _decide_unlabeled(part: Part, decisions: Mapping[str, Decisions]) -> dict[str, KeyedCells]:
    """Return the cells of the rows of a part without a label, as negatives, for each score."""
    columns = part.columns
    weight = pl.lit(1.0)
    if ROW_WEIGHT in columns.plan.collect_schema():
        weight = pl.col(ROW_WEIGHT).cast(pl.Float64)
    powers = weight, weight**2, weight**3, pl.lit(1.0)
    if columns.frequency:
        powers = weight, weight, weight, weight
    tables = []
    for place, model in enumerate(columns.models):
        decided, score = decisions[model], pl.col(score_column(place)).cast(pl.Float64)
        threshold = float(round_to_type(decided.threshold, columns.score_types[place]))
        is_selected = (score >= threshold) & decided.selects
        used = pl.col(LABEL).is_null() & (weight > 0) & score.is_not_nan()
        values = [
            pl.when(is_selected == selects).then(value).otherwise(0.0)
            for value in powers
            for selects in (True, False)
        ]
        named = dict(zip(_UNLABELED_SUMS, values, strict=True))
        rows = columns.plan.filter(used).select(*columns.keys, **named)
        sums = {name: pl.col(name).sum() for name in named}
        tables.append(aggregate(rows, columns.keys, sums))
    found = zip(columns.models, collect_all(tables), strict=True)
    return {model: _read_cells(table, columns.keys) for model, table in found}


def _read_cells(table: pl.DataFrame, keys: Sequence[str]) -> KeyedCells:
    values = table.select(_UNLABELED_SUMS).to_numpy().T.reshape(4, 2, -1)
    none = np.zeros(table.height)
    sums = (np.stack([none, selected, none, rejected]) for selected, rejected in values)
    return KeyedCells(table.select(keys), Cells(*sums))


def _sum_cells(
    ranges: Sequence[ScoreRange], decisions: Mapping[str, Decisions], counted: CountedParts
) -> dict[str, Cells]:
    """Return the cells of the finest segments at the threshold chosen for each score.

    Only ranges that a threshold may divide are read again; counts replace the rows of others.
    """
    undivided = [_stand_in(each, counted, decisions[each.model].threshold) for each in ranges]
    task = partial(_decide_range, keys=counted.keys, decisions=decisions)
    parts: dict[str, list[KeyedCells]] = {model: [] for model in counted.models}
    for each, found in zip(ranges, counted.measure(undivided, task), strict=True):
        parts[each.model].append(found)
    return {model: add_cells(own) for model, own in parts.items()}


def _stand_in(each: ScoreRange, counted: CountedParts, threshold: float) -> ScoreRange:
    """Return the counts of a range that no threshold divides, in place of its rows."""
    if each.counts is not None or each.low <= threshold <= each.high:
        return each
    inside = pl.col(LOW) >= each.low, pl.col(HIGH) <= each.high
    return replace(each, counts=counted.counts_of(each.model).filter(inside))


def _decide_range(
    each: ScoreRange, rows: Rows, keys: Sequence[str], decisions: Mapping[str, Decisions]
) -> KeyedCells:
    """Return the cells of the finest segments in a range of scores."""
    needs = Needs(aucs=False, decisions=decisions[each.model])
    segments = measure_segments(rows, keys, each.model, needs)
    assert segments.cells is not None
    return KeyedCells(segments.keys, segments.cells)
