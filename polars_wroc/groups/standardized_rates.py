"""Rates of groups and of their references, averaged over strata with Mantel and Haenszel's weights.

With common weights the averages are directly standardised rates: those that both would have in
one population of strata. All rates are computed as rows of one table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.rate_gaps import INTERVALS, SIDES, TEST, others_share
from polars_wroc.groups.references import Reference, other_name
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.stats.differences import Estimate, Limits, ratio_limits, reported_ratio
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.proportions import is_exact, proportion_column
from polars_wroc.thresholds.confusion_metrics import cell_counts
from polars_wroc.thresholds.registry import GAP_RATES

# With a larger inverse size than the first, a group has one row in a stratum, whose variance is
# that of its reference, of an inverse size of at most the second.
_ONE_ROW, _MOST = 0.999, 0.95
_RATE, _IS_REFERENCE, _SHARE = "rate", "is_reference", "share"
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
                is_reference.alias(_IS_REFERENCE),
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
        return {_SHARE: share_of(weight, self._keys)}

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
        is_other = pl.when(~field(_IS_REFERENCE))
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
    share = pl.col(_SHARE)
    used = share > 0
    columns = {_IS_REFERENCE: pl.col(_IS_REFERENCE).first()}
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
