"""Weighted ROC analysis as Polars queries.

Expressions such as `roc_auc`, `partial_auc` and `operating_point` give one value per group in
``select``, ``group_by().agg()`` and ``over``. Functions such as `summary` and `roc_curve` take a
DataFrame or LazyFrame and return a table of the same kind, with a row per group, or per group and
threshold; `audit` compares the groups of several columns. Charts such as `roc_chart` take these
tables. Importing the package registers the functions as ``.wroc`` on expressions and frames.
"""

from importlib import import_module
from typing import Any

from polars_wroc import early_interruption as _early_interruption  # noqa: F401  (comes first)
from polars_wroc.namespaces import registered as _registered  # noqa: F401  (registers .wroc)

__version__ = "0.1.0"

# The public names, each with the module that is imported when the name is first used: importing all
# of them takes almost as long as importing Polars. Type checkers read __init__.pyi.
_MODULES = {
    "Audit": "audits.result",
    "Config": "plans.engine",
    "CostPartialAUC": "metrics.cost_partial_auc",
    "Counts": "namespaces.counts",
    "PartialAUC": "metrics.partial_auc",
    "ReplicateWeights": "inputs.replicate_weights",
    "abroca_test": "groups.abroca_test",
    "auc_chart": "charts",
    "auc_decomposition": "groups.auc_decomposition",
    "audit": "audits.audit",
    "audit_changes": "audits.audit_changes",
    "audit_in_ranges": "audits.audit_in_ranges",
    "average_precision": "metrics.curve_metrics",
    "bootstrap": "metrics.bootstrap",
    "bootstrap_replicates": "metrics.bootstrap",
    "brier_score": "metrics.brier_score",
    "calibration_chart": "charts",
    "calibration_curve": "curves.calibration_curve",
    "calibration_error": "curves.calibration_error",
    "calibration_slope": "curves.calibration_slope",
    "change_chart": "charts",
    "compare": "metrics.compare",
    "confusion_curve": "curves.confusion_curve",
    "confusion_matrix": "thresholds.confusion_matrix",
    "cost_chart": "charts",
    "cost_curve": "curves.cost_curve",
    "cost_partial_auc": "metrics.cost_partial_auc",
    "cross_auc": "groups.cross_auc",
    "curve_metrics": "metrics.curve_metrics",
    "decision_chart": "charts",
    "decision_curve": "curves.decision_curve",
    "det_chart": "charts",
    "det_curve": "curves.pr_det_gain_curves",
    "distribution_chart": "charts",
    "dominated_models": "curves.dominated_models",
    "equal_error_rate": "metrics.curve_metrics",
    "equalized_thresholds": "groups.equalized_thresholds",
    "fairness": "groups.fairness",
    "fairness_chart": "charts",
    "fpr_at_tpr": "curves.tpr_at_fpr",
    "from_counts": "namespaces.counts",
    "gain_chart": "charts",
    "gain_curve": "curves.pr_det_gain_curves",
    "gap_chart": "charts",
    "gini": "metrics.curve_metrics",
    "group_gaps": "groups.group_gaps",
    "h_measure": "metrics.hull_metrics",
    "impact_ratios": "groups.impact_ratios",
    "ks": "metrics.curve_metrics",
    "log_loss": "metrics.log_loss",
    "matrix_chart": "charts",
    "merge_counts": "counts.merge_counts",
    "operating_point": "thresholds.operating_points",
    "operating_points": "thresholds.operating_points",
    "partial_auc": "metrics.partial_auc",
    "partial_auc_ci": "metrics.partial_auc_ci",
    "partial_aucs": "metrics.partial_aucs",
    "pr_auc": "metrics.curve_metrics",
    "pr_chart": "charts",
    "pr_curve": "curves.pr_det_gain_curves",
    "rates_chart": "charts",
    "roc_auc": "metrics.curve_metrics",
    "roc_auc_ci": "metrics.roc_auc_ci",
    "roc_auc_multiclass": "metrics.roc_auc_multiclass",
    "roc_chart": "charts",
    "roc_curve": "curves.roc_curve",
    "roc_hull_auc": "metrics.hull_metrics",
    "roc_influence": "metrics.roc_influence",
    "score_counts": "counts.score_counts",
    "score_distribution": "curves.score_distribution",
    "standardized_mean_difference": "groups.standardized_mean_difference",
    "subgroup_auc": "groups.subgroup_auc",
    "summary": "metrics.summary",
    "summary_in_ranges": "metrics.summary_in_ranges",
    "threshold_chart": "charts",
    "threshold_metrics": "thresholds.threshold_metrics",
    "tpr_at_fpr": "curves.tpr_at_fpr",
    "tradeoff_chart": "charts",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
