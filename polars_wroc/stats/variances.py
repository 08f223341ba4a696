"""Variances of estimates: by the design of a survey, by replicate weights, by resampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, STRATUM, WEIGHT
from polars_wroc.inputs.designs import FRACTION, UNITS, Replicates, SampleDesign, SurveyDesign
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.plans.config import Progress
from polars_wroc.plans.formulas import Fields, when
from polars_wroc.plans.queries import (
    aggregate,
    collect,
    join_on_keys,
    over,
    require_at_collect,
    sum_unless_null,
)
from polars_wroc.stats.distributions import t_quantile, z_quantile
from polars_wroc.stats.proportions import ROUNDING

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
    table: pl.LazyFrame, keys: Sequence[str], values: Sequence[str], design: Replicates
) -> pl.LazyFrame:
    """Complete values of `replicated` rows: null for a replicate in which a group has none."""
    numbers = range(len(signed_weights(design)))
    wide = {
        f"{value}_{n}": pl.col(value).filter(pl.col(CLUSTER) == n).first()
        for n in numbers
        for value in values
    }
    named = [{value: pl.col(f"{value}_{n}") for value in values} for n in numbers]
    return in_rows(aggregate(table, keys, wide), keys, named)


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


# Degrees of freedom of a variance, and the units less the strata that have rows of a segment.
DESIGN_DF, SEGMENT_DF = "__design_df", "__segment_df"
# Whether a unit has rows of a segment, and of each class in it; of several segments, in how many.
PRESENT = "__present"
PRESENT_CLASSES = tuple(f"{PRESENT}_{side}" for side in CLASSES)
# Why there is no variance.
DESIGN_NOTE = "__design_note"


def residual(value: pl.Expr, expected: pl.Expr) -> pl.Expr:
    """Difference of a unit's sum from what is expected of it; 0 within rounding.

    Of a unit with all rows of a segment nothing is left, and rounding must not be a variance.
    """
    difference = value - expected
    return pl.when(difference.abs() > ROUNDING * expected).then(difference).otherwise(0.0)


def ratio_influence(
    part: pl.Expr, whole: pl.Expr, keys: Sequence[str], design: SampleDesign
) -> pl.Expr:
    """Compute the influence of each unit on the ratio of two sums; null where it is undefined.

    Null too where a replicate has no ratio, and where a single unit has all of the whole: its
    influence is 0, which is no sign of precision.
    """
    if isinstance(design, Replicates):
        ratio = part / whole
        ratio = pl.when(ratio.is_finite()).then(ratio)
        return ratio - of_full_weights(ratio, keys)
    of_part, of_whole = (over(value.sum(), keys) for value in (part, whole))
    known = (of_whole > 0) & (over((whole > 0).sum(), keys) > 1)
    return pl.when(known).then(residual(part, of_part / of_whole * whole) / of_whole)


def ratio_covariance(*parts: str) -> str:
    """Column of the covariance of two ratios."""
    return f"__ratio_covariance_{'_and_'.join(sorted(parts))}"


def ratio_influences(
    ratios: Mapping[str, pl.Expr], keys: Sequence[str], design: SampleDesign
) -> tuple[dict[str, pl.Expr], dict[str, tuple[str, str]]]:
    """Columns of influences of units on ratios of columns to wholes, and all their products."""
    names = {part: f"__ratio_influence_{part}" for part in ratios}
    columns = {names[a]: ratio_influence(pl.col(a), b, keys, design) for a, b in ratios.items()}
    pairs = combinations_with_replacement(ratios, 2)
    return columns, {ratio_covariance(*pair): (names[pair[0]], names[pair[1]]) for pair in pairs}


def unit_sums(
    rows: pl.LazyFrame, keys: Sequence[str], sums: LinearSums, design: SampleDesign
) -> pl.LazyFrame:
    """Aggregate the rows of each segment and sampling unit, or with each replicate weight."""
    if isinstance(design, Replicates):
        return replicate_sums(rows, keys, sums, design)
    complete = rows.filter(pl.col(WEIGHT).is_not_null())
    return unit_totals(complete, keys, sums(pl.col(WEIGHT)))


def unit_totals(
    rows: pl.LazyFrame, keys: Sequence[str], sums: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate the rows of each segment and sampling unit."""
    # Sorted, so that sums over units are the same to the last digit each time.
    by = [*keys, STRATUM, CLUSTER]
    return aggregate(rows, by, dict(sums)).sort(by)


