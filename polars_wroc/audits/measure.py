"""The tables of an audit, from the rows of its scores.

The rows of each score are ranked once and measured in each division into segments. From their sums
follow the table of segments, the comparisons with references, fairness metrics, impact ratios and
thinned curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl
from polars import selectors

from polars_wroc.arrays import Array
from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.calibration_tests import (
    Calibration,
    compare_calibration,
    compare_with_target,
)
from polars_wroc.audits.ranked_segments import MeasuredSegments, rank_score
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.buckets import number_groups
from polars_wroc.groups.categories import CategoryReference, Grouping
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    add_verdicts,
    compare_segments,
)
from polars_wroc.groups.comparisons import FAIRNESS, GAP_METRICS, METRICS, TARGET
from polars_wroc.groups.divisions import name_segments
from polars_wroc.groups.fairness import has_all_keys, spread_rows
from polars_wroc.groups.group_columns import in_order, label_segments
from polars_wroc.groups.group_gaps import refer_segments
from polars_wroc.groups.impact_ratios import (
    MIN_SHARE,
    ImpactRules,
    adjust_ratios,
    pair_categories,
    tabulate_ratios,
)
from polars_wroc.groups.known_categories import (
    are_comparable,
    name_categories,
    pool_unknown,
    share_weight,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, ROC_COLUMNS
from polars_wroc.inputs.decisions import unknown_conditions
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY
from polars_wroc.inputs.rows import MissingRows
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.auc_sums import interval_columns
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Decisions, Numbering, Segments
from polars_wroc.ranking.curve import CELLS, ratio
from polars_wroc.ranking.curve_points import AUC_CHANGE
from polars_wroc.stats.designs import ReplicateUnits
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.limits import DecidedRows, limit_metrics, measure_metrics
from polars_wroc.thresholds.registry import AUDIT_RATES, RATES

# Columns of `label_segments` by which rows are sorted.
PLACES = ("__division", "__segment", "__model")
_AUC_DIFFERENCE = "auc_difference"
_SELECTION_RATE = "selection_rate"
# How many rows with a label are selected: a column that is not shown.
LABELED_SELECTED = "__n_labeled_selected"
# Precisions where one class lacks are 0 or 1 whatever the decisions.
OF_BOTH_CLASSES = ("ppv", "npv")


@dataclass(frozen=True)
class Measured:
    """Values of each segment, rows of comparisons, and curves.

    ``compared`` are gaps and tests of calibration, whose p-values are adjusted all together.
    """

    segments: pl.DataFrame
    curves: pl.DataFrame
    compared: pl.DataFrame
    missing: MissingRows
    design_df: int | None
    fairness: pl.DataFrame | None = None
    impact: pl.DataFrame | None = None


class ScoreSums(Protocol):
    """The sums of one score over its finest segments, to be measured in any division of these."""

    @property
    def finest(self) -> pl.DataFrame:
        """The keys of the finest segments."""

    @property
    def decisions(self) -> Decisions | None:
        """How rows are decided on."""

    def measure(self, grouping: Grouping) -> MeasuredSegments:
        """Return the segments of a division."""

    def measure_cells(self, numbering: Numbering) -> Segments:
        """Return segments with their cells alone."""


@dataclass(frozen=True)
class DividedSegments:
    """The segments of one division and score, with their names and the columns that name them."""

    grouping: Grouping
    names: pl.Series
    labels: pl.DataFrame
    measured: MeasuredSegments

    @property
    def segments(self) -> Segments:
        """The sums over the rows of the segments."""
        return self.measured.segments

    @property
    def calibration(self) -> Calibration | None:
        """How the scores are calibrated, if they are probabilities."""
        measured = self.measured
        if measured.calibration is None or measured.slopes is None:
            return None
        return Calibration(measured.calibration, measured.slopes, self.segments.units)


@dataclass(frozen=True)
class MeasuredScore:
    """What is measured of one score: its segments in each division, and their impact ratios."""

    divided: Sequence[DividedSegments]
    ratios: Sequence[pl.DataFrame]


def measure(rows: AuditRows, plan: AuditPlan, level: ConfidenceLevel) -> Measured:
    """Return the tables of an audit of rows in memory."""
    rules = read_rules(plan, level)
    scores = []
    with np.errstate(all="ignore"):
        for place, (model, arrays) in enumerate(rows.arrays.items()):
            score = rank_score(arrays, model, plan)
            scores.append(measure_score(score, place, model, plan, rules))
        return make_tables(scores, plan, rules, rows.missing, several=rows.several)


def read_rules(plan: AuditPlan, level: ConfidenceLevel) -> GapRules:
    """Return how gaps are tested and judged at a level."""
    return GapRules(Level.of(level), plan.adjust, plan.margin, plan.min_rows)


def measure_score(
    score: ScoreSums, place: int, model: str, plan: AuditPlan, rules: GapRules
) -> MeasuredScore:
    """Return what is measured of a score, which has a place among all."""
    divided = []
    for number, grouping in enumerate(plan.groupings):
        measured = score.measure(grouping)
        names = pl.Series([OVERALL])
        if grouping.keys:
            names = name_segments(grouping, measured.segments.keys).cast(pl.String)
        labels = label_segments(grouping, names, model, (number, place))
        divided.append(DividedSegments(grouping, names, labels, measured))
    if score.decisions is None or plan.favorable in (None, "neither"):
        return MeasuredScore(divided, [])
    ratios = [
        _find_ratios(score, grouping, model, (number, place), plan, rules)
        for number, grouping in enumerate(plan.groupings)
        if grouping.keys
    ]
    return MeasuredScore(divided, ratios)


def _find_ratios(
    score: ScoreSums,
    grouping: Grouping,
    model: str,
    place: tuple[int, int],
    plan: AuditPlan,
    rules: GapRules,
) -> pl.DataFrame:
    """Return the impact ratios of the known categories of a division."""
    finest = score.finest
    columns = {
        key: (pl.col(key), finest.schema[key], name)
        for key, name in zip(grouping.keys, grouping.names, strict=True)
    }
    unknown = unknown_conditions(plan.unknown, columns)
    pooled = Numbering(*number_groups(pool_unknown(finest, grouping, unknown)))
    segments = score.measure_cells(pooled)
    categories = name_categories(grouping, segments.keys)
    highest = CategoryReference("highest", {})
    labels = label_segments(grouping, categories, model, place)
    impact_rules = _impact_rules(plan, rules)
    pairs = pair_categories(labels, segments, categories, grouping, highest, impact_rules)
    return tabulate_ratios(pairs, impact_rules)


def _impact_rules(plan: AuditPlan, rules: GapRules) -> ImpactRules:
    assert plan.favorable is not None
    return ImpactRules(
        rules.level,
        plan.favorable,
        MIN_SHARE,
        adjust=rules.adjust,
        min_rows=rules.min_rows,
    )


def make_tables(
    scores: Sequence[MeasuredScore],
    plan: AuditPlan,
    rules: GapRules,
    missing: MissingRows,
    *,
    several: bool,
) -> Measured:
    """Return the tables of an audit; the name of the only score is not in them."""
    divided = [each for score in scores for each in score.divided]
    plan.references.check(pl.concat([each.labels for each in divided]))
    comparisons = [_compare(each, plan, rules) for each in divided]
    compared = add_verdicts([one for each in comparisons for one in each], rules)
    compared = in_order(compared, [*METRICS]).with_columns(selectors.float().fill_nan(None))
    has_decisions = divided[0].segments.decisions is not None
    fairness = impact = None
    if has_decisions:
        spreads = zip(divided, comparisons, strict=True)
        fairness = pl.concat(
            [_find_spreads(*each, plan, rules) for each in spreads if each[0].grouping.keys]
        ).with_columns(selectors.float().fill_nan(None))
        # Otherwise there are no segments either, without a number.
        tells_nothing = pl.col("reason").is_in([NOBODY, EVERYBODY])
        fairness = fairness.filter(pl.coalesce("gap", "ratio").is_not_null() | tells_nothing)
    ratios = [table for score in scores for table in score.ratios]
    if ratios:
        impact = adjust_ratios(ratios, _impact_rules(plan, rules))
        impact = impact.with_columns(selectors.float().fill_nan(None))
    segments = pl.concat([_tabulate(each, rules.level) for each in divided])
    curves = pl.concat([_tabulate_curves(each) for each in divided])
    tables = [segments.sort(PLACES), curves.sort(PLACES, maintain_order=True)]
    tables = [*(table.drop(PLACES) for table in tables), compared]
    optional = [fairness, impact]
    if not several:
        tables = [table.drop(MODEL) for table in tables]
        optional = [table if table is None else table.drop(MODEL) for table in optional]
    design_df = _count_design_df(divided[0].segments)
    return Measured(tables[0], tables[1], tables[2], missing, design_df, *optional)


def _count_design_df(segments: Segments) -> int | None:
    """Return the degrees of freedom of the design: its sampling units less its strata."""
    units = segments.units
    if units is None:
        return None
    if isinstance(units, ReplicateUnits):
        return int(units.degrees)
    return int(units.size.sum() - units.size.size)


def _compare(divided: DividedSegments, plan: AuditPlan, rules: GapRules) -> list[Comparison]:
    """Return the comparisons of the segments of a division, and those of all rows with a target."""
    segments, calibration = divided.segments, divided.calibration
    if not divided.grouping.keys:
        if calibration is None:
            return []
        named = divided.names.to_list()
        partition = Partition(divided.labels, named, segments, Reference(-1), TARGET)
        return compare_with_target(partition, calibration, rules)
    partition = refer_segments(
        divided.labels, segments, divided.grouping, plan.references, rules.min_rows
    )
    metrics = [ROC_AUC.column]
    if segments.cells is not None:
        metrics = [*GAP_METRICS] if plan.labeled else [_SELECTION_RATE]
    compared = [compare_segments(metric, partition, rules) for metric in metrics]
    if plan.labeled:
        compared = [_leave_uncompared(each) for each in compared]
    if calibration is not None:
        compared += compare_calibration(partition, calibration, rules)
    return compared


def _leave_uncompared(comparison: Comparison) -> Comparison:
    """Return a comparison without those of precisions that no decision could change."""
    if comparison.metric not in OF_BOTH_CLASSES:
        return comparison
    segments, reference = comparison.partition.segments, comparison.partition.reference
    # Whether a reference includes the segment or not, it is compared with the others.
    others = reference.add_others(segments.rows)
    one_class = np.minimum(segments.rows, others).min(axis=0) == 0
    known = ("n", "value", "value_low", "value_high", "n_reference")
    columns = {
        name: values if name in known else np.where(one_class, np.nan, values)
        for name, values in comparison.columns.items()
    }
    return replace(comparison, columns=columns, one_class=one_class)


def _find_spreads(
    divided: DividedSegments,
    comparisons: Sequence[Comparison],
    plan: AuditPlan,
    rules: GapRules,
) -> pl.DataFrame:
    """Return the fairness metrics of a division, as `fairness` does.

    That AUCs are alike is tested by the smallest p-value of their gaps, adjusted for the others;
    not with the best segment, which is chosen by its AUC.
    """
    metrics = [
        metric
        for metric in FAIRNESS.values()
        if plan.labeled or ROC_AUC.column not in metric.compares
    ]
    names, segments = divided.names.to_list(), divided.segments
    compared = has_all_keys(segments)
    if plan.unknown == "keep":
        compared = np.ones(segments.number, dtype=bool)
    by_decisions = compared
    if plan.favorable in ("selected", "rejected"):
        # The groups that impact ratios compare.
        of_all = segments.cells_of(RATES[_SELECTION_RATE]).count(CELLS)
        weight = np.where(of_all.rows == 0, 0.0, of_all.weight)
        known = pl.Series(
            [
                (MISSING if name is None else name) if holds else None
                for name, holds in zip(names, compared, strict=True)
            ],
            dtype=pl.String,
        )
        share = share_weight(weight, known)
        by_decisions = are_comparable(share, known, MIN_SHARE)
    table = spread_rows(
        segments,
        names,
        metrics,
        rules.level,
        rules.min_rows,
        favorable=plan.favorable,
        compared=compared,
        compared_by_decisions=by_decisions,
    )
    smallest = np.nan
    for each in comparisons:
        if each.metric == ROC_AUC.column:
            p_values = each.columns["p_value"][~each.repeats]
            tests = np.sum(~np.isnan(p_values))
            smallest = min(np.fmin.reduce(p_values, initial=np.nan) * tests, 1.0)
    attribute, model = divided.grouping.attribute, divided.labels[MODEL][0]
    return table.with_columns(
        pl.when(metric=_AUC_DIFFERENCE).then(smallest).otherwise("p_value").alias("p_value"),
        pl.lit(attribute).alias(AUDIT_KEYS[0]),
        pl.lit(model, pl.String).alias(MODEL),
    )


def _tabulate(divided: DividedSegments, level: Level) -> pl.DataFrame:
    """Return the numbers of rows of segments, their AUCs, and their rates at the threshold."""
    segments = divided.segments
    weights = _weigh_classes(segments)
    columns: dict[str, Array | pl.Series] = {
        "n": segments.rows.sum(axis=0),
        "n_pos": segments.rows[0],
        "n_neg": segments.rows[1],
        "n_missing": segments.missing,
        "w_pos": np.where(np.isfinite(weights[0]), weights[0], np.nan),
        "w_neg": np.where(np.isfinite(weights[1]), weights[1], np.nan),
    }
    if segments.aucs is not None:
        interval = interval_columns(segments.aucs, segments.auc, level, "score")
        names = ("auc", "auc_low", "auc_high", "n_eff_pos", "n_eff_neg")
        columns |= {name: interval[name] for name in names}
        columns["average_precision"] = segments.aucs.average_precision
        if segments.aucs.lowest is not None:
            columns["auc_min"] = segments.aucs.lowest_auc
            columns["auc_max"] = segments.aucs.highest_auc
    if segments.cells is not None and segments.decisions is not None:
        columns |= _tabulate_decisions(segments, level)
    series = [pl.Series(name, values, nan_to_null=True) for name, values in columns.items()]
    return divided.labels.hstack(series)


def _weigh_classes(segments: Segments) -> Array:
    """Return the weights of both classes of segments."""
    if segments.aucs is not None:
        return segments.aucs.weight
    assert segments.cells is not None
    tp, fp, fn, tn = segments.cells.weight
    return np.stack([tp + fn, fp + tn])


def _tabulate_decisions(segments: Segments, level: Level) -> dict[str, Array]:
    """Return the cells of segments, and their rates with limits."""
    assert segments.cells is not None
    assert segments.decisions is not None
    threshold = segments.decisions.threshold
    if not segments.decisions.selects and not np.isnan(threshold):
        threshold = np.inf
    thresholds = np.full(segments.number, threshold)
    values, limits = dict[str, Array](), dict[str, Limits]()
    for needs_label in (True, False):
        rates = [rate for rate in AUDIT_RATES.values() if rate.needs_label == needs_label]
        decided = DecidedRows(thresholds, segments.cells_of(rates[0]), segments.units)
        of_rates = measure_metrics(decided, [rate.name for rate in rates])
        limits |= limit_metrics(decided, of_rates, level)
        values |= of_rates
    every = segments.cells_of(RATES[_SELECTION_RATE])
    columns = {
        "n_decided": every.count(CELLS).rows,
        "n_selected": every.count(("tp", "fp")).rows,
        LABELED_SELECTED: segments.cells_of(RATES["ppv"]).count(("tp", "fp")).rows,
        "threshold": thresholds,
    }
    for cell, weight in zip(CELLS, segments.cells.weight, strict=True):
        columns[cell] = np.where(np.isfinite(weight), weight, np.nan)
    for name in AUDIT_RATES:
        columns |= {
            name: values[name],
            f"{name}_low": limits[name].low,
            f"{name}_high": limits[name].high,
        }
    return columns


def _tabulate_curves(divided: DividedSegments) -> pl.DataFrame:
    """Return the thinned ROC curves, each with its origin, and how thinning changed its AUC."""
    curves, aucs = divided.measured.curves, divided.segments.aucs
    if curves is None or aucs is None:
        none = dict.fromkeys([*ROC_COLUMNS, AUC_CHANGE], pl.Float64)
        return divided.labels.clear().hstack(pl.DataFrame(schema=none))
    starts = np.searchsorted(curves.segment, np.arange(divided.segments.number))
    segment = np.insert(curves.segment, starts, np.arange(divided.segments.number))
    selected = np.insert(curves.selected, starts, 0.0, axis=1)
    # The last point selects all rows of both classes.
    ends = np.append(starts[1:], len(curves.segment)) + np.arange(len(starts))
    is_empty = np.diff(starts, append=len(curves.segment)) == 0
    totals = np.where(is_empty, aucs.weight, selected[:, ends])
    (tp, fp), (fn, tn) = selected, totals[:, segment] - selected
    fpr, tpr = ratio(fp, fp + tn), ratio(tp, tp + fn)
    is_first = np.diff(segment, prepend=-1) > 0
    # Trapezoids to the point before
    area = np.diff(fpr, prepend=0.0) * (tpr + np.append(0.0, tpr[:-1])) / 2
    area = np.bincount(segment, np.where(is_first, 0.0, area), divided.segments.number)
    cells = {
        name: np.where(np.isfinite(weight), weight, np.nan)
        for name, weight in zip(CELLS, (tp, fp, fn, tn), strict=True)
    }
    columns = {
        # Zero has one sign.
        "threshold": np.insert(curves.threshold + 0.0, starts, np.inf),
        "fpr": fpr,
        "tpr": tpr,
        **cells,
        AUC_CHANGE: (area - aucs.auc)[segment],
    }
    series = [pl.Series(name, values, nan_to_null=True) for name, values in columns.items()]
    return divided.labels[segment].hstack(series)
