"""Types of arguments, for annotations of your own functions.

Options are Literals, so that a type checker, or an editor, knows their values.
"""

from __future__ import annotations

from polars_wroc.audits.tables import AuditReference
from polars_wroc.charts.options import ChartOptions, GainKind, Rate, Show, Sort
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.curves.roc_point import BandKind
from polars_wroc.groups.categories import Intersections
from polars_wroc.groups.comparison_tests import GapMethod
from polars_wroc.groups.equalized_thresholds import Constraint
from polars_wroc.groups.standardized_mean_difference import Denominator
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import DecisionThreshold, Favorable, Unknown
from polars_wroc.inputs.designs import Design, Lonely, ReplicateKind
from polars_wroc.inputs.horizon import Competing
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.metrics.auc_interval import AreaMethod, Method
from polars_wroc.metrics.curve_metrics import Density
from polars_wroc.metrics.paired_tests import ComparisonMethod
from polars_wroc.metrics.partial_auc import Baseline, CostAreaName, Standardize
from polars_wroc.metrics.registry import MetricName, Metrics
from polars_wroc.metrics.roc_auc_multiclass import Average, MultiClass
from polars_wroc.plans.config import Engine
from polars_wroc.plans.queries import FrameT
from polars_wroc.stats.difference_tests import Adjust, Exact
from polars_wroc.stats.variances import Multiplier
from polars_wroc.thresholds.confusion_matrix import Honest
from polars_wroc.thresholds.rules import Rule, Threshold

__all__ = [
    "Adjust",
    "AreaMethod",
    "AuditReference",
    "Average",
    "BandKind",
    "Baseline",
    "ChartOptions",
    "ComparisonMethod",
    "Competing",
    "Constraint",
    "CostAreaName",
    "DecisionThreshold",
    "Denominator",
    "Density",
    "Design",
    "Engine",
    "Exact",
    "Favorable",
    "FrameT",
    "GainKind",
    "GapMethod",
    "Honest",
    "Intersections",
    "IntoColumn",
    "IntoColumns",
    "IntoWeight",
    "Lonely",
    "Method",
    "MetricName",
    "Metrics",
    "MultiClass",
    "Multiplier",
    "Rate",
    "ReplicateKind",
    "Rule",
    "Show",
    "Sort",
    "Standardize",
    "Strategy",
    "Threshold",
    "Unknown",
]
