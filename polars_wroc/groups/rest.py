"""References that depend on the other groups of each group.

In `Rest` and `Overall` only pairs of rows of the same group count; in `RestPooled` and
`OverallPooled` all do. The sums over a complement are sums over all rows minus those of the group,
so that one sort is enough for any number of groups. Only for a group that is nearly all rows, where
a difference would be mostly rounding error, the rows of the complement are sorted and summed
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.groups.auc_sums import (
    OF_GROUP,
    OF_REFERENCE,
    OTHER_PAIRS,
    OVERALL_SLACK,
    PAIRS,
    REST_SLACK,
    AucSums,
    PairWeightedMean,
    large_enough,
    outside,
)
from polars_wroc.groups.auc_sums import OTHER as OTHER_CLASS
from polars_wroc.groups.references import (
    DIFFERENCE,
    REPEATED,
    IsReference,
    RankedGroups,
    Reference,
    ReferenceGroup,
    UnitWeights,
    independent_difference,
    own_parts,
)
from polars_wroc.groups.rest_sums import RestSums
from polars_wroc.inputs import columns
from polars_wroc.inputs.arguments import WeightType, shown
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.plans.queries import Fields, Step, join_on_keys, over, require_at_collect
from polars_wroc.ranking.placements import RowCurve
from polars_wroc.stats.difference_tests import AucEstimate, auc_difference_test
from polars_wroc.stats.proportions import TOLERANCE

# A group with more than this proportion of a class is nearly all rows.
_NEARLY_ALL = 0.9
# Relative rounding error of a difference of cells.
_ROUNDING = 1e-14


class _Others(Reference):
    """A reference that depends on all rows of the other groups; their rates are pooled."""

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


class _OfAll(_Others):
    """A reference that includes the group."""

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr:
        """Proportion of the group in all rows."""
        return own / (own + others)


class _Within(_Others):
    """The mean of the AUCs of other groups, weighted by their pairs.

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
        return _one_test_of_two(gaps, p_values, self.partition_keys)


class Rest(_Within):
    """The other groups: the mean of their AUCs, and the rates of all their rows."""


class Overall(_OfAll, _Within):
    """All groups, the group itself included: the mean of their AUCs, and the rates of all rows.

    A group differs from them only through the other groups.
    """

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


