"""Gaps of groups within strata: each group is compared with its reference in each stratum.

What is compared there is averaged over the strata where both have rows, with weights that are
largest where both have many. For rates they are those of Mantel and Haenszel. Gaps that are due to
the strata alone, such as those of a group that applies where all are rejected, are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.auc_sums import (
    OF_GROUP,
    OF_REFERENCE,
    OWN_WEIGHTS,
    compared_metrics,
    relative_pairs,
    widened_by_bins,
    with_bin_slack,
)
from polars_wroc.groups.gaps import GapTests, adjusted_gaps, place, plan_sums, with_gaps, with_tests
from polars_wroc.groups.metric_gaps import (
    INTERVALS,
    SIDES,
    TEST,
    GapMethod,
    others_share,
    with_gaps_by_score,
)
from polars_wroc.groups.references import (
    DIFFERENCE,
    Reference,
    ReferenceGroup,
    Rest,
    independent_difference,
    other_name,
    read_reference,
)
from polars_wroc.inputs.arguments import WeightType, shown
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.plans.queries import Fields, in_columns, join_on_keys, over
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.ranking.placements import row_curve
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    is_exact,
    proportion_column,
    ratio_limits,
    reported_ratio,
)
from polars_wroc.thresholds.confusion_matrix import cell_counts
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED, confusion_at

# With a larger inverse size than the first, a group has one row in a stratum, whose variance is
# that of its reference, of an inverse size of at most the second.
_ONE_ROW, _MOST = 0.999, 0.95
_RATE, _REFERENCE_FLAG, _STRATUM_SHARE = "rate", "is_reference", "share"
# How the cells of each side are named.
_NAMES: dict[str, Callable[[str], str]] = dict(zip(SIDES, (str, other_name), strict=True))
_ENDINGS = (
    "", "_reference", "_gap", "_gap_low", "_gap_high", "_gap_p_value",
    "_ratio", "_ratio_low", "_ratio_high",
)  # fmt: skip


def stratum_weight(own: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Weight of a stratum from those of both sides in it; 0 where one is absent."""
    return pl.when((own > 0) & (other > 0)).then(own * (other / (own + other))).otherwise(0.0)


