"""Structs of named columns in expressions, so that a column is computed only once.

Polars computes a repeated expression each time. As a field of a struct it has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import polars as pl

# A function that returns a column by its name.
Fields: TypeAlias = Callable[[str], pl.Expr]

_RESULT = "__result"


def as_struct(columns: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return a struct of named expressions."""
    return pl.struct([column.alias(name) for name, column in columns.items()])


def let(columns: Mapping[str, pl.Expr], formula: Callable[[Fields], pl.Expr]) -> pl.Expr:
    """Return a formula of named columns as one expression, which computes each column once."""
    named = as_struct(columns).struct.with_fields(formula(pl.field).alias(_RESULT))
    return named.struct.field(_RESULT)


def element_field(*names: str) -> pl.Expr:
    """Return fields of the structs in a list, for `list.eval` and `list.agg`."""
    return pl.element().struct.field(*names)


def add_fields(lists: pl.Expr, columns: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return lists of structs with added fields, given as expressions of `element_field`."""
    return lists.list.eval(pl.element().struct.with_fields(**columns))


def first_fields(lists: pl.Expr, names: Sequence[str]) -> pl.Expr:
    """Return some fields of the first struct in each list."""
    return lists.list.agg(pl.struct([element_field(name) for name in names]).first())
