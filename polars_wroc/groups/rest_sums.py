"""Sums over the complement of each group, without sorting its rows.

They are sums over all rows minus the terms that involve rows of the group. Each row misranks some
weight of the other class. The AUC and its variance follow from the first and second moments of
that weight over the rows of each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.groups.auc_sums import OTHER, POWERS, AucSums, weights_by_class
from polars_wroc.inputs.columns import OUTSIDE, RANGE, WEIGHT
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Units, unit_weight
from polars_wroc.plans.queries import Fields, Step, join_on_keys, over
from polars_wroc.ranking.placements import (
    AHEAD,
    MISRANKED,
    TIED,
    RowCurve,
    rank_weights,
    walk_sum,
    with_placements_among,
)

# Weight that a row misranks overall.
_ALL_MISRANKED = "__all_misranked"
# Squared weights of the rows of the other class: of those that a row misranks overall; of those
# tied with it; and of the former, each times the weight that such a row misranks overall itself.
_SQUARES, _TIED_SQUARES, _SQUARES_MISRANKED = "__squares", "__tied_squares", "__squares_misranked"
# Relative rounding errors of a difference of sums, and of a variance computed from such.
_SUM_ROUNDING, _VARIANCE_ROUNDING = 1e-14, 1e-10


@dataclass(frozen=True)
class RestSums:
    """Columns of the sums over each group, over all rows and over the complement."""

    partition_keys: Sequence[str]
    units: Units

    @property
    def own(self) -> AucSums:
        """The rows of the group."""
        return AucSums("own", self.units)

    @property
    def overall(self) -> AucSums:
        """All rows."""
        return AucSums("all", self.units)

    @property
    def rest(self) -> AucSums:
        """The complement: the rows outside the group."""
        return AucSums("rest", self.units, rounding=_VARIANCE_ROUNDING)

    @property
    def group_in_all(self) -> AucSums:
        """The rows of the group, with the weights that they misrank overall."""
        return AucSums("group_in_all", self.units)

    @property
    def _all_in_group(self) -> AucSums:
        """All rows, with the weights of the group's rows that they misrank."""
        return AucSums("all_in_group", self.units)

    def direct(self, name: str) -> str:
        """Column of a sum over the rows of the complement, for groups that are nearly all rows."""
        return f"{name}_direct"

    def place(self, sorted_rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add to sorted rows the weight that each misranks, and sums over rows that misrank it."""
        # Labels are checked later, when placements in each group are computed.
        around = rank_weights()
        misranked = {_ALL_MISRANKED: around.misranked}
        placed = with_placements_among(sorted_rows, self.partition_keys, pl.col(WEIGHT), misranked)
        squares = pl.col(WEIGHT) * unit_weight(self.units, pl.col)
        columns = {_SQUARES: around.misranked, _TIED_SQUARES: around.tied_other}
        placed = with_placements_among(placed, self.partition_keys, squares, columns)
        misranked = {_SQUARES_MISRANKED: around.misranked}
        weights_misranked = squares * pl.col(_ALL_MISRANKED)
        if OUTSIDE in sorted_rows.collect_schema():
            # What the rows outside of a range misrank is not known yet: see `to_add_up`.
            weights_misranked = pl.when(~pl.col(OUTSIDE)).then(weights_misranked).otherwise(0.0)
        return with_placements_among(placed, self.partition_keys, weights_misranked, misranked)

    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the rows of a group: its own, `group_in_all` and `_all_in_group`."""
        return self.own.sums(curve) | self._group_in_all_sums() | self._all_in_group_sums()

    def to_add_up(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Add to the sums over ranges the terms of rows of one range and rows of another.

        All else follows from the weights above and below a range. Every row misranks the rows of
        the other class in all ranges above it, or in all below, with whatever these misrank.
        """
        moments = {side: self.group_in_all.misranked("first", side) for side in CLASSES}
        of_range = [*self.partition_keys, RANGE]
        totals = sums.group_by(of_range).agg(pl.col(name).sum() for name in moments.values())
        above = pl.col(moments["neg"]).shift(1, fill_value=0.0).cum_sum()
        below = pl.col(moments["pos"]).shift(-1, fill_value=0.0).cum_sum(reverse=True)
        others = totals.sort(RANGE).select(
            *of_range,
            over(above, self.partition_keys).alias("__others_pos"),
            over(below, self.partition_keys).alias("__others_neg"),
        )
        joined = join_on_keys(sums, others, of_range)
        columns = {}
        for side in CLASSES:
            weight, cross = pl.col(self.own.weight(side)), self._all_in_group.cross(OTHER[side])
            # Without weight nothing is added, not even what overflows.
            added = pl.when(weight > 0).then(weight * pl.col(f"__others_{side}")).otherwise(0.0)
            columns[cross] = pl.col(cross) + added
        return joined.with_columns(**columns).drop(f"__others_{side}" for side in CLASSES)

    def _group_in_all_sums(self) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        unit, own = unit_weight(self.units, pl.col), pl.col(MISRANKED)
        misranked = pl.col(_ALL_MISRANKED)
        for side, weight in weights_by_class().items():
            columns |= {
                self.group_in_all.misranked_pairs_of(side): (weight * misranked).sum(),
                self.group_in_all.misranked("first", side): (weight * (unit * misranked)).sum(),
                self.group_in_all.misranked("second", side): (
                    weight * (unit * misranked * misranked)
                ).sum(),
                self.own.cross(side): (weight * (unit * misranked * own)).sum(),
            }
        return columns

    def _all_in_group_sums(self) -> dict[str, pl.Expr]:
        """Sums over all rows of the weights of a group's rows that they misrank.

        Each is computed as a sum over the group's rows of the other class. For second moments
        these are taken in pairs: a row misranks both of a pair if it misranks the one that is
        ahead of the other.
        """
        columns: dict[str, pl.Expr] = {}
        squares = pl.col(_SQUARES)
        pairs = 2 * pl.col(AHEAD) * squares - pl.col(TIED) * pl.col(_TIED_SQUARES) / 4
        for side, weight in weights_by_class().items():
            columns |= {
                self._all_in_group.misranked("first", OTHER[side]): (weight * squares).sum(),
                self._all_in_group.misranked("second", OTHER[side]): (weight * pairs).sum(),
                self._all_in_group.cross(OTHER[side]): (weight * pl.col(_SQUARES_MISRANKED)).sum(),
            }
        return columns

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `aggregates` does."""
        columns = self.own.walk_sums()
        for side, other in OTHER.items():
            names = {
                self.group_in_all.misranked_pairs_of(side): "misranked",
                self.group_in_all.misranked("first", side): "first_in_all",
                self.group_in_all.misranked("second", side): "second_in_all",
                self.own.cross(side): "cross",
                self._all_in_group.misranked("first", other): "squares_misranked",
                self._all_in_group.misranked("second", other): "ahead_squares",
                self._all_in_group.cross(other): "weights_misranked",
            }
            columns |= {column: pl.col(walk_sum(name, side)) for column, name in names.items()}
        return columns

    @property
    def steps(self) -> list[Step]:
        """Compute the AUCs of each group and of its complement, and their variances."""
        rest = [self._rest, self.rest.to_proportions, *self.rest.steps]
        return [self.own.to_weights, self._overall, *rest, *self.own.steps]

    def _overall(self, field: Fields) -> dict[str, pl.Expr]:
        """Compute the sums over all rows from those over groups."""

        def total(name: str) -> pl.Expr:
            return over(field(name).sum(), self.partition_keys)

        overall, group_in_all = self.overall, self.group_in_all
        columns = {overall.misranked_pairs: total(group_in_all.misranked_pairs_of("pos"))}
        for side in CLASSES:
            columns |= {overall.power(n, side): total(self.own.power(n, side)) for n in POWERS}
            for moment in ("first", "second"):
                in_all = group_in_all.misranked(moment, side)
                columns[overall.misranked(moment, side)] = total(in_all)
        return columns

    def _rest(self, field: Fields) -> dict[str, pl.Expr]:
        """Subtract the terms that involve rows of the group from the sums over all rows."""
        own, overall = self.own, self.overall
        group_in_all, all_in_group = self.group_in_all, self._all_in_group

        def difference(added: Sequence[str], subtracted: Sequence[str]) -> pl.Expr:
            return _difference(
                [field(name) for name in added], [field(name) for name in subtracted]
            )

        columns = {
            self.rest.misranked_pairs: difference(
                [overall.misranked_pairs, own.misranked_pairs],
                [group_in_all.misranked_pairs_of(side) for side in CLASSES],
            )
        }
        for side in CLASSES:
            for name in POWERS:
                columns[self.rest.power(name, side)] = difference(
                    [overall.power(name, side)], [own.power(name, side)]
                )
            columns[self.rest.misranked("first", side)] = difference(
                [each.misranked("first", side) for each in (overall, own)],
                [each.misranked("first", side) for each in (group_in_all, all_in_group)],
            )
            # Moments of the weight misranked overall minus the weight misranked in the group.
            columns[self.rest.misranked("second", side)] = difference(
                [
                    *(each.misranked("second", side) for each in (overall, all_in_group)),
                    *[own.cross(side)] * 2,
                ],
                [
                    *(each.misranked("second", side) for each in (group_in_all, own)),
                    *[all_in_group.cross(side)] * 2,
                ],
            )
        # For groups that are nearly all rows the sums were computed directly.
        return {
            name: pl.coalesce(field(self.direct(name)), value) for name, value in columns.items()
        }


def _difference(added: Sequence[pl.Expr], subtracted: Sequence[pl.Expr]) -> pl.Expr:
    """Subtract sums of non-negative terms; a difference within rounding is 0."""
    high, low = (reduce(add, terms) for terms in (added, subtracted))
    return pl.when(high - low <= _SUM_ROUNDING * (high + low)).then(0.0).otherwise(high - low)
