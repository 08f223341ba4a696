"""What an audit was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from polars_wroc.audits.references import AuditReferences
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.metrics.roc_auc_ci import Method
from polars_wroc.stats.multiple_tests import Adjust


@dataclass(frozen=True)
class AuditSettings:
    """The arguments of an audit, by the names of columns; in the order in which they are shown."""

    # Counts do not tell what their label was called.
    label: str | None
    pos_label: object
    score: list[str]
    weight: str | None
    by: list[str]
    intersections: bool
    threshold: float | None
    rule: dict[str, Any] | None
    cluster: str | None
    reference: AuditReferences
    level: float
    adjust: Adjust
    method: Method
    weight_type: WeightType
    min_rows: int
    bins: int | None
    tolerance: float | None
    polars_wroc: str
    # Of a command only: a frame does not say what it was read from.
    files: Sequence[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Lay out the settings for users and files."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        files = values.pop("files")
        values["reference"] = self.reference.settings
        return values if files is None else {"files": files, **values}
