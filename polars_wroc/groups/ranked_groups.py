"""Groups whose rows are ranked, by a plan or by the compiled engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.groups.auc_sums import AucSums
from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements, row_curve

if TYPE_CHECKING:
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import CompiledRows


class RankedGroups(ABC):
    """Groups of ranked rows; groups with other partition keys are never compared."""

    keys: Sequence[str]
    partition_keys: Sequence[str]

    @abstractmethod
    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Sum, for each of the ``groups``, the rows of the other groups of its partition.

        ``groups`` has the keys alone; the result has the keys and ``sums``.
        """


@dataclass(frozen=True)
class PlannedGroups(RankedGroups):
    """Groups that a plan ranks."""

    rows: Rows
    keys: Sequence[str]
    partition_keys: Sequence[str]

    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Sort the other rows of each group again."""
        left_out = {key: f"__left_out_{key}" for key in self.keys if key not in self.partition_keys}
        keys = [*self.partition_keys, *left_out.values()]
        paired = join_on_keys(
            self.rows.frame, groups.rename(left_out), self.partition_keys, how="inner"
        )
        others = paired.filter(
            pl.any_horizontal(pl.col(key).ne_missing(pl.col(out)) for key, out in left_out.items())
        )
        sorted_rows = by_descending_score(Rows(others, keys, in_order=self.rows.in_order))
        placed = self.rows.inside(add_placements(sorted_rows, keys, pl.col(WEIGHT)))
        curve = row_curve(in_range=self.rows.in_range)
        summed = placed.group_by(keys).agg(**sums.sums(curve))
        return summed.rename({out: key for key, out in left_out.items()})


@dataclass(frozen=True)
class WalkedGroups(RankedGroups):
    """Groups that the compiled engine walks along."""

    rows: CompiledRows
    keys: Sequence[str]
    partition_keys: Sequence[str]

    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Walk along the other rows of each group."""
        named = collect(groups)
        own = [key for key in self.keys if key not in self.partition_keys]
        walked = [
            group.hstack(self.rows.walk_without(own, group).select(**sums.walk_sums()))
            for group in named.iter_slices(1)
        ]
        none = named.clear().with_columns(**dict.fromkeys(sums.walk_sums(), pl.lit(0.0)))
        return pl.concat([none, *walked]).lazy()
