"""Variance of estimates whose influence function is linear in the placement values.

An AUC, a partial AUC and a difference of two AUCs are such estimates. The *units* are what is
independent: each row, each of the observations that a frequency weight counts, or each cluster.
Every row has the sums over its own unit, so that one formula serves all three, and clusters of
one row each give the same results as rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import ROW_CUBES, ROW_SQUARES, WEIGHT
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.placements import Placements
from polars_wroc.ranking.walk_sums import walk_sum
from polars_wroc.stats.proportions import ROUNDING, effective_sample_size, is_exact

Units: TypeAlias = Literal["row", "frequency", "cluster", "counted"]

# Sums over the rows of a class.
_SUMS = ("weight", "squares", "cubes", "first", "second")
# Below this proportion of its terms the denominator of a class's factor is 0: it has one unit.
_ONE_UNIT = 1e-12


class Moments(NamedTuple):
    """Columns of the moments of a class, and of its contribution to the variance of the AUC.

    The moments are sums over rows of squared weights, which add up to 1, times powers of the
    placement values: the 0th, the first and the second power.
    """

    h2: str
    x1: str
    x2: str
    variance: str


def units_of(weight_type: WeightType, *, clustered: bool = False, counted: bool = False) -> Units:
    """Choose the independent units; ``counted`` rows may represent several."""
    check_weight_type(weight_type)
    if clustered:
        # Counting a row several times changes nothing in the sum over its cluster.
        return "cluster"
    if weight_type == "frequency":
        return "frequency"
    return "counted" if counted else "row"


def unit_weight(units: Units, field: Fields) -> pl.Expr:
    """Weight of a row's unit; where a row represents several, their weighted mean weight."""
    if units == "frequency":
        return pl.lit(1.0)
    weight = field(WEIGHT).abs()
    return field(ROW_SQUARES) / weight if units == "counted" else weight


