"""Variances of estimates: by the design of a survey, by replicate weights, by resampling."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import CLUSTER
from polars_wroc.inputs.designs import Replicates, SampleDesign
from polars_wroc.plans.formulas import Fields, when
from polars_wroc.plans.queries import (
    over,
    require_at_collect,
)
from polars_wroc.stats.proportions import ROUNDING

_FULL = 0
_REPLICATE, _FULL_WEIGHT = "__replicate", "__full_weight"


def of_full_weights(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Take the value of the full weights in each group."""
    return over(value.filter(pl.col(CLUSTER) == _FULL).first(), keys)


def _known(name: str, shown: str) -> pl.Expr:
    rule = f"`replicate_weights` must not be null in complete rows; {shown} holds null"
    known = require_at_collect(pl.col(name).is_not_null(), rule)
    return pl.when(known).then(pl.col(name).cast(pl.Float64))


# Degrees of freedom of a variance, and the units less the strata that have rows of a segment.
DESIGN_DF, SEGMENT_DF = "__design_df", "__segment_df"


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


def design_df(field: Fields, name: str = DESIGN_DF) -> pl.Expr:
    """Degrees of freedom of a variance, at least 1; without a variance there are none."""
    return field(name).cast(pl.Float64).clip(lower_bound=1.0)


def design_effect(by_design: pl.Expr, of_rows: pl.Expr) -> pl.Expr:
    """How many times larger a variance is than if rows were independent.

    A variance of 0 says nothing: the effect is 1. Null without a variance by the design.
    """
    known = when((by_design > 0) & (of_rows > 0)).then(by_design / of_rows)
    return known.when(by_design.is_not_null()).then(1.0)


def _sum(name: str) -> str:
    return f"__sum_of_{name}"
