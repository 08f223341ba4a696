"""Reasons for missing values, which several kinds of tables share."""

from __future__ import annotations

from polars_wroc.inputs.metric import SampleSize

# Reasons why a value or its test is null.
UNDEFINED, NO_VARIANCE, ONE_CLASS = "undefined", "no variance", "one class only"
# Why decisions say nothing about groups: all are the same.
NOBODY, EVERYBODY = "nobody is selected", "everybody is selected"
# Why no shift and no range of scores is tested.
ONE_SCORE = "one score"
# Limits of a weighted rate may be too narrow: a few rows may miss the heaviest ones.
FEW_EVENTS = "few effective events"
# The start of `few_rows`, and its end if it is the reference that has too few rows.
FEW, IN_REFERENCE = "fewer than ", " in the reference"


def few_rows(min_rows: int, kind: SampleSize = "rows", *, in_reference: bool = False) -> str:
    """Return the reason for too few rows of a kind, in a segment or in its reference."""
    rows = f"{kind} rows" if kind in ("selected", "rejected") else kind
    return f"{FEW}{min_rows} {rows}{IN_REFERENCE if in_reference else ''}"


def few_expected(least: int) -> str:
    """Return the reason for too few expected effective rows of a class."""
    return f"{FEW}{least} expected rows of a class"
