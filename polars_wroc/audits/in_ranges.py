"""Audits of more rows than fit into memory: measured in ranges of scores, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.measure import (
    Measured,
    measure,
    measure_segments,
    reference_of,
    sums_of_smallest,
)
from polars_wroc.audits.ranked_segments import (
    CURVE_POINTS,
    PlannedSegments,
    RankedSegments,
    RankedSums,
    TooManyRowsError,
    refuse_no_rows,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.audits.words import required_values
from polars_wroc.counts.score_sums import LOW, as_counted, check_labels
from polars_wroc.inputs.columns import OUTSIDE, ROW_COUNT, ROW_CUBES, ROW_SQUARES, SCORE, WEIGHT
from polars_wroc.inputs.rows import MISSING_MARKS, MissingRows, Rows, count_missing
from polars_wroc.metrics.score_ranges import (
    CountedParts,
    ScoreRange,
    add_ranges,
    require_unchanged,
    rows_by_score,
    together,
)
from polars_wroc.plans.config import Division, without_spilling
from polars_wroc.plans.queries import aggregate, collect, with_categories
from polars_wroc.ranking.curve import origins, points_of_rows
from polars_wroc.ranking.curve_points import thin_parts
from polars_wroc.ranking.placements import add_placements
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.logistic_fit import BIN_WIDTHS, FittedRows
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import (
    THRESHOLD,
    best_points,
    choose_point,
    confusion_at,
    thresholds_of,
)


class RangeSums(NamedTuple):
    """What one range adds to an audit."""

    of_smallest: pl.DataFrame
    # By the keys of a grouping.
    of_groupings: dict[tuple[str, ...], RankedSums]
    # Confusion matrices of the smallest segments at a given threshold.
    cells: pl.DataFrame | None
    # For a rule that chooses the threshold: the best point of each model.
    best: pl.DataFrame | None
    # Moments of the logits in bins, for calibration slopes.
    bins: pl.DataFrame


def sums_of_range(each: ScoreRange, rows: Rows, plan: AuditPlan) -> RangeSums:
    """Read the rows of a range once, and sum them in all groupings."""
    # Categories stay where they are made.
    schema = rows.frame.collect_schema()

    def retyped(table: pl.DataFrame) -> pl.DataFrame:
        return table.cast({key: schema[key] for key in rows.keys if key in table.columns})

    ranked, choice = _rank(each, rows, plan), plan.choice
    of_smallest, wanted = sums_of_smallest(ranked.rows, plan, ranked)
    cells = best = None
    if isinstance(choice, Rule):
        best = _best_points(ranked.rows, choice)
    elif choice is not None:
        cells = retyped(ranked.decisions(ranked.thresholds(choice).lazy()))
    of_groupings = {}
    for grouping, aggregates in zip(plan.groupings, wanted, strict=True):
        own = ranked.sums(ranked.rows.regrouped(grouping.keys), aggregates)
        of_groupings[grouping.keys] = RankedSums(retyped(own.sums), retyped(own.points))
    probabilities = ranked.rows.frame.filter(pl.col(SCORE).is_between(0, 1))
    fitted = replace(ranked, rows=replace(ranked.rows, frame=probabilities)).fitted_rows()
    bins = retyped(fitted.bins(BIN_WIDTHS[-1]))
    return RangeSums(retyped(of_smallest), of_groupings, cells, best, bins)


def decisions(_: ScoreRange, rows: Rows, thresholds: pl.DataFrame) -> pl.DataFrame:
    """Count the confusion matrices of the smallest segments in a range."""
    return collect(confusion_at(as_counted(rows), thresholds.lazy()))


def _rank(each: ScoreRange, rows: Rows, plan: AuditPlan) -> PlannedSegments:
    """Hold the rows of a range in the order of their scores, placed among all rows."""
    counted = each.between(as_counted(rows))
    reference = reference_of(counted, plan)
    sums = [ROW_COUNT, ROW_SQUARES, ROW_CUBES]
    frame = counted.frame.select(*counted.keys, SCORE, WEIGHT, *sums, OUTSIDE)
    table = collect(with_categories(frame, counted.keys))
    read = replace(counted, frame=table.lazy())
    return PlannedSegments(reference, plan.interval.for_rows(read), read)


def _best_points(rows: Rows, rule: Rule) -> pl.DataFrame:
    overall = rows.regrouped([])
    placed = rows.inside(add_placements(rows.frame, overall.keys, pl.col(WEIGHT)))
    # The origin, where missing rows are, belongs to no range.
    scored = placed.filter(pl.col(SCORE).is_not_null())
    return collect(best_points(points_of_rows(overall, scored), overall.keys, rule))


@dataclass(frozen=True)
class AddedSegments(RankedSegments):
    """Sums over all ranges, from the highest down."""

    sums_of_ranges: Sequence[RangeSums]
    # The rows counted in bins, and the ranges they are cut into.
    counted: CountedParts
    ranges: Sequence[ScoreRange]

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:  # noqa: ARG002
        """Return the sums over the smallest segments in each range."""
        return _stacked([each.of_smallest for each in self.sums_of_ranges])

    are_held = False

    def fitted_rows(self) -> FittedRows:
        """Return the bins of all ranges."""
        return self

    def bins(self, width: float) -> pl.DataFrame:  # noqa: ARG002
        """Return the bins of each range; two ranges may share one."""
        return _stacked([each.bins for each in self.sums_of_ranges])

    def points(self, groups: pl.DataFrame | None) -> pl.DataFrame:
        """Return no rows, which are not held."""
        raise NotImplementedError

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:  # noqa: ARG002
        """Add up the sums, and join the parts of the curves."""
        tables = [each.of_groupings[tuple(rows.group_keys)] for each in self.sums_of_ranges]
        added = add_ranges([table.sums for table in tables], rows.keys)
        points = _stacked([table.points for table in tables])
        return RankedSums(collect(added), collect(thin_parts(rows, points.lazy(), CURVE_POINTS)))

    def thresholds(self, choice: float | Rule) -> pl.DataFrame:
        """Choose the best of the best points of the ranges."""
        if not isinstance(choice, Rule):
            return super().thresholds(choice)
        models = self.rows.model_keys
        sums = {POSITIVES: pl.col("w_pos").sum(), NEGATIVES: pl.col("w_neg").sum()}
        totals = aggregate(self.counted.counts.lazy(), models, sums)
        best = [each.best.lazy() for each in self.sums_of_ranges if each.best is not None]
        points = pl.concat([origins(totals, models), *best], how="diagonal_relaxed")
        chosen = choose_point(points, models, choice)
        return collect(thresholds_of(chosen, models))

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Return the confusion matrices of the smallest segments in each range.

        For chosen thresholds only ranges are read again that one of them may divide.
        """
        known = [each.cells for each in self.sums_of_ranges if each.cells is not None]
        if known:
            return _stacked(known)
        chosen = collect(thresholds)
        given = chosen[THRESHOLD].drop_nulls()
        ranges = [_undivided(each, self.counted.counts, given) for each in self.ranges]
        decided = partial(decisions, thresholds=chosen)
        return _stacked(self.counted.measure(ranges, decided, self.rows.keys))


