"""What a group's AUC is compared with, and the variance of the difference.

Groups are independent of each other; everybody's AUC shares the group's rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from polars_wroc.confusion import by_descending_score, class_weights, if_both_classes
from polars_wroc.inputs import WEIGHT
from polars_wroc.placements import place_among, surroundings
from polars_wroc.rates import is_exact
from polars_wroc.rows import Rows
from polars_wroc.staged import Fields, Step, in_columns
from polars_wroc.variance import CLASSES, ROUNDING, Units, Variance

AUC, REFERENCE_AUC = "__auc", "__reference_auc"
DIFFERENCE_VARIANCE = "__difference_variance"
# What each of the two AUCs lacks to 1, its variance and the degrees of freedom of that.
OWN = ("__missing_own", "__variance_of_own", "__df_of_own")
REFERENCE = ("__missing_reference", "__variance_of_reference", "__df_of_reference")

# Weights around a row: within its group and among everybody.
MISRANKED, AHEAD, TIED = "__misranked", "__ahead", "__tied"
ALL_MISRANKED = "__all_misranked"
OTHER = dict(zip(CLASSES, reversed(CLASSES), strict=True))

IsReference = Callable[[pl.Expr], pl.Expr]


class Reference(ABC):
    """What groups are compared with; those that differ in a key ``apart`` never meet."""

    # How the cells of the reference are made of those of the groups.
    kind: Literal["rest", "overall", "group"]

    def __init__(self, apart: Sequence[str], units: Units) -> None:
        """Say which groups meet, and what is independent of what."""
        self.apart = apart
        self.units = units

    def among_all(self, ordered: pl.LazyFrame) -> pl.LazyFrame:
        """Add to sorted rows what they need to know about everybody."""
        return ordered

    @property
    @abstractmethod
    def sums(self) -> dict[str, pl.Expr]:
        """Aggregate the placed rows of a group to all that `contrast` needs."""

    def completed(self, sums: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:  # noqa: ARG002
        """Add to the sums of sorted groups what differences of them would not hold."""
        return sums

    @abstractmethod
    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Lay out the AUC of each group beside that of its reference, from completed sums."""

    def picked(self) -> pl.Expr:
        """Mark the reference among the groups that have been compared."""
        return pl.lit(value=False)


def place_in_group(rows: Rows, reference: Reference) -> pl.LazyFrame:
    """Place each row in its group and, as far as the reference wants it, among everybody."""
    return place_own(rows, reference.among_all(by_descending_score(rows)))


class Everybody(Reference):
    """All groups together, the group itself included."""

    kind = "overall"

    def among_all(self, ordered: pl.LazyFrame) -> pl.LazyFrame:
        """Add `ALL_MISRANKED`."""
        return place_among_all(ordered, self.apart)

    @property
    def sums(self) -> dict[str, pl.Expr]:
        """Sum over a group, and over its rows among everybody."""
        return own_sums(self.units) | among_sums(self.units)

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with everybody, whose AUC shares the group's rows."""
        own, everybody = Sample("own", self.units), Sample("all", self.units)
        groups = add_up_groups(self.apart)
        steps = [groups, *own.steps, *everybody.steps, _overlap_step(own, everybody)]
        return in_columns(sums, steps)


class OneGroup(Reference):
    """One of the groups, which ``is_reference`` picks by its AUC."""

    kind = "group"

    def __init__(self, apart: Sequence[str], units: Units, is_reference: IsReference) -> None:
        """Say how the group is picked."""
        super().__init__(apart, units)
        self.is_reference = is_reference

    @property
    def sums(self) -> dict[str, pl.Expr]:
        """Sum over a group."""
        return own_sums(self.units)

    def picked(self) -> pl.Expr:
        """Mark the group."""
        return self.is_reference(pl.col(AUC))

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with the one that is picked."""
        return in_columns(sums, [*Sample("own", self.units).steps, self._contrast])

    def _contrast(self, field: Fields) -> dict[str, pl.Expr]:
        own = Sample("own", self.units)
        picked = self.is_reference(1 - field(own.variance.centre))

        def of_reference(name: str) -> pl.Expr:
            return over(pl.when(picked).then(field(name)).max(), self.apart)

        variances = field(own.variance.total), of_reference(own.variance.total)
        other = pl.when(~picked & (variances[0] > 0) & (variances[1] > 0))
        return {
            AUC: 1 - field(own.variance.centre),
            REFERENCE_AUC: 1 - of_reference(own.variance.centre),
            DIFFERENCE_VARIANCE: other.then(variances[0] + variances[1]),
            **dict(zip(OWN, (field(name) for name in own.columns), strict=True)),
            **dict(zip(REFERENCE, (of_reference(name) for name in own.columns), strict=True)),
        }


@dataclass(frozen=True)
class Sample:
    """A set of rows with an AUC: from sums of weights around its rows to a variance."""

    name: str
    units: Units
    rounding: float = ROUNDING

    @property
    def variance(self) -> Variance:
        """The variance of the AUC."""
        name = f"_{self.name}"
        return Variance(self.units, centre=f"__centre{name}", name=name, rounding=self.rounding)

    @property
    def steps(self) -> list[Step]:
        """From sums of weights to the mean placement and its variance."""
        return [self._shares, *self.variance.steps, self._degrees_of_freedom]

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

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
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
        missing = pl.when(is_exact(pairs)).then(field(f"__wrong_{self.name}") / pairs)
        columns[self.variance.centre] = if_both_classes(weights["pos"], weights["neg"], missing)
        return columns


def place_among_all(ordered: pl.LazyFrame, apart: Sequence[str]) -> pl.LazyFrame:
    """Add `ALL_MISRANKED` to sorted rows."""
    # Labels are checked within each group, by `place_own`.
    weight = pl.col(WEIGHT)
    return place_and_keep(ordered, apart, weight, {ALL_MISRANKED: surroundings().misranked})


def place_own(rows: Rows, ordered: pl.LazyFrame) -> pl.LazyFrame:
    """Place sorted rows in their group; add `MISRANKED`, `AHEAD` and `TIED`."""
    around = surroundings()
    placed = place_among(ordered, rows.keys, rows.observations.signed_weight)
    columns = {MISRANKED: around.misranked, AHEAD: around.ahead, TIED: around.tied_own}
    return placed.with_columns(**columns)


def place_and_keep(
    ordered: pl.LazyFrame, keys: Sequence[str], weights: pl.Expr, columns: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Place the rows with these weights among those with the same keys; keep ``columns``."""
    before = ordered.collect_schema().names()
    return place_among(ordered, keys, weights).select(*before, **columns)


