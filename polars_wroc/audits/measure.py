"""The tables of an audit, from sums over the rows of its scores.

Each score is measured in the segments of each division. From the sums come the comparisons with
references, fairness metrics and impact ratios, the counts of segments, and thinned curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.calibration_tests import (
    compare_calibration,
    compare_with_target,
)
from polars_wroc.audits.ranked_segments import MeasuredSegments, measure_ranked_divisions
from polars_wroc.audits.score_tables import compare_scores, distribute_audited_scores
from polars_wroc.audits.tables import (
    ALL_KEYS,
    DISTRIBUTION_SCHEMA,
    SEGMENT_COLUMNS,
    AuditPlan,
)
from polars_wroc.groups.categories import CategoryReference, Grouping
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    add_verdicts,
    compare_segments,
)
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    FAIRNESS,
    GAP_METRICS,
    METRICS,
    PLACE,
    REPEATS,
    TARGET,
    UNLABELED,
)
from polars_wroc.groups.fairness import has_all_keys, spread_rows
from polars_wroc.groups.group_columns import (
    SEGMENT_PLACES,
    choose_texts,
    label_segments,
    make_rows,
)
from polars_wroc.groups.group_gaps import make_partition
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
    share_weight,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, ROC_COLUMNS
from polars_wroc.inputs.reasons import EVERYBODY, FEW_EVENTS, NOBODY, UNDEFINED
from polars_wroc.inputs.rows import MissingRows
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.metrics.segments import Segments
from polars_wroc.queries import select_schema
from polars_wroc.ranking.curve import CELLS, ratio
from polars_wroc.ranking.curve_points import AUC_CHANGE
from polars_wroc.stats.designs import ReplicateUnits
from polars_wroc.stats.estimates import Estimate
from polars_wroc.stats.levels import Level
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.registry import RATES

_SELECTION_RATE = "selection_rate"
# Without one of the classes, precisions are 0 or 1 for any decisions.
OF_BOTH_CLASSES = ("ppv", "npv")
# If all rows weigh 1, sums of weights are this close to numbers of rows.
_ROUNDING = 1e-9
_CURVE_COLUMNS = dict.fromkeys(ALL_KEYS, pl.String) | dict.fromkeys(
    (*ROC_COLUMNS, AUC_CHANGE), pl.Float64
)


@dataclass(frozen=True)
class Measured:
    """The tables of an audit, and facts about the measurement.

    ``design_df`` are the degrees of freedom of a design, ``auc_error`` is the possible error of
    AUCs of scores in bins, and rows are ``weighted`` if some have a weight other than 1.
    """

    table: pl.DataFrame
    segments: pl.DataFrame
    curves: pl.DataFrame
    missing: MissingRows
    design_df: int | None
    auc_error: float | None
    weighted: bool
    distributions: pl.DataFrame


@dataclass(frozen=True)
class DividedScore:
    """A score in the segments of one division, with the impact ratios of the categories."""

    grouping: Grouping
    partition: Partition
    measured: MeasuredSegments
    ratios: pl.DataFrame | None

    @property
    def segments(self) -> Segments:
        """The sums over the rows of the segments."""
        return self.measured.segments


def measure(rows: AuditRows, plan: AuditPlan, level: ConfidenceLevel) -> Measured:
    """Return the tables of an audit of rows in memory."""
    rules, divided = plan.rules(level), list[DividedScore]()
    with np.errstate(all="ignore"):
        for place, (model, arrays) in enumerate(rows.arrays.items()):
            measured_score = measure_ranked_divisions(arrays, model, plan)
            divided += make_divided_scores(measured_score, place, model, plan, rules)
        if plan.settings.labeled or not plan.settings.score:
            return make_tables(divided, plan, rules, rows.missing)
        differences = compare_scores(rows, plan, rules.level)
        measured = make_tables(divided, plan, rules, rows.missing, differences)
        return replace(measured, distributions=distribute_audited_scores(rows, plan))


def make_divided_scores(
    measured: Sequence[MeasuredSegments], place: int, model: str, plan: AuditPlan, rules: GapRules
) -> list[DividedScore]:
    """Return the segments of a score with names and references, given the score's place."""
    divided, name = [], plan.score_names[model]
    for number, (grouping, each) in enumerate(zip(plan.groupings, measured, strict=True)):
        at = number, place
        partition = make_partition(
            each.segments, grouping, plan.settings.reference, name, at, rules.min_rows
        )
        ratios = None
        if each.categories is not None:
            categories = name_categories(grouping, each.categories.keys)
            highest, of_impact = CategoryReference("highest", {}), _impact_rules(plan, rules)
            labels = label_segments(grouping, categories, name, at)
            pairs = pair_categories(
                labels, each.categories, categories, grouping, highest, of_impact
            )
            ratios = tabulate_ratios(pairs, of_impact)
        divided.append(DividedScore(grouping, partition, each, ratios))
    return divided


