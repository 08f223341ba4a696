"""P-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.plans.by_keys import join_on_keys

Adjust: TypeAlias = Literal["holm", "bh", "none"]

_TEST = "__test"


def check_options(level: float, adjust: Adjust) -> float:
    """Check the options that all tests of differences share, and return the level."""
    arguments.option("adjust", adjust, get_args(Adjust))
    return arguments.level(level)


def adjusted(table: pl.LazyFrame, method: Adjust) -> pl.LazyFrame:
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


def adjusted_together(
    table: pl.LazyFrame,
    keys: Sequence[str],
    method: Adjust,
    p_values: Sequence[str],
    counted: pl.Expr,
) -> pl.LazyFrame:
    """Adjust the p-values of several columns for all tests in rows that are ``counted``."""
    # The table is used several times but computed once.
    table = table.cache()
    tests = table.filter(counted)
    stacked = pl.concat(
        tests.select(*keys, pl.lit(name).alias(_TEST), pl.col(name).alias("p_value"))
        for name in p_values
    )
    of_test = adjusted(stacked, method)
    named = {
        name.removesuffix("value") + "adjusted": pl.col("p_adjusted").filter(pl.col(_TEST) == name)
        for name in p_values
    }
    of_row = of_test.group_by(keys).agg(**{name: p.first() for name, p in named.items()})
    return join_on_keys(table, of_row, keys)


def number_of_tests(p_values: Sequence[str], counted: pl.Expr) -> pl.Expr:
    """Number of the tests that `adjusted_together` adjusts together, at least 1."""
    tests = pl.sum_horizontal((pl.col(name).is_not_null() & counted).sum() for name in p_values)
    return tests.cast(pl.Int64).clip(lower_bound=1)


def is_significant(p_adjusted: pl.Expr, level: float) -> pl.Expr:
    """Whether a difference is significant after adjustment; null where it is not tested."""
    return p_adjusted <= 1 - level