class _Pooled(_Others):
    """A reference whose test depends on the complement of each group as one sample."""

    @property
    def _sums(self) -> RestSums:
        return RestSums(self.partition_keys, self.units)

    def auc_weights(self) -> UnitWeights:
        """Raise, since the influences on pairs of rows of different groups are not known."""
        found = "overall_pooled" if isinstance(self, _OfAll) else "rest_pooled"
        msg = (
            "`reference` must not be 'rest_pooled' or 'overall_pooled' for a survey design; "
            f"found {found!r}"
        )
        raise ValueError(msg)

    def place_among_all(self, sorted_rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add the weights that each row misranks overall, and that all rows misrank with it."""
        return self._sums.place(sorted_rows)

    def aggregates(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Sums over the rows of a group; those over all rows are computed from its rows too."""
        return self._sums.aggregates(curve)

    def to_add_up(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Add what only all ranges together tell of the rows that misrank each other."""
        return self._sums.to_add_up(sums)

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Refer to the sums of `aggregates` that a compiled walk along the rows has computed."""
        return self._sums.walk_sums()

    @property
    def needs_all(self) -> bool:
        """The sums over the complement are those over all rows minus those of the group."""
        return True

    def sums_without(self, groups: RankedGroups, large: pl.LazyFrame) -> pl.LazyFrame:
        """Sum the complement of each of these groups."""
        return groups.sums_without(large, self._sums.rest)

    def completed(self, sums: pl.LazyFrame, groups: RankedGroups) -> pl.LazyFrame:
        """Add the sums over the complement of groups that are nearly all rows; else null."""
        sums, rest = sums.cache(), self._sums.rest
        large = self.nearly_all(sums).select(groups.keys)
        direct = self.sums_without(groups, large).with_columns(**rest.to_weights(pl.col))
        names = [*rest.walk_sums(), *rest.to_weights(pl.col)]
        named = [pl.col(name).alias(self._sums.direct(name)) for name in names]
        return join_on_keys(sums, direct.select(*groups.keys, *named), groups.keys)

    def nearly_all(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the groups with nearly all weight, or nearly all squared weight, of a class."""
        own = self._sums.own
        totals = [pl.col(own.power(n, side)) for n in ("weight", "squares") for side in CLASSES]
        return sums.filter(
            pl.any_horizontal(
                total > _NEARLY_ALL * over(total.sum(), self.partition_keys) for total in totals
            )
        )


class RestPooled(_Pooled):
    """The complement: all rows outside the group, also in pairs of rows of different groups."""

    @property
    def steps(self) -> list[Step]:
        """Steps to the AUCs of each group and of its complement, which is independent of it."""
        return [*self._sums.steps, own_parts(self._sums.own), self._compared, self._difference]

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        return OF_REFERENCE.columns(self._sums.rest.parts(field) | {"slack": field(REST_SLACK)})

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        return independent_difference(field)

    def one_test_of_two(self, gaps: pl.LazyFrame, p_values: Sequence[str]) -> pl.LazyFrame:
        """Give two groups, each the complement of the other, the larger of their p-values."""
        return _one_test_of_two(gaps, p_values, self.partition_keys)


class OverallPooled(_OfAll, _Pooled):
    """All rows, the group's own included, also in pairs of rows of different groups.

    A group differs from them only through its complement, which may be small.
    """

    @property
    def steps(self) -> list[Step]:
        """Steps to the AUCs of each group, of its complement and of all rows."""
        overall = self._sums.overall
        pooled = [*self._sums.steps, overall.to_proportions, *overall.steps]
        return [*pooled, own_parts(self._sums.own), self._compared, self._difference]

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        slack = pl.max_horizontal(REST_SLACK, OVERALL_SLACK)
        return OF_REFERENCE.columns(self._sums.rest.parts(field) | {"slack": slack})

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        """Split the variance of the difference into those of the group's rows and of the others."""
        columns = independent_difference(field)
        overall = self._sums.overall.parts(field)
        own, other = (field(each.column("variance")) for each in (OF_GROUP, OF_REFERENCE))
        inside, outside = self._variances(field)
        # Perfect AUCs of a group and its complement say nothing of how precise the overall AUC is.
        known = pl.when(((own > 0) | (inside == 0)) & ((other > 0) | (outside == 0)))
        difference = overall["one_minus_auc"] - field(OF_GROUP.column("one_minus_auc"))
        return columns | {
            DIFFERENCE.reference_auc: overall["auc"],
            DIFFERENCE.difference: difference,
            DIFFERENCE.scale_own: known.then(
                pl.when(own > 0).then((inside / own).sqrt()).otherwise(1)
            ),
            DIFFERENCE.scale_other: known.then(
                pl.when(other > 0).then((outside / other).sqrt()).otherwise(0)
            ),
        }

    def _variances(self, field: Fields) -> tuple[pl.Expr, pl.Expr]:
        """Variance that the group's rows add to the difference, and that the other rows add."""
        inside, outside = pl.lit(0.0), pl.lit(0.0)
        own, rest = (each.variance for each in (self._sums.own, self._sums.rest))
        for side in CLASSES:
            mixed, of_group, of_others = self._spreads(side, field)
            factor = field(own.column("factor", side))
            inside += field(own.part(side)) + factor * (of_group - 2 * mixed)
            outside += field(rest.column("factor", side)) * of_others
        return inside.clip(lower_bound=0.0), outside.clip(lower_bound=0.0)

    def _spreads(self, side: str, field: Fields) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Sums of products of influences on the AUCs of the group and of all rows.

        Of both in the group's rows, and of two of the latter in the group's rows and in others.
        """
        group_in_all, both = self._sums.group_in_all, (self._sums.own, self._sums.overall)
        own, overall = (each.variance for each in both)
        weights = [field(each.weight(side)) for each in both]
        own_others, all_others = (field(each.weight(OTHER_CLASS[side])) for each in both)
        of_group, of_all = field(own.centre), field(overall.centre)
        squares = field(own.column("squares", side))
        first, second = (
            field(group_in_all.misranked(moment, side)) / all_others**power
            for moment, power in (("first", 1), ("second", 2))
        )
        mixed = (
            field(self._sums.own.cross(side)) / (own_others * all_others)
            - of_all * field(own.column("first", side))
            - of_group * first
            + of_group * of_all * squares
        )
        inside = second - 2 * of_all * first + of_all**2 * squares
        outside = (
            (field(overall.column("second", side)) - second)
            - 2 * of_all * (field(overall.column("first", side)) - first)
            + of_all**2 * (field(overall.column("squares", side)) - squares)
        )
        largest = weights[1] ** 2
        return mixed / (weights[0] * weights[1]), inside / largest, outside / largest

    def logit_test(self, level: float) -> dict[str, pl.Expr]:
        """Subtract twice the covariance, and take the larger p-value of this and of the rest's."""
        own, overall = (each.variance for each in (self._sums.own, self._sums.overall))
        estimate, all_rows = (
            OF_GROUP.estimate(pl.col),
            AucEstimate(*(self._sums.overall.parts(pl.col)[part] for part in AucEstimate._fields)),
        )
        terms = variance = estimate.variance + all_rows.variance
        for side in CLASSES:
            factors = pl.col(own.column("factor", side)) * pl.col(overall.column("factor", side))
            variance -= 2 * factors.sqrt() * self._spreads(side, pl.col)[0]
        variance = own.without_rounding(variance, terms)
        known = pl.when((estimate.variance > 0) & (all_rows.variance > 0))
        parts = auc_difference_test(estimate, all_rows, known.then(variance), level)
        of_rest = super().logit_test(level)["p_value"]
        tested = pl.when(parts["p_value"].is_not_null() & of_rest.is_not_null())
        limits = {name: tested.then(parts[name]) for name in ("ci_low", "ci_high")}
        return (
            parts | limits | {"p_value": tested.then(pl.max_horizontal(parts["p_value"], of_rest))}
        )


def _one_test_of_two(
    gaps: pl.LazyFrame, p_values: Sequence[str], partition_keys: Sequence[str]
) -> pl.LazyFrame:
    has_rows = pl.col("n_pos") + pl.col("n_neg") > 0
    pair = has_rows & (over(has_rows.sum(), partition_keys) == 2)  # noqa: PLR2004
    second = over(has_rows.cum_sum(), partition_keys) == 2  # noqa: PLR2004
    tests = pl.col(p_values)
    same = pl.when(pair).then(over(tests.max(), partition_keys)).otherwise(tests)
    return gaps.with_columns(same, (pair & second).alias(REPEATED))


# References that all other groups make up.
_OTHERS: dict[str, type[Reference]] = {
    "rest": Rest,
    "overall": Overall,
    "rest_pooled": RestPooled,
    "overall_pooled": OverallPooled,
}
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
