"""The metrics of a whole curve by name, and the reading of the argument ``metrics``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from polars_wroc.inputs import arguments
from polars_wroc.metrics.cost_partial_auc import CostPartialAUC
from polars_wroc.metrics.formulas import (
    Metric,
    average_precision,
    equal_error_rate,
    gini,
    ks,
    pr_auc,
    roc_auc,
)
from polars_wroc.metrics.partial_auc import PartialAUC

MetricName: TypeAlias = Literal[
    "roc_auc", "gini", "ks", "average_precision", "pr_auc", "equal_error_rate"
]
OneMetric: TypeAlias = MetricName | PartialAUC | CostPartialAUC
Metrics: TypeAlias = OneMetric | Sequence[MetricName] | Mapping[str, OneMetric]

METRICS: dict[str, Metric] = {
    metric.__name__: metric
    for metric in (roc_auc, gini, ks, average_precision, pr_auc, equal_error_rate)
}


def named_metrics(metrics: Metrics) -> dict[str, Metric]:
    """Read the argument ``metrics``: one metric or several, by name."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, PartialAUC | CostPartialAUC):
        name = "partial_auc" if isinstance(metrics, PartialAUC) else "cost_partial_auc"
        metrics = {name: metrics}
    if not isinstance(metrics, Sequence | Mapping) or isinstance(metrics, bytes):
        arguments.reject_type("metrics", "be the name of a metric or several of them", metrics)
    if isinstance(metrics, Sequence):
        unnamed = [metric for metric in metrics if not isinstance(metric, str)]
        if unnamed:
            msg = (
                "`metrics` must be names of metrics, or a mapping that gives each metric a name; "
                f"found {unnamed[0]!r} without a name"
            )
            raise TypeError(msg)
    if not metrics or len(set(metrics)) < len(metrics):
        msg = f"`metrics` must hold one metric or several different ones; found {metrics!r}"
        raise ValueError(msg)
    asked = metrics if isinstance(metrics, Mapping) else {name: name for name in metrics}
    return {name: _formula(name, metric) for name, metric in asked.items()}


def _formula(name: object, metric: object) -> Metric:
    if not isinstance(name, str) or name.startswith("__"):
        msg = f"`metrics` must have names that do not start with two underscores; found {name!r}"
        raise ValueError(msg)
    if isinstance(metric, PartialAUC | CostPartialAUC):
        return metric
    if not isinstance(metric, str):
        rule = "hold names of metrics, PartialAUC(...) or CostPartialAUC(...)"
        arguments.reject_type("metrics", rule, metric)
    arguments.option("metrics", metric, get_args(MetricName))
    return METRICS[metric]
