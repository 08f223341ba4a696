"""Gaps of groups within strata: each group is compared with its reference in each stratum.

What is compared there is averaged over the strata where both have rows, with weights that are
largest where both have many. For rates they are those of Mantel and Haenszel. Gaps that are due to
the strata alone, such as those of a group that applies where all are rejected, are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.auc_gaps import GapMethod, with_gaps_by_score
from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.groups.binned_gaps import widened_by_bins, with_bin_slack
from polars_wroc.groups.compared_auc import OTHER, OWN, relative_pairs
from polars_wroc.groups.gaps import GapTests, adjusted_gaps, place, plan_sums, with_gaps, with_tests
from polars_wroc.groups.min_rows import compared_metrics
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import (
    DIFFERENCE,
    Reference,
    ReferenceGroup,
    independent_difference,
)
from polars_wroc.groups.rest import Rest
from polars_wroc.groups.standardized_rates import StandardizedRates, share_of, stratum_weight
from polars_wroc.inputs.arguments import shown
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.curve import CELLS
from polars_wroc.ranking.placements import row_curve
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED, confusion_at

WEIGHT_SHARE = "within_weight_share"
_IS_REFERENCE = "__is_reference"
# The pairs of a group in a stratum and of its reference there, relative; the weight of a stratum.
_PAIRS, _REFERENCE_PAIRS, _SHARE = "__stratum_pairs", "__reference_pairs", "__stratum_share"
# The weight of a group in a stratum, and whether its reference has rows there.
_WEIGHT, _COMPARED = "__weight_in_stratum", "__compared_in_stratum"
# References of which a group is a part, and one whose pairs are of different groups.
_REFUSED = ("overall", "overall_pooled", "rest_pooled")


def within_columns(*, rates: bool) -> list[str]:
    """Name the columns that strata add, for the AUC and, with a threshold, for the rates."""
    metrics, parts = compared_metrics(rates=rates), ("crude", "explained")
    return [WEIGHT_SHARE, *(f"{metric}_gap_{part}" for metric in metrics for part in parts)]


def check_within(reference: object, method: GapMethod) -> None:
    """Refuse a reference that has no meaning within strata, and the test on logits."""
    if method != "score":
        msg = f"`method` must be 'score' where gaps are measured `within` strata; found {method!r}"
        raise ValueError(msg)
    if isinstance(reference, str) and reference in _REFUSED:
        msg = (
            "`reference` must be 'rest', 'best' or a group where gaps are measured `within` "
            f"strata; found {shown(reference)}"
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class GapsWithinStrata:
    """The gaps of rows whose keys are those of groups, of ``strata`` and of models."""

    rows: Rows
    strata: Sequence[str]
    reference: object
    thresholds: pl.LazyFrame | None
    tests: GapTests

    @property
    def groups(self) -> Rows:
        """The same rows in groups, whatever their stratum."""
        return self.rows.regrouped([k for k in self.rows.group_keys if k not in self.strata])

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics whose gaps are measured."""
        return compared_metrics(rates=self.thresholds is not None)

    def table(self) -> pl.LazyFrame:
        """Compute the gaps, and what they are without strata."""
        crude = self._crude().cache()
        table = crude
        for within in (self._aucs(crude), *self._rates(crude)):
            table = join_on_keys(table, within, self.groups.keys)
        table = in_columns(table, [self._difference])
        table = widened_by_bins(with_gaps_by_score(table, self.tests.level), DIFFERENCE.slack)
        compared = self._reference(self.groups.model_keys)
        tested = with_tests(table, compared, self.metrics, self.tests)
        keys = self.groups.keys, self.groups.model_keys
        adjusted = adjusted_gaps(tested, *keys, self.metrics, self.tests)
        return in_columns(adjusted, [self._explained])

    def _reference(self, partition_keys: Sequence[str]) -> Reference:
        """Return the reference among the groups with the same partition keys."""
        units = units_of(self.tests.weight_type, counted=self.rows.counted)
        if isinstance(self.reference, str) and self.reference == "rest":
            return Rest(partition_keys, units)
        return ReferenceGroup(partition_keys, units, lambda _: pl.col(_IS_REFERENCE))

    def _crude(self) -> pl.LazyFrame:
        """Compute the gaps without strata, and keep what tests need to know."""
        tests, groups = self.tests, self.groups
        compared = read_reference(self.reference, groups, tests.weight_type, tests.min_rows)
        measured = plan_sums(groups, compared, self.thresholds)
        table = with_gaps(measured, groups.keys, compared, tests)
        kept = [*groups.keys, *OWN_WEIGHTS, "n_pos", "n_neg"]
        if self.thresholds is not None:
            kept += [*CELLS, ROWS_SELECTED, ROWS_REJECTED]
        crude = {
            _crude(metric, part): pl.col(f"{metric}_gap{part}")
            for metric in self.metrics
            for part in ("", "_low", "_high")
        }
        return table.select(*kept, compared.is_reference.alias(_IS_REFERENCE), **crude)

    def _in_strata(self, table: pl.LazyFrame, crude: pl.LazyFrame) -> pl.LazyFrame:
        """Mark the reference in each stratum, and sort, so that sums have the same bits."""
        keys = self.groups.keys
        marks = crude.select(*keys, _IS_REFERENCE)
        return join_on_keys(table, marks, keys).sort(self.rows.keys)

    @property
    def _partition_keys(self) -> list[str]:
        return [*self.strata, *self.rows.model_keys]

    def _aucs(self, crude: pl.LazyFrame) -> pl.LazyFrame:
        """Average the AUCs of each group and of its reference over the strata."""
        rows, reference = self.rows, self._reference(self._partition_keys)
        placed = place(by_descending_score(rows), rows)
        sums = rows.aggregate(placed, reference.aggregates(row_curve()))
        sums = self._in_strata(with_bin_slack(sums, rows, self._partition_keys), crude)
        steps = [*reference.steps, self._pairs, self._reference_pairs, self._shares]
        means = {WEIGHT_SHARE: pl.col(_WEIGHT).filter(_COMPARED).sum() / pl.col(_WEIGHT).sum()}
        for each in (OWN, OTHER):
            means |= each.mean_over(pl.col(_SHARE), pl.col)
        compared = in_columns(sums, steps).group_by(self.groups.keys, maintain_order=True)
        return compared.agg(**means).with_columns(pl.col(WEIGHT_SHARE).fill_nan(None))

    def _pairs(self, field: Fields) -> dict[str, pl.Expr]:
        weights = [field(weight) for weight in OWN_WEIGHTS]
        pairs = relative_pairs(weights, self.rows.model_keys)
        known = field(OWN.column("auc")).is_not_null()
        return {
            _PAIRS: pl.when(known).then(pairs).otherwise(0.0),
            _WEIGHT: weights[0] + weights[1],
        }

    def _reference_pairs(self, field: Fields) -> dict[str, pl.Expr]:
        reference = self._reference(self._partition_keys)
        return {
            _REFERENCE_PAIRS: reference.cell(field(_PAIRS)).fill_null(0.0),
            _COMPARED: reference.cell(field(_WEIGHT)).fill_null(0.0) > 0,
        }

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
        weight = stratum_weight(field(_PAIRS), field(_REFERENCE_PAIRS))
        return {_SHARE: share_of(weight, self.groups.keys)}

    def _rates(self, crude: pl.LazyFrame) -> list[pl.LazyFrame]:
        """Average the rates at the threshold, if there is one."""
        if self.thresholds is None:
            return []
        cells = self._in_strata(confusion_at(self.rows, self.thresholds), crude)
        reference = self._reference(self._partition_keys)
        rates = StandardizedRates(reference, self.groups.keys, self.tests.level)
        return [rates.table(cells, self.tests.weight_type, pl.col(_IS_REFERENCE))]

    def _difference(self, field: Fields) -> dict[str, pl.Expr]:
        columns = independent_difference(field)
        others = pl.when(~field(_IS_REFERENCE))
        return columns | {DIFFERENCE.difference: others.then(columns[DIFFERENCE.difference])}

    def _explained(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the gaps without strata, and the share of them that strata explain.

        Null where the interval of a gap without strata includes 0: it may be nothing.
        """
        columns: dict[str, pl.Expr] = {}
        for metric in self.metrics:
            gap, low, high = (field(_crude(metric, part)) for part in ("", "_low", "_high"))
            columns[f"{metric}_gap_crude"] = gap
            share = 1 - field(f"{metric}_gap") / gap
            columns[f"{metric}_gap_explained"] = pl.when((low > 0) | (high < 0)).then(share)
        return columns


def _crude(metric: str, part: str) -> str:
    return f"__crude_{metric}_gap{part}"
