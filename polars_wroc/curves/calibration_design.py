"""Variances of observed rates and of what scores promise, by the design of a survey."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import Design
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.stats.design_variance import (
    PRESENT,
    linear_variances,
    ratio_influence,
    smaller_df,
    unit_sums,
)

OBSERVED_VARIANCE = "__design_variance_observed"
DIFFERENCE_VARIANCE = "__design_variance_difference"
# Of the observed rate divided by the mean score.
RATIO_VARIANCE = "__design_variance_ratio"
# Of the difference of a group less that of its reference, and its degrees of freedom.
GAP_VARIANCE, GAP_DF = "__design_variance_of_gap", "__design_df_of_gap"

# Of a sampling unit: the weight of its positives and of all its rows, and the sum of its scores.
UNIT_SUMS = _POSITIVES, _WEIGHT, _SCORES = ("__unit_positives", "__unit_weight", "__unit_scores")
_OBSERVED, _DIFFERENCE, _RATIO = (
    f"__influence_{name}" for name in ("observed", "difference", "ratio")
)


def unit_scores(rows: Rows) -> pl.LazyFrame:
    """Sum the scores and weights of the rows of each group and sampling unit."""
    assert rows.design is not None

    def sums(weight: pl.Expr) -> dict[str, pl.Expr]:
        positive, negative = class_weights(weight)
        either = positive + negative
        values = positive, either, pl.col(SCORE).cast(pl.Float64) * either
        return {name: of_row.sum() for name, of_row in zip(UNIT_SUMS, values, strict=True)}

    return unit_sums(rows.inside(rows.frame), rows.keys, sums, rows.design)


def calibration_variances(units: pl.LazyFrame, keys: Sequence[str], design: Design) -> pl.LazyFrame:
    """Compute `OBSERVED_VARIANCE` and the others, and degrees of freedom, of each group."""
    positives, weight, scores = (pl.col(name) for name in UNIT_SUMS)
    observed, mean = (ratio_influence(part, weight, keys, design) for part in (positives, scores))
    influences = units.with_columns(
        observed.alias(_OBSERVED),
        (mean - observed).alias(_DIFFERENCE),
        ratio_influence(positives, scores, keys, design).alias(_RATIO),
    )
    products = {
        OBSERVED_VARIANCE: (_OBSERVED, _OBSERVED),
        DIFFERENCE_VARIANCE: (_DIFFERENCE, _DIFFERENCE),
        RATIO_VARIANCE: (_RATIO, _RATIO),
    }
    return linear_variances(influences, keys, design, products)


def difference_gap_variances(
    units: pl.LazyFrame, keys: Sequence[str], design: Design, reference: Callable[[str], str]
) -> pl.LazyFrame:
    """Compute `GAP_VARIANCE` and `GAP_DF` of each group.

    ``units`` has `UNIT_SUMS` and `PRESENT` of the group and, under names of the ``reference``,
    those of its reference.
    """

    def difference(name: Callable[[str], str]) -> pl.Expr:
        positives, weight, scores = (pl.col(name(part)) for part in UNIT_SUMS)
        observed, mean = (
            ratio_influence(part, weight, keys, design) for part in (positives, scores)
        )
        return mean - observed

    influences = units.with_columns((difference(str) - difference(reference)).alias(_DIFFERENCE))
    variances = linear_variances(
        influences, keys, design, {GAP_VARIANCE: (_DIFFERENCE, _DIFFERENCE)}
    )
    df = smaller_df(units, keys, design, [PRESENT, reference(PRESENT)], GAP_DF)
    return join_on_keys(variances.select(*keys, GAP_VARIANCE), df, keys)
