# The types, which typing.py reads too, and where they are defined.

from .audits.new_york_result import NewYorkSummary as NewYorkSummary
from .audits.tables import AuditAdjustment as AuditAdjustment
from .audits.tables import AuditReference as AuditReference
from .charts.options import ChartOptions as ChartOptions
from .charts.options import RateName as RateName
from .charts.options import Show as Show
from .charts.options import Sort as Sort
from .curves.calibration_curve import Strategy as Strategy
from .curves.roc_curve import BandKind as BandKind
from .groups.categories import Intersections as Intersections
from .groups.cross_auc import Against as Against
from .groups.equalized_thresholds import Constraint as Constraint
from .inputs.columns import IntoColumn as IntoColumn
from .inputs.columns import IntoWeight as IntoWeight
from .inputs.decisions import DecisionThreshold as DecisionThreshold
from .inputs.decisions import Favorable as Favorable
from .inputs.decisions import Unknown as Unknown
from .inputs.designs import Design as Design
from .inputs.designs import Lonely as Lonely
from .inputs.designs import ReplicateKind as ReplicateKind
from .inputs.horizon import Competing as Competing
from .inputs.rows import IntoColumns as IntoColumns
from .looks import ConfidenceLevel as ConfidenceLevel
from .metrics.compare import ComparisonMethod as ComparisonMethod
from .metrics.hull_metrics import Density as Density
from .metrics.partial_auc import Baseline as Baseline
from .metrics.partial_auc import CostAreaName as CostAreaName
from .metrics.partial_auc import Standardize as Standardize
from .metrics.registry import MetricName as MetricName
from .metrics.registry import Metrics as Metrics
from .metrics.roc_auc import Average as Average
from .metrics.roc_auc import MultiClass as MultiClass
from .namespaces import Counts as Counts
from .queries import FrameT as FrameT
from .stats.aucs import AucMethod as AucMethod
from .stats.families import Adjustment as Adjustment
from .stats.rates import Exact as Exact
from .stats.resampling import Multiplier as Multiplier
from .thresholds.honest import Honest as Honest
from .thresholds.rules import Rule as Rule
from .thresholds.rules import Threshold as Threshold

__all__: list[str]
