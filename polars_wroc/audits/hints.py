"""Hints on rows and values, for readers of an audit and for whoever runs it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.tables import AuditTables
from polars_wroc.documents.phrases import capitalise, first_few, many, verb
from polars_wroc.groups.categories import CROSSED
from polars_wroc.inputs.columns import AUDIT_KEYS, OVERALL
from polars_wroc.inputs.decisions import Unknown, seems_unknown

# A share above the median so small that ties must explain it.
_FEW_ABOVE_MEDIAN = 0.45


def find_apparently_unknown(table: pl.DataFrame) -> list[tuple[str, str]]:
    """Return attributes with such a category, and the category; crossed ones are left out."""
    attribute = pl.col("attribute")
    alone = (attribute != OVERALL) & ~attribute.str.contains(CROSSED, literal=True)
    known = table.filter(alone).select(AUDIT_KEYS).drop_nulls().unique(maintain_order=True)
    return [(name, category) for name, category in known.rows() if seems_unknown(category)]


def hint_unknown(table: pl.DataFrame, remedy: str) -> list[str]:
    """Return the hint that such categories are compared like others, and what to do about it."""
    found = find_apparently_unknown(table)
    if not found:
        return []
    named = [f"{category!r} of {attribute}" for attribute, category in found]
    names = first_few(named, separator=" and ")
    text = f"{names} {verb(len(found), 'is', 'are')} compared like any other category"
    return [f"{text}. If this means that the value is not known, {remedy}."]


def say_unknown(audit: AuditTables) -> list[str]:
    """Return the sentence on groups that may stand for an unknown value."""
    values = list_unknown(audit.segments, audit.settings.unknown)
    remedy = (
        f"give unknown={values} in Python, or {write_unknown_flags(values)} on the command line"
    )
    return hint_unknown(audit.segments, remedy)


def list_unknown(table: pl.DataFrame, unknown: Unknown) -> list[Any]:
    """Return the values that are unknown, then those that may be."""
    given = [] if isinstance(unknown, str) else unknown
    return [*dict.fromkeys([*given, *(category for _, category in find_apparently_unknown(table))])]


def write_unknown_flags(values: Sequence[object]) -> str:
    """Return values as options of the command line."""
    return " ".join(f"--unknown {shlex.quote(str(value))}" for value in values)


def say_missing_rows(decided: pl.DataFrame, what: str) -> str:
    """Return the sentence on rows that lack one of some values, if any do."""
    found = decided["missing"]
    most = max(found.to_list(), default=0)
    if not most:
        return ""
    up_to = "" if found.n_unique() == 1 else "up to "
    have, were = ("has", "was") if most == 1 else ("have", "were")
    return capitalise(f"{up_to}{many(most, 'row')} {have} no {what} and {were} left out.")


def list_missing(missing: pl.DataFrame) -> list[str]:
    """Return the columns with missing values, with numbers of rows, as text."""
    some = missing.filter(pl.col("n_missing") > 0)
    names = [f"{name} in {many(rows, 'row')}" for name, rows in some.iter_rows()]
    return [f"Values are missing: {', '.join(names)}."] if names else []


def explain_median(decided: pl.DataFrame) -> str:
    """Return the sentence on far fewer than half of the rows above the median, if so."""
    least = decided["share"].min()
    if not isinstance(least, float) or least >= _FEW_ABOVE_MEDIAN:
        return ""
    return f"Only {least:.0%} score above the median, since many scores are equal to it."
