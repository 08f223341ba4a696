"""Formulas written in steps, so that no value is computed more than once.

In an aggregate or a window the engine computes an expression again wherever a formula repeats it.
With ``mean = x.mean()``, the formula ``mean * (1 - mean)`` computes the mean twice, and a formula
that uses this one twice computes it four times. A let-expression names the value first, and the
formula refers to the name::

    let({"mean": x.mean()}, lambda field: field("mean") * (1 - field("mean")))

`in_columns` and `in_struct` do this for several formulas in a row. A `Step` is a function that
returns named expressions; ``field`` refers to the names of the steps before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import polars as pl

Fields: TypeAlias = Callable[[str], pl.Expr]
Step: TypeAlias = Callable[[Fields], dict[str, pl.Expr]]

_RESULT, _ROWS = "__result", "__rows_in_list"


def as_struct(columns: dict[str, pl.Expr]) -> pl.Expr:
    """Put named expressions into one struct."""
    return pl.struct([column.alias(name) for name, column in columns.items()])


def let(columns: dict[str, pl.Expr], formula: Callable[[Fields], pl.Expr]) -> pl.Expr:
    """Write a formula over named columns as one expression, which computes each column once."""
    named = as_struct(columns).struct.with_fields(formula(pl.field).alias(_RESULT))
    return named.struct.field(_RESULT)


def in_columns(frame: pl.LazyFrame, steps: Sequence[Step]) -> pl.LazyFrame:
    """Add the columns of each step to a frame, one step after another."""
    for step in steps:
        frame = frame.with_columns(**step(pl.col))
    return frame


def in_list(
    rows: Mapping[str, dict[str, pl.Expr]], steps: Sequence[Step], result: str
) -> list[Step]:
    """Steps that compute each of several named rows, in one list, and name their ``result``.

    A plan grows with the width of a table times the number of its steps, not with that of a list.
    """
    element = pl.element().struct

    def in_all(step: Step, field: Fields) -> dict[str, pl.Expr]:
        added = element.with_fields(**step(element.field))
        return {_ROWS: field(_ROWS).list.eval(added)}

    def results(field: Fields) -> dict[str, pl.Expr]:
        return {name: field(_ROWS).list.get(i).struct.field(result) for i, name in enumerate(rows)}

    listed = pl.concat_list(as_struct(row) for row in rows.values())
    return [lambda _: {_ROWS: listed}, *(partial(in_all, step) for step in steps), results]


def in_struct(sums: pl.Expr, steps: Sequence[Step], result: Sequence[str]) -> pl.Expr:
    """Add the fields of each step to a list of one struct; return the fields ``result``."""
    element = pl.element()
    for step in steps:
        sums = sums.list.eval(element.struct.with_fields(**step(element.struct.field)))
    fields = [element.struct.field(name) for name in result]
    return sums.list.agg(pl.struct(fields).first())
