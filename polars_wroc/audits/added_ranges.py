"""Segments whose sums were measured in ranges of scores, and add up to those of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from polars_wroc.audits.range_sums import RangeSums
from polars_wroc.audits.ranked_segments import CURVE_POINTS, RankedSegments, RankedSums
from polars_wroc.groups.auc_sums import AucSums
from polars_wroc.groups.ranked_groups import RankedGroups
from polars_wroc.inputs.columns import RANGE
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.score_ranges import add_ranges, of_whole_curve
from polars_wroc.plans.by_keys import aggregate, join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES
from polars_wroc.ranking.curve import origins
from polars_wroc.ranking.thinning import thin_parts
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import choose_point, thresholds_of

# Counts the decisions of all ranges at chosen thresholds.
Decide: TypeAlias = Callable[[pl.DataFrame], Sequence[pl.DataFrame]]


@dataclass(frozen=True)
class AddedSegments(RankedSegments):
    """Sums over all ranges, from the highest down."""

    ranges: Sequence[RangeSums]
    # The rows counted in bins.
    counts: pl.DataFrame
    decide: Decide

    def depends_on_ranks(self, name: str, aggregate: pl.Expr) -> bool:  # noqa: ARG002
        """Whether a sum was measured in each grouping."""
        return name not in self.ranges[0].of_smallest.columns

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:  # noqa: ARG002
        """Return the sums over the smallest segments in each range."""
        numbered = [
            each.of_smallest.with_columns(pl.lit(number).alias(RANGE))
            for number, each in enumerate(self.ranges)
        ]
        return collect(self.reference.to_add_up(_stacked(numbered).lazy()))

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:  # noqa: ARG002
        """Add up the sums, and join the parts of the curves."""
        tables = [each.of_groupings[tuple(rows.group_keys)] for each in self.ranges]
        added = of_whole_curve(add_ranges([table.sums for table in tables], rows.keys))
        points = _stacked([table.points for table in tables])
        return RankedSums(collect(added), collect(thin_parts(rows, points.lazy(), CURVE_POINTS)))

    def thresholds(self, choice: float | Rule) -> pl.DataFrame:
        """Choose the best of the best points of the ranges."""
        if not isinstance(choice, Rule):
            return super().thresholds(choice)
        models = self.rows.model_keys
        sums = {POSITIVES: pl.col("w_pos").sum(), NEGATIVES: pl.col("w_neg").sum()}
        totals = aggregate(self.counts.lazy(), models, sums)
        best = [each.best.lazy() for each in self.ranges if each.best is not None]
        points = pl.concat([origins(totals, models), *best], how="diagonal_relaxed")
        chosen = choose_point(points, models, choice)
        return collect(thresholds_of(chosen, models))

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Return the confusion matrices of the smallest segments in each range."""
        known = [each.cells for each in self.ranges if each.cells is not None]
        return _stacked(known or self.decide(collect(thresholds)))

    def groups(self, rows: Rows) -> AddedGroups:
        """Return the segments, whose complements were summed if they are small."""
        keys = tuple(rows.group_keys)
        without = [each.without[keys] for each in self.ranges if keys in each.without]
        return AddedGroups(without, rows.keys, rows.model_keys)


@dataclass(frozen=True)
class AddedGroups(RankedGroups):
    """Groups that are compared, of some of which all others were summed in each range."""

    without: Sequence[pl.DataFrame]
    keys: Sequence[str]
    partition_keys: Sequence[str]

    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Add up the sums over all others, as far as they were measured."""
        if not self.without:
            return groups.clear().with_columns(**dict.fromkeys(sums.walk_sums(), pl.lit(0.0)))
        return join_on_keys(groups, add_ranges(self.without, self.keys), self.keys, how="inner")


def _stacked(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="vertical_relaxed")
