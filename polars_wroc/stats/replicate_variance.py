"""Variances of estimates from replicate weights: each replicate is an estimate of its own.

A replicate takes the part of a sampling unit, and its influence is the difference of its estimate
from that of the full weights. These have number 0, and no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, STRATUM, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.inputs.survey_design import Replicates
from polars_wroc.plans.by_keys import aggregate, over, sum_unless_null
from polars_wroc.plans.checks import require_at_collect

# Aggregates of rows that are linear in their signed weight.
LinearSums = Callable[[pl.Expr], Mapping[str, pl.Expr]]

_FULL = 0
_REPLICATE, _FULL_WEIGHT = "__replicate", "__full_weight"


def signed_weights(design: Replicates) -> list[str]:
    """Columns of weights by the number of the replicate, in rows `with_signed_weights`."""
    return [WEIGHT, *design.columns]


def with_signed_weights(frame: pl.LazyFrame, design: Replicates) -> pl.LazyFrame:
    """Leave out missing rows, and give replicate weights the sign of the class as `WEIGHT` has."""
    named = zip(design.columns, design.shown, strict=True)
    signed = {name: _known(name, shown) * pl.col(WEIGHT).sign() for name, shown in named}
    return frame.filter(pl.col(WEIGHT).is_not_null()).with_columns(**signed)


def replicated(rows: Rows, design: Replicates) -> Rows:
    """Repeat the rows with each weight, grouped by its number in `CLUSTER` too."""
    signed = with_signed_weights(rows.frame, design).rename({WEIGHT: _FULL_WEIGHT})
    weights = [_FULL_WEIGHT, *design.columns]
    repeated = signed.unpivot(
        on=weights, index=[*rows.keys, SCORE], variable_name=CLUSTER, value_name=WEIGHT
    )
    number = pl.col(CLUSTER).replace_strict(weights, range(len(weights)), return_dtype=pl.Int64)
    weighted = repeated.filter(pl.col(WEIGHT) != 0).with_columns(number)
    return Rows(weighted, [*rows.keys, CLUSTER])


def of_replicated(
    table: pl.LazyFrame, keys: Sequence[str], value: str, design: Replicates
) -> pl.LazyFrame:
    """Complete values of `replicated` rows: null for a replicate in which a group has none."""
    numbers = range(len(signed_weights(design)))
    wide = {f"__{n}": pl.col(value).filter(pl.col(CLUSTER) == n).first() for n in numbers}
    in_columns = aggregate(table, keys, wide)
    return in_rows(in_columns, keys, [{value: pl.col(name)} for name in wide])


def replicate_sums(
    frame: pl.LazyFrame, keys: Sequence[str], sums: LinearSums, design: Replicates
) -> pl.LazyFrame:
    """Aggregate the rows of each group once with each weight: a row for each."""
    columns = [
        {name: (f"{name}_{number}", value) for name, value in sums(pl.col(weight)).items()}
        for number, weight in enumerate(signed_weights(design))
    ]
    aggregates = {column: value for one in columns for column, value in one.values()}
    wide = aggregate(with_signed_weights(frame, design), keys, aggregates)
    values = [{name: pl.col(column) for name, (column, _) in one.items()} for one in columns]
    return in_rows(wide, keys, values)


def in_rows(
    table: pl.LazyFrame, keys: Sequence[str], values: Sequence[Mapping[str, pl.Expr]]
) -> pl.LazyFrame:
    """Make a row, as of a sampling unit, of the values of each replicate."""
    stratum = pl.lit(0, pl.Int8).alias(STRATUM)
    rows = [
        pl.struct(
            stratum,
            pl.lit(number, pl.Int64).alias(CLUSTER),
            *(value.alias(name) for name, value in of_replicate.items()),
        )
        for number, of_replicate in enumerate(values)
    ]
    listed = table.select(*keys, pl.concat_list(rows).alias(_REPLICATE))
    exploded = listed.explode(_REPLICATE, empty_as_null=False).unnest(_REPLICATE)
    # Sorted, so that sums over replicates are the same to the last digit each time.
    return exploded.sort([*keys, CLUSTER])


def of_full_weights(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Take the value of the full weights in each group."""
    return over(value.filter(pl.col(CLUSTER) == _FULL).first(), keys)


def replicate_products(
    influences: pl.LazyFrame,
    keys: Sequence[str],
    design: Replicates,
    products: Mapping[str, tuple[str, str]],
) -> tuple[pl.LazyFrame, pl.Expr]:
    """Add up products of influences; if one is unknown the sum is null, and a note says so."""
    factors = [0.0, *design.factors]
    factor = pl.col(CLUSTER).replace_strict(range(len(factors)), factors, return_dtype=pl.Float64)
    columns = sorted({name for pair in products.values() for name in pair})
    unknown = pl.any_horizontal(pl.col(columns).is_null()) & (pl.col(CLUSTER) != _FULL)
    sums: dict[str, pl.Expr] = {}
    for name, (one, other) in products.items():
        sums[name] = sum_unless_null(factor * pl.col(one) * pl.col(other))
    sums[_REPLICATE] = unknown.sum().cast(pl.Int64)
    table = aggregate(influences, keys, sums)
    shown = pl.format("no estimate in {} of {} replicates", _REPLICATE, pl.lit(len(design.factors)))
    return table, pl.when(pl.col(_REPLICATE) > 0).then(shown)


def _known(name: str, shown: str) -> pl.Expr:
    rule = f"`replicate_weights` must not be null in complete rows; {shown} holds null"
    known = require_at_collect(pl.col(name).is_not_null(), rule)
    return pl.when(known).then(pl.col(name).cast(pl.Float64))
