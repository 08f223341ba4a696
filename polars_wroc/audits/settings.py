"""The arguments of an audit, as they are shown and saved."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from polars_wroc.audits.references import AuditReferences
from polars_wroc.audits.text import Text
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.replicate_weights import ReplicateKind
from polars_wroc.inputs.survey_design import Lonely
from polars_wroc.metrics.auc_interval import Method
from polars_wroc.stats.multiple_tests import Adjust


@dataclass(frozen=True)
class AuditSettings:
    """The arguments of an audit, columns by their names; in the order in which they are shown."""

    # None for counts, which do not have the name of their label.
    label: str | None
    pos_label: object
    score: list[str]
    weight: str | None
    by: list[str]
    intersections: bool
    threshold: float | None
    rule: dict[str, Any] | None
    # Decisions that were recorded.
    selected: str | None
    cluster: str | None
    strata: str | None
    fpc: str | None
    lonely: Lonely
    # Their kind.
    replicate_weights: ReplicateKind | None
    reference: AuditReferences
    level: float
    adjust: Adjust
    method: Method
    weight_type: WeightType
    min_rows: int
    margin: float
    favorable: Favorable | None
    text: Text
    min_cell: int | None
    bins: int | None
    tolerance: float | None
    polars_wroc: str

    @property
    def by_design(self) -> bool:
        """Whether gaps and rates have the variances of the design of a survey."""
        return self.cluster is not None or self.more_than_clusters

    @property
    def more_than_clusters(self) -> bool:
        """Whether the AUCs of segments have these variances too, not those of clusters."""
        return any(value is not None for value in (self.strata, self.fpc, self.replicate_weights))

    @property
    def needs_variance(self) -> bool:
        """Whether an AUC without a variance leaves its gaps without a test."""
        return self.by_design or self.method != "score"

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as users and files see them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"reference": self.reference.settings, "text": self.text.as_dict()}