def share_of(weight: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Share of a stratum in the weight of all strata of the keys; null if that is 0 or infinite."""
    total = over(weight.sum(), keys)
    return pl.when((total > 0) & total.is_finite()).then(weight / total)


@dataclass(frozen=True)
class StandardizedRates:
    """Rates of groups with some ``keys``; the ``reference`` is that within strata."""

    reference: Reference
    keys: Sequence[str]
    level: float

    def table(
        self, cells: pl.LazyFrame, weight_type: WeightType, is_reference: pl.Expr
    ) -> pl.LazyFrame:
        """Compute the columns of the gaps of rates from the cells of each stratum."""
        cells = in_columns(cells, [self._others]).cache()
        strata = pl.concat(
            cells.select(
                *self.keys,
                pl.lit(rate).alias(_RATE),
                is_reference.alias(_REFERENCE_FLAG),
                **_counts(rate, weight_type),
            )
            for rate in GAP_RATES
        )
        steps = [_rates, self._shares, _variances]
        means = in_columns(strata, steps).group_by(self._keys, maintain_order=True)
        columns = [_sizes, *TEST.steps, self._limits, self._gaps]
        return self._wide(in_columns(means.agg(**_means()), columns))

    @property
    def _keys(self) -> list[str]:
        return [*self.keys, _RATE]

    def _others(self, field: Fields) -> dict[str, pl.Expr]:
        cells = (*CELLS, *SQUARES)
        return {other_name(name): self.reference.cell(field(name)).fill_null(0.0) for name in cells}

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
        weight = stratum_weight(*(field(f"weight_{side}") for side in SIDES))
        return {_STRATUM_SHARE: share_of(weight, self._keys)}

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        quantile = pl.lit(normal_quantile((1 + self.level) / 2))
        return {
            f"{end}_{side}": limit
            for side, interval in INTERVALS.items()
            for end, limit in interval.limits(field, quantile)._asdict().items()
        }

    def _gaps(self, field: Fields) -> dict[str, pl.Expr]:
        own, other = (
            Estimate(*(field(f"{part}_{side}") for part in Estimate._fields)) for side in SIDES
        )
        gap = TEST.combined(field, *(Limits(each.low, each.high) for each in (own, other)))
        ratio = Estimate(own.value / other.value, *ratio_limits(own, other))
        ratio = reported_ratio(ratio, other.value)
        is_other = pl.when(~field(_REFERENCE_FLAG))
        # Without an outcome, or with nothing but outcomes, there is no ratio.
        varies = (field("complement_own") > 0) | (field("complement_other") > 0)
        columns = {
            "_gap": field(TEST.difference),
            "_gap_low": gap.low,
            "_gap_high": gap.high,
            "_gap_p_value": field(TEST.p_value),
        } | {
            f"_ratio{end}": pl.when(varies).then(value)
            for end, value in zip(("", "_low", "_high"), ratio, strict=True)
        }
        shown = {ending: is_other.then(value) for ending, value in columns.items()}
        values = {"": own.value, "_reference": other.value} | shown
        return {_ending(ending): value for ending, value in values.items()}

    def _wide(self, rates: pl.LazyFrame) -> pl.LazyFrame:
        """Give each rate its columns, under the names that those of plain gaps have."""
        columns: dict[str, pl.Expr] = {}
        for rate in GAP_RATES:
            named = {f"{rate}{ending}": pl.col(_ending(ending)) for ending in _ENDINGS}
            for name, side in zip((rate, other_name(rate)), SIDES, strict=True):
                named[proportion_column(name, "value")] = pl.col(f"value_{side}")
                named[proportion_column(name, "size")] = 1 / pl.col(f"size_{side}")
            named[others_share(rate)] = pl.lit(1.0)
            of_rate = pl.col(_RATE) == rate
            columns |= {name: value.filter(of_rate).first() for name, value in named.items()}
        return rates.group_by(self.keys, maintain_order=True).agg(**columns)


def _counts(rate: str, weight_type: WeightType) -> dict[str, pl.Expr]:
    """Weights of both sides in a stratum, and in the numerator and not, and squared weights."""
    columns: dict[str, pl.Expr] = {}
    for side, name in _NAMES.items():
        counted, others = cell_counts(rate, weight_type, pl.col, name)
        both = counted + others
        columns |= {f"counted_{side}": counted.weight, f"others_{side}": others.weight}
        columns |= {f"weight_{side}": both.weight, f"squares_{side}": both.squares}
    return columns


def _rates(field: Fields) -> dict[str, pl.Expr]:
    columns: dict[str, pl.Expr] = {}
    for side in SIDES:
        weight = field(f"weight_{side}")
        some = pl.when(weight > 0)
        columns[f"value_{side}"] = some.then(field(f"counted_{side}") / weight)
        columns[f"complement_{side}"] = some.then(field(f"others_{side}") / weight)
        squares = field(f"squares_{side}")
        exact = pl.when((weight > 0) & is_exact(squares))
        columns[f"size_{side}"] = exact.then(squares / weight / weight)
    return columns


def _variances(field: Fields) -> dict[str, pl.Expr]:
    """Estimate the variance of each rate in a stratum, without bias."""
    columns: dict[str, pl.Expr] = {}
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        sizes = field(f"size_{side}"), field(f"size_{other}").clip(upper_bound=_MOST)
        spreads = [field(f"value_{each}") * field(f"complement_{each}") for each in (side, other)]
        lone = sizes[0] > _ONE_ROW
        variance = pl.when(lone).then(spreads[1] / (1 - sizes[1]))
        columns[f"variance_{side}"] = sizes[0] * variance.otherwise(spreads[0] / (1 - sizes[0]))
    return columns


def _means() -> dict[str, pl.Expr]:
    """Aggregate the strata; null where none is used, or one of them has no value."""
    share = pl.col(_STRATUM_SHARE)
    used = share > 0
    columns = {_REFERENCE_FLAG: pl.col(_REFERENCE_FLAG).first()}
    for power, parts in ((1, ("value", "complement")), (2, ("variance", "size"))):
        for name in (f"{part}_{side}" for part in parts for side in SIDES):
            terms = (share**power * pl.col(name)).filter(used)
            columns[name] = pl.when(used.any() & (terms.null_count() == 0)).then(terms.sum())
    return columns


def _sizes(field: Fields) -> dict[str, pl.Expr]:
    """Add inverse effective sizes, those of Wilson's limits, and the difference."""
    columns = {"scale": pl.lit(1.0), TEST.difference: field("value_own") - field("value_other")}
    for side in SIDES:
        spread = field(f"value_{side}") * field(f"complement_{side}")
        variance = field(f"variance_{side}")
        known = pl.when((spread > 0) & (variance > 0))
        columns[f"size_{side}"] = known.then(variance / spread).otherwise(field(f"size_{side}"))
    return columns


def _ending(ending: str) -> str:
    """Column of the table of all rates with an ending of the columns of each."""
    return f"rate{ending}_column"


WEIGHT_SHARE = "within_weight_share"
_IS_REFERENCE = "__is_reference"
# The pairs of a group in a stratum and of its reference there, relative; the weight of a stratum.
_PAIRS, _REFERENCE_PAIRS, _SHARE = "__stratum_pairs", "__reference_pairs", "__stratum_share"
# The weight of a group in a stratum, and whether its reference has rows there.
_WEIGHT, _COMPARED = "__weight_in_stratum", "__compared_in_stratum"


def within_columns(*, rates: bool) -> list[str]:
    """Name the columns that strata add, for the AUC and, with a threshold, for the rates."""
    metrics, parts = compared_metrics(rates=rates), ("crude", "explained")
    return [WEIGHT_SHARE, *(f"{metric}_gap_{part}" for metric in metrics for part in parts)]


def check_within(reference: object, method: GapMethod) -> None:
    """Refuse a reference that has no meaning within strata, and the test on logits."""
    if method != "score":
        msg = f"`method` must be 'score' where gaps are measured `within` strata; found {method!r}"
        raise ValueError(msg)
    if isinstance(reference, str) and reference == "overall":
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
        sums = self._in_strata(with_bin_slack(sums, rows), crude)
        steps = [*reference.steps, self._pairs, self._reference_pairs, self._shares]
        means = {WEIGHT_SHARE: pl.col(_WEIGHT).filter(_COMPARED).sum() / pl.col(_WEIGHT).sum()}
        for each in (OF_GROUP, OF_REFERENCE):
            means |= each.mean_over(pl.col(_SHARE), pl.col)
        compared = in_columns(sums, steps).group_by(self.groups.keys, maintain_order=True)
        return compared.agg(**means).with_columns(pl.col(WEIGHT_SHARE).fill_nan(None))

    def _pairs(self, field: Fields) -> dict[str, pl.Expr]:
        weights = [field(weight) for weight in OWN_WEIGHTS]
        pairs = relative_pairs(weights, self.rows.model_keys)
        known = field(OF_GROUP.column("auc")).is_not_null()
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
