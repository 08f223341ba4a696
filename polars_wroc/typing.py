"""Types of arguments, for annotations of your own functions.

Options are Literals, so that a type checker, or an editor, knows their values.
"""

from polars_wroc.audits.references import AuditReference
from polars_wroc.charts.gain_chart import Kind as GainKind
from polars_wroc.charts.labels import ChangeMeasure, GapMetric
from polars_wroc.charts.options import Sort
from polars_wroc.charts.rate_points import Rate
from polars_wroc.curves.bands import BandKind
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.groups.auc_gaps import GapMethod
from polars_wroc.groups.equalized_thresholds import Constraint
from polars_wroc.groups.smd_table import Denominator
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import DecisionThreshold, Favorable
from polars_wroc.inputs.replicate_weights import ReplicateKind
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.inputs.survey_design import Lonely
from polars_wroc.inputs.unknown import Unknown
from polars_wroc.metrics.auc_interval import AreaMethod, Method
from polars_wroc.metrics.cost_partial_auc import Baseline, CostAreaName
from polars_wroc.metrics.hull_metrics import Density
from polars_wroc.metrics.paired_tests import ComparisonMethod
from polars_wroc.metrics.partial_auc import Standardize
from polars_wroc.metrics.registry import MetricName, Metrics
from polars_wroc.metrics.roc_auc_multiclass import Average, MultiClass
from polars_wroc.plans.collect import FrameT
from polars_wroc.plans.engine import Engine
from polars_wroc.stats.equal_proportions import Exact
from polars_wroc.stats.multiple_tests import Adjust
from polars_wroc.stats.resampling import Multiplier
from polars_wroc.thresholds.confusion_metrics import Honest
from polars_wroc.thresholds.rules import Criterion

__all__ = [
    "Adjust",
    "AreaMethod",
    "AuditReference",
    "Average",
    "BandKind",
    "Baseline",
    "ChangeMeasure",
    "ComparisonMethod",
    "Constraint",
    "CostAreaName",
    "Criterion",
    "DecisionThreshold",
    "Denominator",
    "Density",
    "Engine",
    "Exact",
    "Favorable",
    "FrameT",
    "GainKind",
    "GapMethod",
    "GapMetric",
    "Honest",
    "IntoColumn",
    "IntoColumns",
    "Lonely",
    "Method",
    "MetricName",
    "Metrics",
    "MultiClass",
    "Multiplier",
    "Rate",
    "ReplicateKind",
    "Sort",
    "Standardize",
    "Strategy",
    "Unknown",
    "WeightType",
]
