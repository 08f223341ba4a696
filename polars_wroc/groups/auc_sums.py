"""Sums over a set of rows from which its AUC and DeLong variance are computed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import CLASSES, class_weights
from polars_wroc.metrics.auc_variance import Units, Variance
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placements import RowCurve
from polars_wroc.ranking.walk_sums import walked_one_minus_auc
from polars_wroc.stats.proportions import ROUNDING, is_exact

OTHER = dict(zip(CLASSES, reversed(CLASSES), strict=True))
# Sums of the weights, of their squares and of their cubes.
POWERS = ("weight", "squares", "cubes")
_MOMENTS = {"first": 1, "second": 2}


@dataclass(frozen=True)
class AucSums:
    """Columns of the sums over a set of rows, and the AUC and its variance computed from them.

    A placement value is a proportion of the other class; multiplied by the weight of that class it
    is the weight that the row misranks. Weights can be added and subtracted over sets of rows,
    proportions cannot; `to_weights` and `to_proportions` convert one into the other.
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
        """Column of the mixed moment of the weights misranked in the group and overall."""
        return self.variance.column("cross_misranked", side)

    @property
    def misranked_pairs(self) -> str:
        """Column of the weight of the misranked pairs."""
        return f"__misranked_pairs_{self.name}"

    def misranked_pairs_of(self, side: str) -> str:
        """Column of the weight of the misranked pairs, summed over the rows of one class."""
        return self.variance.column("misranked_pairs", side)

    def sums(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Aggregate placed rows to the sums that `steps` need."""
        return self.variance.sums(curve.placements, pl.col) | {
            self.variance.centre: curve.one_minus_auc
        }

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return self.variance.walk_sums() | {self.variance.centre: walked_one_minus_auc()}

    @property
    def steps(self) -> list[Step]:
        """Compute the variance of the mean placement value from the sums."""
        return [*self.variance.steps, self.variance.add_moments, self._degrees_of_freedom]

    def parts(self, field: Fields) -> dict[str, pl.Expr]:
        """Refer to the parts of the AUC, added by `steps`, but for its ``slack``."""
        one_minus_auc = field(self.variance.centre)
        moments = {
            f"{part}_{side}": field(name)
            for side, names in self.variance.moments.items()
            for part, name in names._asdict().items()
        }
        return {
            "auc": 1 - one_minus_auc,
            "one_minus_auc": one_minus_auc,
            "variance": field(self.variance.total),
            "df": field(self.df),
            **moments,
        }

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.df: self.variance.degrees_of_freedom(field)}

    def to_weights(self, field: Fields) -> dict[str, pl.Expr]:
        """Convert proportions of the other class into weights: 0 if that class has no weight."""
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
        """Convert misranked weights into proportions of the other class.

        Null where products of weights overflow or underflow.
        """
        columns: dict[str, pl.Expr] = {}
        weights = {side: field(self.weight(side)) for side in CLASSES}
        for side, other in OTHER.items():
            for moment, power in _MOMENTS.items():
                divisor = weights[other] ** power
                largest = field(self.power("squares", side)) * divisor
                proportion = field(self.misranked(moment, side)) / divisor
                exact = pl.when(is_exact(largest)).then(proportion)
                columns[self.variance.column(moment, side)] = exact
        pairs = weights["pos"] * weights["neg"]
        one_minus_auc = pl.when(is_exact(pairs)).then(field(self.misranked_pairs) / pairs)
        columns[self.variance.centre] = if_both_classes(
            weights["pos"], weights["neg"], one_minus_auc
        )
        return columns


# The names of columns do not depend on the units.
OWN_WEIGHTS = tuple(AucSums("own", "row").weight(side) for side in CLASSES)


def weights_by_class() -> dict[str, pl.Expr]:
    """Weight of a row in each class."""
    return dict(zip(CLASSES, class_weights(pl.col(WEIGHT)), strict=True))
