"""Phrases shared by the findings of an audit."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.audits.groupings import name_of
from polars_wroc.inputs.names import MODEL

_NAMES = 5


def many(count: int, thing: str) -> str:
    """Write a number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def first_few(names: list[str]) -> str:
    """Write the first few names and the number of the others."""
    more = len(names) - _NAMES
    return f"{', '.join(names[:_NAMES])}{f' and {more:,} more' if more > 0 else ''}"


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
