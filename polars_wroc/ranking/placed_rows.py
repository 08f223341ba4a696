"""Rows with their places among the rows of their group, from either engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import polars as pl

from polars_wroc.plans.by_keys import aggregate
from polars_wroc.ranking.placements import with_cluster_sums


@dataclass(frozen=True)
class PlacedRows:
    """Rows with the columns of `add_placements`, or with columns computed from these."""

    frame: pl.LazyFrame
    keys: list[str]

    def with_columns(self, **columns: pl.Expr) -> Self:
        """Add columns to the rows."""
        return replace(self, frame=self.frame.with_columns(**columns))

    def with_cluster_sums(self, values: dict[str, pl.Expr]) -> Self:
        """Add to each row the sums of the ``values`` over its cluster."""
        return replace(self, frame=with_cluster_sums(self.frame, self.keys, values))

    def aggregate(self, sums: dict[str, pl.Expr], within: Sequence[str] = ()) -> pl.LazyFrame:
        """Aggregate each group, or each value of the columns ``within`` it."""
        return aggregate(self.frame, [*self.keys, *within], sums)


Reduce: TypeAlias = Callable[[PlacedRows], pl.LazyFrame]
# For each column of scores the columns to compute from its placements.
Columns: TypeAlias = Mapping[str, dict[str, pl.Expr]]
