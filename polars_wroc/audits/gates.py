"""Limits that an audit must keep, for pipelines: ``auc_gap>0.05`` is one that fails it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.gap_findings import named_references, without_references
from polars_wroc.audits.groupings import name_of, segment_keys
from polars_wroc.audits.result import Audit
from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.groups.fairness import ABROCA, METRICS
from polars_wroc.groups.gaps import GAP_COLUMNS
from polars_wroc.groups.min_rows import GAP_METRICS, both_large_enough, large_enough, outside
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.plans.by_keys import over
from polars_wroc.ranking.confusion_curve import CELLS
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
# What is a number between segments, not a count of rows.
_AREA_GAPS = [name for name in GAP_COLUMNS if not name.startswith("n_")]
# The fairness metrics that an audit has, and the ends of their intervals.
_LIMITS = {"_low": "ci_low", "_high": "ci_high"}
_FAIRNESS = {
    f"{metric}{ending}": (metric, column)
    for metric in METRICS
    if metric != ABROCA
    for ending, column in {"": "value", **_LIMITS}.items()
}
# What is taken without its sign.
_UNSIGNED = "_gap"
_GATE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


class Judgement(NamedTuple):
    """Where an audit meets a condition, and where that could not be asked, in words."""

    failures: list[str]
    not_judged: list[str]


@dataclass(frozen=True)
class Gate:
    """A condition on a column of the gaps, gaps without their signs, or on a fairness metric."""

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"

    def judge(self, audit: Audit) -> Judgement:
        """Say where an audit meets the condition, which it must not.

        What has too few rows behind it, or is compared with too few, is not judged. An audit in
        which nothing can be judged is an error: a gate that could not close was not passed.
        """
        table = self._values(audit)
        judged = table.drop_nulls("value")
        if judged.is_empty():
            msg = (
                f"`--fail-if` must name a number of the audit; found {self}, which is not known "
                "of any segment: it has too few rows behind it, is undefined or not tested"
            )
            raise ValueError(msg)
        failures = [
            f"{self}: {row['shown']:.4g} in {_place(row)}"
            for row in judged.iter_rows(named=True)
            if _COMPARE[self.sign](row["value"], self.limit)
        ]
        not_judged = self._left_out(audit) if self.name in _FAIRNESS else table
        unknown = not_judged.filter(pl.col("value").is_null())
        return Judgement(failures, [_place(row) for row in unknown.iter_rows(named=True)])

    def _values(self, audit: Audit) -> pl.DataFrame:
        if self.name in _FAIRNESS:
            # Without a threshold there are no decisions, and so no such gate.
            assert audit.fairness is not None
            metric, column = _FAIRNESS[self.name]
            table, value = audit.fairness.filter(metric=metric), pl.col(column)
        else:
            judged = pl.when(self._enough(audit)).then(self.name)
            table = _with_rows_behind(audit.gaps, audit).with_columns(value=judged)
            value = pl.col("value")
            if self.name not in GAP_METRICS:
                table = without_references(table, audit.settings)
        size = value.abs() if self.name.endswith(_UNSIGNED) else value
        return table.with_columns(shown=value, value=size)

    def _left_out(self, audit: Audit) -> pl.DataFrame:
        """Lay out the segments that a fairness metric does not compare, with a null value."""
        metric, _ = _FAIRNESS[self.name]
        settings = audit.settings["weight_type"], audit.settings["min_rows"]
        known = pl.all_horizontal(
            large_enough(rate, *settings) for rate in METRICS[metric].compares
        )
        segments = audit.segments.filter(pl.col("attribute") != OVERALL)
        table = _with_rows_behind(segments.select(segment_keys(segments)), audit)
        return table.with_columns(value=pl.when(known).then(0.0))

    def _enough(self, audit: Audit) -> pl.Expr:
        metric = next(name for name in GAP_METRICS if f"{self.name}_".startswith(f"{name}_"))
        settings = audit.settings["weight_type"], audit.settings["min_rows"]
        if self.name == metric:
            return large_enough(metric, *settings)
        partition_keys = [key for key in segment_keys(audit.gaps) if key != "segment"]
        other = outside(partition_keys)
        if audit.settings["reference"] == "best":
            other = of_group(pl.col("auc") == pl.col("auc_reference"), partition_keys)
        enough = both_large_enough(metric, *settings, other)
        if named := named_references(audit.settings):
            is_reference = pl.col("segment").eq_missing(
                pl.col("attribute").replace_strict(named, default=None)
            )
            to_named = both_large_enough(metric, *settings, of_group(is_reference, partition_keys))
            enough = (
                pl.when(pl.col("attribute").is_in(list(named))).then(to_named).otherwise(enough)
            )
        return enough


def _with_rows_behind(table: pl.DataFrame, audit: Audit) -> pl.DataFrame:
    """Put beside segments what `large_enough` asks for."""
    keys, segments = segment_keys(table), audit.segments
    behind: dict[str, pl.Expr]
    behind = {name: pl.col(c) for name, c in zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True)}
    behind |= {name: pl.col(name) for name in ("n_pos", "n_neg") if name not in table.columns}
    if "n_selected" in segments.columns:
        selected = pl.col("n_selected")
        behind |= {name: pl.col(name) for name in CELLS}
        behind |= {ROWS_SELECTED: selected, ROWS_REJECTED: pl.col("n") - selected}
    counts = segments.select(*keys, **behind)
    return table.join(counts, on=keys, nulls_equal=True, maintain_order="left")


def _place(row: dict[str, Any]) -> str:
    """Name the segment, or what was compared in an attribute."""
    place = ", ".join(name_of(row[key]) for key in (*AUDIT_KEYS, MODEL) if key in row)
    ends = [row[end] for end in ("group_min", "group_max") if row.get(end) is not None]
    return f"{place} ({' and '.join(ends)})" if ends else place


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
    of_decisions = (*RATE_GAP_COLUMNS, *_FAIRNESS)
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


def of_group(is_reference: pl.Expr, partition_keys: list[str]) -> Callable[[pl.Expr], pl.Expr]:
    """Count the rows of the one group that is picked."""
    return lambda count: over(pl.when(is_reference).then(count).max(), partition_keys)
