"""Formulas in steps: what one step computes, the next may mention as often as it likes.

An expression that mentions another twice makes the engine compute it twice, and a formula
that builds on itself would double at every turn. A step gives its results names instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import polars as pl

Fields: TypeAlias = Callable[[str], pl.Expr]
Step: TypeAlias = Callable[[Fields], dict[str, pl.Expr]]

_RESULT = "__result"


def as_struct(columns: dict[str, pl.Expr]) -> pl.Expr:
    """Put named expressions into one struct."""
    return pl.struct([column.alias(name) for name, column in columns.items()])


def let(columns: dict[str, pl.Expr], formula: Callable[[Fields], pl.Expr]) -> pl.Expr:
    """Write a formula over named columns, within one expression: a step inside an aggregate."""
    named = as_struct(columns).struct.with_fields(formula(pl.field).alias(_RESULT))
    return named.struct.field(_RESULT)


def in_columns(frame: pl.LazyFrame, steps: Sequence[Step]) -> pl.LazyFrame:
    """Add what each step computes to the columns of a frame."""
    for step in steps:
        frame = frame.with_columns(**step(pl.col))
    return frame


def in_struct(sums: pl.Expr, steps: Sequence[Step], result: Sequence[str]) -> pl.Expr:
    """Add what each step computes to a struct, held as a list of one; keep the ``result``."""
    element = pl.element()
    for step in steps:
        sums = sums.list.eval(element.struct.with_fields(**step(element.struct.field)))
    fields = [element.struct.field(name) for name in result]
    return sums.list.agg(pl.struct(fields).first())
