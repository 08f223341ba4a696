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
from polars_wroc.audits.measure import DividedScore, Measured, make_tables, measure_score
from polars_wroc.audits.ranked_segments import (
    CurveParts,
    FinestSums,
    MeasuredSegments,
    join_parts,
    number_finest,
    rank_rows,
    sum_finest,
    sum_ranks,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.audits.words import required_values
from polars_wroc.config import Division
from polars_wroc.counts.score_sums import COUNTS, HIGH, LOW
from polars_wroc.groups.categories import Grouping
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
    Segments,
    measure_segments,
)
from polars_wroc.queries import aggregate, collect, collect_all, join_on_keys
from polars_wroc.ranking.curve import CELLS
from polars_wroc.records import join_records
from polars_wroc.rows import Rows
from polars_wroc.stats.logistic_fit import BIN_WIDTHS
from polars_wroc.steps import OutsideWeights, SegmentRows, pool_steps, round_to_type
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.choice import choose_points
from polars_wroc.thresholds.rules import Rule

# Memory of a row of a range.
BYTES_IN_RANGE = 250


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


@np.errstate(all="ignore")
def sum_range(each: ScoreRange, rows: Rows, plan: AuditPlan) -> RangeOfScore:
    """Return what the rows in a range of scores add to the audit of their score."""
    finest = number_finest(rows.keys)
    descending = rank_rows(rows, each.model, finest)
    parts = []
    for grouping in plan.groupings:
        segments = descending.segments(Numbering.of(finest.keys, grouping.keys))
        # The bins leave some rows out, which ranks among the rows of other ranges do not allow.
        bins = bin_logits(segments, BIN_WIDTHS[-1]) if descending.are_probabilities else None
        ranks = sum_ranks(replace(segments, outside=each.outside(segments)))
        parts.append(RankedPart(segments.segments, *ranks, bins))
    all_rows = descending.segments(Numbering.of(finest.keys, []))
    outside = each.outside(all_rows)
    best = _find_best(all_rows, outside, plan.choice) if isinstance(plan.choice, Rule) else None
    decisions = Decisions(plan.choice) if isinstance(plan.choice, float) else None
    every = descending.segments(Numbering(finest.keys, np.arange(finest.keys.height)))
    sums = sum_finest(every, rows, decisions, calibrated=True)
    return RangeOfScore(finest.keys, sums, parts, best, outside.totals[:, 0])


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
    """The sums of a score over all ranges, from the highest down.

    The finest segments have the cells of ``unlabeled`` rows, which are in no range, if there are
    such rows.
    """

    finest: pl.DataFrame
    decisions: Decisions | None
    sums: FinestSums
    parts: Sequence[RangeOfScore]
    groupings: Sequence[Grouping]
    unlabeled: Cells | None

    @classmethod
    def of(
        cls,
        parts: Sequence[RangeOfScore],
        cells: Cells | None,
        decisions: Decisions | None,
        groupings: Sequence[Grouping],
        unlabeled: pl.DataFrame | None,
    ) -> AddedScore:
        """Add up the ranges of a score; ``cells`` are those at a threshold that a rule chose.

        ``unlabeled`` are the sums over rows without a label: see `_decide_unlabeled`.
        """
        numbering = Numbering.of_parts([part.keys for part in parts])
        sums = join_records([part.sums for part in parts]).add(numbering)
        if cells is not None:
            sums = replace(sums, cells=cells)
        of_segments = None
        if unlabeled is not None:
            of_segments = _spread_unlabeled(unlabeled, numbering.keys)
        return cls(numbering.keys, decisions, sums, parts, groupings, of_segments)

    def measure(self, grouping: Grouping) -> MeasuredSegments:
        """Return the segments of a division."""
        place = self.groupings.index(grouping)
        ranked = [part.parts[place] for part in self.parts]
        of_ranges = Numbering.of_parts([each.keys for each in ranked])
        aucs = join_records([each.aucs for each in ranked])
        aucs = aucs.combine(of_ranges.add, of_ranges.largest)
        ends = np.cumsum([each.aucs.n.shape[-1] for each in ranked])
        curves, bins = [], []
        for each, number in zip(ranked, np.split(of_ranges.number, ends[:-1]), strict=True):
            curves.append(replace(each.curves, segment=number[each.curves.segment]))
            if each.bins is not None:
                bins.append(replace(each.bins, segment=number[each.bins.segment]))
        numbering = Numbering.of(self.finest, grouping.keys)
        sums = self.sums.add(numbering)
        segments = self._make_segments(numbering, sums, aucs)
        thinned = join_parts(curves, aucs.weight)
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
        all_rows = all_cells = None
        if self.unlabeled is not None and sums.cells is not None:
            all_cells = sums.cells + self.unlabeled.combine(numbering.add)
            all_rows = all_cells.count(CELLS).rows
        return Segments(
            numbering.keys,
            sums.rows,
            sums.missing,
            aucs,
            sums.cells,
            self.decisions,
            all_rows=all_rows,
            all_cells=all_cells,
        )


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
    scores = _add_scores(ranges, sums, counted, plan, lack_labels=lack_labels)
    if isinstance(level, Looks) and not level.is_known:
        level = level.at(counted.most_complete_rows())
    rules, divided = plan.rules(level), list[DividedScore]()
    for place, (model, score) in enumerate(scores.items()):
        divided += measure_score(score, place, model, plan, rules)
    return make_tables(divided, plan, rules, missing), level


