# The public names, which __init__.py reads too, and where they are defined.

from . import data as data
from .audits.audit import audit as audit
from .audits.audit_changes import audit_changes as audit_changes
from .audits.new_york import NewYorkSummary as NewYorkSummary
from .audits.new_york import new_york_summary as new_york_summary
from .audits.result import Audit as Audit
from .audits.tables import Text as Text
from .charts.cost_chart import cost_chart as cost_chart
from .charts.distribution_chart import distribution_chart as distribution_chart
from .charts.gain_chart import gain_chart as gain_chart
from .charts.gap_chart import auc_chart as auc_chart
from .charts.gap_chart import gap_chart as gap_chart
from .charts.pr_det_charts import det_chart as det_chart
from .charts.pr_det_charts import pr_chart as pr_chart
from .charts.rates_chart import rates_chart as rates_chart
from .charts.calibration_chart import calibration_chart as calibration_chart
from .charts.decision_chart import decision_chart as decision_chart
from .charts.roc_chart import roc_chart as roc_chart
from .charts.table_charts import matrix_chart as matrix_chart
from .charts.table_charts import tradeoff_chart as tradeoff_chart
from .charts.threshold_chart import threshold_chart as threshold_chart
from .counts.score_counts import merge_counts as merge_counts
from .counts.score_counts import score_counts as score_counts
from .curves.calibration_curve import calibration_curve as calibration_curve
from .curves.calibration_summary import calibration_summary as calibration_summary
from .curves.cost_curve import cost_curve as cost_curve
from .curves.decision_curve import decision_curve as decision_curve
from .curves.cost_curve import dominated_models as dominated_models
from .curves.roc_curve import confusion_curve as confusion_curve
from .curves.roc_curve import pr_curve as pr_curve
from .curves.roc_curve import roc_curve as roc_curve
from .curves.roc_point import roc_point as roc_point
from .curves.score_distribution import score_distribution as score_distribution
from .curves.validation import validate as validate
from .groups.abroca_test import abroca_test as abroca_test
from .groups.categories import ranges as ranges
from .groups.cross_auc import auc_decomposition as auc_decomposition
from .groups.cross_auc import cross_auc as cross_auc
from .groups.equalized_thresholds import equalized_thresholds as equalized_thresholds
from .groups.fairness import fairness as fairness
from .groups.group_gaps import group_gaps as group_gaps
from .groups.impact_ratios import impact_ratios as impact_ratios
from .groups.standardized_mean_difference import (
    standardized_mean_difference as standardized_mean_difference,
)
from .groups.subgroup_auc import subgroup_auc as subgroup_auc
from .groups.worst_segments import worst_segments as worst_segments
from .inputs.columns import frequency as frequency
from .inputs.designs import ReplicateWeights as ReplicateWeights
from .inputs.designs import Survey as Survey
from .metrics.bootstrap import bootstrap as bootstrap
from .metrics.bootstrap import bootstrap_replicates as bootstrap_replicates
from .metrics.brier_and_log_loss import brier_score as brier_score
from .metrics.brier_and_log_loss import log_loss as log_loss
from .metrics.compare import compare as compare
from .metrics.curve_metrics import average_precision as average_precision
from .metrics.curve_metrics import curve_metrics as curve_metrics
from .metrics.curve_metrics import equal_error_rate as equal_error_rate
from .metrics.curve_metrics import gini as gini
from .metrics.curve_metrics import h_measure as h_measure
from .metrics.curve_metrics import ks as ks
from .metrics.curve_metrics import pr_auc as pr_auc
from .metrics.curve_metrics import roc_auc as roc_auc
from .metrics.curve_metrics import roc_hull_auc as roc_hull_auc
from .metrics.partial_auc import CostPartialAUC as CostPartialAUC
from .metrics.partial_auc import PartialAUC as PartialAUC
from .metrics.partial_auc import cost_partial_auc as cost_partial_auc
from .metrics.partial_auc import partial_auc as partial_auc
from .metrics.partial_auc_intervals import partial_auc_ci as partial_auc_ci
from .metrics.partial_auc_intervals import partial_auc_summary as partial_auc_summary
from .metrics.roc_auc_ci import roc_auc_ci as roc_auc_ci
from .metrics.roc_auc_ci import roc_influence as roc_influence
from .metrics.roc_auc_multiclass import roc_auc_multiclass as roc_auc_multiclass
from .metrics.summary import summary as summary
from .namespaces import Counts as Counts
from .namespaces import from_counts as from_counts
from .plans.config import Config as Config
from .thresholds import rules as rules
from .thresholds.confusion_matrix import confusion_matrix as confusion_matrix
from .thresholds.confusion_matrix import threshold_metrics as threshold_metrics
from .thresholds.operating_points import operating_points as operating_points

__all__: list[str]
__version__: str
