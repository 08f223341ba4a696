"""References: what the AUC and rates of each group are compared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from polars_wroc.groups.auc_sums import OF_GROUP, OF_REFERENCE, OWN_SLACK, AucSums
from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import Units
from polars_wroc.plans.queries import Fields, Step, collect, join_on_keys, over
from polars_wroc.ranking.placements import RowCurve, add_placements, row_curve
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.difference_tests import auc_difference_test

if TYPE_CHECKING:
    from polars_wroc.ranking.compiled_rows import CompiledRows


class RankedGroups(ABC):
    """Groups of ranked rows; groups with other partition keys are never compared."""

    keys: Sequence[str]
    partition_keys: Sequence[str]

    @abstractmethod
    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Sum, for each of the ``groups``, the rows of the other groups of its partition.

        ``groups`` has the keys alone; the result has the keys and ``sums``.
        """


@dataclass(frozen=True)
class PlannedGroups(RankedGroups):
    """Groups that a plan ranks."""

    rows: Rows
    keys: Sequence[str]
    partition_keys: Sequence[str]

    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Sort the other rows of each group again."""
        left_out = {key: f"__left_out_{key}" for key in self.keys if key not in self.partition_keys}
        keys = [*self.partition_keys, *left_out.values()]
        paired = join_on_keys(
            self.rows.frame, groups.rename(left_out), self.partition_keys, how="inner"
        )
        others = paired.filter(
            pl.any_horizontal(pl.col(key).ne_missing(pl.col(out)) for key, out in left_out.items())
        )
        sorted_rows = by_descending_score(Rows(others, keys, in_order=self.rows.in_order))
        placed = self.rows.inside(add_placements(sorted_rows, keys, pl.col(WEIGHT)))
        curve = row_curve(in_range=self.rows.in_range)
        summed = placed.group_by(keys).agg(**sums.sums(curve))
        return summed.rename({out: key for key, out in left_out.items()})


@dataclass(frozen=True)
class WalkedGroups(RankedGroups):
    """Groups that the compiled engine walks along."""

    rows: CompiledRows
    keys: Sequence[str]
    partition_keys: Sequence[str]

    def sums_without(self, groups: pl.LazyFrame, sums: AucSums) -> pl.LazyFrame:
        """Walk along the other rows of each group."""
        named = collect(groups)
        own = [key for key in self.keys if key not in self.partition_keys]
        walked = [
            group.hstack(self.rows.walk_without(own, group).select(**sums.walk_sums()))
            for group in named.iter_slices(1)
        ]
        none = named.clear().with_columns(**dict.fromkeys(sums.walk_sums(), pl.lit(0.0)))
        return pl.concat([none, *walked]).lazy()


# Marks a group whose test is the same as that of an earlier group.
REPEATED = "__repeated"

IsReference = Callable[[pl.Expr], pl.Expr]


class Difference(NamedTuple):
    """Columns of the difference of an AUC from that of its reference.

    It depends on `OWN` and `OTHER` with the two scales. It is a ``share`` of the difference from
    another AUC, where the reference includes the group. ``slack`` is the largest change that score
    bins can make to it.
    """

    reference_auc: str
    difference: str
    scale_own: str
    scale_other: str
    share: str
    slack: str


class UnitWeights(NamedTuple):
    """How the reference of a group adds up sampling units.

    It adds up the units of all groups, each times the weight ``given`` to its group, leaves out
    those of the group itself times ``left_out``, and divides by the ``total``.
    """

    given: pl.Expr
    left_out: pl.Expr
    total: pl.Expr


def other_name(name: str) -> str:
    """Name a cell or a metric of the reference."""
    return f"__other_{name}"


DIFFERENCE = Difference(*(f"__{part}" for part in Difference._fields))


class Reference(ABC):
    """What groups are compared with; groups with other partition keys are never compared.

    Placements are computed first, overall and in each group; sums over the rows of each group
    are completed; then the AUCs that follow from the sums are compared.
    """

    def __init__(self, partition_keys: Sequence[str], units: Units) -> None:
        """Set the keys within which groups are compared, and the independent units."""
        self.partition_keys = partition_keys
        self.units = units

    def place_among_all(self, sorted_rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add to sorted rows the columns that depend on the rows of all groups."""
        return sorted_rows

    @abstractmethod
    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the placed rows of a group, or over a part of its curve."""

    def to_add_up(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Complete the sums over ranges of scores, numbered by `RANGE`, so that they add up."""
        return sums

    @abstractmethod
    def walk_sums(self) -> dict[str, pl.Expr]:
        """Refer to the sums of `aggregates` that a compiled walk along the rows has computed."""

    @property
    def needs_all(self) -> bool:
        """Whether a walk needs the sums among the rows of all groups."""
        return False

    def nearly_all(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the groups for which `completed` needs the sums over all others."""
        return sums.clear()

    def sums_without(self, groups: RankedGroups, large: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG002
        """Sum all others than each of these groups, given by its keys."""
        return large

    def completed(self, sums: pl.LazyFrame, groups: RankedGroups) -> pl.LazyFrame:  # noqa: ARG002
        """Add sums to those of sorted groups that cannot be computed from them exactly."""
        return sums

    @property
    @abstractmethod
    def steps(self) -> list[Step]:
        """Steps from completed sums to `OWN`, `OTHER` and `DIFFERENCE`."""

    def logit_test(self, level: float) -> dict[str, pl.Expr]:
        """Test the difference by Student's t on the logits, as `auc_difference_test` does."""
        own, other = (each.estimate(pl.col) for each in (OF_GROUP, OF_REFERENCE))
        # With perfect separation the estimated variance is 0, which is no estimate of precision.
        known = (own.variance > 0) & (other.variance > 0)
        known &= pl.col(DIFFERENCE.difference).is_not_null()
        variance = pl.when(known).then(own.variance + other.variance)
        return auc_difference_test(own, other, variance, level)

    @abstractmethod
    def auc_weights(self) -> UnitWeights:
        """Weights of the influences of units on the AUCs of groups."""

    @abstractmethod
    def row_weights(self) -> UnitWeights:
        """Weights of the cells of units."""

    @abstractmethod
    def cell(self, own: pl.Expr) -> pl.Expr:
        """Compute a cell of the reference from that of each group."""

    @abstractmethod
    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Compute a number of rows of the reference, without the group, from those of groups."""

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr | None:  # noqa: ARG002
        """Proportion of the group in the reference, if that includes the group; else None."""
        return None

    def to_others(self, gap: pl.Expr) -> pl.Expr:
        """Return the gap; null for the reference group itself."""
        return gap

    @property
    def is_reference(self) -> pl.Expr:
        """Whether a group is the reference."""
        return pl.lit(value=False)

    def one_test_of_two(self, gaps: pl.LazyFrame, p_values: Sequence[str]) -> pl.LazyFrame:  # noqa: ARG002
        """Add `REPEATED`, true where two groups that are compared with each other share a test."""
        return gaps.with_columns(pl.lit(value=False).alias(REPEATED))


class ReferenceGroup(Reference):
    """One of the groups, chosen by ``is_reference``, a function of its AUC."""

    def __init__(
        self, partition_keys: Sequence[str], units: Units, is_reference: IsReference
    ) -> None:
        """Set how the group is chosen."""
        super().__init__(partition_keys, units)
        self._is_reference = is_reference

    @property
    def is_reference(self) -> pl.Expr:
        """Whether a group is the reference."""
        return self._is_reference(pl.col(OF_GROUP.column("auc")))

    @property
    def _own(self) -> AucSums:
        return AucSums("own", self.units)

    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the rows of a group."""
        return self._own.sums(curve)

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Refer to the sums of `aggregates` that a compiled walk along the rows has computed."""
        return self._own.walk_sums()

    @property
    def steps(self) -> list[Step]:
        """Steps to the AUCs of each group and of the reference group."""
        return [*self._own.steps, own_parts(self._own), self._compared, self._difference]

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        is_reference = pl.when(self._is_reference(field(OF_GROUP.column("auc"))))
        return OF_REFERENCE.columns(
            {
                part: over(is_reference.then(value).max(), self.partition_keys)
                for part, value in OF_GROUP.parts(field).items()
            }
        )

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        columns = independent_difference(field)
        difference = columns[DIFFERENCE.difference]
        is_other = pl.when(~self._is_reference(field(OF_GROUP.column("auc"))))
        return columns | {DIFFERENCE.difference: is_other.then(difference)}

    def auc_weights(self) -> UnitWeights:
        """Count the units of the reference group alone."""
        is_reference = self._is_reference(pl.col(OF_GROUP.column("auc"))).cast(pl.Float64)
        return UnitWeights(is_reference, pl.lit(0.0), pl.lit(1.0))

    def row_weights(self) -> UnitWeights:
        """Count the cells of the reference group alone."""
        return self.auc_weights()

    def cell(self, own: pl.Expr) -> pl.Expr:
        """Return the cell of the reference group."""
        is_reference = pl.when(self._is_reference(pl.col(OF_GROUP.column("auc"))))
        return over(is_reference.then(own).max(), self.partition_keys)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Return the number of rows of the reference group."""
        return self.cell(own)

    def to_others(self, gap: pl.Expr) -> pl.Expr:
        """Return the gap; null for the reference group itself."""
        return pl.when(~self._is_reference(pl.col(OF_GROUP.column("auc")))).then(gap)


def own_parts(sums: AucSums) -> Step:
    """Name the parts of the AUC of each group."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        return OF_GROUP.columns(sums.parts(field) | {"slack": field(OWN_SLACK)})

    return step


def independent_difference(field: Fields) -> dict[str, pl.Expr]:
    """Compare `OWN` with `OTHER`."""
    own, other = (each.parts(field) for each in (OF_GROUP, OF_REFERENCE))
    return {
        DIFFERENCE.reference_auc: other["auc"],
        # Near 1 the complements have more digits.
        DIFFERENCE.difference: other["one_minus_auc"] - own["one_minus_auc"],
        DIFFERENCE.scale_own: pl.lit(1.0),
        DIFFERENCE.scale_other: pl.lit(1.0),
        DIFFERENCE.share: pl.lit(1.0),
        DIFFERENCE.slack: own["slack"] + other["slack"],
    }
