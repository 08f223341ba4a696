"""Aggregates, joins and windows by key columns; without keys, over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

_CONSTANT = "__constant"


def aggregate(
    frame: pl.LazyFrame, keys: Sequence[str], aggregates: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate the rows of each group of keys, or all rows if there are no keys."""
    if not keys:
        return frame.select(**aggregates)
    return frame.group_by(keys).agg(**aggregates)


def sum_unless_null(value: pl.Expr) -> pl.Expr:
    """Add up values; null if one of them is unknown."""
    return pl.when(value.is_not_null().all()).then(value.sum())


def join_on_keys(
    table: pl.LazyFrame,
    other: pl.LazyFrame,
    keys: Sequence[str],
    *,
    how: Literal["left", "inner"] = "left",
    maintain_order: Literal["left", "none"] = "left",
    suffix: str = "_right",
) -> pl.LazyFrame:
    """Join two tables on their keys; without keys, every row with every row.

    Null keys match each other, and so do NaN keys.
    """
    if not keys:
        return table.join(other, how="cross", maintain_order=maintain_order, suffix=suffix)
    on, constant = list(keys), pl.lit(0, pl.Int8).alias(_CONSTANT)
    # On one sorted float column the engine may use a merge join, in which NaN never equals NaN.
    # A second, constant key prevents that.
    single_float = len(on) == 1 and other.collect_schema()[on[0]].is_float()
    if single_float:
        table, other = table.with_columns(constant), other.with_columns(constant)
        on.append(_CONSTANT)
    joined = table.join(
        other, on=on, how=how, nulls_equal=True, maintain_order=maintain_order, suffix=suffix
    )
    return joined.drop(_CONSTANT) if single_float else joined


def over(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Compute a value within each group of keys, or over all rows if there are no keys."""
    return value.over(keys) if keys else value


def with_categories(frame: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Make categories of the keys that are texts, which are faster in windows and groups."""
    # As part of a plan, since that uses several threads, and `Series.cast` only one.
    schema = frame.collect_schema()
    texts = [key for key in keys if schema[key] == pl.String]
    # Categories of their own, which begin at 0 and end with the table.
    return frame.with_columns(pl.col(texts).cast(pl.Categorical(pl.Categories.random())))
