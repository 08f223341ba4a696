"""Segments whose rows are ranked, by a plan or by the compiled engine: their sums and curves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from polars_wroc.audits.segments import NO_PROBABILITIES
from polars_wroc.curves.calibration_curve import walked_calibration_sums
from polars_wroc.groups.gaps import place
from polars_wroc.groups.ranked_groups import PlannedGroups, RankedGroups, WalkedGroups
from polars_wroc.groups.references import Reference
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.roc_auc_ci import Interval
from polars_wroc.metrics.summary import walked_numbers, with_own_cluster_sums
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.placements import RowCurve, row_curve
from polars_wroc.ranking.thinning import parts_of, thin_placements
from polars_wroc.ranking.walk_sums import DECIDED_SUMS, over_decisions
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import common_threshold, confusion_at

if TYPE_CHECKING:
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import CompiledRows

CURVE_POINTS = 200


class RankedSums(NamedTuple):
    """Sums of segments that depend on the ranks of their rows, and points of their curves."""

    sums: pl.DataFrame
    points: pl.DataFrame


@dataclass(frozen=True)
class RankedSegments(ABC):
    """Rows of an audit, to be ranked in the segments of each grouping."""

    reference: Reference
    interval: Interval

    @property
    def curve(self) -> RowCurve:
        """The curves of the segments, or the parts of them, that are summed."""
        return row_curve()

    @abstractmethod
    def depends_on_ranks(self, name: str, aggregate: pl.Expr) -> bool:
        """Whether a sum comes from `sums`; the others add up over the smallest segments."""

    @abstractmethod
    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Sum the rows of each of the smallest segments."""

    @abstractmethod
    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Sum the rows of each segment, grouped by the keys of ``rows``."""

    def thresholds(self, rows: Rows, choice: float | Rule) -> pl.DataFrame:
        """Give each model the threshold, or choose one on all rows."""
        return collect(common_threshold(rows, choice))

    @abstractmethod
    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Count the confusion matrix of each of the smallest segments."""

    @abstractmethod
    def groups(self, rows: Rows) -> RankedGroups:
        """Return the segments as groups that are compared."""


@dataclass(frozen=True)
class PlannedSegments(RankedSegments):
    """Rows in the order of their scores, all or those of a range, which windows rank."""

    rows: Rows

    @property
    def curve(self) -> RowCurve:
        """The curves of all rows, or the parts of them in the range."""
        return row_curve(in_range=self.rows.in_range)

    @property
    def _own(self) -> Rows:
        """The rows without those that stand for others."""
        return replace(self.rows, frame=self.rows.inside(self.rows.frame))

    def depends_on_ranks(self, name: str, aggregate: pl.Expr) -> bool:  # noqa: ARG002
        """Whether a sum needs a column that only placed rows have."""
        return not set(self.rows.frame.collect_schema()).issuperset(aggregate.meta.root_names())

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Aggregate the rows in any order."""
        return collect(self.rows.aggregate(self._own.frame, aggregates))

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Place the rows in their segments."""
        placed = rows.inside(place(rows.frame, rows))
        placed = with_own_cluster_sums(placed, rows.keys, self.interval)
        points = thin_placements(rows, placed, CURVE_POINTS)
        # One after the other: to keep what they share for both would cost more than it saves.
        return RankedSums(collect(rows.aggregate(placed, aggregates)), collect(points))

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Compare each row with the threshold."""
        return collect(confusion_at(self._own, thresholds))

    def groups(self, rows: Rows) -> PlannedGroups:
        """Return the segments, whose rows are there to be sorted again."""
        return PlannedGroups(rows, rows.keys, rows.model_keys)


@dataclass(frozen=True)
class WalkedSegments(RankedSegments):
    """Rows that the compiled engine sorted, and walks along."""

    rows: CompiledRows

    @property
    def _walk_sums(self) -> dict[str, pl.Expr]:
        return walked_numbers() | self.interval.walk_sums() | self.reference.walk_sums()

    def depends_on_ranks(self, name: str, aggregate: pl.Expr) -> bool:  # noqa: ARG002
        """Whether a sum is one of a walk."""
        return name in self._walk_sums

    def unranked_sums(self, aggregates: dict[str, pl.Expr]) -> pl.DataFrame:
        """Add up the rows of each code."""
        weight_type: WeightType = "frequency" if self.rows.frequency else "probability"
        values = walked_calibration_sums(weight_type)
        values[NO_PROBABILITIES] = over_decisions("no_probabilities")
        table = self.rows.decided_sums()
        keys = [name for name in table.columns if name not in DECIDED_SUMS]
        return table.select(*keys, **{name: values[name] for name in aggregates})

    def sums(self, rows: Rows, aggregates: dict[str, pl.Expr]) -> RankedSums:
        """Walk along the rows once."""
        compared = not aggregates.keys().isdisjoint(self.reference.walk_sums())
        walked = self.rows.walk(
            rows.group_keys,
            in_all=compared and self.reference.needs_all,
        )
        named = {name: self._walk_sums[name] for name in aggregates}
        points = thin_placements(rows, walked.points.lazy(), CURVE_POINTS)
        return RankedSums(walked.sums.select(*rows.keys, **named), collect(points))

    def decisions(self, thresholds: pl.LazyFrame) -> pl.DataFrame:
        """Sum the rows above and below the threshold."""
        # Needs numba, which is an extra.
        from polars_wroc.thresholds.walked_confusion import walked_confusion_at  # noqa: PLC0415

        return collect(walked_confusion_at(self.rows, thresholds))

    def groups(self, rows: Rows) -> WalkedGroups:
        """Return the segments, to be walked along again."""
        return WalkedGroups(self.rows, rows.keys, rows.model_keys)


def rank_segments(rows: Rows, reference: Reference, interval: Interval) -> RankedSegments:
    """Rank the rows of an audit by the engine that is to compute them."""
    if rows.compiled is None:
        return PlannedSegments(reference, interval, rows)
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415

    frequency = interval.variance.units == "frequency"
    parts = parts_of(CURVE_POINTS)
    compiled = compile_rows(rows, rows.model_keys, frequency=frequency, parts=parts)
    return WalkedSegments(reference, interval, compiled)
