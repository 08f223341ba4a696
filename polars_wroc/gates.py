"""Limits that an audit must keep, for pipelines: ``auc_gap>0.05`` is one that fails it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from polars_wroc.audit_result import Audit
from polars_wroc.enough_rows import has_rows
from polars_wroc.fairness_metrics import METRICS
from polars_wroc.gaps import GAP_COLUMNS
from polars_wroc.groupings import name_of, segment_keys
from polars_wroc.rate_gaps import RATE_GAP_COLUMNS, SHARES
from polars_wroc.samples import OWN_WEIGHTS

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
# What is a number between segments, not a count of rows.
_AREA_GAPS = [name for name in GAP_COLUMNS if not name.startswith("n_")]
_RATES = ("auc", *SHARES)
# What is taken without its sign.
_UNSIGNED = "_gap"
_GATE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Gate:
    """A condition on a column of the gaps, gaps without their signs, or on a fairness metric."""

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"

    def failures(self, audit: Audit) -> list[str]:
        """Say where an audit meets the condition, which it must not.

        Segments with too few rows behind a number are not judged by it. An audit in which nothing
        can be judged is an error: a gate that could not close is not one that was passed.
        """
        table = self._values(audit).drop_nulls("value")
        if table.is_empty():
            msg = (
                "`--fail-if` must name a number of the audit; "
                f"found {self}, which no segment with rows enough has"
            )
            raise ValueError(msg)
        keys = segment_keys(table)
        return [
            f"{self}: {row['shown']:.4g} in {', '.join(name_of(row[key]) for key in keys)}"
            for row in table.iter_rows(named=True)
            if _COMPARE[self.sign](row["value"], self.limit)
        ]

    def _values(self, audit: Audit) -> pl.DataFrame:
        value = pl.col("value" if self.name in METRICS else self.name)
        if self.name in METRICS:
            # Without a threshold there are no decisions, and so no such gate.
            assert audit.fairness is not None
            table = audit.fairness.filter(metric=self.name)
        else:
            table = self._judged(audit)
        size = value.abs() if self.name.endswith(_UNSIGNED) else value
        return table.with_columns(shown=value, value=size)

    def _judged(self, audit: Audit) -> pl.DataFrame:
        """Keep the gaps of segments with rows enough; how many are selected they do not say."""
        metric = next(name for name in _RATES if f"{self.name}_".startswith(f"{name}_"))
        if metric in ("ppv", "npv"):
            metric = "selection_rate"
        weight_type, least = audit.settings["weight_type"], audit.settings["min_rows"]
        keys = segment_keys(audit.gaps)
        weights = dict(zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True))
        beside = audit.segments.select(*keys, **weights)
        table = audit.gaps.join(beside, on=keys, nulls_equal=True, maintain_order="left")
        return table.filter(has_rows(metric, weight_type, least))


def read_gate(text: str, *, decides: bool) -> Gate:
    """Read a condition such as ``auc_gap>0.05``; of decisions only if the audit ``decides``."""
    found = _GATE.fullmatch(text)
    try:
        gate = None if found is None else Gate(found[1], found[2], float(found[3]))
    except ValueError:
        gate = None
    if gate is None:
        msg = f"`--fail-if` must be a name, one of > >= < <= and a number; found {text!r}"
        raise ValueError(msg)
    of_decisions = (*RATE_GAP_COLUMNS, *METRICS)
    known = [*_AREA_GAPS, *(of_decisions if decides else ())]
    if gate.name not in known:
        beside = " (it needs a threshold)" if gate.name in of_decisions else ""
        msg = f"`--fail-if` must name one of {', '.join(known)}; found {gate.name!r}{beside}"
        raise ValueError(msg)
    if gate.name.endswith(_UNSIGNED) and gate.limit < 0:
        msg = (
            f"`--fail-if` takes {gate.name} without its sign, so that its limit must not be "
            f"negative; found {gate}: {gate.name}_low and {gate.name}_high have signs"
        )
        raise ValueError(msg)
    return gate
