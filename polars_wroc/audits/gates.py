"""Conditions that fail a command in a pipeline, such as ``auc_gap>0.05``."""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import polars as pl

from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.tables import AuditTables, JudgedGate, name_of, segment_keys
from polars_wroc.audits.words import first_few
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import FAIRNESS as METRICS
from polars_wroc.groups.wide import (
    BELOW,
    GAP_COLUMNS,
    IMPACT_COLUMNS,
    RATE_GAP_COLUMNS,
    RATE_GAPS,
)
from polars_wroc.inputs.arguments import did_you_mean
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.metrics.compare import COMPARISON_COLUMNS

ResultT = TypeVar("ResultT")

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_GATE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Gate(ABC, Generic[ResultT]):
    """A condition on a number of each segment."""

    # What the numbers are of, in messages.
    WHAT: ClassVar[str]

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"

    @abstractmethod
    def values(self, result: ResultT) -> pl.DataFrame:
        """Lay out the segments with the number ``shown`` and the ``value`` that is compared.

        The value is null where it is not judged.
        """

    def left_out(self, result: ResultT, values: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002
        """List the segments that are not judged."""
        return values.filter(pl.col("value").is_null())

    def judge(self, result: ResultT) -> JudgedGate:
        """Say where a result meets the condition, which makes it fail.

        An estimate based on too few rows, or compared with such a one, is not judged.

        Raises
        ------
        ValueError
            If the condition cannot be judged anywhere in the result.
        """
        table = self.values(result)
        judged = table.drop_nulls("value")
        if judged.is_empty():
            msg = (
                f"`--fail-if` must name a number of {self.WHAT}; found {self}, which is not known "
                "of any segment: it is based on too few rows, undefined or not tested"
            )
            raise ValueError(msg)
        failures = [
            f"{row['shown']:.4g} in {_place(row)}"
            for row in judged.iter_rows(named=True)
            if _COMPARE[self.sign](row["value"], self.limit)
        ]
        places = [_place(row) for row in self.left_out(result, table).iter_rows(named=True)]
        return JudgedGate(str(self), bool(failures), failures, places)

    @classmethod
    def read(
        cls, text: str, known: Collection[str], why_not: Mapping[str, str] | None = None
    ) -> Self:
        """Read a condition on a known number; ``why_not`` says why another one is not known."""
        parts = _GATE.fullmatch(text)
        try:
            gate = None if parts is None else cls(parts[1], parts[2], float(parts[3]))
        except ValueError:
            gate = None
        if gate is None:
            msg = f"`--fail-if` must be a name, one of > >= < <= and a number; found {text!r}"
            raise ValueError(msg)
        if gate.name not in known:
            hint = (why_not or {}).get(gate.name) or _names_instead(gate.name, known)
            msg = f"`--fail-if` must name a number of {cls.WHAT}; found {gate.name!r}{hint}"
            raise ValueError(msg)
        return gate


def _names_instead(name: str, known: Collection[str]) -> str:
    """Name the closest known name, or a few: there are too many for a line."""
    start = name.partition("_")[0]
    alike = [each for each in known if each.partition("_")[0] == start]
    return did_you_mean(name, known) or f"; there are {first_few(alike or [*known])}"


class Judgement(NamedTuple):
    """Gates that are judged, and what is wrong with those that cannot be."""

    gates: list[JudgedGate]
    unknown: list[str]


def judged(gates: Sequence[Gate[ResultT]], result: ResultT) -> Judgement:
    """Judge each gate."""
    judgement = Judgement([], [])
    for gate in gates:
        try:
            judgement.gates.append(gate.judge(result))
        except ValueError as error:
            judgement.unknown.append(str(error))
    return judgement


def _place(row: dict[str, Any]) -> str:
    """Name the segment, or the attribute and the two segments compared."""
    place = ", ".join(name_of(row[key]) for key in (*AUDIT_KEYS, MODEL) if key in row)
    ends = [row[end] for end in ("group_min", "group_max") if row.get(end) is not None]
    return f"{place} ({' and '.join(ends)})" if ends else place


_TEXTS = ("reference", "p_method", BELOW, "excluded")
NUMBERS = tuple(name for name in IMPACT_COLUMNS if name not in _TEXTS)
# What the reference has too; other numbers compare categories with it.
_ITS_OWN = ("n", "n_missing", "weight", "share", "n_selected", "reference_rate", "threshold")
# The ratios and their limits, on which audits have gates too.
RATIOS = tuple(name for name in NUMBERS if name.startswith("impact_ratio"))


class ImpactGate(Gate[pl.DataFrame]):
    """A condition on a number of the table of `impact_ratios`."""

    WHAT: ClassVar[str] = "the table"

    def values(self, result: pl.DataFrame) -> pl.DataFrame:
        """Lay out the categories."""
        return judged_categories(result, self.name)


def judged_categories(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Lay out the categories with a number; those that are left out are not judged."""
    _, segment = AUDIT_KEYS
    if not name.startswith("selection_rate") and name not in _ITS_OWN:
        table = table.filter(pl.col(segment).ne_missing(pl.col("reference")))
    value = pl.when(pl.col("excluded").is_null()).then(name)
    return table.with_columns(shown=value, value=value)


def read_impact_gate(text: str) -> ImpactGate:
    """Read a condition such as ``impact_ratio<0.8``."""
    return ImpactGate.read(text, NUMBERS)


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
    if METRICS[metric].kind != "area"
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


# Metric, measure and column of each number. A gap has changed for the worse if its size has grown.
_CHANGE_NUMBERS = {
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
        metric, measure, column = _CHANGE_NUMBERS[self.name]
        table = result.table.filter(metric=metric, measure=measure)
        small = result.small.with_columns(small=True)
        marked = table.join(
            small, on=segment_keys(table), how="left", nulls_equal=True, maintain_order="left"
        )
        value = pl.when(pl.col("small").is_null()).then(column)
        return marked.with_columns(shown=value, value=value)


def read_change_gate(text: str) -> ChangeGate:
    """Read a condition such as ``auc_gap_change>0.02``."""
    return ChangeGate.read(text, _CHANGE_NUMBERS)


_MODELS = ("model_a", "model_b")
_COMPARISON_NUMBERS = tuple(name for name in COMPARISON_COLUMNS if name not in _MODELS)


class ComparisonGate(Gate[pl.DataFrame]):
    """A condition on a number of the table of `compare`."""

    WHAT: ClassVar[str] = "the comparisons"

    def values(self, result: pl.DataFrame) -> pl.DataFrame:
        """Lay out the pairs of scores, in each group if there are groups."""
        groups = result.columns[: -len(COMPARISON_COLUMNS)]
        named = [
            pl.format("{} {}", pl.lit(name), pl.col(name).cast(pl.String).fill_null(MISSING))
            for name in groups
        ]
        segment = pl.concat_str(named, separator=", ") if named else pl.lit(OVERALL)
        value = pl.col(self.name).cast(pl.Float64)
        if self.name in ("ci_low", "ci_high"):
            # The limits of scores that rank alike are null: nothing varies.
            value = pl.when(pl.col("p_value") == 1).then(value.fill_null(0.0)).otherwise(value)
        return result.select(
            segment.alias("segment"),
            # The names of what a gate compares.
            pl.col("model_a").alias("group_min"),
            pl.col("model_b").alias("group_max"),
            shown=value,
            value=value,
        )


def read_comparison_gate(text: str) -> ComparisonGate:
    """Read a condition such as ``ci_high<0``."""
    return ComparisonGate.read(text, _COMPARISON_NUMBERS)
