"""Gates on the changes between two audits."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.gates import Gate
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.groups.min_rows import GAP_METRICS

# Metric, measure and column of each number. A gap has changed for the worse if its size has grown.
_NUMBERS = {
    f"{metric}{kind}_change{end}": (metric, measure, column)
    for metric in GAP_METRICS
    for kind, measure, change in (("", "value", "change"), ("_gap", "gap", "growth"))
    for end, column in {"": change, "_low": "change_low", "_high": "change_high"}.items()
}


class ChangeGate(Gate[Changes]):
    """A condition on the change of a metric, or on the growth of its gap."""

    WHAT: ClassVar[str] = "the changes"

    def values(self, result: Changes) -> pl.DataFrame:
        """Lay out the segments; small ones, and those of one audit only, are not judged."""
        metric, measure, column = _NUMBERS[self.name]
        table = result.table.filter(metric=metric, measure=measure)
        small = result.small.with_columns(small=True)
        marked = table.join(
            small, on=segment_keys(table), how="left", nulls_equal=True, maintain_order="left"
        )
        value = pl.when(pl.col("small").is_null()).then(column)
        return marked.with_columns(shown=value, value=value)


def read_change_gate(text: str) -> ChangeGate:
    """Read a condition such as ``auc_gap_change>0.02``."""
    return ChangeGate.read(text, _NUMBERS)