@dataclass(frozen=True)
class Variance:
    """The variance of one estimate, from sums over the rows of a group.

    ``centre`` is the column of the mean placement value; ``name`` is a suffix that distinguishes
    the columns of several estimates. The results are the columns `total`, and `part` and
    `effective` of each class. A difference below ``rounding`` times its terms counts as 0.
    """

    units: Units
    centre: str
    name: str = ""
    rounding: float = ROUNDING

    @property
    def total(self) -> str:
        """Column of the variance; null where a class has one unit, or cubes over- or underflow."""
        return f"__variance{self.name}"

    def part(self, side: str) -> str:
        """Column of the contribution of a class to the variance."""
        return self.column("part", side)

    def effective(self, side: str) -> str:
        """Column of Kish's effective sample size of a class, in units."""
        return self.column("effective", side)

    def cluster_sums(self, placements: Placements) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            columns[self.column("unit_weight", side)] = weight
            columns[self.column("unit_sum", side)] = weight * placement
        return columns

    def sums(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate the rows of a group to the sums that `steps` need."""
        return self.sums_of_weights(placements, field) | self.sums_of_values(placements, field)

    def sums_of_weights(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate what is the same for all estimates of the same rows."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            own, _ = self._unit(weight, placement, side, field)
            columns[self.column("weight", side)] = weight.sum()
            columns[self.column("squares", side)] = (weight * own).sum()
            columns[self.column("cubes", side)] = self._cubes(weight, own, field).sum()
        if self.units == "cluster":
            of_unit = field(self.column("unit_weight", "neg"))
            columns[self._cross("weight", "unit_weight")] = (placements.pos.weight * of_unit).sum()
        return columns

    def sums_of_values(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate what depends on the placement values."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            _, unit_sum = self._unit(weight, placement, side, field)
            columns[self.column("first", side)] = (weight * unit_sum).sum()
            columns[self.column("second", side)] = (weight * placement * unit_sum).sum()
        if self.units == "cluster":
            weight, placement = placements.pos
            of_unit = {
                name: field(self.column(name, "neg")) for name in ("unit_weight", "unit_sum")
            }
            columns[self._cross("weight", "unit_sum")] = (weight * of_unit["unit_sum"]).sum()
            for name, value in of_unit.items():
                columns[self._cross("sum", name)] = (weight * placement * value).sum()
        return columns

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return {
            self.column(name, side): pl.col(walk_sum(name, side))
            for side in CLASSES
            for name in _SUMS
        }

    @property
    def steps(self) -> list[Step]:
        """Steps from the sums of a group to its variance."""
        return [self._parts, self._total]

    @property
    def moments(self) -> dict[str, Moments]:
        """Columns of each class that `add_moments` adds, and its part of the variance."""
        return {
            side: Moments(*(self.column(name, side) for name in ("h2", "x1", "x2", "part")))
            for side in CLASSES
        }

    def add_moments(self, field: Fields) -> dict[str, pl.Expr]:
        """Compute the moments of each class; null where the cubes overflow or underflow."""
        columns: dict[str, pl.Expr] = {}
        for side, names in self.moments.items():
            weight, *sums = (
                field(self.column(name, side)) for name in ("weight", "squares", "first", "second")
            )
            known = pl.when(is_exact(field(self.column("cubes", side))))
            for name, value in zip(names[:3], sums, strict=True):
                columns[name] = known.then(value / weight / weight)
        return columns

    def _unit(
        self, weight: pl.Expr, placement: pl.Expr, side: str, field: Fields
    ) -> tuple[pl.Expr, pl.Expr]:
        """Weight of a row's unit, and the unit's sum of weighted placement values."""
        if self.units == "frequency":
            return pl.lit(1.0), placement
        if self.units == "cluster":
            return field(self.column("unit_weight", side)), field(self.column("unit_sum", side))
        own = unit_weight(self.units, field) if self.units == "counted" else weight
        return own, own * placement

    def _cubes(self, weight: pl.Expr, unit: pl.Expr, field: Fields) -> pl.Expr:
        """Weight of a row times that of its unit squared."""
        if self.units == "counted":
            return pl.when(weight > 0).then(field(ROW_CUBES)).otherwise(0.0)
        return weight * unit * unit

    def _parts(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the contribution of each class to the variance.

        Its factor makes it unbiased when weights and placement values are unrelated; for equal
        weights it is n / (n - 1). The cubes are the first sums to overflow or underflow.
        """
        columns: dict[str, pl.Expr] = {}
        centre = field(self.centre)
        for side in CLASSES:
            weight, squares, cubes, first, second = (
                field(self.column(name, side)) for name in _SUMS
            )
            unbiased = squares - 2 * (cubes / weight) + (squares / weight) ** 2
            several = unbiased > _ONE_UNIT * squares
            factor = pl.when(several & is_exact(cubes)).then(squares / unbiased)
            level = centre**2 * squares
            spread = self.without_rounding(second - 2 * centre * first + level, second + level)
            # Without misranked pairs all placement values are 0, whatever rounding left of them.
            spread = pl.when(centre == 0).then(0.0).otherwise(spread)
            columns[self.column("factor", side)] = factor
            columns[self.part(side)] = factor * (spread / weight / weight)
            columns[self.effective(side)] = effective_sample_size(weight, squares)
        return columns

    def _total(self, field: Fields) -> dict[str, pl.Expr]:
        parts = field(self.part("pos")) + field(self.part("neg"))
        if self.units != "cluster":
            return {self.total: parts}
        covariance, terms = self._covariance(field)
        return {self.total: self.without_rounding(parts + covariance, parts + terms)}

    def _covariance(self, field: Fields) -> tuple[pl.Expr, pl.Expr]:
        """Twice the covariance of the classes, which share clusters, and the size of its terms."""
        centre = field(self.centre)
        weights, weight_sums, sum_weights, sums = (
            field(self._cross(of_pos, of_neg))
            for of_pos in ("weight", "sum")
            for of_neg in ("unit_weight", "unit_sum")
        )
        level = centre**2 * weights + sums
        spread = level - centre * (weight_sums + sum_weights)
        factors = field(self.column("factor", "pos")) * field(self.column("factor", "neg"))
        totals = field(self.column("weight", "pos")) * field(self.column("weight", "neg"))
        scale = 2 * factors.sqrt() / totals
        return scale * spread, scale * level

    def degrees_of_freedom(self, field: Fields) -> pl.Expr:
        """Satterthwaite's degrees of freedom, from the contribution and size of each class."""
        # From the parts alone: the covariance of classes that share clusters cancels out.
        parts = field(self.part("pos")) + field(self.part("neg"))
        spread = pl.lit(0.0)
        for side in CLASSES:
            share = field(self.part(side)) / parts
            spread += share**2 / (field(self.effective(side)) - 1).clip(lower_bound=1.0)
        return 1 / spread

    def without_rounding(self, difference: pl.Expr, terms: pl.Expr) -> pl.Expr:
        """Replace by 0 a difference that may be the rounding error of terms that cancel out."""
        known = terms.is_finite()
        zero = pl.when(known & (difference <= self.rounding * terms)).then(0.0)
        return zero.when(known).then(difference)

    def _cross(self, of_pos: str, of_neg: str) -> str:
        """Column of a sum over positives, of products with a sum over the unit's negatives."""
        return f"__{of_pos}_by_{of_neg}{self.name}"

    def column(self, name: str, side: str) -> str:
        """Column of one of the sums of a class, or of its ``factor``."""
        return f"__{name}_{side}{self.name}"
