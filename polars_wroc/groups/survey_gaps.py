"""Variances of gaps by the design of a survey.

The units of a survey have rows of several groups, so that a group and its reference depend on each
other. Each group has a row for every unit that it or its reference has rows in, with the influence
of the unit on both. A gap has the degrees of freedom of the side with fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.references import Reference, UnitWeights, other_name
from polars_wroc.inputs.columns import CLUSTER, STRATUM
from polars_wroc.inputs.designs import Design, Replicates
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import AUC_INFLUENCE, auc_influences
from polars_wroc.plans.queries import Fields, aggregate, collect, join_on_keys, sum_unless_null
from polars_wroc.ranking.curve import CELLS
from polars_wroc.stats.proportions import credible_correlation
from polars_wroc.stats.variances import (
    DESIGN_DF,
    PRESENT,
    PRESENT_CLASSES,
    linear_variances,
    smaller_df,
)
from polars_wroc.thresholds.confusion_matrix import rate_influence, rate_influences, rate_variance
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import unit_cells

AUC = "auc"
# Degrees of freedom of a gap in AUC: of the class in the fewest units.
AUC_DF = "__design_df_of_auc"
_WEIGHTS = _GIVEN, _LEFT_OUT, _TOTAL = "__given", "__left_out", "__total"
# Suffix of the sum over all groups.
_ALL = "_of_all"


def correlation(metric: str, field: Fields) -> pl.Expr:
    """Correlation of a metric of a group with that of its reference; 0 if one has no variance."""
    variances = [field(rate_variance(name)) for name in (metric, other_name(metric))]
    return credible_correlation(field(_covariance(metric)), *variances)


def gap_variance(metric: str, field: Fields) -> pl.Expr:
    """Variance of the gap of a metric."""
    parts = field(rate_variance(metric)) + field(rate_variance(other_name(metric)))
    return (parts - 2 * field(_covariance(metric))).clip(lower_bound=0.0)


@dataclass(frozen=True)
class SurveyGaps:
    """The influences of units on AUCs, or None, and their cells if there are thresholds."""

    keys: Sequence[str]
    design: Design
    influences: pl.LazyFrame | None
    cells: pl.LazyFrame | None
    rates: Collection[str] = tuple(GAP_RATES)
    # Whether the rest is computed at once, so that the same rows give the same bits each time.
    at_once: bool = False

    @property
    def df(self) -> int:
        """Degrees of freedom of the design, computed."""
        if isinstance(self.design, Replicates):
            return self.design.df
        return int(collect(self.design.strata.select(self.design.df)).item())

    @property
    def _present(self) -> Sequence[str]:
        """Columns that count the rows of each class; each replicate has all of them."""
        return () if isinstance(self.design, Replicates) else PRESENT_CLASSES

    def with_variances(self, table: pl.LazyFrame, reference: Reference) -> pl.LazyFrame:
        """Add the variances of groups and references; `AUC_DF` and `DESIGN_DF` of gaps in rates."""
        # All computed from the table as it is, since a plan that contains itself grows fast.
        added: list[pl.LazyFrame] = []
        if self.influences is not None:
            weights, within = reference.auc_weights(), reference.partition_keys
            values, present = [AUC_INFLUENCE], self._present
            both = self.with_reference(self.influences, table, within, weights, values, present)
            added.append(self._variances(both, {AUC: AUC_INFLUENCE}))
            added += [self._df(both, present, AUC_DF), self._df(both, [PRESENT], DESIGN_DF)]
        if self.cells is not None:
            weights, within = reference.row_weights(), reference.partition_keys
            both = self.with_reference(self.cells, table, within, weights, CELLS, ())
            added.append(self._rate_variances(both))
            if self.influences is None:
                added.append(self._df(both, [PRESENT], DESIGN_DF))
        for columns in added:
            table = join_on_keys(table, columns, self.keys)
        return table

    def _df(self, both: pl.LazyFrame, kinds: Sequence[str], name: str) -> pl.LazyFrame:
        """Compute degrees of freedom from the units with rows of each kind."""
        sides = [side for kind in kinds for side in (kind, other_name(kind))]
        return smaller_df(both, self.keys, self.design, sides, name)

    def _rate_variances(self, both: pl.LazyFrame) -> pl.LazyFrame:
        columns = rate_influences(self.rates, self.keys, self.design)
        columns |= rate_influences(self.rates, self.keys, self.design, other_name)
        renamed = {
            rate_influence(other_name(rate)): other_name(rate_influence(rate))
            for rate in self.rates
        }
        influences = both.with_columns(**columns).rename(renamed)
        return self._variances(influences, {rate: rate_influence(rate) for rate in self.rates})

    def with_reference(
        self,
        units: pl.LazyFrame,
        table: pl.LazyFrame,
        within: Sequence[str],
        weights: UnitWeights,
        values: Sequence[str],
        present: Sequence[str],
    ) -> pl.LazyFrame:
        """Return values of each group and of its reference in all units with rows of either.

        ``present`` are columns that say whether a unit has rows of a kind.
        """
        keys, unit = self.keys, [STRATUM, CLUSTER]
        named = (weight.alias(name) for weight, name in zip(weights, _WEIGHTS, strict=True))
        groups = table.select(*keys, *named)
        any_rows = pl.lit(1, pl.Int64).alias(PRESENT)
        own = units.select(*keys, *unit, *values, *present, any_rows)
        # In the order of the units, so that sums over groups have the same bits each time.
        weighted = join_on_keys(own, groups, keys)
        given = pl.col(_GIVEN).fill_null(0.0)
        # Units in which the reference has no rows have sums of 0; null is what is unknown of one.
        sums = {name: sum_unless_null((given * pl.col(name)).filter(given > 0)) for name in values}
        kinds = [*present, PRESENT]
        for kind in kinds:
            sums[kind] = pl.when(given > 0).then(kind).otherwise(0).sum()
        of_all = aggregate(
            weighted, [*within, *unit], {f"{name}{_ALL}": value for name, value in sums.items()}
        )
        pairs = join_on_keys(groups, of_all, within, how="inner", maintain_order="none")
        both = join_on_keys(pairs, own, [*keys, *unit], maintain_order="none")
        absent = pl.col(PRESENT).is_null()
        both = both.with_columns(
            pl.when(absent).then(0).otherwise(pl.col(name)).alias(name)
            for name in (*values, *kinds)
        )
        others = {
            other_name(name): (pl.col(f"{name}{_ALL}") - pl.col(_LEFT_OUT) * pl.col(name))
            / pl.col(_TOTAL)
            for name in values
        }
        left_out = (pl.col(_LEFT_OUT) > 0).cast(pl.Int64)
        for kind in kinds:
            others[other_name(kind)] = pl.col(f"{kind}{_ALL}") - left_out * pl.col(kind)
        either = pl.any_horizontal(pl.col(PRESENT, other_name(PRESENT)) > 0)
        ordered = both.with_columns(**others).filter(either).sort([*keys, *unit])
        return collect(ordered, reproducible=True).lazy() if self.at_once else ordered

    def _variances(self, influences: pl.LazyFrame, metrics: dict[str, str]) -> pl.LazyFrame:
        """Return the variances of metrics, each named with the influence on it."""
        products: dict[str, tuple[str, str]] = {}
        for metric, value in metrics.items():
            products[rate_variance(metric)] = value, value
            products[rate_variance(other_name(metric))] = other_name(value), other_name(value)
            products[_covariance(metric)] = value, other_name(value)
        variances = linear_variances(influences, self.keys, self.design, products)
        return variances.select(*self.keys, *products)


def survey_gaps(rows: Rows, placed: pl.LazyFrame, thresholds: pl.LazyFrame | None) -> SurveyGaps:
    """Compute what gaps need to know of the units of a survey."""
    assert rows.design is not None
    cells = None
    if thresholds is not None:
        cells = unit_cells(rows, thresholds, rows.keys)
    return SurveyGaps(rows.keys, rows.design, auc_influences(placed, rows), cells)


def _covariance(metric: str) -> str:
    return f"__design_covariance_{metric}"
