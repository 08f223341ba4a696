"""Minimum sample sizes: the rows that each metric of a group is based on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.by_keys import over
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED

# A struct of booleans: for each metric, whether the group has enough rows for it and, with the
# suffix ``_gap``, for its test.
ENOUGH_ROWS = "__enough_rows"
# Metrics whose gaps between groups are measured.
GAP_METRICS: dict[str, Metric] = {ROC_AUC.column: ROC_AUC, **GAP_RATES}


def compared_metrics(*, rates: bool) -> tuple[str, ...]:
    """Name the metrics whose gaps are measured: the AUC and, with a threshold, the rates."""
    return tuple(GAP_METRICS) if rates else (ROC_AUC.column,)


def sample_sizes(metric: str, weight_type: WeightType) -> list[pl.Expr]:
    """Count the rows that a rate is based on, or the rows of each class for an AUC.

    A row with a frequency weight counts that many times.
    """
    columns = ["n_pos", "n_neg", ROWS_SELECTED, ROWS_REJECTED]
    positives, negatives, selected, rejected = (pl.col(name) for name in columns)
    if weight_type == "frequency":
        positives, negatives = (pl.col(name) for name in OWN_WEIGHTS)
        selected, rejected = pl.col("tp") + pl.col("fp"), pl.col("fn") + pl.col("tn")
    counts: dict[SampleSize, pl.Expr] = {
        "positives": positives,
        "negatives": negatives,
        "rows": positives + negatives,
        "selected": selected,
        "rejected": rejected,
    }
    return [counts[size] for size in GAP_METRICS[metric].sample_sizes]


def outside(partition_keys: Sequence[str]) -> Callable[[pl.Expr], pl.Expr]:
    """Count the rows of the other groups with the same partition keys."""
    return lambda count: over(count.sum(), partition_keys) - count


def both_large_enough(
    metric: str,
    weight_type: WeightType,
    least: int,
    in_reference: Callable[[pl.Expr], pl.Expr],
) -> pl.Expr:
    """Whether a group and its reference have enough rows for a test."""
    counts = sample_sizes(metric, weight_type)
    return pl.all_horizontal(count >= least for own in counts for count in (own, in_reference(own)))


def large_enough(metric: str, weight_type: WeightType, least: int) -> pl.Expr:
    """Whether a group has enough rows for an AUC or a rate."""
    return pl.all_horizontal(count >= least for count in sample_sizes(metric, weight_type))
