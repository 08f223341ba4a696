"""The references `Rest` (the complement of a group) and `Overall` (all rows).

The sums over a complement are sums over all rows minus those of the group, so that one sort is
enough for any number of groups. Only for a group that is nearly all rows, where a difference would
be mostly rounding error, the rows of the complement are sorted and summed themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.groups.auc_sums import OTHER
from polars_wroc.groups.binned_gaps import SLACK_TO_REST
from polars_wroc.groups.min_rows import outside
from polars_wroc.groups.ranked_groups import RankedGroups
from polars_wroc.groups.references import REPEATED, Reference, compared_columns
from polars_wroc.groups.rest_sums import RestSums
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.placements import RowCurve
from polars_wroc.stats.difference_tests import AucEstimate

# A group with more than this proportion of a class is nearly all rows.
_NEARLY_ALL = 0.9
# Relative rounding error of a difference of cells.
_ROUNDING = 1e-14


class _UsesComplement(Reference):
    """A reference whose test depends on the complement of each group."""

    bin_slack = SLACK_TO_REST

    @property
    def _sums(self) -> RestSums:
        return RestSums(self.partition_keys, self.units)

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
        """Name the sums of a walk so."""
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

    def cell(self, own: pl.Expr) -> pl.Expr:
        """Subtract the group's cell from the overall one; a difference within rounding is 0."""
        overall = over(own.sum(), self.partition_keys)
        rest = overall - own
        return pl.when(rest > _ROUNDING * overall).then(rest).otherwise(0.0)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Count the rows of the other groups."""
        return outside(self.partition_keys)(own)


class Rest(_UsesComplement):
    """The complement: all rows outside the group."""

    def with_compared_aucs(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with its complement, which is independent of it."""
        return in_columns(sums, [*self._sums.steps, self._compared])

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        own, rest = (each.estimate(field) for each in (self._sums.own, self._sums.rest))
        return compared_columns(own, rest, own.variance + rest.variance)

    def one_test_of_two(self, gaps: pl.LazyFrame, p_values: Sequence[str]) -> pl.LazyFrame:
        """Give two groups, each the complement of the other, the larger of their p-values."""
        has_rows = pl.col("n_pos") + pl.col("n_neg") > 0
        pair = has_rows & (over(has_rows.sum(), self.partition_keys) == 2)  # noqa: PLR2004
        second = over(has_rows.cum_sum(), self.partition_keys) == 2  # noqa: PLR2004
        tests = pl.col(p_values)
        same = pl.when(pair).then(over(tests.max(), self.partition_keys)).otherwise(tests)
        return gaps.with_columns(same, (pair & second).alias(REPEATED))


class Overall(_UsesComplement):
    """All groups together, the group itself included.

    A group differs from them only through its complement, which may be small.
    """

    def with_compared_aucs(self, sums: pl.LazyFrame) -> pl.LazyFrame:
        """Compare each group with all rows, which include its own."""
        overall = self._sums.overall
        steps = [*self._sums.steps, overall.to_proportions, *overall.steps, self._compared]
        return in_columns(sums, steps)

    def _compared(self, field: Fields) -> dict[str, pl.Expr]:
        """Subtract twice the covariance, which comes from the group's rows."""
        own, overall = (each.estimate(field) for each in (self._sums.own, self._sums.overall))
        terms = variance = own.variance + overall.variance
        for side, other in OTHER.items():
            variance -= 2 * self._covariance(side, other, field)
        known = self._sums.own.variance.without_rounding(variance, terms)
        return compared_columns(own, overall, known)

    def _covariance(self, side: str, other: str, field: Fields) -> pl.Expr:
        group_in_all, both = self._sums.group_in_all, (self._sums.own, self._sums.overall)
        own, overall = (each.variance for each in both)
        own_others, all_others = (field(each.weight(other)) for each in both)
        centres = field(own.centre), field(overall.centre)
        spread = (
            field(self._sums.own.cross(side)) / (own_others * all_others)
            - centres[1] * field(own.column("first", side))
            - centres[0] * field(group_in_all.misranked("first", side)) / all_others
            + centres[0] * centres[1] * field(own.column("squares", side))
        )
        factors = field(own.column("factor", side)) * field(overall.column("factor", side))
        weights = [field(each.weight(side)) for each in both]
        return factors.sqrt() * spread / (weights[0] * weights[1])

    @property
    def outside(self) -> AucEstimate:
        """The complement."""
        return self._sums.rest.estimate(pl.col)

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr:
        """Proportion of the group in all rows."""
        return own / (own + others)
