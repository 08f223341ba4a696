"""Conditions of a pipeline in the words of a report, and where they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polars_wroc.audits.tables import GateCondition, JudgedGate
from polars_wroc.audits.words import Words, name_briefly
from polars_wroc.documents.blocks import Line, LineTone
from polars_wroc.documents.numbers import form_beside, write_number
from polars_wroc.documents.phrases import first_few, many, write_list
from polars_wroc.groups.comparisons import FAIRNESS, METRICS, NAMED_FOR
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.names import quote

_SIDES = {"<": "below", "<=": "at most", ">": "above", ">=": "at least", "=": "is", "!=": "is not"}
_NUMBERS = {
    "value": "",
    "ratio": "ratio",
    "gap": "gap",
    "n": "number of rows",
    "p_value": "p-value",
    "p_adjusted": "adjusted p-value",
    "verdict": "verdict",
}


def write_gates(gates: Sequence[JudgedGate], words: Words) -> list[Line]:
    """Return conditions as lines, failed ones first."""
    lines = [_write_gate(gate, words) for gate in gates]
    order: list[LineTone] = ["failed", "unjudged", "passed"]
    return sorted(lines, key=lambda line: order.index(line.tone))


def _write_gate(gate: JudgedGate, words: Words) -> Line:
    """Return the line of a condition, and where it is met or could not be judged."""
    condition = gate.gate if gate.condition is None else _write_condition(gate.condition)
    unjudged = ""
    if gate.unjudged_rows:
        names = dict.fromkeys(_name_place(row, words) for row in gate.unjudged_rows)
        reasons = dict.fromkeys(row["reason"] for row in gate.unjudged_rows)
        unjudged = f"Not judged ({write_list([*reasons])}): {first_few([*names], '; ')}."
    if not gate.n_judged:
        return Line(unjudged, "unjudged", f"Not judged: {condition}.")
    if not gate.met:
        where = f"True in none of {many(gate.n_judged, 'group')}."
        return Line(f"{where} {unjudged}".strip(), "passed", f"Passed: {condition}.")
    places = list(gate.where)
    if gate.condition is not None:
        column, limit = gate.condition.column, gate.condition.limit
        places = [
            f"{_name_place(row, words)} {_write_value(row[column], limit)}" for row in gate.met_rows
        ]
    where = first_few([*dict.fromkeys(places)], "; ", 10)
    return Line(f"in {where}. {unjudged}".strip(), "failed", f"Failed: {condition}")


def _write_condition(condition: GateCondition) -> str:
    """Return a condition in words: ``true positive rate, gap above 0.05`` for ``tpr.gap>0.05``."""
    metric = METRICS[condition.metric].label if condition.metric in METRICS else condition.metric
    by = f" of {condition.place}" if condition.place else ""
    number = _name_number(condition.metric, condition.column)
    limit = condition.limit
    if not isinstance(limit, str):
        limit = write_number(limit, "g")
    side = f"{_SIDES[condition.sign]} {limit}"
    return f"{metric}{by}, {number} {side}" if number else f"{metric}{by} {side}"


def _name_number(metric: str, column: str) -> str:
    """Return the name of a column in a condition; empty for the metric's own number."""
    number, _, end = column.rpartition("_")
    own = NAMED_FOR.get(metric, "value")
    if end in ("low", "high") and number in ("value", "gap", "ratio"):
        limit = {"low": "lower limit", "high": "upper limit"}[end]
        return limit if number == own else f"{limit} of the {number}"
    if column == own:
        return ""
    return _NUMBERS.get(column, column.replace("_", " "))


def _name_place(row: Mapping[str, Any], words: Words) -> str:
    """Return the group of a row, or both compared ones: ``black (race)``."""
    attribute, segment = row["attribute"], row["segment"]
    name = words.everyone if attribute == OVERALL else name_briefly(attribute, segment)
    if row["metric"] in FAIRNESS:
        name = f"{name} against {row['reference']}"
    return f"{name}, {quote(str(row[MODEL]))}" if words.names_score(row["metric"]) else name


def _write_value(value: Any, limit: float | str) -> str:
    """Return a number or verdict that meets a condition."""
    if isinstance(value, str):
        return f"({value})"
    return write_number(value, form_beside(value, limit, digits=3))
