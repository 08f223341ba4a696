"""Points on the hulls of several ROC curves with the same rates, where they cost least.

An edge of a hull goes from ``fpr_before, tpr_before`` to ``fpr, tpr``. A group is on its edges
wherever chance decides between the thresholds at their ends.
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

# On each edge: the weight of each class of the group in that of all groups, and of all positives.
POSITIVE_SHARE, NEGATIVE_SHARE, PREVALENCE = "__positive", "__negative", "__prevalence"
# How far along its edge a group is.
SHARE = "__share"
_TARGET = "__target"


def equal_odds(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the common fpr, with the coin that lowers its tpr.

    With what all groups save at a common fpr, a line goes through each edge; what they can save
    is the lowest of the lines.
    """
    models, run, rise = rows.model_keys, _step("fpr"), _step("tpr")
    slope = rise / run
    saved, spent = costs.fn * pl.col(PREVALENCE), costs.fp * (1 - pl.col(PREVALENCE))
    height = saved * (pl.col("tpr_before") - slope * pl.col("fpr_before"))
    target = highest_of_lowest(saved * slope - spent, height)
    leaning = edges.filter(slope.is_finite())
    targets = Rows(leaning, models).aggregate(leaning, {_TARGET: target})
    joined = join_on_keys(edges, targets, models, how="inner")
    upright = pl.when(run == 0)
    own, common = pl.col("__own_tpr"), pl.col("__common_tpr")
    coin = pl.when(own - common > TOLERANCE).then((own - common) / (own - pl.col(_TARGET)))
    return (
        joined.filter(_reaches("fpr"))
        .with_columns(upright.then(1.0).otherwise(_share("fpr")).alias(SHARE))
        .with_columns(between("tpr").alias("__own_tpr"))
        .with_columns(over(own.min(), models).alias("__common_tpr"))
        # A vertical edge leads down to the others without a coin.
        .with_columns(
            upright.then(_share("tpr", "__common_tpr")).otherwise(SHARE).alias(SHARE),
            coin_probability=upright.then(0.0).otherwise(coin).fill_null(0.0),
        )
        .with_columns(
            coin_rate=pl.when(pl.col("coin_probability") > 0).then(_TARGET).otherwise(0.0)
        )
    )


def equal_tpr(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the tpr of which more would cost more than it saves.

    What more of it costs is the sum of what it costs each group on its edge, and grows at
    each corner.
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
    """Rate of a group that is `SHARE` of the way along its edge."""
    share = pl.col(SHARE)
    return (1 - share) * pl.col(f"{rate}_before") + share * pl.col(rate)


def _step(rate: str) -> pl.Expr:
    return pl.col(rate) - pl.col(f"{rate}_before")


def _reaches(rate: str) -> pl.Expr:
    """Whether an edge is the first on which a rate gets to the target."""
    before, target = pl.col(f"{rate}_before"), pl.col(_TARGET)
    first = (pl.col("fpr_before") == 0) & (pl.col("tpr_before") == 0)
    return ((before < target) & (target <= pl.col(rate))) | (first & (target == 0))


def _share(rate: str, target: str = _TARGET) -> pl.Expr:
    """How far along an edge a rate is at the target: an end of it, but for rounding."""
    share = (pl.col(target) - pl.col(f"{rate}_before")) / _step(rate)
    return (
        pl.when(share < TOLERANCE).then(0.0).when(share > 1 - TOLERANCE).then(1.0).otherwise(share)
    )


class Line(NamedTuple):
    """A line by its slope and its height at 0."""

    slope: float
    height: float


def highest_of_lowest(slope: pl.Expr, height: pl.Expr) -> pl.Expr:
    """Find the place from 0 to 1 where the lowest of all lines is the highest; the first such."""
    lines = as_struct(dict(zip(Line._fields, (slope, height), strict=True)))
    return lines.implode().map_batches(_places, return_dtype=pl.Float64, is_elementwise=True)


def _places(lists: pl.Series) -> pl.Series:
    places = [_highest(_lowest(lines)) for lines in lists]
    return pl.Series(lists.name, places, dtype=pl.Float64)


def _lowest(lines: pl.Series) -> list[tuple[Line, float]]:
    """Keep the lines that are the lowest somewhere, from left to right, and where that begins."""
    steepest_first = lines.struct.unnest().sort("slope", "height", descending=[True, False])
    lowest: list[tuple[Line, float]] = []
    for line in (Line(*row) for row in steepest_first.rows()):
        begin = -math.inf
        # Of parallel lines only the first is ever the lowest.
        if lowest and lowest[-1][0].slope == line.slope:
            continue
        while lowest and (begin := _crossing(lowest[-1][0], line)) <= lowest[-1][1]:
            lowest.pop()
        lowest.append((line, begin))
    return lowest


def _crossing(one: Line, other: Line) -> float:
    return (other.height - one.height) / (one.slope - other.slope)


def _highest(lowest: Iterable[tuple[Line, float]]) -> float:
    """Find where the lowest line rises no more."""
    place = next((begin for line, begin in lowest if line.slope <= TOLERANCE), 1.0)
    return min(max(place, 0.0), 1.0)
