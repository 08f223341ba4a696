"""A hint at categories that may mean that a value is not known, such as "Not stated"."""

from __future__ import annotations

import polars as pl

from polars_wroc.audits.phrases import first_few
from polars_wroc.groups.groupings import CROSSED
from polars_wroc.inputs.names import AUDIT_KEYS, OVERALL
from polars_wroc.inputs.unknown import seems_unknown


def seemingly_unknown(table: pl.DataFrame) -> list[tuple[str, str]]:
    """List the attributes with such a category, and the category; crossed ones are not listed."""
    attribute = pl.col("attribute")
    alone = (attribute != OVERALL) & ~attribute.str.contains(CROSSED, literal=True)
    listed = table.filter(alone).select(AUDIT_KEYS).drop_nulls().unique(maintain_order=True)
    return [(name, category) for name, category in listed.rows() if seems_unknown(category)]


def unknown_hint(table: pl.DataFrame, remedy: str) -> list[str]:
    """Say that such categories are compared like others, and what to do if they are unknown."""
    found = seemingly_unknown(table)
    if not found:
        return []
    named = [f"{category!r} of {attribute}" for attribute, category in found]
    names = first_few(named, separator=" and ")
    are = "is" if len(found) == 1 else "are"
    text = f"{names} {are} compared like any other category"
    return [f"{text}. If this means that the value is not known, {remedy}."]