def linear_variances(
    totals: pl.LazyFrame,
    keys: Sequence[str],
    design: SampleDesign,
    products: Mapping[str, tuple[str, str]],
    present: Sequence[str] = (),
) -> pl.LazyFrame:
    """Compute variances and covariances of sums of influences over the units of each segment.

    ``totals`` has a row for each segment and unit with rows of it. Each of the ``products`` names
    two columns of them; their covariance is null where a value or, by a lonely unit, a term is, and
    where only one unit has rows. ``present`` are columns of numbers that are above 0 for a unit
    with rows of a kind; each kind must be in several units. Without them each unit counts.
    The result has the keys, the products, `DESIGN_DF`, `SEGMENT_DF` and `DESIGN_NOTE`.
    """
    if isinstance(design, Replicates):
        table, note = replicate_products(totals, keys, design, products)
        df = pl.lit(design.df, pl.Int64).alias(DESIGN_DF)
        of_segment = pl.lit(None, pl.Int64).alias(SEGMENT_DF)
        return table.select(*keys, *products, df, of_segment, note.alias(DESIGN_NOTE))
    columns = {name for pair in products.values() for name in pair}
    sums = {_sum(name): pl.col(name).sum() for name in sorted(columns)}
    sums |= {name: sum_unless_null(pl.col(a) * pl.col(b)) for name, (a, b) in products.items()}
    sums[PRESENT] = pl.len().cast(pl.Int64)
    sums |= {name: (pl.col(name) > 0).sum().cast(pl.Int64) for name in present}
    of_strata = aggregate(totals, [*keys, STRATUM], sums)
    of_strata = join_on_keys(of_strata, design.strata, [STRATUM]).sort([*keys, STRATUM])
    lonely = ((pl.col(UNITS) == 1) & (pl.col(FRACTION) < 1)).any()
    kinds = present or (PRESENT,)
    # The influences of a single unit add up to 0, whatever it is.
    several = pl.all_horizontal(pl.col(kind).sum() > 1 for kind in kinds)
    known = several & (~lonely if design.lonely == "null" else pl.lit(value=True))
    aggregates: dict[str, pl.Expr] = {
        name: pl.when(known).then(sum_unless_null(_term(name, pair, design)))
        for name, pair in products.items()
    }
    # Of each stratum the units with rows, or the units less one if that are fewer.
    free = (pl.min_horizontal(kind, pl.col(UNITS) - 1).sum() for kind in kinds)
    fewest = pl.min_horizontal(free)
    aggregates[DESIGN_DF] = pl.when(several).then(fewest)
    aggregates[SEGMENT_DF] = pl.col(PRESENT).sum() - pl.len()
    # The first reason that applies; where the variance is known none does.
    rows = "all rows of a class" if present else "all rows"
    single = pl.when(~several).then(pl.lit(f"{rows} are in one sampling unit"))
    aggregates[DESIGN_NOTE] = single.when(lonely).then(pl.lit("a stratum has one sampling unit"))
    return aggregate(of_strata, keys, aggregates)


def smaller_df(
    units: pl.LazyFrame,
    keys: Sequence[str],
    design: SampleDesign,
    present: Sequence[str],
    name: str,
) -> pl.LazyFrame:
    """Compute degrees of freedom of the difference of two sides: the fewest of what it rests on.

    ``present`` are columns that are above 0 for a unit with rows of a class of a side. Null where
    one of them has rows in a single unit.
    """
    if isinstance(design, Replicates):
        return aggregate(units, keys, {name: pl.lit(design.df, pl.Int64).first()})
    table = linear_variances(units, keys, design, {}, present)
    return table.select(*keys, pl.col(DESIGN_DF).alias(name))


def design_df(field: Fields, name: str = DESIGN_DF) -> pl.Expr:
    """Degrees of freedom of a variance, at least 1; without a variance there are none."""
    return field(name).cast(pl.Float64).clip(lower_bound=1.0)


def limit_quantile(field: Fields, level: float, *, designed: bool) -> pl.Expr | float:
    """Quantile of limits: the normal one, or Student's t if the rows have a design."""
    return t_quantile(level, design_df(field)) if designed else z_quantile(level)


def design_effect(by_design: pl.Expr, of_rows: pl.Expr) -> pl.Expr:
    """How many times larger a variance is than if rows were independent.

    A variance of 0 says nothing: the effect is 1. Null without a variance by the design.
    """
    known = when((by_design > 0) & (of_rows > 0)).then(by_design / of_rows)
    return known.when(by_design.is_not_null()).then(1.0)


def _term(name: str, pair: tuple[str, str], design: SurveyDesign) -> pl.Expr:
    """What a stratum adds to a variance or covariance."""
    units, left = pl.col(UNITS), 1 - pl.col(FRACTION)
    product, one, other = pl.col(name), pl.col(_sum(pair[0])), pl.col(_sum(pair[1]))
    spread = product - one * other / units
    if pair[0] == pair[1]:
        spread = pl.when(spread > ROUNDING * product).then(spread).otherwise(0.0)
    # The totals of all units add up to 0, so that the mean of all is 0.
    alone = left * product if design.lonely == "adjust" else pl.lit(0.0)
    several = pl.when(units > 1).then(left * units / (units - 1) * spread).otherwise(alone)
    return pl.when(product.is_not_null()).then(several)


def _sum(name: str) -> str:
    return f"__sum_of_{name}"


def in_batches(tables: Sequence[pl.LazyFrame], at_once: int, things: str) -> pl.LazyFrame:
    """Collect tables that share their source, ``at_once`` at a time, and concatenate them.

    On a terminal a line says how many tables of ``things`` are done.
    """
    # The engine computes all tables of a plan at the same time, and holds the rows of each.
    batches = [tables[i : i + at_once] for i in range(0, len(tables), at_once)]
    collected = []
    with Progress(len(tables), things) as progress:
        for batch in batches:
            collected.append(collect(pl.concat(batch)))
            progress.advance(len(batch))
    return pl.concat(collected).lazy()
