"""Gates on the gaps, fairness metrics and impact ratios of an audit."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from polars_wroc.audits.gates import Gate
from polars_wroc.audits.impact_gates import RATIOS, judged_categories
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.tables import AuditTables
from polars_wroc.groups.fairness_metrics import ABROCA, METRICS
from polars_wroc.groups.gaps import GAP_COLUMNS
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS, RATE_GAPS

# Columns of gaps in AUC, without the counts of rows.
_AREA_GAPS = [name for name in GAP_COLUMNS if not name.startswith("n_")]
# What needs enough rows for a column to be judged: a metric, or the test of its gap.
_ENOUGH = {
    name: metric if name == metric else f"{metric}_gap"
    for metric, names in {"auc": _AREA_GAPS, **RATE_GAPS}.items()
    for name in names
}
# The fairness metrics that an audit has, and their limits: those of all pairs of segments, which
# hold although the segments with the largest gap were picked.
_LIMITS = {"_low": "joint_low", "_high": "joint_high"}
_FAIRNESS = {
    f"{metric}{ending}": (metric, column)
    for metric in METRICS
    if metric != ABROCA
    for ending, column in {"": "value", **_LIMITS}.items()
}
_OF_DECISIONS = (*RATE_GAP_COLUMNS, *_FAIRNESS, *RATIOS)
_NO_DECISIONS = " (it needs decisions: those of a threshold, or recorded ones)"
_NO_RATIOS = " (it needs a decision that is good for a person; found --favorable neither)"
# Columns that are judged by their absolute value.
_UNSIGNED = "_gap"


class AuditGate(Gate[AuditTables]):
    """A condition on a column of the gaps, a fairness metric or an impact ratio.

    A gap itself is compared without its sign.
    """

    WHAT: ClassVar[str] = "the audit"

    def values(self, result: AuditTables) -> pl.DataFrame:
        """Lay out the gaps, the fairness metrics of the attributes, or the impact ratios."""
        # `read_gate` refuses gates on decisions where there are none.
        if self.name in RATIOS:
            assert result.impact is not None
            impact = result.enough_rows.for_ratios(result.impact)
            return judged_categories(impact, self.name).with_columns(
                value=pl.when("enough").then("value")
            )
        if self.name in _FAIRNESS:
            assert result.fairness is not None
            metric, column = _FAIRNESS[self.name]
            table, value = result.fairness.filter(metric=metric), pl.col(column)
        else:
            enough = result.enough_rows.where([_ENOUGH[self.name]])
            table = result.gaps.join(
                enough, on=segment_keys(enough), nulls_equal=True, maintain_order="left"
            )
            value = pl.when("enough").then(self.name)
            if self.name not in GAP_METRICS:
                table = result.parameters.reference.without_references(table)
        size = value.abs() if self.name.endswith(_UNSIGNED) else value
        return table.with_columns(shown=value, value=size)

    def left_out(self, result: AuditTables, values: pl.DataFrame) -> pl.DataFrame:
        """List the segments, also those that the fairness metric does not compare."""
        if self.name not in _FAIRNESS:
            return super().left_out(result, values)
        metric, _ = _FAIRNESS[self.name]
        return result.enough_rows.where(METRICS[metric].compares).filter(~pl.col("enough"))


def read_gate(text: str, *, decides: bool, ratios: bool = True) -> AuditGate:
    """Read a condition such as ``auc_gap>0.05``; on decisions, or ``ratios``, only if there are."""
    known = [*_AREA_GAPS, *(_OF_DECISIONS if decides else ())]
    why_not = dict.fromkeys(_OF_DECISIONS, _NO_DECISIONS)
    if decides and not ratios:
        known = [name for name in known if name not in RATIOS]
        why_not = dict.fromkeys(RATIOS, _NO_RATIOS)
    gate = AuditGate.read(text, known, why_not)
    if gate.name.endswith(_UNSIGNED) and (gate.limit < 0 or (gate.limit == 0 and gate.sign == "<")):
        msg = (
            f"`--fail-if` must be a condition that {gate.name} can meet, which is compared without "
            f"its sign; found {gate}: {gate.name}_low and {gate.name}_high have signs"
        )
        raise ValueError(msg)
    if _UNSIGNED in gate.name and abs(gate.limit) > 1:
        msg = (
            f"`--fail-if` must have a limit between -1 and 1 for {gate.name}, so that 0.05 is 5 "
            f"points; found {gate}"
        )
        raise ValueError(msg)
    return gate
