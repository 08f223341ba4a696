"""Plans of the sums and columns of a summary, for tables that have it as a part of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.inputs.columns import SEVERAL_SCORES, WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.auc_interval import DESIGN_COLUMNS, INTERVAL_COLUMNS, Interval
from polars_wroc.metrics.auc_variance import AUC_VARIANCE, auc_influences, with_variances_of
from polars_wroc.metrics.registry import SUMMARY_METRICS
from polars_wroc.metrics.summary import AUC_BOUNDS, DIAGNOSTIC_COLUMNS, SUMMARY_COLUMNS
from polars_wroc.plans.formulas import Fields, Step, in_columns, when
from polars_wroc.ranking.curve import Curve, cell
from polars_wroc.ranking.placements import (
    MISSING_ROWS,
    RowCurve,
    reduce_placed,
    row_curve,
    walk_sum,
    walked_class_counts,
)
from polars_wroc.ranking.sorting import PlacedRows


def curve_bounds(curve: Curve, *, over_tpr: bool = False) -> tuple[Curve, Curve]:
    """Return the lowest and the highest curve within `row_curve`, for areas over the fpr or tpr."""
    several = pl.when(SEVERAL_SCORES)
    if over_tpr:
        low = replace(curve, fpr_before=several.then(curve.fpr).otherwise(curve.fpr_before))
        return low, replace(curve, fpr=several.then(curve.fpr_before).otherwise(curve.fpr))
    low = replace(curve, tpr=several.then(curve.tpr_before).otherwise(curve.tpr))
    return low, replace(curve, tpr_before=several.then(curve.tpr).otherwise(curve.tpr_before))


def auc_bound_sums() -> dict[str, pl.Expr]:
    """Aggregations of a group to the bounds of its AUC."""
    bounds = zip(AUC_BOUNDS, curve_bounds(row_curve()), strict=True)
    return {name: registry.roc_auc(bound) for name, bound in bounds}


# Metrics that are neither columns of the interval nor derived from the AUC.
_OF_CURVE = [
    metric
    for metric in SUMMARY_METRICS
    if metric.over_ranges and metric.column not in INTERVAL_COLUMNS
]
# The AUC of a random score.
_CHANCE = 0.5


def summarise(rows: Rows, interval: Interval, *, at_once: bool = False) -> pl.LazyFrame:
    """Summarise checked rows, in any order."""
    interval = interval.for_rows(rows)
    sums = sum_groups(rows, interval)
    columns = summary_columns(sums, diagnostics=True)
    return summary_of(sums, interval, at_once=at_once).select(*rows.keys, *columns)


def sum_groups(rows: Rows, interval: Interval) -> pl.LazyFrame:
    """Reduce each group to the sums that `summary_of` needs."""
    if interval.designed:
        return _sum_designed(rows, interval)
    if rows.compiled and not interval.clustered:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_rows import compiled_sums  # noqa: PLC0415

        return summary_walked(compiled_sums(rows, rows.compiled), rows.keys, interval)

    sums = summary_sums(rows, interval)
    return reduce_placed(
        rows, lambda placed: with_own_cluster_sums(placed, interval).aggregate(sums)
    )


def _sum_designed(rows: Rows, interval: Interval) -> pl.LazyFrame:
    """Reduce each group to these sums and to the variance of its AUC by the design."""

    def reduce(placed: PlacedRows) -> pl.LazyFrame:
        cached = replace(placed, frame=placed.frame.cache())
        sums = cached.aggregate(summary_sums(rows, interval))
        assert rows.design is not None
        influences = auc_influences(cached.frame, rows)
        return with_variances_of(sums, influences, rows.keys, rows.design)

    return reduce_placed(rows, reduce)


def summary_columns(sums: pl.LazyFrame, *, diagnostics: bool = False) -> list[str]:
    """Names of the columns that `summary_of` adds to these sums."""
    given = sums.collect_schema()
    bounds = [name for name in AUC_BOUNDS if name in given]
    designed = AUC_VARIANCE in given or DESIGN_COLUMNS[0] in given
    more = DIAGNOSTIC_COLUMNS if diagnostics else ()
    return [*SUMMARY_COLUMNS, *bounds, *(DESIGN_COLUMNS if designed else ()), *more]


def with_cells(table: pl.LazyFrame) -> pl.LazyFrame:
    """Make the weight of a class null where it overflows, as in a confusion matrix."""
    return table.with_columns(cell(pl.col(f"w_{side}")) for side in CLASSES)


def with_own_cluster_sums(placed: PlacedRows, interval: Interval) -> PlacedRows:
    """Add to each row the sums over its cluster that the interval needs."""
    if not interval.clustered:
        return placed
    return placed.with_cluster_sums(interval.cluster_sums(row_curve().placements))


def summary_sums(
    rows: Rows, interval: Interval, curve: RowCurve | None = None
) -> dict[str, pl.Expr]:
    """Aggregations of a group, or of a part of its curve, to the sums that `summary_of` needs."""
    curve = curve or row_curve()
    sums = _numbers(rows, curve) | interval.sums(curve, pl.col)
    if rows.binned:
        sums |= auc_bound_sums()
    return sums


def summary_of(sums: pl.LazyFrame, interval: Interval, *, at_once: bool = False) -> pl.LazyFrame:
    """Add the columns of the summary to the sums of each group."""
    bounded = AUC_BOUNDS[0] in sums.collect_schema()
    steps: list[Step] = [*interval.steps, partial(_inverted, bounded=bounded)]
    return in_columns(sums, steps, at_once=at_once)


def _numbers(rows: Rows, curve: Curve) -> dict[str, pl.Expr]:
    weight = pl.col(WEIGHT)
    return {
        "n": rows.count_where(weight != 0),
        **rows.class_counts(),
        "n_missing": rows.count_where(weight.is_null()),
        "w_pos": curve.dp.sum(),
        "w_neg": curve.dn.sum(),
        **{metric.column: metric(curve) for metric in _OF_CURVE},
    }


def summary_walked(walked: pl.LazyFrame, keys: Sequence[str], interval: Interval) -> pl.LazyFrame:
    """Name the sums of a walk along the rows of each group as `summary_sums` does."""
    return walked.select(*keys, **walked_numbers(), **interval.walk_sums())


def walked_numbers() -> dict[str, pl.Expr]:
    """Compute these columns from the sums of a walk."""
    numbers = walked_class_counts()
    weights = {f"w_{side}": pl.col(walk_sum("weight", side)) for side in CLASSES}
    return {
        "n": pl.sum_horizontal(numbers.values()),
        **numbers,
        "n_missing": pl.col(MISSING_ROWS),
        **weights,
        **{metric.column: metric.of_walk() for metric in _OF_CURVE},
    }


def _inverted(field: Fields, *, bounded: bool) -> dict[str, pl.Expr]:
    """Say whether the AUC is below chance; null where only the bins may make it so."""
    inverted = field("auc_high") < _CHANCE
    if bounded:
        low, high = (field(name) for name in AUC_BOUNDS)
        known = (high < _CHANCE) | (low >= _CHANCE) | ~inverted
        inverted = when(known).then(inverted)
    return {"inverted": inverted}
