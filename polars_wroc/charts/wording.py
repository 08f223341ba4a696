"""Numbers and lists in the titles and labels of charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.documents.numbers import write_number, write_signed_size
from polars_wroc.groups.comparisons import CLOSED, GROWN, NEW, REVERSED, SHRUNK


def format_numbers(column: str, form: str) -> pl.Expr:
    """Return the numbers of a column as texts; null stays."""
    return pl.col(column).map_elements(
        lambda value: write_number(value, form), return_dtype=pl.String
    )


# Verbs for the change of a gap between two audits.
GAP_VERBS = {
    NEW: "opened",
    CLOSED: "closed",
    REVERSED: "turned",
    GROWN: "grew",
    SHRUNK: "shrank",
}


def write_gap_change(finding: str, before: float, after: float) -> str:
    """Return the change of a gap between two audits: ``closed from +14 to +3 points``."""
    texts = [write_signed_size(gap) for gap in (before, after)]
    return f"{GAP_VERBS[finding]} from {texts[0]} to {texts[1]} points"


def write_range(values: pl.Series, form: str = ".0%") -> str:
    """Return the lowest and the highest of some numbers: ``37% to 38%``."""
    numbers: list[Any] = values.drop_nulls().to_list()
    if not numbers:
        return "none"
    low, high = write_number(min(numbers), form), write_number(max(numbers), form)
    return low if low == high else f"{low} to {high}"


def write_ends(numbers: Sequence[tuple[str, str]]) -> str:
    """Return the first and the last of several named numbers: ``0.67 (a) to 0.73 (b)``."""
    (low, lowest), (high, highest) = numbers[0], numbers[-1]
    return f"{low} ({lowest}) to {high} ({highest})"


def join_sentences(*sentences: str) -> str:
    """Return several sentences as one text, without empty ones."""
    return ". ".join(sentence for sentence in sentences if sentence)
