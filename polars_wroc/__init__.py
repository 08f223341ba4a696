"""Weighted ROC analysis as Polars queries.

Expressions such as `roc_auc`, `partial_auc` and `operating_point` give one value per group in
``select``, ``group_by().agg()`` and ``over``. Functions such as `summary` and `roc_curve` take a
DataFrame or LazyFrame and return a table of the same kind, with a row per group, or per group and
threshold; `audit` compares the groups of several columns. Charts such as `roc_chart` take these
tables. Importing the package registers the functions as ``.wroc`` on expressions and frames.
"""

from polars_wroc import early_interruption as _early_interruption  # noqa: F401  (comes first)
from polars_wroc.audits.audit import audit
from polars_wroc.audits.audit_changes import audit_changes
from polars_wroc.audits.audit_in_ranges import audit_in_ranges
from polars_wroc.audits.result import Audit
from polars_wroc.charts.auc_chart import auc_chart
from polars_wroc.charts.calibration_chart import calibration_chart
from polars_wroc.charts.change_chart import change_chart
from polars_wroc.charts.cost_chart import cost_chart
from polars_wroc.charts.decision_chart import decision_chart
from polars_wroc.charts.det_chart import det_chart
from polars_wroc.charts.distribution_chart import distribution_chart
from polars_wroc.charts.fairness_chart import fairness_chart
from polars_wroc.charts.gain_chart import gain_chart
from polars_wroc.charts.gap_chart import gap_chart
from polars_wroc.charts.matrix_chart import matrix_chart
from polars_wroc.charts.pr_chart import pr_chart
from polars_wroc.charts.rates_chart import rates_chart
from polars_wroc.charts.roc_chart import roc_chart
from polars_wroc.charts.threshold_chart import threshold_chart
from polars_wroc.charts.tradeoff_chart import tradeoff_chart
from polars_wroc.counts.merge_counts import merge_counts
from polars_wroc.counts.score_counts import score_counts
from polars_wroc.curves.calibration_curve import calibration_curve
from polars_wroc.curves.calibration_error import calibration_error
from polars_wroc.curves.calibration_slope import calibration_slope
from polars_wroc.curves.confusion_curve import confusion_curve
from polars_wroc.curves.cost_curve import cost_curve
from polars_wroc.curves.decision_curve import decision_curve
from polars_wroc.curves.dominated_models import dominated_models
from polars_wroc.curves.pr_det_gain_curves import det_curve, gain_curve, pr_curve
from polars_wroc.curves.roc_curve import roc_curve
from polars_wroc.curves.score_distribution import score_distribution
from polars_wroc.curves.tpr_at_fpr import fpr_at_tpr, tpr_at_fpr
from polars_wroc.groups.abroca_test import abroca_test
from polars_wroc.groups.auc_decomposition import auc_decomposition
from polars_wroc.groups.cross_auc import cross_auc
from polars_wroc.groups.equalized_thresholds import equalized_thresholds
from polars_wroc.groups.fairness import fairness
from polars_wroc.groups.group_gaps import group_gaps
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.groups.standardized_mean_difference import standardized_mean_difference
from polars_wroc.groups.subgroup_auc import subgroup_auc
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.metrics.bootstrap import bootstrap, bootstrap_replicates
from polars_wroc.metrics.brier_score import brier_score
from polars_wroc.metrics.compare import compare
from polars_wroc.metrics.cost_partial_auc import CostPartialAUC, cost_partial_auc
from polars_wroc.metrics.curve_metrics import (
    average_precision,
    curve_metrics,
    equal_error_rate,
    gini,
    ks,
    pr_auc,
    roc_auc,
)
from polars_wroc.metrics.hull_metrics import h_measure, roc_hull_auc
from polars_wroc.metrics.log_loss import log_loss
from polars_wroc.metrics.partial_auc import PartialAUC, partial_auc
from polars_wroc.metrics.partial_auc_ci import partial_auc_ci
from polars_wroc.metrics.partial_aucs import partial_aucs
from polars_wroc.metrics.roc_auc_ci import roc_auc_ci
from polars_wroc.metrics.roc_auc_multiclass import roc_auc_multiclass
from polars_wroc.metrics.roc_influence import roc_influence
from polars_wroc.metrics.summary import summary
from polars_wroc.metrics.summary_in_ranges import summary_in_ranges
from polars_wroc.namespaces import wroc as _wroc  # noqa: F401  (registers .wroc)
from polars_wroc.namespaces.counts import Counts, from_counts
from polars_wroc.plans.engine import Config
from polars_wroc.thresholds.confusion_matrix import confusion_matrix
from polars_wroc.thresholds.operating_points import operating_point, operating_points
from polars_wroc.thresholds.threshold_metrics import threshold_metrics

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Config",
    "CostPartialAUC",
    "Counts",
    "PartialAUC",
    "ReplicateWeights",
    "abroca_test",
    "auc_chart",
    "auc_decomposition",
    "audit",
    "audit_changes",
    "audit_in_ranges",
    "average_precision",
    "bootstrap",
    "bootstrap_replicates",
    "brier_score",
    "calibration_chart",
    "calibration_curve",
    "calibration_error",
    "calibration_slope",
    "change_chart",
    "compare",
    "confusion_curve",
    "confusion_matrix",
    "cost_chart",
    "cost_curve",
    "cost_partial_auc",
    "cross_auc",
    "curve_metrics",
    "decision_chart",
    "decision_curve",
    "det_chart",
    "det_curve",
    "distribution_chart",
    "dominated_models",
    "equal_error_rate",
    "equalized_thresholds",
    "fairness",
    "fairness_chart",
    "fpr_at_tpr",
    "from_counts",
    "gain_chart",
    "gain_curve",
    "gap_chart",
    "gini",
    "group_gaps",
    "h_measure",
    "impact_ratios",
    "ks",
    "log_loss",
    "matrix_chart",
    "merge_counts",
    "operating_point",
    "operating_points",
    "partial_auc",
    "partial_auc_ci",
    "partial_aucs",
    "pr_auc",
    "pr_chart",
    "pr_curve",
    "rates_chart",
    "roc_auc",
    "roc_auc_ci",
    "roc_auc_multiclass",
    "roc_chart",
    "roc_curve",
    "roc_hull_auc",
    "roc_influence",
    "score_counts",
    "score_distribution",
    "standardized_mean_difference",
    "subgroup_auc",
    "summary",
    "summary_in_ranges",
    "threshold_chart",
    "threshold_metrics",
    "tpr_at_fpr",
    "tradeoff_chart",
]


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
