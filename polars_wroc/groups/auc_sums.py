"""Sets of rows with an AUC: sums of weights around their rows, and the variance from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.metrics.auc_variance import ROUNDING, Units, Variance, unit_weight
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.confusion_curve import if_both_classes
from polars_wroc.ranking.placements import add_placements_among, rank_weights, row_curve
from polars_wroc.stats.proportions import is_exact

# Weights around a row: within its group and among everybody.
MISRANKED, AHEAD, TIED = "__misranked", "__ahead", "__tied"
ALL_MISRANKED = "__all_misranked"
OWN_WEIGHTS = tuple(f"__weight_{side}_own" for side in CLASSES)
OTHER = dict(zip(CLASSES, reversed(CLASSES), strict=True))


@dataclass(frozen=True)
class AucSums:
    """A set of rows with an AUC: from sums over its rows to a variance.

    They are of the rows' placements, or where none were made, *masses*: of the weights that
    the rows misrank, which add up over sets of rows.
    """

    name: str
    units: Units
    rounding: float = ROUNDING

    @property
    def variance(self) -> Variance:
        """The variance of the AUC."""
        name = f"_{self.name}"
        return Variance(self.units, centre=f"__centre{name}", name=name, rounding=self.rounding)

    def sums(self) -> dict[str, pl.Expr]:
        """Aggregate rows that have been placed among themselves to all that `steps` need."""
        curve = row_curve()
        return self.variance.sums(curve.placements, pl.col) | {
            self.variance.centre: curve.one_minus_auc
        }

    @property
    def steps(self) -> list[Step]:
        """From sums to the variance of the mean placement."""
        return [*self.variance.steps, self._degrees_of_freedom]

    @property
    def df(self) -> str:
        """Column of the degrees of freedom of the variance."""
        return f"__df_{self.name}"

    @property
    def columns(self) -> tuple[str, str, str]:
        """Columns of what the AUC lacks to 1, of its variance and of that one's df."""
        return self.variance.centre, self.variance.total, self.df

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.df: self.variance.degrees_of_freedom(field)}

    def to_weights(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn shares of the other class into weights; nothing is misranked where it lacks."""
        pos, neg = (field(self.variance.column("weight", side)) for side in CLASSES)
        both = pl.when((pos > 0) & (neg > 0))
        centre = field(self.variance.centre)
        columns = {f"__wrong_{self.name}": both.then(centre * pos * neg).otherwise(0.0)}
        for side, other in zip(CLASSES, (neg, pos), strict=True):
            for power, moment in enumerate(("first", "second"), start=1):
                mass = field(self.variance.column(moment, side)) * other**power
                columns[f"__{moment}_mass_{side}_{self.name}"] = both.then(mass).otherwise(0.0)
        return columns

    def to_proportions(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn weights that a row misranks into shares of the other class.

        Null where the products of weights are too small or too large for a number.
        """
        columns: dict[str, pl.Expr] = {}
        weights = {side: field(self.variance.column("weight", side)) for side in CLASSES}
        for side, other in OTHER.items():
            for power, moment in enumerate(("first", "second"), start=1):
                mass = field(f"__{moment}_mass_{side}_{self.name}")
                most = field(self.variance.column("squares", side)) * weights[other] ** power
                share = pl.when(is_exact(most)).then(mass / weights[other] ** power)
                columns[self.variance.column(moment, side)] = share
        pairs = weights["pos"] * weights["neg"]
        one_minus_auc = pl.when(is_exact(pairs)).then(field(f"__wrong_{self.name}") / pairs)
        columns[self.variance.centre] = if_both_classes(
            weights["pos"], weights["neg"], one_minus_auc
        )
        return columns


def add_overall_placements(ordered: pl.LazyFrame, partition_keys: Sequence[str]) -> pl.LazyFrame:
    """Add `ALL_MISRANKED` to sorted rows."""
    # Labels are checked within each group, by `add_own_placements`.
    weight = pl.col(WEIGHT)
    return add_placement_columns(
        ordered, partition_keys, weight, {ALL_MISRANKED: rank_weights().misranked}
    )


def add_own_placements(rows: Rows, ordered: pl.LazyFrame) -> pl.LazyFrame:
    """Place sorted rows in their group; add `MISRANKED`, `AHEAD` and `TIED`."""
    return with_own(add_placements_among(ordered, rows.keys, rows.observations.signed_weight))


def with_own(placed: pl.LazyFrame) -> pl.LazyFrame:
    """Add `MISRANKED`, `AHEAD` and `TIED` to rows that have been placed in their group."""
    around = rank_weights()
    columns = {MISRANKED: around.misranked, AHEAD: around.ahead, TIED: around.tied_own}
    return placed.with_columns(**columns)


def add_placement_columns(
    ordered: pl.LazyFrame, keys: Sequence[str], weights: pl.Expr, columns: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Place the rows with these weights among those with the same keys; keep ``columns``."""
    before = ordered.collect_schema().names()
    return add_placements_among(ordered, keys, weights).select(*before, **columns)


def weights() -> dict[str, pl.Expr]:
    """Weight of a row in each class."""
    return dict(zip(CLASSES, class_weights(pl.col(WEIGHT)), strict=True))


def among_sums(units: Units) -> dict[str, pl.Expr]:
    """Over the rows of a group, from what they misrank among everybody."""
    columns = {}
    unit, misranked, own = unit_weight(units, pl.col), pl.col(ALL_MISRANKED), pl.col(MISRANKED)
    for side, weight in weights().items():
        columns[f"__wrong_{side}_among"] = (weight * misranked).sum()
        columns[f"__first_mass_{side}_among"] = (weight * (unit * misranked)).sum()
        columns[f"__second_mass_{side}_among"] = (weight * (unit * misranked * misranked)).sum()
        columns[f"__cross_mass_{side}_own"] = (weight * (unit * misranked * own)).sum()
    return columns


def add_up_groups(partition_keys: Sequence[str]) -> Step:
    """Add up the groups."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        columns = {"__wrong_all": over(field("__wrong_pos_among").sum(), partition_keys)}
        for side in CLASSES:
            for name in ("weight", "squares", "cubes"):
                total = over(field(f"__{name}_{side}_own").sum(), partition_keys)
                columns[f"__{name}_{side}_all"] = total
            for name in ("first_mass", "second_mass"):
                total = over(field(f"__{name}_{side}_among").sum(), partition_keys)
                columns[f"__{name}_{side}_all"] = total
        return columns

    return step
