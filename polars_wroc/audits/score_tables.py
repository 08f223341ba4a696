"""Scores without a label: mean differences between categories, and distributions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.ranked_segments import number_finest
from polars_wroc.audits.tables import DISTRIBUTION_SCHEMA, AuditPlan
from polars_wroc.buckets import number_groups
from polars_wroc.curves.score_distribution import distribute_scores
from polars_wroc.groups.categories import Grouping
from polars_wroc.groups.comparisons import (
    SMD,
    THE_REFERENCE,
    UNKNOWN_REASON,
    small_share,
)
from polars_wroc.groups.divisions import name_segments
from polars_wroc.groups.group_columns import SEGMENT_PLACES, label_segments
from polars_wroc.groups.impact_ratios import MIN_SHARE
from polars_wroc.groups.known_categories import (
    are_comparable,
    find_named,
    name_categories,
    pool_unknown,
    share_weight,
)
from polars_wroc.inputs.reasons import few_rows
from polars_wroc.metrics.segments import Needs, Numbering, Segments, measure_segments
from polars_wroc.queries import select_schema
from polars_wroc.stats.histograms import choose_range
from polars_wroc.stats.levels import Level
from polars_wroc.stats.mean_differences import FEWEST_SCORES, compare_means
from polars_wroc.stats.references import Reference

_BINS = 20


def compare_scores(rows: AuditRows, plan: AuditPlan, level: Level) -> pl.DataFrame:
    """Return the standardized mean differences of the scores of categories."""
    tables = []
    needs = Needs(aucs=False, scores=True, count_weights=plan.settings.frequency)
    for place, (model, arrays) in enumerate(rows.arrays.items()):
        finest = number_finest(arrays.keys)
        for number, grouping in enumerate(plan.groupings):
            if not grouping.keys:
                continue
            pooled = Numbering(*number_groups(pool_unknown(finest.keys, grouping, plan.unknown)))
            # Grouping numbers of categories is faster than grouping their names.
            keys = pl.DataFrame({"category": pooled.number[finest.number]})
            segments = measure_segments(replace(arrays, keys=keys), keys.columns, model, needs)
            names = name_categories(grouping, pooled.keys)
            labels = label_segments(grouping, names, plan.score_names[model], (number, place))
            tables.append(
                labels.hstack(_compare_categories(segments, names, grouping, plan, level))
            )
    return pl.concat(tables).filter(pl.col("n") > 0)


def _compare_categories(
    segments: Segments, names: pl.Series, grouping: Grouping, plan: AuditPlan, level: Level
) -> pl.DataFrame:
    """Return the differences of a division's categories from the rest or a named one."""
    sums, units = segments.scores, segments.units
    assert sums is not None
    is_known = names.is_not_null().to_numpy()
    share = share_weight(sums.first[0], is_known)
    comparable = are_comparable(share, is_known, MIN_SHARE)
    named = find_named(plan.settings.reference, grouping, names, share, comparable)
    reference = Reference("rest", counts=is_known) if named is None else named
    difference = compare_means(sums, reference, units)
    estimate = difference.estimate()
    is_own = reference.is_own(len(names))
    enough = level.enough(*difference.effective_rows, least=FEWEST_SCORES)
    has_limits = is_known & ~is_own & enough
    limits = estimate.limits(np.where(has_limits, level.quantile(difference.df), np.nan))
    p_value = level.p_value(estimate.value / estimate.standard_error, difference.df)
    value = np.where(is_own, 0.0, estimate.value)
    numbers = {
        "n": sums.rows,
        "value": np.where(is_known & np.isfinite(value), value, np.nan),
        "value_low": limits.low,
        "value_high": limits.high,
        "p_value": np.where(has_limits & comparable, p_value, np.nan),
    }
    fewest = int(level.fewest_rows(FEWEST_SCORES))
    cases = [
        (~is_known, UNKNOWN_REASON),
        (~comparable, small_share(MIN_SHARE)),
        (is_own, THE_REFERENCE),
        (~enough, few_rows(fewest)),
    ]
    reasons = np.select([holds for holds, _ in cases], [reason for _, reason in cases], "")
    reference_name = "rest" if named is None else names[int(named.kind)]
    table = pl.DataFrame(numbers, dict.fromkeys(numbers, pl.Float64), nan_to_null=True)
    return table.with_columns(
        metric=pl.lit(SMD.name),
        reference=pl.when(pl.Series(is_known)).then(pl.lit(reference_name)),
        reason=pl.Series([reason or None for reason in reasons.tolist()], dtype=pl.String),
    )


def distribute_audited_scores(rows: AuditRows, plan: AuditPlan) -> pl.DataFrame:
    """Return the distribution of each score in each segment, all in the same bins.

    Infinite scores are left out.
    """
    tables = []
    for place, (model, arrays) in enumerate(rows.arrays.items()):
        is_used = arrays.complete(model) & np.isfinite(arrays.scores[model])
        ends = choose_range(arrays.scores[model][is_used])
        for number, grouping in enumerate(plan.groupings):
            segments = arrays.segments(grouping.keys, model, complete=is_used)
            found = distribute_scores(replace(segments, bins=None), _BINS, ends, by_class=False)
            names = name_segments(grouping, segments.segments)
            labels = label_segments(grouping, names, plan.score_names[model], (number, place))
            columns = pl.DataFrame(dict(found.columns), nan_to_null=True)
            tables.append(labels[found.segment].hstack(columns))
    table = pl.concat(tables).sort(SEGMENT_PLACES, maintain_order=True)
    return select_schema(table, DISTRIBUTION_SCHEMA)