def _impact_rules(plan: AuditPlan, rules: GapRules) -> ImpactRules:
    assert plan.settings.favorable is not None
    return ImpactRules(
        rules.level,
        plan.settings.favorable,
        MIN_SHARE,
        adjust=rules.adjust,
        min_rows=rules.min_rows,
    )


def make_tables(
    divided: Sequence[DividedScore],
    plan: AuditPlan,
    rules: GapRules,
    missing: MissingRows,
    differences: pl.DataFrame | None = None,
) -> Measured:
    """Return the tables of an audit; ``differences`` are the rows of scores without a label."""
    compared = [_compare(each, plan, rules) for each in divided]
    parts = [add_verdicts([one for each in compared for one in each], rules)]
    spreads = list[dict[str, Any]]()
    for each, comparisons in zip(divided, compared, strict=True):
        parts += _list_values(each, plan, rules.level)
        if each.grouping.keys and each.segments.cells is not None:
            spreads += _find_spreads(each, comparisons, plan, rules)
    parts.append(pl.DataFrame(spreads, schema=COMPARISON_SCHEMA, orient="row"))
    if ratios := [each.ratios for each in divided if each.ratios is not None]:
        parts.append(adjust_ratios(ratios, _impact_rules(plan, rules)))
    if differences is not None:
        parts.append(differences)
    joined = pl.concat(parts, how="diagonal_relaxed")
    table = select_schema(joined, COMPARISON_SCHEMA).fill_nan(None)
    segments = pl.concat([_tabulate(each, plan) for each in divided]).sort(SEGMENT_PLACES)
    curves = [_tabulate_curves(each) for each in divided if each.measured.curves is not None]
    of_curves = pl.DataFrame(schema=_CURVE_COLUMNS)
    if curves:
        of_curves = pl.concat(curves).sort(SEGMENT_PLACES, maintain_order=True)
    return Measured(
        _put_in_order(_correct_reasons(table), segments),
        select_schema(segments, SEGMENT_COLUMNS),
        select_schema(of_curves, _CURVE_COLUMNS),
        missing,
        _count_design_df(divided[0].segments),
        _bound_auc_error(divided),
        any(_are_weighted(each.segments) for each in divided),
        DISTRIBUTION_SCHEMA.to_frame(),
    )


def _compare(divided: DividedScore, plan: AuditPlan, rules: GapRules) -> list[Comparison]:
    """Return the comparisons of the segments of a division, and of all rows with a target."""
    partition, calibration = divided.partition, divided.measured.calibration
    if not divided.grouping.keys:
        if calibration is None:
            return []
        target = replace(partition, reference=Reference(-1), reference_name=TARGET)
        return compare_with_target(target, calibration, rules)
    metrics = _choose_metrics(divided.segments, plan)
    compared = compare_segments(metrics, partition, rules)
    if plan.settings.labeled:
        compared = [_leave_uncompared(each) for each in compared]
    if calibration is not None:
        compared += compare_calibration(partition, calibration, rules)
    return compared


def _choose_metrics(segments: Segments, plan: AuditPlan) -> list[str]:
    """Return the metrics whose gaps are to be measured."""
    if segments.cells is None:
        return [ROC_AUC.column]
    return [*GAP_METRICS] if plan.settings.labeled else [_SELECTION_RATE]


