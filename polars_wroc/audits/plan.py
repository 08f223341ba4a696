"""The checked arguments of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polars_wroc.audits.references import AuditReferences
from polars_wroc.counts.binning import Binning
from polars_wroc.groups.gaps import GapTests
from polars_wroc.groups.groupings import Grouping
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.metrics.auc_interval import IntervalOptions
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.rules import Rule


@dataclass(frozen=True)
class AuditPlan:
    """What to measure, and how."""

    groupings: Sequence[Grouping]
    references: AuditReferences
    choice: float | Rule | None
    interval: IntervalOptions
    metrics: ThresholdMetrics
    tests: GapTests
    favorable: Favorable | None
    binning: Binning
    # Names under which missing scores are counted.
    scores: Sequence[str]
