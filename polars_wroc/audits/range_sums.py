"""The sums of an audit over one range of scores, measured wherever the rows of the range are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.measure import reference_of, wanted_sums
from polars_wroc.audits.plan import AuditPlan
from polars_wroc.audits.ranked_segments import PlannedSegments, RankedSums
from polars_wroc.counts.score_sums import as_counted
from polars_wroc.inputs.columns import OUTSIDE, ROW_COUNT, ROW_CUBES, ROW_SQUARES, SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.score_ranges import ScoreRange
from polars_wroc.plans.by_keys import with_categories
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.curve import points_of_rows
from polars_wroc.ranking.placements import add_placements
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import best_points, confusion_at

# The keys of a grouping.
GroupingKeys: TypeAlias = tuple[str, ...]


class RangeSums(NamedTuple):
    """What one range adds to an audit."""

    of_smallest: pl.DataFrame
    of_groupings: dict[GroupingKeys, RankedSums]
    # Of groups that are nearly all rows: the sums over all others.
    without: dict[GroupingKeys, pl.DataFrame]
    # Confusion matrices of the smallest segments at a given threshold.
    cells: pl.DataFrame | None
    # For a rule that chooses the threshold: the best point of each model.
    best: pl.DataFrame | None


@dataclass(frozen=True)
class SumsOfAudit:
    """The task to sum a range, given the groups of each grouping that are nearly all rows."""

    plan: AuditPlan
    large: Mapping[GroupingKeys, pl.DataFrame]

    def __call__(self, each: ScoreRange, rows: Rows) -> RangeSums:
        """Read the rows of the range once, and sum them in all groupings."""
        schema = rows.frame.collect_schema()
        types = {key: schema[key] for key in rows.keys}
        sums = self._sums(_rank(each, rows, self.plan))
        # Categories stay where they are made.
        return RangeSums(
            _retyped(sums.of_smallest, types),
            {
                keys: RankedSums(_retyped(of_all.sums, types), _retyped(of_all.points, types))
                for keys, of_all in sums.of_groupings.items()
            },
            {keys: _retyped(table, types) for keys, table in sums.without.items()},
            None if sums.cells is None else _retyped(sums.cells, types),
            sums.best,
        )

    def _sums(self, ranked: PlannedSegments) -> RangeSums:
        rows, choice = ranked.rows, self.plan.choice
        wanted = wanted_sums(rows, self.plan, ranked)
        cells = best = None
        if isinstance(choice, Rule):
            best = _best_points(rows, choice)
        elif choice is not None:
            cells = ranked.decisions(ranked.thresholds(choice).lazy())
        return RangeSums(
            ranked.unranked_sums(wanted.of_smallest),
            {
                grouping.keys: ranked.sums(rows.regrouped(grouping.keys), aggregates)
                for grouping, aggregates in zip(
                    self.plan.groupings, wanted.of_groupings, strict=True
                )
            },
            {keys: _sums_without(ranked, large) for keys, large in self.large.items()},
            cells,
            best,
        )


def decisions(_: ScoreRange, rows: Rows, thresholds: pl.DataFrame) -> pl.DataFrame:
    """Count the confusion matrices of the smallest segments in a range."""
    return collect(confusion_at(as_counted(rows), thresholds.lazy()))


def _rank(each: ScoreRange, rows: Rows, plan: AuditPlan) -> PlannedSegments:
    """Hold the rows of a range in the order of their scores, placed among all rows."""
    counted = each.between(as_counted(rows))
    reference = reference_of(counted, plan)
    sums = [ROW_COUNT, ROW_SQUARES, ROW_CUBES]
    frame = counted.frame.select(*counted.keys, SCORE, WEIGHT, *sums, OUTSIDE)
    table = collect(reference.place_among_all(with_categories(frame, counted.keys)))
    read = replace(counted, frame=table.lazy())
    return PlannedSegments(reference, plan.interval.for_rows(read), read)


def _best_points(rows: Rows, rule: Rule) -> pl.DataFrame:
    overall = rows.regrouped([])
    placed = rows.inside(add_placements(rows.frame, overall.keys, pl.col(WEIGHT)))
    # The origin, where missing rows are, belongs to no range.
    scored = placed.filter(pl.col(SCORE).is_not_null())
    return collect(best_points(points_of_rows(overall, scored), overall.keys, rule))


def _sums_without(ranked: PlannedSegments, large: pl.DataFrame) -> pl.DataFrame:
    schema = ranked.rows.frame.collect_schema()
    keys = [key for key in large.columns if key not in ranked.rows.model_keys]
    groups = large.lazy().cast({key: schema[key] for key in large.columns})
    return collect(
        ranked.reference.sums_without(ranked.groups(ranked.rows.regrouped(keys)), groups)
    )


def _retyped(table: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Give keys the types that they have in all ranges."""
    return table.cast({key: dtype for key, dtype in types.items() if key in table.columns})
