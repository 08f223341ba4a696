"""P-values adjusted for many tests."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.plans.queries import FrameT

Adjust: TypeAlias = Literal["holm", "bh", "none"]


def adjusted(table: FrameT, method: Adjust) -> FrameT:
    """Add p-values adjusted for all tests of the table, and sort the rows by p-value.

    ``"holm"`` controls the family-wise error rate, ``"bh"`` (Benjamini and Hochberg) the false
    discovery rate. Null p-values do not count as tests.
    """
    p = pl.col("p_value")
    tests, rank = p.count(), pl.int_range(1, pl.len() + 1)
    values = {
        "holm": ((tests - rank + 1) * p).cum_max(),
        "bh": (tests / rank * p).cum_min(reverse=True),
        "none": p,
    }
    return table.sort(p, nulls_last=True).with_columns(
        pl.when(p.is_not_null()).then(values[method].clip(upper_bound=1.0)).alias("p_adjusted")
    )


def is_significant(p_adjusted: pl.Expr, level: float) -> pl.Expr:
    """Whether a difference is significant after adjustment; null where it is not tested."""
    return p_adjusted <= 1 - level
