"""Numbers and lists in the titles and labels of charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.documents.numbers import write_number, write_signed_size
from polars_wroc.groups.comparisons import CLOSED, GROWN, NEW, REVERSED, SHRUNK


def write_numbers(column: str, form: str) -> pl.Expr:
    """Write the numbers of a column; null without a number."""
    return pl.col(column).map_elements(
        lambda value: write_number(value, form), return_dtype=pl.String
    )


# What a gap did between two audits, by what became of it.
GAP_VERBS = {
    NEW: "opened",
    CLOSED: "closed",
    REVERSED: "turned",
    GROWN: "grew",
    SHRUNK: "shrank",
}


def write_gap_change(finding: str, before: float, after: float) -> str:
    """Write what became of a gap between two audits: ``closed from +14 to +3 points``."""
    texts = [write_signed_size(gap) for gap in (before, after)]
    return f"{GAP_VERBS[finding]} from {texts[0]} to {texts[1]} points"


def write_range(values: pl.Series, form: str = ".0%") -> str:
    """Write the lowest and the highest of some numbers: ``37% to 38%``."""
    numbers: list[Any] = values.drop_nulls().to_list()
    if not numbers:
        return "none"
    low, high = write_number(min(numbers), form), write_number(max(numbers), form)
    return low if low == high else f"{low} to {high}"


def write_list(parts: Sequence[str], most: int = 3) -> str:
    """Write parts of a sentence: ``a, b and c``; of more than ``most`` say how many there are."""
    if len(parts) > most:
        parts = [*parts[: most - 1], f"{len(parts) - most + 1} others"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def join_sentences(*sentences: str) -> str:
    """Join sentences, without empty ones."""
    return ". ".join(sentence for sentence in sentences if sentence)
