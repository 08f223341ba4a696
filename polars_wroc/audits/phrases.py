"""Phrases shared by the findings of an audit."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.audits.segment_keys import name_of
from polars_wroc.charts.labels import MINUS
from polars_wroc.inputs.names import MODEL

_NAMES = 5
DASH = "\N{EN DASH}"
# A threshold that selects no row.
ABOVE = "above every score"
ADJUSTED = {
    "holm": "p-values are adjusted for their number by Holm's method",
    "bh": "p-values are adjusted for their number by Benjamini and Hochberg's method",
    "none": "p-values are not adjusted for their number",
}
# Where to find what a report leaves out.
NOT_HERE = "not shown here, ask whoever made this report"


def threshold_text(value: float | None) -> str:
    """Write a threshold with four digits, or all digits before the decimal point."""
    if value is None:
        return DASH
    if value == float("inf"):
        return ABOVE
    whole = 1_000
    return (f"{value:,.1f}" if abs(value) >= whole else f"{value:.4g}").replace("-", MINUS)


def required_values(*, recorded: bool) -> str:
    """Say what a row must have to be measured."""
    return "label, score, weight or decision" if recorded else "label, score or weight"


def many(count: int, thing: str) -> str:
    """Write a number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def points(difference: float) -> str:
    """Write a difference of proportions in points, with its sign."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}".replace("-", MINUS)


def capitalised(text: str) -> str:
    """Begin a sentence with the text."""
    return f"{text[0].upper()}{text[1:]}"


def first_few(names: list[str], separator: str = ", ") -> str:
    """Write the first few names and the number of the others."""
    more = len(names) - _NAMES
    return f"{separator.join(names[:_NAMES])}{f' and {more:,} more' if more > 0 else ''}"


def listed(parts: list[str]) -> str:
    """Write parts of a sentence one after the other."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def sized(segment: dict[str, Any]) -> str:
    """Name a segment with the number of its rows."""
    return f"{name_of(segment['segment'])} ({many(segment['n'], 'row')})"


def of_models(table: pl.DataFrame) -> list[pl.DataFrame]:
    """Split a table by score."""
    return table.partition_by(MODEL, maintain_order=True) if MODEL in table.columns else [table]


def quoted(model: str | None) -> str:
    """Quote the name of a score after a space; empty without a name."""
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return "" if model is None else f" {left}{model}{right}"
