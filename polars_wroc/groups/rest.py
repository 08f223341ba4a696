"""All rows outside a group as what its AUC is compared with.

They would take a curve of their own for every group. Instead their sums are those over
everybody less those over the group, and how the group's rows place the others is summed over
the group's rows. One sort serves all groups, however many there are. Only for a group that
is nearly everybody, where differences of sums would be rounding, the rest has its own curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Literal

import polars as pl

from polars_wroc.groups.auc_sums import (
    AHEAD,
    ALL_MISRANKED,
    OTHER,
    TIED,
    AucSums,
    add_overall_placements,
    add_placement_columns,
    add_up_groups,
    among_sums,
    weights,
)
from polars_wroc.groups.references import Reference, difference_columns
from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics.auc_variance import Units, Variance, unit_weight
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.steps import Fields, Step, in_columns
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements_among, rank_weights
from polars_wroc.stats.difference_tests import AucEstimate

# Weights around a row among everybody, squared, alone and times what each row misranks.
_SQUARES, _TIED_SQUARES, _SQUARES_MISRANKED = "__squares", "__tied_squares", "__squares_misranked"
# Ends the names of sums over the rest itself.
_DIRECT = "_direct"
# A group with more than this share of a class is nearly everybody.
_NEARLY_ALL = 0.9
# What a difference of sums may have lost, as a share of its own and of a variance's terms.
_NOTHING, _ROUNDING = 1e-14, 1e-10


class Rest(Reference):
    """All rows that are not in the group."""

    kind: Literal["rest", "overall"] = "rest"

    def among_all(self, ordered: pl.LazyFrame) -> pl.LazyFrame:
        """Add what a row misranks among everybody, and what others misrank with it."""
        return _place_squares(
            add_overall_placements(ordered, self.partition_keys), self.partition_keys, self.units
        )

    @property
    def sums(self) -> dict[str, pl.Expr]:
        """Sum over a group, over its rows among everybody, and over everybody among its rows."""
        return self.own.sums() | among_sums(self.units) | _caused_sums()

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with the rest, which shares no row with it."""
        return in_columns(sums, [*self.steps, _independent_step(self.own, self.rest)])

    @property
    def own(self) -> AucSums:
        """The rows of the group."""
        return AucSums("own", self.units)

    @property
    def rest(self) -> AucSums:
        """The rows outside it."""
        return AucSums("rest", self.units, rounding=_ROUNDING)

    @property
    def steps(self) -> list[Step]:
        """From sums to the AUC of each group and of the rest, and their variances."""
        rest = [_rest, self.rest.to_proportions, *self.rest.steps]
        return [self.own.to_weights, add_up_groups(self.partition_keys), *rest, *self.own.steps]

    def completed(self, sums: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
        """Add the sums over the rest for groups that are nearly everybody; null for the others."""
        sums = sums.cache()
        left_out = {key: f"__left_out_{key}" for key in rows.keys if key not in self.partition_keys}
        large = _nearly_everybody(sums, self.partition_keys).select(rows.keys).rename(left_out)
        keys = [*self.partition_keys, *left_out.values()]
        paired = join_on_keys(rows.frame, large, self.partition_keys, how="inner")
        others = paired.filter(
            pl.any_horizontal(pl.col(key).ne_missing(pl.col(out)) for key, out in left_out.items())
        )
        ordered = by_descending_score(Rows(others, keys, in_order=rows.in_order))
        placed = add_placements_among(ordered, keys, pl.col(WEIGHT))
        direct = placed.group_by(keys).agg(**self.rest.sums())
        direct = direct.with_columns(**self.rest.to_weights(pl.col))
        direct = direct.select(*keys, pl.exclude(keys).name.suffix(_DIRECT))
        direct = direct.rename({out: key for key, out in left_out.items()})
        return join_on_keys(sums, direct, [*self.partition_keys, *left_out])


def _nearly_everybody(sums: pl.LazyFrame, partition_keys: Sequence[str]) -> pl.LazyFrame:
    """Keep the groups with nearly all of a class's weight, or of its squares."""
    totals = [pl.col(f"__{name}_{side}_own") for name in ("weight", "squares") for side in CLASSES]
    return sums.filter(
        pl.any_horizontal(
            total > _NEARLY_ALL * over(total.sum(), partition_keys) for total in totals
        )
    )


def _place_squares(
    ordered: pl.LazyFrame, partition_keys: Sequence[str], units: Units
) -> pl.LazyFrame:
    around = rank_weights()
    squares = pl.col(WEIGHT) * unit_weight(units, pl.col)
    columns = {_SQUARES: around.misranked, _TIED_SQUARES: around.tied_other}
    ordered = add_placement_columns(ordered, partition_keys, squares, columns)
    misranked = squares * pl.col(ALL_MISRANKED)
    return add_placement_columns(
        ordered, partition_keys, misranked, {_SQUARES_MISRANKED: around.misranked}
    )


def _caused_sums() -> dict[str, pl.Expr]:
    """Over everybody, from what they misrank among the rows of a group.

    Each is a sum over the group's rows of the other class: a row of everybody misranks a
    pair of them when it misranks the one that is further ahead of the other.
    """
    columns = {}
    squares = pl.col(_SQUARES)
    pairs = 2 * pl.col(AHEAD) * squares - pl.col(TIED) * pl.col(_TIED_SQUARES) / 4
    for side, weight in weights().items():
        columns[f"__first_mass_{OTHER[side]}_caused"] = (weight * squares).sum()
        columns[f"__second_mass_{OTHER[side]}_caused"] = (weight * pairs).sum()
        cross = weight * pl.col(_SQUARES_MISRANKED)
        columns[f"__cross_mass_{OTHER[side]}_caused"] = cross.sum()
    return columns


def _rest(field: Fields) -> dict[str, pl.Expr]:
    """Take a group's rows from everybody, and what they cause in the others."""

    def of(name: str, side: str, *samples: str) -> list[pl.Expr]:
        return [field(f"__{name}_{side}_{sample}") for sample in samples]

    columns = {
        "__wrong_rest": _less(
            [field("__wrong_all"), field("__wrong_own")],
            [field("__wrong_pos_among"), field("__wrong_neg_among")],
        )
    }
    for side in CLASSES:
        for name in ("weight", "squares", "cubes"):
            columns[f"__{name}_{side}_rest"] = _less(of(name, side, "all"), of(name, side, "own"))
        columns[f"__first_mass_{side}_rest"] = _less(
            of("first_mass", side, "all", "own"), of("first_mass", side, "among", "caused")
        )
        # Of everybody's misranked less the group's, squared.
        columns[f"__second_mass_{side}_rest"] = _less(
            [*of("second_mass", side, "all", "caused"), *of("cross_mass", side, "own", "own")],
            [
                *of("second_mass", side, "among", "own"),
                *of("cross_mass", side, "caused", "caused"),
            ],
        )
    # Where it was worth the trouble the sums over the rest are there themselves.
    return {name: pl.coalesce(field(f"{name}{_DIRECT}"), value) for name, value in columns.items()}


def _less(more: Sequence[pl.Expr], less: Sequence[pl.Expr]) -> pl.Expr:
    """Subtract sums of what is never negative; what rounding leaves of them is 0."""
    high, low = (reduce(add, terms) for terms in (more, less))
    return pl.when(high - low <= _NOTHING * (high + low)).then(0.0).otherwise(high - low)


def _independent_step(own: AucSums, reference: AucSums) -> Step:
    def step(field: Fields) -> dict[str, pl.Expr]:
        variance = field(own.variance.total) + field(reference.variance.total)
        return difference_columns(own, reference, variance, field)

    return step


class Overall(Rest):
    """All groups together, the group itself included.

    All that sets everybody apart from a group comes from the rest, who may be few beside it.
    """

    kind = "overall"

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with everybody, whose AUC shares the group's rows."""
        everybody = AucSums("all", self.units)
        steps = [
            *self.steps,
            everybody.to_proportions,
            *everybody.steps,
            _overlap_step(self.own, everybody),
        ]
        return in_columns(sums, steps)

    @property
    def outside(self) -> AucEstimate:
        """The rest."""
        one_minus_auc, variance, df = (pl.col(name) for name in self.rest.columns)
        return AucEstimate(1 - one_minus_auc, one_minus_auc, variance, df)


def _overlap_step(own: AucSums, everybody: AucSums) -> Step:
    """Take off twice the covariance that the group's rows make."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        variance = field(own.variance.total) + field(everybody.variance.total)
        for side, other in OTHER.items():
            variance -= 2 * _covariance(own.variance, everybody.variance, side, other, field)
        terms = field(own.variance.total) + field(everybody.variance.total)
        known = own.variance.without_rounding(variance, terms)
        return difference_columns(own, everybody, known, field)

    return step


def _covariance(
    own: Variance, everybody: Variance, side: str, other: str, field: Fields
) -> pl.Expr:
    own_others, all_others = (field(each.column("weight", other)) for each in (own, everybody))
    centres = field(own.centre), field(everybody.centre)
    spread = (
        field(f"__cross_mass_{side}_own") / (own_others * all_others)
        - centres[1] * field(own.column("first", side))
        - centres[0] * field(f"__first_mass_{side}_among") / all_others
        + centres[0] * centres[1] * field(own.column("squares", side))
    )
    factors = field(own.column("factor", side)) * field(everybody.column("factor", side))
    totals = field(own.column("weight", side)) * field(everybody.column("weight", side))
    return factors.sqrt() * spread / totals
