"""Variances of estimates from a sample survey, by its sampling units or replicate weights.

By strata and sampling units an estimate is linearised: each row has an influence, which is 0
outside of the segment that the estimate is of. The variance of the sum of the influences is that of
the totals of the sampling units within their strata. Units without rows of the segment have a total
of 0, and count. By replicate weights each replicate takes the part of a unit: see
`replicate_variance`.

How well a variance is known depends on the units that have rows: in each stratum its degrees of
freedom are their number, at most all units of the stratum less one. For an estimate from all rows
these are the degrees of freedom of the design; a region of 6 strata has those of its strata. An
estimate from rows of two classes has those of the class in fewer units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, STRATUM, WEIGHT
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.inputs.survey_design import FRACTION, UNITS, Design, Replicates, SurveyDesign
from polars_wroc.plans.by_keys import aggregate, join_on_keys, over, sum_unless_null
from polars_wroc.plans.steps import Fields
from polars_wroc.stats.proportions import ROUNDING
from polars_wroc.stats.replicate_variance import (
    LinearSums,
    of_full_weights,
    replicate_products,
    replicate_sums,
)

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


def ratio_influence(part: pl.Expr, whole: pl.Expr, keys: Sequence[str], design: Design) -> pl.Expr:
    """Compute the influence of each unit on the ratio of two sums; null where it is undefined.

    Null too where a replicate has no ratio.
    """
    if isinstance(design, Replicates):
        ratio = part / whole
        ratio = pl.when(ratio.is_finite()).then(ratio)
        return ratio - of_full_weights(ratio, keys)
    of_part, of_whole = (over(value.sum(), keys) for value in (part, whole))
    return pl.when(of_whole > 0).then(residual(part, of_part / of_whole * whole) / of_whole)


def unit_sums(
    rows: pl.LazyFrame, keys: Sequence[str], sums: LinearSums, design: Design
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
    design: Design,
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
    several = pl.all_horizontal(several_units(kind) for kind in kinds)
    known = several & (~lonely if design.lonely == "null" else pl.lit(value=True))
    aggregates: dict[str, pl.Expr] = {
        name: pl.when(known).then(sum_unless_null(_term(name, pair, design)))
        for name, pair in products.items()
    }
    fewest = pl.min_horizontal(degrees_of_freedom(kind) for kind in kinds)
    aggregates[DESIGN_DF] = pl.when(several).then(fewest)
    aggregates[SEGMENT_DF] = pl.col(PRESENT).sum() - pl.len()
    # The first reason that applies; where the variance is known none does.
    rows = "all rows of a class" if present else "all rows"
    single = pl.when(~several).then(pl.lit(f"{rows} are in one sampling unit"))
    aggregates[DESIGN_NOTE] = single.when(lonely).then(pl.lit("a stratum has one sampling unit"))
    return aggregate(of_strata, keys, aggregates)


def smaller_df(
    units: pl.LazyFrame, keys: Sequence[str], design: Design, present: Sequence[str], name: str
) -> pl.LazyFrame:
    """Compute degrees of freedom of the difference of two sides: the fewest of what it rests on.

    ``present`` are columns that are above 0 for a unit with rows of a class of a side. Null where
    one of them has rows in a single unit.
    """
    if isinstance(design, Replicates):
        return aggregate(units, keys, {name: pl.lit(design.df, pl.Int64).first()})
    counts = {kind: (pl.col(kind) > 0).sum().cast(pl.Int64) for kind in present}
    of_strata = aggregate(units, [*keys, STRATUM], counts)
    of_strata = join_on_keys(of_strata, design.strata, [STRATUM])
    free = {kind: degrees_of_freedom(kind) for kind in present}
    known = {f"{kind}_known": several_units(kind) for kind in present}
    smaller = pl.when(pl.all_horizontal(*known)).then(pl.min_horizontal(*present))
    counted = aggregate(of_strata, keys, free | known)
    return counted.select(*keys, smaller.alias(name))


def several_units(present: str) -> pl.Expr:
    """Whether more than one unit has rows, as an aggregate of strata with their number."""
    return pl.col(present).sum() > 1


def degrees_of_freedom(present: str) -> pl.Expr:
    """Aggregate strata to degrees of freedom; the column has the number of units with rows."""
    return pl.min_horizontal(present, pl.col(UNITS) - 1).sum()


def design_df(field: Fields, name: str = DESIGN_DF) -> pl.Expr:
    """Degrees of freedom of a variance, at least 1; without a variance there are none."""
    return field(name).cast(pl.Float64).clip(lower_bound=1.0)


def design_effect(by_design: pl.Expr, of_rows: pl.Expr) -> pl.Expr:
    """How many times larger a variance is than if rows were independent.

    A variance of 0 says nothing: the effect is 1. Null without a variance by the design.
    """
    known = pl.when((by_design > 0) & (of_rows > 0)).then(by_design / of_rows)
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
