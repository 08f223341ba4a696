"""References: what the AUC and rates of each group are compared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.auc_sums import AucSums
from polars_wroc.groups.binned_gaps import SLACK_TO_GROUP
from polars_wroc.groups.ranked_groups import RankedGroups
from polars_wroc.metrics.auc_variance import Units
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.placements import RowCurve
from polars_wroc.stats.difference_tests import AucEstimate

DIFFERENCE_VARIANCE = "__difference_variance"
# Marks a group whose test is the same as that of an earlier group.
REPEATED = "__repeated"

IsReference = Callable[[pl.Expr], pl.Expr]


@dataclass(frozen=True)
class ComparedAuc:
    """Columns of one of two AUCs that are compared."""

    name: str

    def columns(self, estimate: AucEstimate) -> dict[str, pl.Expr]:
        """Name the parts of an estimate."""
        return {self._column(part): value for part, value in estimate._asdict().items()}

    @property
    def estimate(self) -> AucEstimate:
        """Refer to these columns."""
        return AucEstimate(*(pl.col(self._column(part)) for part in AucEstimate._fields))

    def _column(self, part: str) -> str:
        return f"__compared_{part}_{self.name}"


OWN, REFERENCE = ComparedAuc("own"), ComparedAuc("reference")


class Reference(ABC):
    """What groups are compared with; groups with other partition keys are never compared.

    Placements are computed first, overall and in each group; sums over the rows of each group
    are completed; then the AUCs that follow from the sums are compared.
    """

    # Column of the largest change that score bins can make to a gap.
    bin_slack: str

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
        """Name the sums of a compiled walk as `aggregates` does."""

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

    @abstractmethod
    def with_compared_aucs(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Add `OWN`, `REFERENCE` and `DIFFERENCE_VARIANCE` to completed sums."""

    @property
    def outside(self) -> AucEstimate | None:
        """The complement of the group, if the reference includes the group; else None."""
        return None

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

    def one_test_of_two(self, gaps: pl.LazyFrame, p_values: Sequence[str]) -> pl.LazyFrame:  # noqa: ARG002
        """Add `REPEATED`, true where two groups that are compared with each other share a test."""
        return gaps.with_columns(pl.lit(value=False).alias(REPEATED))


class ReferenceGroup(Reference):
    """One of the groups, chosen by ``is_reference``, a function of its AUC."""

    bin_slack = SLACK_TO_GROUP

    def __init__(
        self, partition_keys: Sequence[str], units: Units, is_reference: IsReference
    ) -> None:
        """Set how the group is chosen."""
        super().__init__(partition_keys, units)
        self._is_reference = is_reference

    @property
    def _own(self) -> AucSums:
        return AucSums("own", self.units)

    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the rows of a group."""
        return self._own.sums(curve)

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk so."""
        return self._own.walk_sums()

    def with_compared_aucs(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with the reference group."""
        return in_columns(sums, [*self._own.steps, self._compared])

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        own = self._own.estimate(field)
        is_reference = self._is_reference(own.auc)

        def of_reference(value: pl.Expr) -> pl.Expr:
            return over(pl.when(is_reference).then(value).max(), self.partition_keys)

        one_minus_auc = of_reference(own.one_minus_auc)
        reference = AucEstimate(
            1 - one_minus_auc, one_minus_auc, of_reference(own.variance), of_reference(own.df)
        )
        return compared_columns(
            own, reference, pl.when(~is_reference).then(own.variance + reference.variance)
        )

    def cell(self, own: pl.Expr) -> pl.Expr:
        """Return the cell of the reference group."""
        is_reference = pl.when(self._is_reference(OWN.estimate.auc))
        return over(is_reference.then(own).max(), self.partition_keys)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Return the number of rows of the reference group."""
        return self.cell(own)

    def to_others(self, gap: pl.Expr) -> pl.Expr:
        """Return the gap; null for the reference group itself."""
        return pl.when(~self._is_reference(OWN.estimate.auc)).then(gap)


def compared_columns(
    own: AucEstimate, reference: AucEstimate, variance: pl.Expr
) -> dict[str, pl.Expr]:
    """Name both estimates and the variance of their difference."""
    # With perfect separation the estimated variance is 0, which is no estimate of its precision.
    known = (own.variance > 0) & (reference.variance > 0)
    return {
        **OWN.columns(own),
        **REFERENCE.columns(reference),
        DIFFERENCE_VARIANCE: pl.when(known).then(variance),
    }
