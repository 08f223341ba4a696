"""Scores of segments without a label: their distributions, and how far their means are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.tables import DISTRIBUTION_SCHEMA, AuditPlan, AuditSettings
from polars_wroc.curves.score_distribution import score_distribution
from polars_wroc.groups.categories import SMALL_SHARE
from polars_wroc.groups.comparisons import SMD, THE_REFERENCE, UNKNOWN_REASON, small_share
from polars_wroc.groups.standardized_mean_difference import standardized_mean_difference
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.queries import collect_all


class Scores(NamedTuple):
    """Rows of comparison of the mean scores of segments, and the distribution in each segment."""

    differences: pl.DataFrame
    distributions: pl.DataFrame


def scores_of(
    tables: Any,
    score: IntoColumns,
    attributes: Mapping[str, pl.Expr],
    plan: AuditPlan,
    required: Sequence[pl.Expr],
    options: Mapping[str, Any],
) -> Scores:
    """Compare the scores of segments, of rows with a value of all ``required`` columns.

    The attributes have the keys that the plan's groupings name; the ``options`` are further ones of
    `standardized_mean_difference`.
    """
    parts = tables if isinstance(tables, list) else [tables]
    frame = pl.concat([part.lazy() for part in parts], how="diagonal_relaxed")
    # A design counts the units of the other rows too.
    counts = pl.all_horizontal(pl.lit(value=True), *(each.is_not_null() for each in required))
    named = named_columns("score", score, frame)
    scores = [pl.when(counts).then(column).alias(name) for name, column in named.items()]
    differences = _differences(frame, attributes, scores, plan, options)
    distributions = _distributions(frame, attributes, scores, plan, options["weight"])
    return Scores(*collect_all([differences, distributions]))


def _differences(
    frame: pl.LazyFrame,
    attributes: Mapping[str, pl.Expr],
    scores: Sequence[pl.Expr],
    plan: AuditPlan,
    options: Mapping[str, Any],
) -> pl.LazyFrame:
    table = standardized_mean_difference(
        frame,
        scores,
        attributes=list(attributes.values()),
        reference=dict(plan.references.named) or "rest",
        unknown=plan.unknown,
        min_share=plan.min_share,
        level=plan.tests.level,
        **options,
    )
    excluded = pl.col("excluded")
    reason = (
        pl.when(excluded == SMALL_SHARE)
        .then(pl.lit(small_share(plan.min_share)))
        .when(excluded == "unknown")
        .then(pl.lit(UNKNOWN_REASON))
        .when(pl.col("segment") == pl.col("reference"))
        .then(pl.lit(THE_REFERENCE))
        .otherwise(excluded)
    )
    return table.filter(pl.col("n") > 0).select(
        pl.col("^(attribute|segment|model|n|reference|p_value)$"),
        metric=pl.lit(SMD.name),
        reason=reason,
        value="smd",
        value_low="smd_low",
        value_high="smd_high",
    )


def _distributions(
    frame: pl.LazyFrame,
    attributes: Mapping[str, pl.Expr],
    scores: Sequence[pl.Expr],
    plan: AuditPlan,
    weight: Any,
) -> pl.LazyFrame:
    """Count the scores of each segment in the same bins; infinite ones are in none."""
    numbers = [(score, score.cast(pl.Float64, strict=False)) for score in scores]
    finite = [pl.when(number.is_finite()).then(score) for score, number in numbers]
    tables = []
    for grouping in plan.groupings:
        by = [attributes[key].alias(key) for key in grouping.keys] or None
        tables.append(grouping.named(score_distribution(frame, finite, by=by, weight=weight)))
    return pl.concat(tables)


def distributions_of(scores: Scores | None, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each distribution; small numbers are not published."""
    if scores is None or settings.min_cell is not None:
        return DISTRIBUTION_SCHEMA.to_frame()
    columns = (pl.col(name).cast(dtype) for name, dtype in DISTRIBUTION_SCHEMA.items())
    table: pl.DataFrame = scores.distributions.select(columns)
    return table
