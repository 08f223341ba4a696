"""All that an audit measures, from one sort of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.groupings import Grouping
from polars_wroc.audits.references import AuditReferences
from polars_wroc.audits.tables import AuditTables
from polars_wroc.curves.calibration_curve import (
    calibration_columns,
    calibration_steps,
    calibration_sums,
)
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.groups.auc_sums import with_own
from polars_wroc.groups.fairness import FAIRNESS_COLUMNS, fairness_of
from polars_wroc.groups.gaps import GAP_COLUMNS, GapTests, adjusted_gaps, compare, completed
from polars_wroc.groups.min_rows import large_enough
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import Reference
from polars_wroc.inputs.columns import (
    CLUSTER,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    SEVERAL_SCORES,
    WEIGHT,
)
from polars_wroc.inputs.names import OVERALL, ROC_COLUMNS
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.roc_auc_ci import Interval
from polars_wroc.metrics.summary import (
    summary_columns,
    summary_of,
    summary_sums,
    with_own_cluster_sums,
)
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import collect, collect_all
from polars_wroc.plans.steps import in_columns
from polars_wroc.ranking.confusion_curve import CELLS, SQUARES, cell
from polars_wroc.ranking.contiguous_groups import make_contiguous, placements_in_contiguous_groups
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES, by_descending_score
from polars_wroc.ranking.thinning import AUC_CHANGE, thin_placements, with_auc_change
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import (
    ROWS_REJECTED,
    ROWS_SELECTED,
    common_threshold,
    confusion_at,
)

_CURVE_POINTS = 200
_PLACE = "__place"
_BESIDE_WEIGHT = (CLUSTER, ROW_COUNT, ROW_SQUARES, ROW_CUBES, SCORE_HIGH)
_ATTRIBUTES = pl.col("attribute") != OVERALL
# In how many of the smallest segments a score is no probability.
_NO_PROBABILITIES = "__no_probabilities"
CALIBRATION_COLUMNS = calibration_columns(IN_THE_LARGE)


@dataclass(frozen=True)
class AuditPlan:
    """What to measure, and how."""

    groupings: Sequence[Grouping]
    references: AuditReferences
    choice: float | Rule | None
    interval: Interval
    metrics: ThresholdMetrics
    tests: GapTests


def measure(rows: Rows, plan: AuditPlan) -> AuditTables:
    """Measure checked rows, whose keys are the attributes and perhaps the model."""
    reference = read_reference(
        plan.references.kind, rows, plan.tests.weight_type, plan.tests.min_rows
    )
    everybody = _in_order(rows, reference)
    cells = _cells(everybody, plan)
    sums, points = _reduce(everybody, plan, reference)
    plan.references.check(sums)
    # Measured once for two tables.
    at_threshold = None if cells is None else collect(in_columns(cells, plan.metrics.steps)).lazy()
    segments = _Segments(sums.lazy(), points.lazy(), cells, at_threshold, rows.model_keys)
    tables = {
        "segments": segments.table(plan),
        "curves": segments.curves(),
        "gaps": segments.gaps(plan),
    }
    if not rows.binned and sums.filter(segments.calibrated).height:
        tables["calibration"] = segments.calibration(plan)
    if cells is not None:
        tables["fairness"] = segments.fairness(plan)
    return AuditTables(**dict(zip(tables, collect_all(list(tables.values())), strict=True)))


def _in_order(rows: Rows, reference: Reference) -> Rows:
    """Sort the rows once, with only what the rest needs."""
    attributes = rows.frame.collect_schema()
    # A text takes its place in every window and group: a number does that faster.
    texts = [key for key in rows.keys if attributes[key] == pl.String]
    carried: list[str | pl.Expr] = [name for name in _BESIDE_WEIGHT if name in attributes]
    if rows.binned:
        # A bin of one score in each group may have several in a segment of them.
        carried.append((pl.col(SCORE) < pl.col(SCORE_HIGH)).alias(SEVERAL_SCORES))
    compact = rows.frame.with_columns(pl.col(texts).cast(pl.Categorical)).select(
        *rows.keys, SCORE, *carried, rows.observations.signed_weight.alias(WEIGHT)
    )
    ordered = by_descending_score(Rows(compact, rows.keys))
    table = collect(reference.place_among_all(ordered))
    if table[WEIGHT].null_count() == table.height:
        lacking = table.select(rows.count_where(pl.col(WEIGHT).is_null())).item()
        why = f": {lacking:,} rows lack a label, score or weight" if lacking else ""
        msg = f"`frame` must have rows to audit; found none{why}"
        raise ValueError(msg)
    return Rows(table.lazy(), rows.keys, rows.model_keys, in_order=True)


def _cells(everybody: Rows, plan: AuditPlan) -> pl.LazyFrame | None:
    """Count the decisions in each segment, from those in the smallest ones that there are."""
    if plan.choice is None:
        return None
    thresholds = collect(common_threshold(everybody, plan.choice)).lazy()
    smallest = collect(confusion_at(everybody, thresholds)).lazy()
    sums: dict[str, pl.Expr] = {
        # Null without a threshold, and where one is more than a number.
        name: pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
        for name in (*CELLS, *SQUARES, POSITIVES, NEGATIVES, ROWS_SELECTED, ROWS_REJECTED)
    }
    sums |= {"threshold": pl.col("threshold").first()}
    tables = [
        grouping.named(everybody.regrouped(grouping.keys).aggregate(smallest, sums))
        for grouping in plan.groupings
    ]
    return collect(pl.concat(tables)).lazy()


def _reduce(
    everybody: Rows, plan: AuditPlan, reference: Reference
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Place the rows in the segments of each grouping; all that follows from the sums is small."""
    of_segment = summary_sums(everybody, plan.interval)
    if not everybody.binned:
        of_segment |= calibration_sums(everybody, plan.tests.weight_type)
        of_segment[_NO_PROBABILITIES] = (~pl.col(SCORE).is_between(0, 1)).any()
    aggregates = of_segment | reference.aggregates
    known = set(everybody.frame.collect_schema())
    # What does not depend on a row's place in its segment adds up over smaller segments.
    apart = {name: value for name, value in aggregates.items() if _roots(value) <= known}
    smallest = collect(everybody.aggregate(everybody.frame, apart)).lazy()
    added = {name: pl.col(name).sum() for name in apart}
    tables = []
    for grouping in plan.groupings:
        rows = everybody.regrouped(grouping.keys)
        # Everybody is compared with nobody.
        wanted = aggregates if grouping.keys else of_segment
        placed = {name: value for name, value in wanted.items() if name not in apart}
        own, points = _place_segments(rows, placed, plan.interval)
        sums = join_on_keys(rows.aggregate(smallest, added), own.lazy(), rows.keys)
        if rows.keys:
            sums = sums.sort(rows.keys)
        if grouping.keys:
            sums = completed(sums, rows, reference)
        tables.append(collect_all([grouping.named(sums), grouping.named(points.lazy())]))
        grouping.check_names(tables[-1][0], everybody.model_keys)
    sums_of_all, points_of_all = zip(*tables, strict=True)
    return pl.concat(sums_of_all, how="diagonal"), pl.concat(points_of_all)