def _stacked(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="vertical_relaxed")


# Memory of a row of a range.
BYTES_IN_RANGE = 250


def measure_within(parts: Sequence[Rows], plan: AuditPlan, division: Division) -> Measured:
    """Measure all rows at once, and if they turn out to exceed the memory in ranges of scores."""
    with suppress(TooManyRowsError), without_spilling():
        return measure(together(parts), plan, division)
    keys = parts[0].keys
    marks = [part.regrouped([*part.group_keys, MISSING_MARKS]) for part in parts]
    counted = CountedParts.of(marks, division)
    counts = collect(check_labels(counted.counts.lazy(), []))
    if not counts.select(pl.sum_horizontal("n_pos", "n_neg").sum()).item():
        refuse_no_rows(int(counts["n_missing"].sum()), required_values(recorded=False))
    unmarked = [replace(part, frame=part.frame.drop(MISSING_MARKS)) for part in parts]
    counted = replace(counted, parts=unmarked, counts=counts)
    rows = rows_by_score(counts.lazy(), keys, parts[0].model_keys)
    ranges = counted.cut(keys, BYTES_IN_RANGE)
    sums = counted.measure(ranges, partial(sums_of_range, plan=plan), keys)
    require_unchanged(ranges, [each.of_smallest for each in sums])
    ranked = AddedSegments(
        reference_of(rows, plan), plan.interval.for_rows(rows), rows, sums, counted, ranges
    )
    return measure_segments(plan, ranked, _missing(counts, marks[0], plan))


def _missing(counts: pl.DataFrame, marked: Rows, plan: AuditPlan) -> MissingRows:
    """Count the rows that miss a value from the counts of marked rows."""
    rows = rows_by_score(counts.lazy(), marked.keys, marked.model_keys)
    return count_missing(collect(rows.frame), marked.names, plan.scores)


def _undivided(each: ScoreRange, counts: pl.DataFrame, thresholds: pl.Series) -> ScoreRange:
    """Let the counts of a range that no threshold divides stand for its rows."""
    low, high = each.span.low, each.span.high
    if each.known is not None or thresholds.is_between(float(low), float(high)).any():
        return each
    return replace(each, known=counts.filter(pl.col(LOW).is_between(low, high)))
