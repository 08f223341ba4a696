"""Variance of the AUC by the design of a survey, from its sampling units or replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.inputs.survey_design import Design, Replicates
from polars_wroc.metrics.replicate_aucs import replicate_influences
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.placements import Placements, row_curve
from polars_wroc.stats.design_variance import (
    PRESENT_CLASSES,
    linear_variances,
    residual,
    unit_totals,
)

# The influence of a unit on the AUC, and the variance of the AUC of a segment.
AUC_INFLUENCE, AUC_VARIANCE = "__auc_influence", "__design_variance"


def with_variances_of(
    sums: pl.LazyFrame, influences: pl.LazyFrame, keys: Sequence[str], design: Design
) -> pl.LazyFrame:
    """Add `AUC_VARIANCE`, its degrees of freedom and `DESIGN_NOTE` by the design of a survey.

    They follow from the ``influences`` of the sampling units on the AUC of each segment.
    """
    pair = AUC_INFLUENCE, AUC_INFLUENCE
    variances = linear_variances(influences, keys, design, {AUC_VARIANCE: pair}, PRESENT_CLASSES)
    return join_on_keys(sums, variances, keys)


def auc_influences(placed: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute the influence on the AUC of each segment of the units that have rows of it."""
    if isinstance(rows.design, Replicates):
        return replicate_influences(rows, rows.design, {AUC_INFLUENCE: SCORE})
    return unit_influences(placed, rows.keys, {AUC_INFLUENCE: row_curve().placements})


def unit_influences(
    placed: pl.LazyFrame, keys: Sequence[str], aucs: Mapping[str, Placements]
) -> pl.LazyFrame:
    """Compute named influences on AUCs of the same rows, and `PRESENT_CLASSES`, of each unit.

    Null where a class has no weight.
    """
    sums: dict[str, pl.Expr] = {}
    for name, placements in aucs.items():
        for side, (weight, placement) in placements._asdict().items():
            sums[_weight(side)] = weight.sum()
            sums[_misranked(side, name)] = (weight * placement).sum()
    totals = unit_totals(placed, keys, sums)
    totals = totals.filter(pl.any_horizontal(pl.col(_weight(side)) > 0 for side in CLASSES))

    def of_segment(field: Fields) -> dict[str, pl.Expr]:
        return {_total(name): over(field(name).sum(), keys) for name in sums}

    def centres(field: Fields) -> dict[str, pl.Expr]:
        weights = [field(_total(_weight(side))) for side in CLASSES]
        known = pl.when(pl.all_horizontal(weight > 0 for weight in weights))
        return {
            _one_minus_auc(name): known.then(field(_total(_misranked("pos", name))) / weights[0])
            for name in aucs
        }

    def influences(field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for name in aucs:
            centre = field(_one_minus_auc(name))
            parts = [
                -residual(field(_misranked(side, name)), centre * field(_weight(side)))
                / field(_total(_weight(side)))
                for side in CLASSES
            ]
            columns[name] = pl.when(centre.is_not_null()).then(parts[0] + parts[1])
        for present, side in zip(PRESENT_CLASSES, CLASSES, strict=True):
            columns[present] = (field(_weight(side)) > 0).cast(pl.Int64)
        return columns

    return in_columns(totals, [of_segment, centres, influences])


def _weight(side: str) -> str:
    return f"__unit_weight_{side}"


def _misranked(side: str, name: str) -> str:
    return f"__unit_misranked_{side}_{name}"


def _one_minus_auc(name: str) -> str:
    return f"__one_minus_auc_{name}"


def _total(name: str) -> str:
    return f"{name}_of_segment"
