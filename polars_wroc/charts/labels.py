"""Names of metrics in sentences, tables and charts."""

from __future__ import annotations

from typing import Literal, TypeAlias

GapMetric: TypeAlias = Literal["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]
NAMES: dict[GapMetric, str] = {
    "auc": "AUC",
    "selection_rate": "selection rate",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision",
    "npv": "negative predictive value",
}
MINUS = "\N{MINUS SIGN}"


def heading(metric: GapMetric) -> str:
    """Name a number where a sentence or a title begins."""
    name = NAMES[metric]
    return f"{name[0].upper()}{name[1:]}"
