"""Reasons that several kinds of tables give for what they do not show."""

from __future__ import annotations

from polars_wroc.inputs.metric import SampleSize

# Why a value, or a test of it, is null.
UNDEFINED, NO_VARIANCE, ONE_CLASS = "undefined", "no variance", "one class only"
# Why decisions tell nothing of groups: all are the same.
NOBODY, EVERYBODY = "nobody is selected", "everybody is selected"
# Why no shift and no range of scores is tested.
ONE_SCORE = "one score"
# The start of `few_rows`, and its end where not the segment but its reference has too few rows.
FEW, IN_REFERENCE = "fewer than ", " in the reference"


def few_rows(min_rows: int, kind: SampleSize = "rows", *, in_reference: bool = False) -> str:
    """Say that a number, or its reference, rests on too few rows of a kind to be tested."""
    rows = f"{kind} rows" if kind in ("selected", "rejected") else kind
    return f"{FEW}{min_rows} {rows}{IN_REFERENCE if in_reference else ''}"


def few_expected(least: int) -> str:
    """Say that too few effective rows of a class are expected for a test."""
    return f"{FEW}{least} expected rows of a class"
