"""Points with equal rates under the ROC hulls of several groups that have the least cost.

An edge of a hull goes from ``fpr_before, tpr_before`` to ``fpr, tpr``. A group reaches any point of
an edge by choosing at random between the thresholds at its ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.costs import Costs
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.steps import as_struct
from polars_wroc.stats.proportions import TOLERANCE

# On each edge, as proportions of the overall weight: the positives and the negatives of the group,
# and all positives.
POSITIVE_SHARE, NEGATIVE_SHARE, PREVALENCE = "__positive", "__negative", "__prevalence"
# Position of a group along its edge, from 0 to 1.
SHARE = "__share"
_TARGET = "__target"


def equal_odds(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the common fpr, with the coin that lowers its tpr.

    Along each edge the saved cost is a linear function of the fpr. All groups must reach the
    point, so the saving is the minimum of these lines, and the target is its maximum.
    """
    models, run, rise = rows.model_keys, _step("fpr"), _step("tpr")
    slope = rise / run
    saved, spent = costs.fn * pl.col(PREVALENCE), costs.fp * (1 - pl.col(PREVALENCE))
    height = saved * (pl.col("tpr_before") - slope * pl.col("fpr_before"))
    target = maximum_of_minimum(saved * slope - spent, height)
    lines = edges.filter(slope.is_finite())
    targets = Rows(lines, models).aggregate(lines, {_TARGET: target})
    joined = join_on_keys(edges, targets, models, how="inner")
    if_vertical = pl.when(run == 0)
    own, common = pl.col("__own_tpr"), pl.col("__common_tpr")
    coin = pl.when(own - common > TOLERANCE).then((own - common) / (own - pl.col(_TARGET)))
    return (
        joined.filter(_reaches("fpr"))
        .with_columns(if_vertical.then(1.0).otherwise(_share("fpr")).alias(SHARE))
        .with_columns(between("tpr").alias("__own_tpr"))
        .with_columns(over(own.min(), models).alias("__common_tpr"))
        # On a vertical edge the common tpr is reached without a coin.
        .with_columns(
            if_vertical.then(_share("tpr", "__common_tpr")).otherwise(SHARE).alias(SHARE),
            coin_probability=if_vertical.then(0.0).otherwise(coin).fill_null(0.0),
        )
        .with_columns(
            coin_rate=pl.when(pl.col("coin_probability") > 0).then(_TARGET).otherwise(0.0)
        )
    )


def equal_tpr(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the tpr above which costs exceed savings.

    The marginal cost of the tpr is the sum of those of the groups on their edges, and grows at each
    corner.
    """
    models = rows.model_keys
    spent = costs.fp * pl.col(NEGATIVE_SHARE) * _step("fpr") / _step("tpr")
    saved = costs.fn * pl.col(PREVALENCE)
    growth = pl.col("__spent") - pl.col("__spent").shift(1, fill_value=0.0)
    too_much = pl.col("__all_spent") >= saved * (1 - TOLERANCE)
    target = over(pl.col("tpr_before").filter(too_much).min(), models).fill_null(1.0)
    return (
        edges.filter(_step("tpr") > 0)
        .with_columns(spent.alias("__spent"))
        .with_columns(growth.over(rows.keys).alias("__growth"))
        .sort("tpr_before", maintain_order=True)
        .with_columns(over(pl.col("__growth").cum_sum(), models).alias("__all_spent"))
        .with_columns(target.alias(_TARGET))
        .filter(_reaches("tpr"))
        .with_columns(
            _share("tpr").alias(SHARE), coin_probability=pl.lit(0.0), coin_rate=pl.lit(0.0)
        )
    )


def between(rate: str) -> pl.Expr:
    """Rate of a group at its position `SHARE` along its edge."""
    share = pl.col(SHARE)
    return (1 - share) * pl.col(f"{rate}_before") + share * pl.col(rate)


def _step(rate: str) -> pl.Expr:
    return pl.col(rate) - pl.col(f"{rate}_before")


def _reaches(rate: str) -> pl.Expr:
    """Whether an edge is the first on which a rate reaches the target."""
    before, target = pl.col(f"{rate}_before"), pl.col(_TARGET)
    first = (pl.col("fpr_before") == 0) & (pl.col("tpr_before") == 0)
    return ((before < target) & (target <= pl.col(rate))) | (first & (target == 0))


def _share(rate: str, target: str = _TARGET) -> pl.Expr:
    """Position along an edge where a rate reaches the target, rounded to an end if close to it."""
    share = (pl.col(target) - pl.col(f"{rate}_before")) / _step(rate)
    return (
        pl.when(share < TOLERANCE).then(0.0).when(share > 1 - TOLERANCE).then(1.0).otherwise(share)
    )


class Line(NamedTuple):
    """A line with its slope and its height at 0."""

    slope: float
    height: float


def maximum_of_minimum(slope: pl.Expr, height: pl.Expr) -> pl.Expr:
    """Return the first place from 0 to 1 where the minimum of all lines has its maximum."""
    lines = as_struct(dict(zip(Line._fields, (slope, height), strict=True)))
    return lines.implode().map_batches(_places, return_dtype=pl.Float64, is_elementwise=True)


def _places(lists: pl.Series) -> pl.Series:
    places = [_maximum(_lower_envelope(lines)) for lines in lists]
    return pl.Series(lists.name, places, dtype=pl.Float64)


def _lower_envelope(lines: pl.Series) -> list[tuple[Line, float]]:
    """Return the lines of the lower envelope from left to right, and where each begins."""
    steepest_first = lines.struct.unnest().sort("slope", "height", descending=[True, False])
    envelope: list[tuple[Line, float]] = []
    for line in (Line(*row) for row in steepest_first.rows()):
        begin = -math.inf
        # Of parallel lines only the first, which is the lowest, can be part of it.
        if envelope and envelope[-1][0].slope == line.slope:
            continue
        while envelope and (begin := _crossing(envelope[-1][0], line)) <= envelope[-1][1]:
            envelope.pop()
        envelope.append((line, begin))
    return envelope


def _crossing(one: Line, other: Line) -> float:
    return (other.height - one.height) / (one.slope - other.slope)


def _maximum(envelope: Iterable[tuple[Line, float]]) -> float:
    """Return where the lower envelope stops rising, within 0 to 1."""
    place = next((begin for line, begin in envelope if line.slope <= TOLERANCE), 1.0)
    return min(max(place, 0.0), 1.0)
