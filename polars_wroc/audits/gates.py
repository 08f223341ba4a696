"""Conditions that fail a command in a pipeline, such as ``auc_gap>0.05``."""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import polars as pl

from polars_wroc.audits.phrases import first_few
from polars_wroc.audits.segment_keys import name_of
from polars_wroc.audits.tables import JudgedGate
from polars_wroc.inputs.arguments import did_you_mean
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL

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
