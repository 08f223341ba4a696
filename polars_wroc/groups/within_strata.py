"""Gaps of groups within strata: each group is compared with its reference in each stratum.

What is compared there is averaged over the strata where both have rows, with weights that are
largest where both have many. For rates they are those of Mantel and Haenszel. Gaps that are due to
the strata alone, such as those of a group that applies where all are rejected, are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from polars_wroc.groups.comparison_tests import SIDES, GapMethod, judged, tested
from polars_wroc.groups.comparisons import (
    OF_GROUP,
    OF_REFERENCE,
    OWN_WEIGHTS,
    PLACE,
    relative_pairs,
    sum_of_shares,
)
from polars_wroc.groups.gaps import (
    NAMES_OF_SIDES,
    OF_AUCS,
    GroupGaps,
    Measured,
    auc_sides,
    compare,
    with_references,
)
from polars_wroc.groups.references import (
    IS_REFERENCE,
    PAIR,
    PICKED_FROM,
    REPEATED,
    Reference,
    other_name,
)
from polars_wroc.inputs.arguments import reject, shown
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, in_columns
from polars_wroc.plans.queries import join_on_keys, over
from polars_wroc.ranking.curve import CELL_SUMS
from polars_wroc.stats.proportions import Side, is_exact
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import cell_counts

# Columns that strata add to the table.
WITHIN_COLUMNS = ("gap_crude", "gap_explained", "share_within")
# With a larger inverse size than the first, a group has one row in a stratum, whose variance is
# that of its reference, of an inverse size of at most the second.
_ONE_ROW, _MOST = 0.999, 0.95
_STRATUM_SHARE = "share"


def stratum_weight(own: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Weight of a stratum from those of both sides in it; 0 where one is absent."""
    return pl.when((own > 0) & (other > 0)).then(own * (other / (own + other))).otherwise(0.0)


