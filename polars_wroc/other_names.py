"""Names of functions in other packages, answered with the function of this package."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_RATES = ("threshold_metrics", "confusion_matrix")
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "accuracy_score": _RATES,
    "auc": ("summary", "roc_auc"),
    "average_precision_score": ("average_precision",),
    "balanced_accuracy_score": _RATES,
    "brier_score_loss": ("brier_score",),
    "classification_report": _RATES,
    "decision_curve_analysis": ("decision_curve",),
    "delong_test": ("compare",),
    "demographic_parity_difference": ("fairness",),
    "demographic_parity_ratio": ("fairness",),
    "det_curve": ("roc_curve",),
    "disparate_impact": ("impact_ratios",),
    "equalized_odds_difference": ("fairness",),
    "equalized_odds_ratio": ("fairness",),
    "f1_score": _RATES,
    "lift_curve": ("gain_chart",),
    "matthews_corrcoef": _RATES,
    "metricframe": ("threshold_metrics", "group_gaps"),
    "precision_recall_curve": ("pr_curve",),
    "precision_score": _RATES,
    "recall_score": _RATES,
    "roc_auc_score": ("roc_auc", "summary"),
    "roc_curve_score": ("roc_curve",),
    "roccurvedisplay": ("roc_chart",),
    "thresholdoptimizer": ("equalized_thresholds",),
}


def write_unknown_name(name: str, known: Collection[str]) -> str:
    """Return the message for an attribute that the package does not have."""
    meant = OTHER_NAMES.get(name.lower()) or get_close_matches(name, known, 1)
    hint = f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ""
    return f"module 'polars_wroc' has no attribute {name!r}{hint}"