def unit_weight(units: Units) -> pl.Expr:
    """Weight of the independent unit that a row is, or is one of."""
    return pl.lit(1.0) if units == "frequency" else pl.col(WEIGHT).abs()


def weights() -> dict[str, pl.Expr]:
    """Weight of a row in each class."""
    return dict(zip(CLASSES, class_weights(pl.col(WEIGHT)), strict=True))


def own_sums(units: Units) -> dict[str, pl.Expr]:
    """Over the rows of a group, from what they misrank among themselves."""
    columns = {}
    unit, misranked = unit_weight(units), pl.col(MISRANKED)
    for side, weight in weights().items():
        columns[f"__weight_{side}_own"] = weight.sum()
        columns[f"__squares_{side}_own"] = (weight * unit).sum()
        columns[f"__cubes_{side}_own"] = (weight * unit * unit).sum()
        columns[f"__first_mass_{side}_own"] = (weight * unit * misranked).sum()
        columns[f"__second_mass_{side}_own"] = (weight * unit * misranked * misranked).sum()
    return columns | {"__wrong_own": (weights()["pos"] * misranked).sum()}


def among_sums(units: Units) -> dict[str, pl.Expr]:
    """Over the rows of a group, from what they misrank among everybody."""
    columns = {}
    unit, misranked, own = unit_weight(units), pl.col(ALL_MISRANKED), pl.col(MISRANKED)
    for side, weight in weights().items():
        columns[f"__wrong_{side}_among"] = (weight * misranked).sum()
        columns[f"__first_mass_{side}_among"] = (weight * unit * misranked).sum()
        columns[f"__second_mass_{side}_among"] = (weight * unit * misranked * misranked).sum()
        columns[f"__cross_mass_{side}_own"] = (weight * unit * misranked * own).sum()
    return columns


def add_up_groups(apart: Sequence[str]) -> Step:
    """Add up the groups."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        columns = {"__wrong_all": over(field("__wrong_pos_among").sum(), apart)}
        for side in CLASSES:
            for name in ("weight", "squares", "cubes"):
                total = over(field(f"__{name}_{side}_own").sum(), apart)
                columns[f"__{name}_{side}_all"] = total
            for name in ("first_mass", "second_mass"):
                total = over(field(f"__{name}_{side}_among").sum(), apart)
                columns[f"__{name}_{side}_all"] = total
        return columns

    return step


def _overlap_step(own: Sample, everybody: Sample) -> Step:
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


def difference_columns(
    own: Sample, reference: Sample, variance: pl.Expr, field: Fields
) -> dict[str, pl.Expr]:
    """Name what every comparison results in."""
    # Perfect separation has no variance, which says nothing about how sure it is.
    variances = field(own.variance.total), field(reference.variance.total)
    known = (variances[0] > 0) & (variances[1] > 0)
    return {
        AUC: 1 - field(own.variance.centre),
        REFERENCE_AUC: 1 - field(reference.variance.centre),
        DIFFERENCE_VARIANCE: pl.when(known).then(variance),
        **dict(zip(OWN, (field(name) for name in own.columns), strict=True)),
        **dict(zip(REFERENCE, (field(name) for name in reference.columns), strict=True)),
    }


def over(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Aggregate groups that are compared with each other."""
    return value.over(keys) if keys else value
