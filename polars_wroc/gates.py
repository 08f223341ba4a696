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
from polars_wroc.groupings import MISSING
from polars_wroc.rate_gaps import RATE_GAP_COLUMNS, SHARES

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
        keys = [key for key in ("attribute", "segment", "model") if key in table.columns]
        return [
            f"{self}: {row['shown']:.4g} in {', '.join(_named(row[key]) for key in keys)}"
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
            table = audit.gaps.filter(self._enough(audit.settings["min_rows"]))
        size = value.abs() if self.name.endswith(_UNSIGNED) else value
        return table.with_columns(shown=value, value=size)

    def _enough(self, least: int) -> pl.Expr:
        """Whether a segment has rows enough; how many are selected the gaps do not say."""
        metric = next(name for name in _RATES if f"{self.name}_".startswith(f"{name}_"))
        return has_rows("selection_rate" if metric in ("ppv", "npv") else metric, least)


def _named(key: str | None) -> str:
    return MISSING if key is None else key


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
