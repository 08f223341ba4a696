"""What a group's AUC is compared with, and the variance of the difference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from polars_wroc.groups.auc_sums import AucSums, add_own_placements
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import Units
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.stats.difference_tests import AucEstimate

AUC, REFERENCE_AUC = "__auc", "__reference_auc"
DIFFERENCE_VARIANCE = "__difference_variance"
# What each of the two AUCs lacks to 1, its variance and the degrees of freedom of that.
OWN = ("__missing_own", "__variance_of_own", "__df_of_own")
REFERENCE = ("__missing_reference", "__variance_of_reference", "__df_of_reference")

IsReference = Callable[[pl.Expr], pl.Expr]


class Reference(ABC):
    """What groups are compared with; those that differ in a key ``apart`` never meet."""

    # How the cells of the reference are made of those of the groups.
    kind: Literal["rest", "overall", "group"]

    def __init__(self, partition_keys: Sequence[str], units: Units) -> None:
        """Say which groups meet, and what is independent of what."""
        self.partition_keys = partition_keys
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

    @property
    def outside(self) -> AucEstimate | None:
        """The rows outside the group, where the reference holds the group's own as well."""
        return None

    def is_reference(self) -> pl.Expr:
        """Mark the reference among the groups that have been compared."""
        return pl.lit(value=False)


def add_group_placements(rows: Rows, reference: Reference) -> pl.LazyFrame:
    """Place each row in its group and, as far as the reference wants it, among everybody."""
    return add_own_placements(rows, reference.among_all(by_descending_score(rows)))


class ReferenceGroup(Reference):
    """One of the groups, which ``is_reference`` picks by its AUC."""

    kind = "group"

    def __init__(
        self, partition_keys: Sequence[str], units: Units, is_reference: IsReference
    ) -> None:
        """Say how the group is picked."""
        super().__init__(partition_keys, units)
        self._is_reference = is_reference

    @property
    def sums(self) -> dict[str, pl.Expr]:
        """Sum over a group."""
        return AucSums("own", self.units).sums()

    def is_reference(self) -> pl.Expr:
        """Mark the group."""
        return self._is_reference(pl.col(AUC))

    def contrast(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with the one that is picked."""
        return in_columns(sums, [*AucSums("own", self.units).steps, self._contrast])

    def _contrast(self, field: Fields) -> dict[str, pl.Expr]:
        own = AucSums("own", self.units)
        is_reference = self._is_reference(1 - field(own.variance.centre))

        def of_reference(name: str) -> pl.Expr:
            return over(pl.when(is_reference).then(field(name)).max(), self.partition_keys)

        variances = field(own.variance.total), of_reference(own.variance.total)
        other = pl.when(~is_reference & (variances[0] > 0) & (variances[1] > 0))
        return {
            AUC: 1 - field(own.variance.centre),
            REFERENCE_AUC: 1 - of_reference(own.variance.centre),
            DIFFERENCE_VARIANCE: other.then(variances[0] + variances[1]),
            **dict(zip(OWN, (field(name) for name in own.columns), strict=True)),
            **dict(zip(REFERENCE, (of_reference(name) for name in own.columns), strict=True)),
        }


def difference_columns(
    own: AucSums, reference: AucSums, variance: pl.Expr, field: Fields
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