def _require_rows(counts: pl.DataFrame) -> None:
    complete, missing = counts.select(
        pl.sum_horizontal("n_pos", "n_neg").sum(), pl.col("n_missing").sum()
    ).row(0)
    if not complete:
        refuse_no_rows(missing, required_values(recorded=False))


def _add_scores(
    ranges: Sequence[ScoreRange],
    sums: Sequence[RangeOfScore],
    counted: CountedParts,
    plan: AuditPlan,
    *,
    lack_labels: bool,
) -> dict[str, AddedScore]:
    """Return the sums of each score over all ranges, with the cells at its threshold."""
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
    unlabeled: Mapping[str, pl.DataFrame] = {}
    if lack_labels and decisions:
        unlabeled = _decide_unlabeled(counted, decisions)
    return {
        model: AddedScore.of(
            own, cells.get(model), decisions.get(model), plan.groupings, unlabeled.get(model)
        )
        for model, own in parts.items()
    }


# Sums over the selected rows of segments, and over the others, as columns of a table.
_UNLABELED_SUMS = [
    f"__{sums}_{cell}" for sums in ("weight", "squares", "rows") for cell in ("fp", "tn")
]


def _decide_unlabeled(
    counted: CountedParts, decisions: Mapping[str, Decisions]
) -> dict[str, pl.DataFrame]:
    """Return the sums over rows without a label in the finest segments, for each score."""
    task = partial(_decide_part, decisions=decisions)
    of_parts = [*counted.division.map(task, counted.parts)]
    return {model: pl.concat([each[model] for each in of_parts]) for model in decisions}


def _decide_part(part: Part, decisions: Mapping[str, Decisions]) -> dict[str, pl.DataFrame]:
    """Return the sums of a part, as `_decide_unlabeled` does."""
    columns = part.columns
    weight = pl.lit(1.0)
    if ROW_WEIGHT in columns.plan.collect_schema():
        weight = pl.col(ROW_WEIGHT).cast(pl.Float64)
    number, squares = (weight, weight) if columns.frequency else (pl.lit(1.0), weight**2)
    tables = []
    for place, model in enumerate(columns.models):
        decided, score = decisions[model], pl.col(score_column(place)).cast(pl.Float64)
        threshold = float(round_to_type(decided.threshold, columns.score_types[place]))
        is_selected = (score >= threshold) & decided.selects
        used = pl.col(LABEL).is_null() & (weight > 0) & score.is_not_nan()
        values = [
            pl.when(is_selected == selects).then(value).otherwise(0.0)
            for value in (weight, squares, number)
            for selects in (True, False)
        ]
        named = dict(zip(_UNLABELED_SUMS, values, strict=True))
        rows = columns.plan.filter(used).select(*columns.keys, **named)
        sums = {name: pl.col(name).sum() for name in named}
        tables.append(aggregate(rows, columns.keys, sums))
    return dict(zip(columns.models, collect_all(tables), strict=True))


def _spread_unlabeled(sums: pl.DataFrame, keys: pl.DataFrame) -> Cells:
    """Return the cells of segments with these keys, in which rows without a label are negatives."""
    names = keys.columns
    added = aggregate(sums.lazy(), names, {name: pl.col(name).sum() for name in _UNLABELED_SUMS})
    placed = join_on_keys(keys.lazy(), added, names) if names else added
    values = collect(placed).select(pl.col(_UNLABELED_SUMS).fill_null(0.0)).to_numpy().T
    none = np.zeros(values.shape[1])
    weight, squares, rows = (
        np.stack([none, selected, none, rejected])
        for selected, rejected in values.reshape(3, 2, -1)
    )
    return Cells(weight, squares, rows)


def _sum_cells(
    ranges: Sequence[ScoreRange], decisions: Mapping[str, Decisions], counted: CountedParts
) -> dict[str, Cells]:
    """Return the cells of the finest segments at the threshold chosen for each score.

    Only ranges are read again that a threshold may divide: counts stand for the rows of others.
    """
    undivided = [_stand_in(each, counted, decisions[each.model].threshold) for each in ranges]
    task = partial(decide_range, keys=counted.keys, decisions=decisions)
    found = counted.measure(undivided, task)
    cells = {}
    for model in counted.models:
        own = [part for each, part in zip(ranges, found, strict=True) if each.model == model]
        joined = join_records([part.cells for part in own])
        assert joined is not None
        cells[model] = joined.combine(Numbering.of_parts([part.keys for part in own]).add)
    return cells


def _stand_in(each: ScoreRange, counted: CountedParts, threshold: float) -> ScoreRange:
    """Let the counts of a range that no threshold divides stand for its rows."""
    if each.counts is not None or each.low <= threshold <= each.high:
        return each
    inside = pl.col(LOW) >= each.low, pl.col(HIGH) <= each.high
    return replace(each, counts=counted.counts_of(each.model).filter(inside))


def decide_range(
    each: ScoreRange, rows: Rows, keys: Sequence[str], decisions: Mapping[str, Decisions]
) -> Segments:
    """Return the cells of the finest segments in a range of scores."""
    needs = Needs(aucs=False, decisions=decisions[each.model])
    return measure_segments(rows, keys, each.model, needs)
