"""Aggregates, joins and windows by keys, or over all rows without keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

_CONSTANT = "__constant"


def aggregate(
    frame: pl.LazyFrame, keys: Sequence[str], aggregates: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate the rows with the same keys, or all without keys."""
    if not keys:
        return frame.select(**aggregates)
    return frame.group_by(keys).agg(**aggregates)


def join_on_keys(
    table: pl.LazyFrame,
    other: pl.LazyFrame,
    keys: Sequence[str],
    *,
    how: Literal["left", "inner"] = "left",
    maintain_order: Literal["left", "none"] = "left",
    suffix: str = "_right",
) -> pl.LazyFrame:
    """Put beside each row of a table what the other has for its keys, or for all without keys.

    Null is a key like others, and so is NaN.
    """
    if not keys:
        return table.join(other, how="cross", maintain_order=maintain_order, suffix=suffix)
    on, constant = list(keys), pl.lit(0, pl.Int8).alias(_CONSTANT)
    # One sorted column of numbers is merged with another by an engine to which no NaN is another's
    # equal. With a second column it is not.
    alone = len(on) == 1 and table.collect_schema()[on[0]].is_float()
    if alone:
        table, other = table.with_columns(constant), other.with_columns(constant)
        on.append(_CONSTANT)
    joined = table.join(
        other, on=on, how=how, nulls_equal=True, maintain_order=maintain_order, suffix=suffix
    )
    return joined.drop(_CONSTANT) if alone else joined


def over(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Work within the groups with the same keys, or over all rows without keys."""
    return value.over(keys) if keys else value
