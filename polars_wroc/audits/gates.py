"""Conditions that fail an audit in a pipeline, such as ``auc_gap>0.05``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.audits.segment_keys import name_of, segment_keys
from polars_wroc.audits.tables import AuditTables, JudgedGate
from polars_wroc.groups.fairness_metrics import ABROCA, METRICS
from polars_wroc.groups.gaps import GAP_COLUMNS
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS, RATE_GAPS
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
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
# Columns that are judged by their absolute value.
_UNSIGNED = "_gap"
_GATE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Gate:
    """A condition on a column of the gaps, absolute for a gap itself, or on a fairness metric."""

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"

    def judge(self, audit: AuditTables) -> JudgedGate:
        """Say where an audit meets the condition, which makes it fail.

        An estimate based on too few rows, or compared with such a one, is not judged.

        Raises
        ------
        ValueError
            If the condition cannot be judged anywhere in the audit.
        """
        table = self._values(audit)
        judged = table.drop_nulls("value")
        if judged.is_empty():
            msg = (
                f"`--fail-if` must name a number of the audit; found {self}, which is not known "
                "of any segment: it is based on too few rows, undefined or not tested"
            )
            raise ValueError(msg)
        failures = [
            f"{row['shown']:.4g} in {_place(row)}"
            for row in judged.iter_rows(named=True)
            if _COMPARE[self.sign](row["value"], self.limit)
        ]
        not_judged = self._left_out(audit) if self.name in _FAIRNESS else table
        unknown = not_judged.filter(pl.col("value").is_null())
        places = [_place(row) for row in unknown.iter_rows(named=True)]
        return JudgedGate(str(self), bool(failures), failures, places)

    def _values(self, audit: AuditTables) -> pl.DataFrame:
        if self.name in _FAIRNESS:
            # `read_gate` refuses such a gate without a threshold.
            assert audit.fairness is not None
            metric, column = _FAIRNESS[self.name]
            table, value = audit.fairness.filter(metric=metric), pl.col(column)
        else:
            enough = audit.enough_rows.where([_ENOUGH[self.name]])
            table = audit.gaps.join(
                enough, on=segment_keys(enough), nulls_equal=True, maintain_order="left"
            )
            value = pl.when("enough").then(self.name)
            if self.name not in GAP_METRICS:
                table = audit.parameters.reference.without_references(table)
        size = value.abs() if self.name.endswith(_UNSIGNED) else value
        return table.with_columns(shown=value, value=size)

    def _left_out(self, audit: AuditTables) -> pl.DataFrame:
        """Lay out the segments; null where the fairness metric does not compare them."""
        metric, _ = _FAIRNESS[self.name]
        compared = audit.enough_rows.where(METRICS[metric].compares)
        return compared.with_columns(value=pl.when("enough").then(0.0))


def _place(row: dict[str, Any]) -> str:
    """Name the segment, or the attribute and the two segments compared."""
    place = ", ".join(name_of(row[key]) for key in (*AUDIT_KEYS, MODEL) if key in row)
    ends = [row[end] for end in ("group_min", "group_max") if row.get(end) is not None]
    return f"{place} ({' and '.join(ends)})" if ends else place


def read_gate(text: str, *, decides: bool) -> Gate:
    """Read a condition such as ``auc_gap>0.05``; on decisions only if there are any."""
    parts = _GATE.fullmatch(text)
    try:
        gate = None if parts is None else Gate(parts[1], parts[2], float(parts[3]))
    except ValueError:
        gate = None
    if gate is None:
        msg = f"`--fail-if` must be a name, one of > >= < <= and a number; found {text!r}"
        raise ValueError(msg)
    of_decisions = (*RATE_GAP_COLUMNS, *_FAIRNESS)
    known = [*_AREA_GAPS, *(of_decisions if decides else ())]
    if gate.name not in known:
        why = " (it needs a threshold)" if gate.name in of_decisions else ""
        msg = f"`--fail-if` must name one of {', '.join(known)}; found {gate.name!r}{why}"
        raise ValueError(msg)
    if gate.name.endswith(_UNSIGNED) and gate.limit < 0:
        msg = (
            f"`--fail-if` must not have a negative limit for {gate.name}, which is compared "
            f"without its sign; found {gate}: {gate.name}_low and {gate.name}_high have signs"
        )
        raise ValueError(msg)
    return gate