def share_of(weight: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Share of a stratum in the weight of all strata of the keys; null if that is 0 or infinite."""
    total = over(weight.sum(), keys)
    return pl.when((total > 0) & total.is_finite()).then(weight / total)


def standardized_rates(
    cells: pl.LazyFrame, reference: Reference, keys: Sequence[str]
) -> pl.LazyFrame:
    """Average the rates of segments with these keys and of their reference, from each stratum.

    A row for each segment and rate has the columns of both sides.
    """
    others = {other_name(n): reference.cell(pl.col(n)).fill_null(0.0) for n in CELL_SUMS}
    cells = cells.with_columns(**others).cache()
    strata = pl.concat(
        cells.select(*keys, pl.lit(rate).alias("metric"), IS_REFERENCE, **_rates(rate))
        for rate in GAP_RATES
    )
    group = [*keys, "metric"]
    of_strata = in_columns(strata, [partial(_variances, keys=group)])
    return in_columns(of_strata.group_by(group, maintain_order=True).agg(**_means()), [_sizes])


def _rates(rate: str) -> dict[str, pl.Expr]:
    """Weights, rates and inverse sizes of both sides in a stratum."""
    columns: dict[str, pl.Expr] = {}
    for side, name in NAMES_OF_SIDES.items():
        counted, others = cell_counts(rate, pl.col, name)
        both = counted + others
        some = pl.when(both.weight > 0)
        exact = pl.when((both.weight > 0) & is_exact(both.squares))
        columns |= {
            f"weight_{side}": both.weight,
            f"value_{side}": some.then(counted.weight / both.weight),
            f"complement_{side}": some.then(others.weight / both.weight),
            f"size_{side}": exact.then(both.squares / both.weight / both.weight),
        }
    return columns


def _variances(field: Fields, keys: Sequence[str]) -> Columns:
    """Add the share of a stratum, and the variance of each rate in it, without bias."""
    weight = stratum_weight(*(field(f"weight_{side}") for side in SIDES))
    columns = {_STRATUM_SHARE: share_of(weight, keys)}
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        sizes = field(f"size_{side}"), field(f"size_{other}").clip(upper_bound=_MOST)
        spreads = [field(f"value_{each}") * field(f"complement_{each}") for each in (side, other)]
        lone = sizes[0] > _ONE_ROW
        variance = pl.when(lone).then(spreads[1] / (1 - sizes[1]))
        columns[f"variance_{side}"] = sizes[0] * variance.otherwise(spreads[0] / (1 - sizes[0]))
    return columns


def _means() -> dict[str, pl.Expr]:
    """Aggregate the strata; null where none is used, or one of them has no value."""
    columns = {IS_REFERENCE: pl.col(IS_REFERENCE).first()}
    for power, parts in ((1, ("value", "complement")), (2, ("variance", "size"))):
        for name in (f"{part}_{side}" for part in parts for side in SIDES):
            columns[name] = sum_of_shares(pl.col(name), pl.col(_STRATUM_SHARE), power)
    return columns


def _sizes(field: Fields) -> dict[str, pl.Expr]:
    """Add inverse effective sizes, those of Wilson's limits, and the difference."""
    value, other = field("value_own"), field("value_other")
    columns = {
        "gap": pl.when(~field(IS_REFERENCE)).then(value - other),
        "reference_value": other,
        # Without an outcome, or with nothing but outcomes, there is no ratio.
        "has_ratio": (field("complement_own") > 0) | (field("complement_other") > 0),
        "share": pl.lit(1.0),
        "slack": pl.lit(0.0),
    }
    for side in SIDES:
        value, complement = field(f"value_{side}"), field(f"complement_{side}")
        spread, variance = value * complement, field(f"variance_{side}")
        known = pl.when((spread > 0) & (variance > 0))
        size = known.then(variance / spread).otherwise(field(f"size_{side}"))
        zero, one = pl.lit(0.0), pl.lit(1.0)
        each = Side(value, complement, size, size, size, zero, one, one, zero, size)
        columns |= {f"{part}_{side}": value for part, value in each._asdict().items()}
    return columns


# The share of a stratum; the weight of a segment in it, and whether its reference has rows there.
_SHARE = "__stratum_share"
_WEIGHT, _COMPARED = "__weight_in_stratum", "__compared_in_stratum"
# Limits of the gap without strata.
_CRUDE_LIMITS = ("__crude_low", "__crude_high")


def check_within(reference: object, method: GapMethod) -> None:
    """Refuse a reference that has no meaning within strata, and the test on logits."""
    if method != "score":
        reject("method", "be 'score' where gaps are measured `within` strata", repr(method))
    if isinstance(reference, str) and reference == "overall":
        msg = (
            "`reference` must be 'rest', 'best' or a segment where gaps are measured `within` "
            f"strata; found {shown(reference)}"
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class GapsWithinStrata:
    """The gaps of segments within strata, which are more keys of the rows."""

    groups: GroupGaps
    strata: Sequence[str]

    def table(self) -> pl.LazyFrame:
        """Compute the gaps, and what they are without strata."""
        groups = self.groups
        measured, in_strata = groups.planned(), groups.planned(self.strata)
        sums = groups.references.marked(measured.sums, groups.partition_keys)
        sums, parts = sums.with_row_index(PLACE), []
        attribute, *models = groups.partition_keys
        of_whole = groups.of_segments(groups.partition_keys)
        tests = groups.tests.of(reference for _, reference in of_whole)
        of_strata = groups.of_segments([attribute, *self.strata, *models])
        for (some, reference), (_, inside) in zip(of_whole, of_strata, strict=True):
            whole = measured._replace(sums=sums.filter(some))
            both = with_references(whole, groups.keys, reference)
            crude = compare(both, groups.keys, reference, tests).cache()
            parts.append(self._of(crude, inside, in_strata))
        rows = tested(pl.concat(parts), groups.partition_keys, tests, of_tables=False)
        return in_columns(judged(rows, groups.partition_keys, tests), [_explained])

    def _of(self, crude: pl.LazyFrame, reference: Reference, in_strata: Measured) -> pl.LazyFrame:
        """Replace what crude comparisons rest on by what strata say."""
        keys = self.groups.keys
        # Chosen without strata.
        reference = replace(reference, best_of=None)
        marks = crude.select(*keys, IS_REFERENCE).unique(maintain_order=True)
        order = [*keys, *self.strata]

        def of_segments(table: pl.LazyFrame) -> pl.LazyFrame:
            """Mark the reference in each stratum, and sort, so that sums have the same bits."""
            return join_on_keys(table, marks, keys, how="inner", maintain_order="none").sort(order)

        aucs, shares = self._aucs(of_segments(in_strata.sums), reference)
        parts = [aucs]
        if in_strata.cells is not None:
            cells = of_segments(in_strata.cells)
            parts.append(standardized_rates(cells, reference, keys))
        within = pl.concat(parts, how="diagonal")
        kept = crude.select(
            *keys,
            *(PLACE, PAIR, REPEATED, PICKED_FROM, IS_REFERENCE),
            *("reference", "metric", "n", "n_reference"),
            *("enough", "enough_for_test", "least", "skew"),
            *OWN_WEIGHTS,
            gap_crude="gap",
            **dict(zip(_CRUDE_LIMITS, ("gap_low", "gap_high"), strict=True)),
        )
        joined = join_on_keys(kept, within.drop(IS_REFERENCE), [*keys, "metric"])
        return join_on_keys(joined, shares, keys)

    def _aucs(self, sums: pl.LazyFrame, reference: Reference) -> tuple[pl.LazyFrame, pl.LazyFrame]:
        """Average the AUCs of each segment and of its reference over the strata.

        Also return the share of the weight in strata where the reference has rows.
        """
        keys, within = self.groups.keys, self.groups.rows.model_keys
        shares = partial(_auc_shares, reference=reference, keys=keys, models=within)
        steps: list[Step] = [*reference.choosing, *reference.steps, shares]
        means = {
            "share_within": pl.col(_WEIGHT).filter(_COMPARED).sum() / pl.col(_WEIGHT).sum(),
            IS_REFERENCE: pl.col(IS_REFERENCE).any(),
        }
        for each in (OF_GROUP, OF_REFERENCE):
            means |= each.mean_over(pl.col(_SHARE), pl.col)
        compared = in_columns(sums, steps).group_by(keys, maintain_order=True).agg(**means).cache()
        metric = {"metric": pl.lit(ROC_AUC.column), "has_ratio": pl.lit(value=False)}
        aucs = in_columns(compared, [reference.difference, auc_sides])
        aucs = aucs.select(*keys, IS_REFERENCE, *OF_AUCS, **metric)
        return aucs, compared.select(*keys, pl.col("share_within").fill_nan(None))


def _auc_shares(
    field: Fields, reference: Reference, keys: Sequence[str], models: Sequence[str]
) -> Formula[Columns]:
    """Add the weight of a segment in a stratum, and the share of the stratum."""
    weights = [field(weight) for weight in OWN_WEIGHTS]
    known = field(OF_GROUP.column("auc")).is_not_null()
    pairs = relative_pairs(weights, ["attribute", *models], field)
    pairs, weight = yield [pl.when(known).then(pairs).otherwise(0.0), weights[0] + weights[1]]
    of_reference, compared = yield [
        reference.cell(pairs).fill_null(0.0),
        reference.cell(weight).fill_null(0.0) > 0,
    ]
    share = share_of(stratum_weight(pairs, of_reference), keys)
    return {_SHARE: share, _WEIGHT: weight, _COMPARED: compared}


def _explained(field: Fields) -> dict[str, pl.Expr]:
    """Add the share of gaps without strata that strata explain.

    Null where the interval of a gap without strata includes 0: it may be nothing.
    """
    low, high = (field(name) for name in _CRUDE_LIMITS)
    share = 1 - field("gap") / field("gap_crude")
    return {"gap_explained": pl.when((low > 0) | (high < 0)).then(share)}
