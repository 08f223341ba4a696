"""Weighted ROC analysis as Polars queries.

Expressions such as `roc_auc`, `partial_auc` and `operating_point` are one value per context, in
``select``, ``group_by().agg()`` and ``over``. Functions such as `summary`, `roc_curve` and `audit`
take a DataFrame or LazyFrame and give a table of the same kind, with a row per group, or per
group and threshold. Charts such as `roc_chart` take those tables. Importing the package
registers the same names as ``.wroc`` on expressions and frames.
"""

from polars_wroc import early_interruption as _early_interruption  # noqa: F401  (comes first)
from polars_wroc import namespaces as _namespaces  # noqa: F401  (registers .wroc)
from polars_wroc.areas import CostPartialAUC, PartialAUC
from polars_wroc.auc_interval import roc_auc_ci
from polars_wroc.audit import audit
from polars_wroc.audit_result import Audit
from polars_wroc.calibration import brier_score
from polars_wroc.calibration_bins import calibration_curve, calibration_error
from polars_wroc.charts import (
    auc_chart,
    cost_chart,
    gap_chart,
    pr_chart,
    roc_chart,
    threshold_chart,
)
from polars_wroc.comparison import compare
from polars_wroc.cost_curves import cost_curve
from polars_wroc.count_tables import merge_counts, score_counts
from polars_wroc.counted import Counts, from_counts
from polars_wroc.cross_groups import cross_auc
from polars_wroc.curves import confusion_curve, roc_curve
from polars_wroc.decomposition import auc_decomposition
from polars_wroc.dominance import dominated_models
from polars_wroc.expressions import (
    average_precision,
    curve_metrics,
    equal_error_rate,
    gini,
    ks,
    pr_auc,
    roc_auc,
)
from polars_wroc.fair_thresholds import equalized_thresholds
from polars_wroc.fairness_metrics import fairness
from polars_wroc.gaps import group_gaps
from polars_wroc.hull_areas import h_measure, roc_hull_auc
from polars_wroc.influence import roc_influence
from polars_wroc.multiclass import roc_auc_multiclass
from polars_wroc.partial_areas import cost_partial_auc, partial_auc, partial_auc_ci
from polars_wroc.partial_tables import partial_aucs
from polars_wroc.permutation import abroca_test
from polars_wroc.points import fpr_at_tpr, tpr_at_fpr
from polars_wroc.range_summary import summary_in_ranges
from polars_wroc.rate_curves import det_curve, gain_curve, pr_curve
from polars_wroc.resampling import bootstrap, bootstrap_replicates
from polars_wroc.subgroups import subgroup_auc
from polars_wroc.summary import summary
from polars_wroc.threshold_choice import operating_point, operating_points
from polars_wroc.thresholds import confusion_matrix, threshold_metrics

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "CostPartialAUC",
    "Counts",
    "PartialAUC",
    "abroca_test",
    "auc_chart",
    "auc_decomposition",
    "audit",
    "average_precision",
    "bootstrap",
    "bootstrap_replicates",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "compare",
    "confusion_curve",
    "confusion_matrix",
    "cost_chart",
    "cost_curve",
    "cost_partial_auc",
    "cross_auc",
    "curve_metrics",
    "det_curve",
    "dominated_models",
    "equal_error_rate",
    "equalized_thresholds",
    "fairness",
    "fpr_at_tpr",
    "from_counts",
    "gain_curve",
    "gap_chart",
    "gini",
    "group_gaps",
    "h_measure",
    "ks",
    "merge_counts",
    "operating_point",
    "operating_points",
    "partial_auc",
    "partial_auc_ci",
    "partial_aucs",
    "pr_auc",
    "pr_chart",
    "pr_curve",
    "roc_auc",
    "roc_auc_ci",
    "roc_auc_multiclass",
    "roc_chart",
    "roc_curve",
    "roc_hull_auc",
    "roc_influence",
    "score_counts",
    "subgroup_auc",
    "summary",
    "summary_in_ranges",
    "threshold_chart",
    "threshold_metrics",
    "tpr_at_fpr",
]
