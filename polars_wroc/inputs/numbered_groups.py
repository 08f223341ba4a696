"""Numbers for groups in a plan, in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys

# The number of a row's group.
GROUP = "__group"


def numbered_groups(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    """Number the groups in their order; none if there are more than the limit."""
    groups = rows.frame.select(rows.group_keys).unique()
    names = groups.filter(within_limit).sort(rows.group_keys)
    return names.with_row_index(GROUP)


def with_numbers(frame: pl.LazyFrame, names: pl.LazyFrame, groups: Sequence[str]) -> pl.LazyFrame:
    """Replace the keys of a row by the number of its group."""
    return join_on_keys(frame, names, groups, how="inner").drop(groups)