def _leave_uncompared(comparison: Comparison) -> Comparison:
    """Return a comparison without precisions that no decision could change."""
    segments, reference = comparison.partition.segments, comparison.partition.reference
    # With or without the segment in the reference, it is compared with the others.
    others = reference.add_others(segments.rows)
    one_class = np.minimum(segments.rows, others).min(axis=0) == 0
    of_both = np.isin(comparison.metrics, OF_BOTH_CLASSES)
    one_class = np.repeat(of_both, segments.number) & np.tile(one_class, of_both.size)
    known = ("n", "value", "value_low", "value_high", "n_reference")
    columns = {
        name: values if name in known else np.where(one_class, np.nan, values)
        for name, values in comparison.columns.items()
    }
    return replace(comparison, columns=columns, one_class=one_class)


def _list_values(divided: DividedScore, plan: AuditPlan, level: Level) -> list[pl.DataFrame]:
    """Return rows of uncompared values: for all rows, and for metrics without a gap."""
    segments = divided.segments
    names = [] if divided.grouping.keys else _choose_metrics(segments, plan)
    if plan.settings.labeled and segments.cells is not None:
        names.append("accuracy")
    metrics, estimates = [METRICS[name] for name in names], list[Estimate]()
    if ROC_AUC.column in names:
        estimates.append(segments.auc.estimate())
    if rates := [RATES[name] for name in names if name in RATES]:
        estimates.append(segments.rates(rates).estimate())
    # In the order of the metrics, of which the AUC is the first
    found = [(each.value, *each.limits(level.quantile(each.df))) for each in estimates]
    if segments.aucs is not None:
        unknown = np.full(segments.number, np.nan)
        metrics.append(CURVE_METRICS["average_precision"])
        found.append((segments.aucs.average_precision, unknown, unknown))
    if not metrics:
        return []
    value, low, high = np.concatenate(found, axis=-1)
    n = [np.add.reduce([*segments.sizes(metric).values()]) for metric in metrics]
    numbers = {"n": np.concatenate(n), "value": value, "value_low": low, "value_high": high}
    texts: dict[str, Iterable[str | None]] = {
        "metric": [metric.column for metric in metrics for _ in range(segments.number)],
        "reason": choose_texts([(np.isnan(value), UNDEFINED)]),
    }
    return [make_rows(pl.concat([divided.partition.labels] * len(metrics)), numbers, texts)]


def _find_spreads(
    divided: DividedScore, comparisons: Sequence[Comparison], plan: AuditPlan, rules: GapRules
) -> list[dict[str, Any]]:
    """Return rows of the fairness metrics of a division, as `fairness` does.

    The test of equal AUCs is the smallest p-value of their gaps, adjusted for the others; not with
    the best segment as reference, which is chosen by its AUC.
    """
    partition, segments = divided.partition, divided.segments
    compared = has_all_keys(segments) | (plan.settings.unknown == "keep")
    by_decisions = compared
    if plan.settings.favorable in ("selected", "rejected"):
        # The categories that impact ratios compare.
        every = segments.cells_of(RATES[_SELECTION_RATE]).count(CELLS)
        share = share_weight(np.where(every.rows == 0, 0.0, every.weight), compared)
        by_decisions = are_comparable(share, compared, MIN_SHARE)
    spreads = spread_rows(
        segments,
        partition.labels[AUDIT_KEYS[1]].to_list(),
        [metric for name, metric in FAIRNESS.items() if plan.settings.labeled or name in UNLABELED],
        rules.level,
        rules.min_rows,
        favorable=plan.settings.favorable,
        compared=compared,
        compared_by_decisions=by_decisions,
    )
    smallest = np.nan
    for each in comparisons:
        if each.metrics == (ROC_AUC.column,):
            p_values = each.columns["p_value"][~each.repeats]
            tests = np.sum(~np.isnan(p_values))
            smallest = min(np.fmin.reduce(p_values, initial=np.nan) * tests, 1.0)
    keys = {name: partition.labels[name][0] for name in (AUDIT_KEYS[0], MODEL)}
    rows = []
    for spread in spreads:
        if spread["metric"] == "auc_difference":
            spread["p_value"] = smallest
        has_number = not np.isnan(spread["gap" if "gap" in spread else "ratio"])
        # Otherwise there are no segments, and so no number.
        if has_number or spread["reason"] in (NOBODY, EVERYBODY):
            rows.append(keys | spread)
    return rows


