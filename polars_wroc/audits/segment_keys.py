"""Keys and names of segments in the tables of an audit."""

from __future__ import annotations

import polars as pl

from polars_wroc.charts.drawable import visible
from polars_wroc.inputs.names import AUDIT_KEYS, MISSING, MODEL, OVERALL

# What all rows are called in words.
ALL_ROWS = "all rows"


def segment_keys(table: pl.DataFrame) -> list[str]:
    """List the columns of an audit's table that identify segment and model."""
    return [name for name in (*AUDIT_KEYS, MODEL) if name in table.columns]


def compared_within(table: pl.DataFrame) -> list[str]:
    """List the columns within which segments are compared."""
    return [name for name in segment_keys(table) if name != "segment"]


def rows_with(table: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of a table with these keys; null equals null."""
    return table.join(kept, on=kept.columns, how="semi", nulls_equal=True, maintain_order="left")


def name_of(segment: str | None) -> str:
    """Name a segment, also that of null."""
    return MISSING if segment is None else segment


def segment_in_words(attribute: str, segment: str | None) -> str:
    """Name a segment in a sentence: ``race = black``, or ``Region 12`` of the attribute region."""
    name, attribute = visible(name_of(segment)), visible(attribute)
    if attribute == OVERALL:
        return ALL_ROWS
    rest = name.casefold().removeprefix(attribute.casefold())
    doubled = len(rest) < len(name) and not rest[:1].isalnum()
    return name if doubled else f"{attribute} = {name}"
