"""Variances of observed rates and of mean scores less these, by the design of a survey."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import SurveyDesign
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.stats.design_variance import linear_variances, residual, unit_totals

OBSERVED_VARIANCE = "__design_variance_observed"
DIFFERENCE_VARIANCE = "__design_variance_difference"

# Of a sampling unit: the weight of its positives and of all its rows, and the sum of its scores.
UNIT_SUMS = _POSITIVES, _WEIGHT, _SCORES = ("__unit_positives", "__unit_weight", "__unit_scores")
_OBSERVED, _DIFFERENCE = "__influence_observed", "__influence_difference"


def unit_scores(rows: Rows) -> pl.LazyFrame:
    """Sum the scores and weights of the rows of each group and sampling unit."""
    positive, negative = class_weights(pl.col(WEIGHT))
    weight = positive + negative
    sums = (positive.sum(), weight.sum(), (pl.col(SCORE).cast(pl.Float64) * weight).sum())
    totals = unit_totals(
        rows.inside(rows.frame), rows.keys, dict(zip(UNIT_SUMS, sums, strict=True))
    )
    return totals.filter(pl.col(_WEIGHT) > 0)


def calibration_variances(
    units: pl.LazyFrame, keys: Sequence[str], design: SurveyDesign
) -> pl.LazyFrame:
    """Compute `OBSERVED_VARIANCE`, `DIFFERENCE_VARIANCE` and degrees of freedom of each group."""

    def influences(field: Fields) -> dict[str, pl.Expr]:
        positives, weight, scores = (field(name) for name in UNIT_SUMS)
        total = over(weight.sum(), keys)
        rate, mean = (over(value.sum(), keys) / total for value in (positives, scores))
        above = residual(scores, mean * weight) - residual(positives, rate * weight)
        return {_OBSERVED: residual(positives, rate * weight) / total, _DIFFERENCE: above / total}

    products = {
        OBSERVED_VARIANCE: (_OBSERVED, _OBSERVED),
        DIFFERENCE_VARIANCE: (_DIFFERENCE, _DIFFERENCE),
    }
    return linear_variances(in_columns(units, [influences]), keys, design, products)