def _correct_reasons(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose mirrored rows have only reasons that hold for both segments.

    The other segment may be the one that is reported.
    """
    reason, within = pl.col("reason"), ["attribute", MODEL, "metric"]
    few = (reason == FEW_EVENTS).any().over(within)
    is_repeat = reason.str.starts_with(REPEATS)
    told = pl.when(is_repeat).then(pl.when(few).then(pl.lit(FEW_EVENTS)))
    return table.with_columns(told.otherwise(reason).alias("reason"))


def _put_in_order(table: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Return rows in the order of the segments, then by metric."""
    place = segments.select(ALL_KEYS).with_row_index(PLACE)
    metric = pl.col("metric").cast(pl.Enum(list(METRICS)))
    attribute = pl.col(PLACE).min().over("attribute")
    placed = table.join(place, on=ALL_KEYS, how="left", nulls_equal=True, maintain_order="left")
    # Unknown combinations have impact ratios, but are not segments.
    return placed.sort(attribute, PLACE, metric, nulls_last=True, maintain_order=True).drop(PLACE)


def _count_design_df(segments: Segments) -> int | None:
    """Return the degrees of freedom of the design: sampling units less strata."""
    units = segments.units
    if units is None:
        return None
    if isinstance(units, ReplicateUnits):
        return int(units.degrees)
    return int(units.size.sum() - units.size.size)


def _bound_auc_error(divided: Sequence[DividedScore]) -> float | None:
    """Return the largest error of AUCs because of bins of scores; None without bins."""
    aucs = [each.segments.aucs for each in divided]
    away = [
        np.maximum(sums.auc - sums.lowest_auc, sums.highest_auc - sums.auc)
        for sums in aucs
        if sums is not None and sums.lowest is not None
    ]
    return float(np.fmax.reduce(np.concatenate(away), initial=0.0)) if away else None


def _are_weighted(segments: Segments) -> bool:
    """Return whether rows have a weight other than 1, even if sums equal numbers of rows."""
    aucs = segments.aucs
    if aucs is None:
        return False
    away = [np.abs(sums - segments.rows) for sums in (aucs.weight, aucs.squares)]
    return bool(np.fmax.reduce(away, axis=None, initial=0.0) > _ROUNDING)


def _tabulate(divided: DividedScore, plan: AuditPlan) -> pl.DataFrame:
    """Return the numbers of rows by segment, class and decision, weights, and the threshold."""
    segments, cells = divided.segments, divided.segments.cells
    columns = {"n": segments.rows.sum(axis=0), "n_missing": segments.missing}
    if cells is not None:
        decisions = segments.decisions
        assert decisions is not None
        every = segments.cells_of(RATES[_SELECTION_RATE])
        threshold = decisions.threshold
        if not decisions.selects and not np.isnan(threshold):
            threshold = np.inf
        columns |= {
            "n_decided": every.count(CELLS).rows,
            "n_selected": every.count(("tp", "fp")).rows,
            "threshold": np.full(segments.number, threshold),
        }
    if plan.settings.labeled:
        assert segments.aucs is not None
        names, values = ["w_pos", "w_neg"], [*segments.aucs.weight]
        if cells is not None:
            names, values = [*names, *CELLS], [*values, *cells.weight]
        columns |= {"n_pos": segments.rows[0], "n_neg": segments.rows[1]}
        columns |= {
            name: np.where(np.isfinite(weight), weight, np.nan)
            for name, weight in zip(names, values, strict=True)
        }
    return divided.partition.labels.hstack(
        [pl.Series(name, values, nan_to_null=True) for name, values in columns.items()]
    )


def _tabulate_curves(divided: DividedScore) -> pl.DataFrame:
    """Return the thinned ROC curves, with origins, and the change of AUCs by thinning."""
    curves, aucs = divided.measured.curves, divided.segments.aucs
    assert curves is not None
    assert aucs is not None
    places = np.arange(divided.segments.number)
    starts = np.searchsorted(curves.segment, places)
    segment = np.insert(curves.segment, starts, places)
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
        # -0.0 becomes 0.0.
        "threshold": np.insert(curves.threshold + 0.0, starts, np.inf),
        "fpr": fpr,
        "tpr": tpr,
        **cells,
        AUC_CHANGE: (area - aucs.auc)[segment],
    }
    series = [pl.Series(name, values, nan_to_null=True) for name, values in columns.items()]
    return divided.partition.labels[segment].hstack(series)
