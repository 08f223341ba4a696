"""References: what the AUC and rates of each group are compared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.groups.auc_sums import (
    OF_GROUP,
    OF_REFERENCE,
    OTHER_PAIRS,
    OWN_SLACK,
    PAIRS,
    AucSums,
    PairWeightedMean,
    large_enough,
    outside,
)
from polars_wroc.inputs import columns
from polars_wroc.inputs.arguments import WeightType, shown
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics.auc_variance import Units, units_of
from polars_wroc.plans.queries import Fields, Step, over, require_at_collect
from polars_wroc.ranking.placements import RowCurve
from polars_wroc.stats.difference_tests import auc_difference_test
from polars_wroc.stats.proportions import TOLERANCE

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

    @abstractmethod
    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the placed rows of a group, or over a part of its curve."""

    @abstractmethod
    def walk_sums(self) -> dict[str, pl.Expr]:
        """Refer to the sums of `aggregates` that a compiled walk along the rows has computed."""

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


# Relative rounding error of a difference of cells.
_ROUNDING = 1e-14


class Rest(Reference):
    """The other groups: the mean of their AUCs, weighted by their pairs, and the rates of all rows.

    Rows of different groups are not compared, so that an offset of all scores of a group does not
    change the reference of the others.
    """

    @property
    def _own(self) -> AucSums:
        return AucSums("own", self.units)

    @property
    def _mean(self) -> PairWeightedMean:
        weights = {side: self._own.weight(side) for side in CLASSES}
        return PairWeightedMean(weights, self.partition_keys)

    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the rows of a group."""
        return self._own.sums(curve)

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Refer to the sums of `aggregates` that a compiled walk along the rows has computed."""
        return self._own.walk_sums()

    def auc_weights(self) -> UnitWeights:
        """Weight the groups by their pairs."""
        return UnitWeights(pl.col(PAIRS), pl.col(PAIRS), pl.col(OTHER_PAIRS))

    @property
    def steps(self) -> list[Step]:
        """Steps to the AUC of each group and to the mean of the others."""
        return [*self._own.steps, own_parts(self._own), *self._mean.steps, self._difference]

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        return independent_difference(field)

    def one_test_of_two(self, gaps: pl.LazyFrame, p_values: Sequence[str]) -> pl.LazyFrame:
        """Give two groups, each the only other one, the larger of their p-values."""
        has_rows = pl.col("n_pos") + pl.col("n_neg") > 0
        pair = has_rows & (over(has_rows.sum(), self.partition_keys) == 2)  # noqa: PLR2004
        second = over(has_rows.cum_sum(), self.partition_keys) == 2  # noqa: PLR2004
        tests = pl.col(p_values)
        same = pl.when(pair).then(over(tests.max(), self.partition_keys)).otherwise(tests)
        return gaps.with_columns(same, (pair & second).alias(REPEATED))

    def row_weights(self) -> UnitWeights:
        """Leave out the units of the group."""
        return UnitWeights(pl.lit(1.0), pl.lit(1.0), pl.lit(1.0))

    def cell(self, own: pl.Expr) -> pl.Expr:
        """Subtract the group's cell from the overall one; a difference within rounding is 0."""
        overall = over(own.sum(), self.partition_keys)
        rest = overall - own
        return pl.when(rest > _ROUNDING * overall).then(rest).otherwise(0.0)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Count the rows of the other groups."""
        return outside(self.partition_keys)(own)


class Overall(Rest):
    """All groups, the group itself included: the mean of their AUCs, and the rates of all rows.

    A group differs from them only through the other groups.
    """

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr:
        """Proportion of the group in all rows."""
        return own / (own + others)

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        """Shrink the difference to the other groups by their share of the pairs."""
        columns = independent_difference(field)
        own, others = field(PAIRS), field(OTHER_PAIRS)
        share = others / (own + others)
        difference = share * columns[DIFFERENCE.difference]
        auc = field(OF_GROUP.column("auc"))
        return {
            # A group without pairs or without others has no difference.
            DIFFERENCE.reference_auc: pl.when(own > 0)
            .then(pl.coalesce(auc - difference, auc))
            .otherwise(columns[DIFFERENCE.reference_auc]),
            DIFFERENCE.difference: difference,
            DIFFERENCE.scale_own: share,
            DIFFERENCE.scale_other: share,
            DIFFERENCE.share: share,
            DIFFERENCE.slack: share * columns[DIFFERENCE.slack],
        }

    def logit_test(self, level: float) -> dict[str, pl.Expr]:
        """Test the difference from the other groups; shrink it and its limits by their share."""
        parts = super().logit_test(level)
        share = pl.col(DIFFERENCE.scale_own)
        shrunk = {name: share * value for name, value in parts.items() if name != "p_value"}
        return parts | shrunk


# References that all other groups make up.
_OTHERS: dict[str, type[Reference]] = {"rest": Rest, "overall": Overall}
_NAMES = ", ".join(repr(name) for name in (*_OTHERS, "best"))


def read_reference(
    reference: object, rows: Rows, weight_type: WeightType, min_rows: int
) -> Reference:
    """Read the argument ``reference`` for the groups of checked rows."""
    partition_keys, units = rows.model_keys, units_of(weight_type, counted=rows.counted)
    if isinstance(reference, str) and reference in _OTHERS:
        return _OTHERS[reference](partition_keys, units)
    if reference == "best":
        return ReferenceGroup(partition_keys, units, _best(partition_keys, weight_type, min_rows))
    return ReferenceGroup(partition_keys, units, _named(rows, reference))


def _best(partition_keys: Sequence[str], weight_type: WeightType, min_rows: int) -> IsReference:
    enough = pl.when(large_enough("auc", weight_type, min_rows))

    def is_best(auc: pl.Expr) -> pl.Expr:
        def first(highest: pl.Expr) -> pl.Expr:
            return highest & (highest.cum_sum() == 1)

        candidate = enough.then(auc)
        # Equal AUCs of different rows may round differently.
        is_highest = candidate >= candidate.max() - TOLERANCE
        best = first(is_highest.fill_null(value=False))
        return over(best, partition_keys)

    return is_best


def _named(rows: Rows, reference: Any) -> IsReference:
    groups, schema = rows.group_keys, rows.frame.collect_schema()
    given = reference if isinstance(reference, tuple) else (reference,)
    exact = [columns.exact(value, schema[key]) for key, value in zip(groups, given, strict=False)]
    if len(given) != len(groups) or any(value is None for value in exact):
        types = ", ".join(f"{rows.name_of(key)!r} ({schema[key]})" for key in groups)
        msg = (
            f"`reference` must be {_NAMES} or one value for each of {types}; "
            f"found {shown(reference)}"
        )
        raise ValueError(msg)
    named = pl.all_horizontal(
        pl.col(key) == columns.literal(value)
        for key, value in zip(groups, exact, strict=True)
        if value is not None
    ).fill_null(value=False)
    exists = over(named.any(), rows.model_keys)
    rule = (
        f"`reference` must be {_NAMES} or a group; "
        f"found no group {shown(reference)} in {', '.join(rows.group_names)}"
    )

    def is_named(_: pl.Expr) -> pl.Expr:
        return named & require_at_collect(exists, rule)

    return is_named
