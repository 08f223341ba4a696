"""Sums over all rows outside a group, without a curve of their own.

They are the sums over all rows less those over the group; how the group's rows place the others
is summed over the group's rows. A row misranks weight of the other class: first and second
moments of that weight, over the rows of a class, make the AUC and its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.groups.auc_sums import OTHER, POWERS, AucSums, weights_by_class
from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Units, unit_weight
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.placements import (
    AHEAD,
    MISRANKED,
    TIED,
    rank_weights,
    with_placements_among,
)

# Weight that a row misranks among all rows.
_ALL_MISRANKED = "__all_misranked"
# Weights around a row among all rows, squared, alone and times what each row misranks.
_SQUARES, _TIED_SQUARES, _SQUARES_MISRANKED = "__squares", "__tied_squares", "__squares_misranked"
# What a difference of sums may have lost, as a share of its own and of a variance's terms.
_NOTHING, _ROUNDING = 1e-14, 1e-10


@dataclass(frozen=True)
class RestSums:
    """The sums of each group, of all rows and of the rest, which all have their columns here."""

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
        """The rows outside the group."""
        return AucSums("rest", self.units, rounding=_ROUNDING)

    @property
    def among(self) -> AucSums:
        """The rows of the group, with what they misrank among all rows."""
        return AucSums("among", self.units)

    @property
    def _caused(self) -> AucSums:
        """All rows, with what they misrank among the rows of the group."""
        return AucSums("caused", self.units)

    def direct(self, name: str) -> str:
        """Column of a sum over the rest itself, for groups that are nearly all rows."""
        return f"{name}_direct"

    def place(self, sorted_rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add to sorted rows what each misranks among all, and what others misrank with it."""
        # Labels are checked within each group, where rows are placed in it.
        around = rank_weights()
        misranked = {_ALL_MISRANKED: around.misranked}
        placed = with_placements_among(sorted_rows, self.partition_keys, pl.col(WEIGHT), misranked)
        squares = pl.col(WEIGHT) * unit_weight(self.units, pl.col)
        columns = {_SQUARES: around.misranked, _TIED_SQUARES: around.tied_other}
        placed = with_placements_among(placed, self.partition_keys, squares, columns)
        misranked = {_SQUARES_MISRANKED: around.misranked}
        weights_misranked = squares * pl.col(_ALL_MISRANKED)
        return with_placements_among(placed, self.partition_keys, weights_misranked, misranked)

    @property
    def aggregates(self) -> dict[str, pl.Expr]:
        """Sum over a group, over its rows among all rows, and over all rows among its rows."""
        return self.own.sums() | self._among_sums() | self._caused_sums()

    def _among_sums(self) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        unit, own = unit_weight(self.units, pl.col), pl.col(MISRANKED)
        misranked = pl.col(_ALL_MISRANKED)
        for side, weight in weights_by_class().items():
            columns |= {
                self.among.misranked_pairs_of(side): (weight * misranked).sum(),
                self.among.misranked("first", side): (weight * (unit * misranked)).sum(),
                self.among.misranked("second", side): (
                    weight * (unit * misranked * misranked)
                ).sum(),
                self.own.cross(side): (weight * (unit * misranked * own)).sum(),
            }
        return columns

    def _caused_sums(self) -> dict[str, pl.Expr]:
        """Sum over all rows what they misrank among the rows of a group.

        Each is a sum over the group's rows of the other class: any row misranks a pair of them
        when it misranks the one that is further ahead of the other.
        """
        columns: dict[str, pl.Expr] = {}
        squares = pl.col(_SQUARES)
        pairs = 2 * pl.col(AHEAD) * squares - pl.col(TIED) * pl.col(_TIED_SQUARES) / 4
        for side, weight in weights_by_class().items():
            columns |= {
                self._caused.misranked("first", OTHER[side]): (weight * squares).sum(),
                self._caused.misranked("second", OTHER[side]): (weight * pairs).sum(),
                self._caused.cross(OTHER[side]): (weight * pl.col(_SQUARES_MISRANKED)).sum(),
            }
        return columns

    @property
    def steps(self) -> list[Step]:
        """From sums to the AUC of each group and of the rest, and their variances."""
        rest = [self._rest, self.rest.to_proportions, *self.rest.steps]
        return [self.own.to_weights, self._overall, *rest, *self.own.steps]

    def _overall(self, field: Fields) -> dict[str, pl.Expr]:
        """Add up the groups."""

        def total(name: str) -> pl.Expr:
            return over(field(name).sum(), self.partition_keys)

        overall, among = self.overall, self.among
        columns = {overall.misranked_pairs: total(among.misranked_pairs_of("pos"))}
        for side in CLASSES:
            columns |= {overall.power(n, side): total(self.own.power(n, side)) for n in POWERS}
            for moment in ("first", "second"):
                columns[overall.misranked(moment, side)] = total(among.misranked(moment, side))
        return columns

    def _rest(self, field: Fields) -> dict[str, pl.Expr]:
        """Take the group's rows from all rows, and what they cause in the others."""
        own, overall, among, caused = self.own, self.overall, self.among, self._caused

        def less(more: Sequence[str], subtracted: Sequence[str]) -> pl.Expr:
            return _less([field(name) for name in more], [field(name) for name in subtracted])

        columns = {
            self.rest.misranked_pairs: less(
                [overall.misranked_pairs, own.misranked_pairs],
                [among.misranked_pairs_of(side) for side in CLASSES],
            )
        }
        for side in CLASSES:
            for name in POWERS:
                columns[self.rest.power(name, side)] = less(
                    [overall.power(name, side)], [own.power(name, side)]
                )
            columns[self.rest.misranked("first", side)] = less(
                [each.misranked("first", side) for each in (overall, own)],
                [each.misranked("first", side) for each in (among, caused)],
            )
            # Of what all rows misrank less what the group's do, squared.
            columns[self.rest.misranked("second", side)] = less(
                [
                    *(each.misranked("second", side) for each in (overall, caused)),
                    *[own.cross(side)] * 2,
                ],
                [
                    *(each.misranked("second", side) for each in (among, own)),
                    *[caused.cross(side)] * 2,
                ],
            )
        # Where it was worth the trouble the sums over the rest are there themselves.
        return {
            name: pl.coalesce(field(self.direct(name)), value) for name, value in columns.items()
        }


def _less(more: Sequence[pl.Expr], less: Sequence[pl.Expr]) -> pl.Expr:
    """Subtract sums of what is never negative; what rounding leaves of them is 0."""
    high, low = (reduce(add, terms) for terms in (more, less))
    return pl.when(high - low <= _NOTHING * (high + low)).then(0.0).otherwise(high - low)
