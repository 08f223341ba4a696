"""Sums over a set of rows from which its AUC and DeLong's variance of that are computed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import CLASSES, class_weights
from polars_wroc.metrics.auc_variance import ROUNDING, Units, Variance
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placements import row_curve
from polars_wroc.stats.difference_tests import AucEstimate
from polars_wroc.stats.proportions import is_exact

OTHER = dict(zip(CLASSES, reversed(CLASSES), strict=True))
# Sums of the weights, of their squares and of their cubes.
POWERS = ("weight", "squares", "cubes")
_MOMENTS = {"first": 1, "second": 2}


@dataclass(frozen=True)
class AucSums:
    """A set of rows with an AUC: the columns of its sums, and the variance from these.

    A row's placement is a share of the other class. Weights of the other class, which the row
    misranks, add up over sets of rows, as shares do not; `to_weights` and `to_proportions` turn
    one into the other.
    """

    name: str
    units: Units
    rounding: float = ROUNDING

    @property
    def variance(self) -> Variance:
        """The variance of the AUC."""
        name = f"_{self.name}"
        return Variance(self.units, centre=f"__centre{name}", name=name, rounding=self.rounding)

    @property
    def df(self) -> str:
        """Column of the degrees of freedom of the variance."""
        return f"__df_{self.name}"

    def power(self, name: str, side: str) -> str:
        """Column of the sum of a power of the weights of a class: one of `POWERS`."""
        return self.variance.column(name, side)

    def weight(self, side: str) -> str:
        """Column of the weight of a class."""
        return self.power("weight", side)

    def misranked(self, moment: str, side: str) -> str:
        """Column of the first or second moment of the weights that the rows of a class misrank."""
        return self.variance.column(f"{moment}_misranked", side)

    def cross(self, side: str) -> str:
        """Column of a mixed moment of weights that are misranked in the group and overall."""
        return self.variance.column("cross_misranked", side)

    @property
    def misranked_pairs(self) -> str:
        """Column of the weight of the misranked pairs."""
        return f"__misranked_pairs_{self.name}"

    def misranked_pairs_of(self, side: str) -> str:
        """Column of the weight of the misranked pairs, as the rows of one class add it up."""
        return self.variance.column("misranked_pairs", side)

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

    def estimate(self, field: Fields) -> AucEstimate:
        """Refer to the AUC and its variance, which `steps` add."""
        one_minus_auc = field(self.variance.centre)
        return AucEstimate(
            1 - one_minus_auc, one_minus_auc, field(self.variance.total), field(self.df)
        )

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.df: self.variance.degrees_of_freedom(field)}

    def to_weights(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn shares of the other class into weights; nothing is misranked where it lacks."""
        pos, neg = (field(self.weight(side)) for side in CLASSES)
        both = pl.when((pos > 0) & (neg > 0))
        pairs = field(self.variance.centre) * pos * neg
        columns = {self.misranked_pairs: both.then(pairs).otherwise(0.0)}
        for side, other in zip(CLASSES, (neg, pos), strict=True):
            for moment, power in _MOMENTS.items():
                misranked = field(self.variance.column(moment, side)) * other**power
                columns[self.misranked(moment, side)] = both.then(misranked).otherwise(0.0)
        return columns

    def to_proportions(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn weights that a row misranks into shares of the other class.

        Null where the products of weights are too small or too large for a number.
        """
        columns: dict[str, pl.Expr] = {}
        weights = {side: field(self.weight(side)) for side in CLASSES}
        for side, other in OTHER.items():
            for moment, power in _MOMENTS.items():
                most = field(self.power("squares", side)) * weights[other] ** power
                share = field(self.misranked(moment, side)) / weights[other] ** power
                columns[self.variance.column(moment, side)] = pl.when(is_exact(most)).then(share)
        pairs = weights["pos"] * weights["neg"]
        one_minus_auc = pl.when(is_exact(pairs)).then(field(self.misranked_pairs) / pairs)
        columns[self.variance.centre] = if_both_classes(
            weights["pos"], weights["neg"], one_minus_auc
        )
        return columns


# Names do not depend on the units.
OWN_WEIGHTS = tuple(AucSums("own", "row").weight(side) for side in CLASSES)


def weights_by_class() -> dict[str, pl.Expr]:
    """Weight of a row in each class."""
    return dict(zip(CLASSES, class_weights(pl.col(WEIGHT)), strict=True))
