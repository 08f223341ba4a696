"""Names of metrics in sentences, tables and charts."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from polars_wroc.groups.min_rows import GAP_METRICS

GapMetric: TypeAlias = Literal["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]
# What of a metric changes between two audits: its gap to the reference, or its value.
ChangeMeasure: TypeAlias = Literal["gap", "value"]
MINUS = "\N{MINUS SIGN}"
# Format of gaps, which charts draw in points.
POINTS = "+.1f"
# Kinds of confidence limits.
INTERVAL = "confidence interval"
JOINT_INTERVAL = "joint confidence interval"
BAND = "confidence band"

NAMES: dict[GapMetric, str] = {name: GAP_METRICS[name].label for name in get_args(GapMetric)}


def heading(metric: GapMetric) -> str:
    """Name a number where a sentence or a title begins."""
    return GAP_METRICS[metric].heading


def in_points(title: str) -> str:
    """Add to the title of an axis that its numbers are in points."""
    return f"{title}, in points of 100,"


def interval_name(level: float | None, kind: str = INTERVAL) -> str:
    """Name confidence limits of a kind, with their level if that is known."""
    return f"{'' if level is None else f'{100 * level:g}% '}{kind}"
