"""Scores without a label: how their means differ between categories, and their distributions."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.ranked_segments import (
    DescendingRows,
    FinestSegments,
    number_finest,
    rank_rows,
)
from polars_wroc.audits.tables import DISTRIBUTION_SCHEMA, AuditPlan
from polars_wroc.buckets import number_groups
from polars_wroc.groups.categories import Grouping
from polars_wroc.groups.comparisons import (
    SMD,
    THE_REFERENCE,
    UNKNOWN_REASON,
    small_share,
)
from polars_wroc.groups.divisions import name_segments
from polars_wroc.groups.group_columns import label_segments
from polars_wroc.groups.impact_ratios import MIN_SHARE
from polars_wroc.groups.known_categories import (
    are_comparable,
    find_named,
    name_categories,
    pool_unknown,
    share_weight,
)
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.inputs.decisions import unknown_conditions
from polars_wroc.inputs.reasons import few_rows
from polars_wroc.metrics.mean_sums import sum_scores
from polars_wroc.metrics.segments import Numbering
from polars_wroc.ranking.curve import ratio
from polars_wroc.rows import Rows
from polars_wroc.stats.levels import Level
from polars_wroc.stats.mean_differences import FEWEST_SCORES, compare_means
from polars_wroc.stats.references import Reference

_BINS = 20
_PLACES = ("__division", "__segment", "__model")


def compare_scores(
    rows: AuditRows, plan: AuditPlan, level: Level, *, count_weights: bool
) -> pl.DataFrame:
    """Return the standardized mean differences of the scores of categories.

    ``count_weights`` says that weights are numbers of rows.
    """
    tables = []
    with np.errstate(all="ignore"):
        for place, (model, arrays) in enumerate(rows.arrays.items()):
            finest = number_finest(arrays.keys)
            descending = rank_rows(arrays, model, finest)
            for number, grouping in enumerate(plan.groupings):
                if grouping.keys:
                    table = _compare_categories(
                        descending,
                        finest,
                        grouping,
                        plan,
                        level,
                        count_weights=count_weights,
                    )
                    names = table["segment"]
                    labels = label_segments(grouping, names, model, (number, place))
                    tables.append(labels.hstack(table.drop("segment")))
    table = pl.concat(tables).sort(_PLACES).filter(pl.col("n") > 0)
    return table.with_columns(pl.lit(SMD.name).alias("metric")).drop(_PLACES)


def _compare_categories(
    descending: DescendingRows,
    finest: FinestSegments,
    grouping: Grouping,
    plan: AuditPlan,
    level: Level,
    *,
    count_weights: bool,
) -> pl.DataFrame:
    """Return the differences of the categories of a division, each from the rest or a named one."""
    columns = {
        key: (pl.col(key), finest.keys.schema[key], name)
        for key, name in zip(grouping.keys, grouping.names, strict=True)
    }
    unknown = unknown_conditions(plan.unknown, columns)
    numbering = Numbering(*number_groups(pool_unknown(finest.keys, grouping, unknown)))
    segments, sample = descending.segments(numbering), descending.rows.sample
    sums = sum_scores(segments, sample, count_weights=count_weights)
    names = name_categories(grouping, numbering.keys)
    is_known = names.is_not_null().to_numpy()
    share = share_weight(sums.first[0], names)
    comparable = are_comparable(share, names, MIN_SHARE)
    named = find_named(plan.references, grouping, names, share, comparable)
    reference = Reference("rest", counts=is_known) if named is None else named
    units = None if sample is None else sample.units
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
    return pl.DataFrame(
        [
            names.alias("segment"),
            *(
                pl.Series(name, each, pl.Float64, nan_to_null=True)
                for name, each in numbers.items()
            ),
            pl.Series("reference", [reference_name if known else None for known in is_known]),
            pl.Series("reason", [reason or None for reason in reasons.tolist()], pl.String),
        ]
    )


def distribute_scores(rows: AuditRows, plan: AuditPlan) -> pl.DataFrame:
    """Return the distribution of each score in each segment, all in the same bins.

    Infinite scores are in none.
    """
    tables = [DISTRIBUTION_SCHEMA.to_frame()]
    with np.errstate(all="ignore"):
        for place, (model, arrays) in enumerate(rows.arrays.items()):
            finest = number_finest(arrays.keys)
            there = arrays.complete(model) & np.isfinite(arrays.scores[model])
            score = arrays.scores[model][there]
            edges = _cut_bins(score)
            number = _number_bins(score, edges)
            for order, grouping in enumerate(plan.groupings):
                numbering = Numbering.of(finest.keys, grouping.keys)
                segment = numbering.number[finest.number[there]]
                names = pl.Series([OVERALL])
                if grouping.keys:
                    names = name_segments(grouping, numbering.keys)
                labels = label_segments(grouping, names, model, (order, place))
                counts = _count_in_bins(arrays, there, segment * _BINS + number, labels.height)
                tables.append(_tabulate_bins(labels, counts, edges))
    table = pl.concat(tables, how="diagonal_relaxed").sort(_PLACES, maintain_order=True)
    return table.select(pl.col(name).cast(dtype) for name, dtype in DISTRIBUTION_SCHEMA.items())


def _cut_bins(score: Array) -> Array:
    """Return the ends of bins of equal width that hold all scores; those of 0 to 1 if these do."""
    low, high = score.min(initial=np.inf), score.max(initial=-np.inf)
    if not len(score) or (low >= 0 and high <= 1):
        low, high = 0.0, 1.0
    elif low == high:
        around = max(abs(low) / 2, 0.5)
        low, high = low - around, high + around
    share = np.arange(_BINS + 1) / _BINS
    # Not a width times a number, which may overflow and may miss the upper end.
    return np.asarray(low * (1 - share) + high * share)


def _number_bins(score: Array, edges: Array) -> Ints:
    """Return the number of each score's bin, which includes its upper end; the first is 0."""
    number = np.searchsorted(edges, score, side="left") - 1
    return np.clip(number, 0, _BINS - 1)


def _count_in_bins(rows: Rows, there: Mask, place: Ints, segments: int) -> tuple[Array, Array]:
    """Return the numbers of rows and the weights in the bins of each segment."""
    size = segments * _BINS
    n = np.asarray(np.bincount(place, rows.n[there], size), np.float64)
    weight = np.asarray(np.bincount(place, np.abs(rows.weight[there]), size), np.float64)
    return n.reshape(segments, _BINS), weight.reshape(segments, _BINS)


def _tabulate_bins(labels: pl.DataFrame, counts: tuple[Array, Array], edges: Array) -> pl.DataFrame:
    """Return a row for each segment and bin."""
    n, weight = counts
    cumulated = weight.cumsum(axis=1)
    total = np.broadcast_to(cumulated[:, -1:], weight.shape)
    share = ratio(weight, total)
    width = np.diff(edges)
    columns = {
        "bin": np.broadcast_to(np.arange(1, _BINS + 1), weight.shape),
        "bin_low": np.broadcast_to(edges[:-1], weight.shape),
        "bin_high": np.broadcast_to(edges[1:], weight.shape),
        "n": n,
        "weight": weight,
        "share": share,
        "density": np.where(width > 0, share / width, np.nan),
        "cumulative": ratio(cumulated, total),
    }
    series = [pl.Series(name, values.ravel(), nan_to_null=True) for name, values in columns.items()]
    segment = np.repeat(np.arange(labels.height), _BINS)
    return labels[segment].hstack(series)
