"""All rows, the group's own among them, as what its AUC is compared with."""

from __future__ import annotations

import polars as pl

from polars_wroc.contrasts import Area
from polars_wroc.references import difference_columns
from polars_wroc.rest import Rest
from polars_wroc.samples import OTHER, Sample
from polars_wroc.staged import Fields, Step, in_columns
from polars_wroc.variance import Variance


class Everybody(Rest):
    """All groups together, the group itself included.

    All that sets everybody apart from a group comes from the rest, who may be few beside it.
    """

    kind = "overall"

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with everybody, whose AUC shares the group's rows."""
        everybody = Sample("all", self.units)
        steps = [
            *self.steps,
            everybody.shares,
            *everybody.steps,
            _overlap_step(self.own, everybody),
        ]
        return in_columns(sums, steps)

    @property
    def outside(self) -> Area:
        """The rest."""
        missing, variance, df = (pl.col(name) for name in self.rest.columns)
        return Area(1 - missing, missing, variance, df)


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