def _place_segments(
    rows: Rows, sums: dict[str, pl.Expr], interval: Interval
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Place the rows in their segments; reduce each to the sums and to the points of a curve."""
    used = {CLUSTER}.union(*(_roots(value) for value in sums.values()))
    stacked = make_contiguous(rows, [name for name in rows.frame.collect_schema() if name in used])
    in_place = with_own(placements_in_contiguous_groups(stacked.rows))
    in_place = with_own_cluster_sums(in_place, stacked.rows.keys, interval)
    summed = stacked.rows.aggregate(in_place, sums)
    points = thin_placements(stacked.rows, in_place, _CURVE_POINTS)
    # One after the other: the little that they share costs less than to keep it for both.
    return collect(stacked.named(summed)), collect(stacked.named(points))


def _roots(value: pl.Expr) -> set[str]:
    return set(value.meta.root_names())


class _Segments(NamedTuple):
    """The segments of all groupings, each come down to its sums, its cells and a few points."""

    sums: pl.LazyFrame
    points: pl.LazyFrame
    cells: pl.LazyFrame | None
    # The cells with all that follows from them.
    at_threshold: pl.LazyFrame | None
    models: Sequence[str]

    @property
    def keys(self) -> list[str]:
        """Columns that tell the segments apart."""
        return ["attribute", "segment", *self.models]

    @property
    def partition_keys(self) -> list[str]:
        """Columns that tell apart what is never compared."""
        return ["attribute", *self.models]

    @property
    def calibrated(self) -> pl.Expr:
        """Whether all scores may be probabilities."""
        return over(pl.col(_NO_PROBABILITIES).sum(), self.models) == 0

    def table(self, plan: AuditPlan) -> pl.LazyFrame:
        """Lay out the summary of each segment and its decisions."""
        enough = large_enough("auc", plan.tests.weight_type, plan.tests.min_rows)
        table = summary_of(self.sums, plan.interval).with_columns(small=~enough)
        columns = [*summary_columns(self.sums), "small"]
        if self.at_threshold is not None:
            named = self.at_threshold.rename({ROWS_SELECTED: "n_selected"})
            of_decisions = ["n_selected", *plan.metrics.columns]
            table = join_on_keys(table, named.select(*self.keys, *of_decisions), self.keys)
            columns += of_decisions
        return self._with_names(table, columns)

    def curves(self) -> pl.LazyFrame:
        """Lay out the thinned curves."""
        infinity, zero = pl.lit(float("inf")), pl.lit(0.0)
        classes = {"fn": cell(pl.col("w_pos")), "tn": cell(pl.col("w_neg"))}
        cells = {"threshold": infinity, "tp": zero, "fp": zero} | classes
        origins = self.sums.select(*self.keys, **cells)
        points = self.points.filter((pl.col("tp") > 0) | (pl.col("fp") > 0))
        place = self.sums.select(self.keys).with_row_index(_PLACE)
        both = pl.concat([origins, points.select(*self.keys, *cells)])
        ordered = join_on_keys(both, place, self.keys).sort(_PLACE, "tp", "fp")
        curves = with_auc_change(ordered, self.keys, self.sums)
        return self._with_names(curves, [*ROC_COLUMNS, AUC_CHANGE])

    def calibration(self, plan: AuditPlan) -> pl.LazyFrame:
        """Lay out what those scores promise that may be probabilities, and what comes true."""
        steps = calibration_steps(IN_THE_LARGE, plan.tests.level)
        measured = in_columns(self.sums.filter(self.calibrated), steps)
        return self._with_names(measured, CALIBRATION_COLUMNS)

    def gaps(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compare the segments of each attribute with each other; all tests are one family."""
        tests = plan.tests
        groups = Rows(self.sums, self.keys, self.partition_keys)
        sums = self.sums.filter(_ATTRIBUTES).with_row_index(_PLACE)
        compared = [
            compare(sums.filter(some), self.cells, self.keys, reference, tests)
            for some, reference in plan.references.of(groups, tests.weight_type, tests.min_rows)
        ]
        gaps = pl.concat(compared, how="diagonal")
        adjusted = adjusted_gaps(gaps, self.keys, self.partition_keys, tests.adjust).sort(_PLACE)
        columns = [*GAP_COLUMNS, *([] if self.cells is None else RATE_GAP_COLUMNS)]
        return self._with_names(adjusted, columns)

    def fairness(self, plan: AuditPlan) -> pl.LazyFrame:
        """Lay out the fairness metrics of each attribute, as `fairness` does."""
        assert self.at_threshold is not None
        sums = self.sums.filter(_ATTRIBUTES)
        rates = join_on_keys(sums.select(self.keys), self.at_threshold, self.keys)
        options = replace(plan.interval.options, method="logit-t")
        aucs = summary_of(sums, replace(plan.interval, options=options))
        groups = Rows(rates, self.keys, self.partition_keys)
        table = fairness_of(groups, rates, aucs, plan.tests.weight_type, plan.tests.min_rows)
        place = (
            self.sums.select(self.partition_keys).unique(maintain_order=True).with_row_index(_PLACE)
        )
        ordered = table.join(place, on=self.partition_keys, maintain_order="left")
        ordered = ordered.sort(_PLACE, maintain_order=True)
        texts = [pl.col(name).cast(pl.String) for name in self.models]
        return ordered.select("attribute", *texts, *FAIRNESS_COLUMNS)

    def _with_names(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        texts = [pl.col(name).cast(pl.String) for name in self.keys]
        return table.select(*texts, *columns)
