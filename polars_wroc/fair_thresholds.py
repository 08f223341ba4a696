"""Thresholds for each group that give all groups the same error rates, and what that costs."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import options
from polars_wroc.confusion import curve_frame, if_both_classes, is_origin, totals
from polars_wroc.costs import Costs, read_costs
from polars_wroc.envelope import highest_of_lowest
from polars_wroc.hull import on_hull
from polars_wroc.inputs import IntoColumn
from polars_wroc.rates import TOLERANCE
from polars_wroc.reading import read_rows
from polars_wroc.references import over
from polars_wroc.rows import FrameT, IntoColumns, Rows, deliver
from polars_wroc.rules import choose_rule
from polars_wroc.threshold_search import choose

Constraint: TypeAlias = Literal["equalized_odds", "equal_opportunity"]

_COLUMNS = (
    "upper_threshold",
    "lower_threshold",
    "lower_probability",
    "coin_probability",
    "coin_rate",
    "tpr",
    "fpr",
    "expected_cost",
    "overall_cost",
    "overall_cost_common",
    "overall_cost_unconstrained",
)
# Weights of the classes of a group as shares of all groups, and of the positives of them all.
_POSITIVE, _NEGATIVE, _PREVALENCE = "__positive", "__negative", "__prevalence"
_EVERYBODY, _LEAST_COST, _TARGET, _SHARE = "__everybody", "__least_cost", "__target", "__share"


def equalized_thresholds(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    constraint: Constraint = "equalized_odds",
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> FrameT:
    """Thresholds for each group that give all of them the same rates at the least cost.

    A group's rates can be any point under the hull of its ROC curve, if chance decides between
    two thresholds, or between them and a coin [1]_. Of the points that all groups can reach,
    this finds the one that costs least, without a grid.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    constraint
        ``"equalized_odds"``: all groups have the same tpr and the same fpr.
        ``"equal_opportunity"``: all groups have the same tpr.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive; only their ratio matters. With one
        of them, from 0 to 1, the other is what it lacks to 1. Without them all errors cost the
        same.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come Float64
        columns. How to decide: ``upper_threshold, lower_threshold``, neighbours on the hull, or
        twice the same; ``lower_probability``, that of using the lower one; ``coin_probability``,
        that of a coin deciding instead, and ``coin_rate``, the share that the coin predicts
        positive. The two of the coin are 0 where there is none, as always for equal opportunity.
        What comes of it: ``tpr, fpr``; ``expected_cost`` of the group. What it costs everybody,
        the same in each row: ``overall_cost``; ``overall_cost_common``, with the best single
        threshold for all groups instead; ``overall_cost_unconstrained``, with the best one for
        each group. Costs are per row and add up to 1 for one error of each kind. A group without
        weight in both classes has no curve: it is left out of the constraint and of all costs,
        and its row is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a constraint that does not exist or costs out of range.

    Notes
    -----
    A row is predicted positive with the probability ``coin_probability * coin_rate +
    (1 - coin_probability) * (lower_probability * (score >= lower_threshold) +
    (1 - lower_probability) * (score >= upper_threshold))``. A threshold of +inf selects nobody.
    Of points that cost the same it is the one with the fewest positive predictions.

    ``overall_cost - overall_cost_unconstrained`` is the price of the constraint. On new data the
    rates are equal but for chance only, and the costs are higher: `fairness` and `group_gaps`
    measure them there. The hulls are found by a Python function inside the query.

    References
    ----------
    .. [1] Hardt, M., Price, E., Srebro, N. (2016), Advances in Neural Information Processing
       Systems 29.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 4 + ["b"] * 5,
    ...         "y": [1, 0, 1, 0, 0, 0, 1, 1, 0],
    ...         "s": [0.9, 0.8, 0.7, 0.1, 0.9, 0.8, 0.7, 0.6, 0.5],
    ...     }
    ... )
    >>> table = wroc.equalized_thresholds(df, "y", "s", by="g")
    >>> how = ["upper_threshold", "lower_threshold", "lower_probability", "coin_probability"]
    >>> table.select("g", pl.col(how).round(3))
    >>> costs = ["overall_cost_unconstrained", "overall_cost"]
    >>> table.select("g", pl.col("tpr", "fpr", *costs).round(3))
    """
    if by is None:
        options.reject_type("by", "name the groups to compare", by)
    options.option("constraint", constraint, get_args(Constraint))
    neither = cost_fn is None and cost_fp is None
    costs = read_costs(1, 1) if neither else read_costs(cost_fn, cost_fp)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=_COLUMNS)
    # Read several times, and computed once all the same.
    edges = _edges(rows, costs).cache()
    decide = _equal_odds if constraint == "equalized_odds" else _equal_tpr
    decided = _decided(decide(edges, costs, rows)).cache()
    table = _with_costs(decided, costs, rows)
    complete = rows.key_values().join(table, on=rows.keys, how="left", nulls_equal=True)
    return deliver(frame, rows.arrange(complete.select(*rows.keys, *_COLUMNS)))


def _edges(rows: Rows, costs: Costs) -> pl.LazyFrame:
    """Lay out the edges of the hull of each group with both classes, from the origin on."""
    positives, negatives = totals()
    models, alone = rows.ordered, pl.when(is_origin())
    curve = curve_frame(Rows(rows.frame, rows.keys)).with_columns(
        on_hull(is_origin(), pl.col("tp"), pl.col("fp")).alias("__corner")
    )
    corners = (
        curve.filter(if_both_classes(positives, negatives, pl.col("__corner")))
        .with_columns(
            over(alone.then(positives + negatives).sum(), models).alias(_EVERYBODY),
            tpr=pl.col("tp") / positives,
            fpr=pl.col("fp") / negatives,
        )
        # The sum of finite weights may be more than a number.
        .filter(pl.col(_EVERYBODY).is_finite())
        .with_columns(
            (positives / pl.col(_EVERYBODY)).alias(_POSITIVE),
            (negatives / pl.col(_EVERYBODY)).alias(_NEGATIVE),
        )
        .with_columns(over(alone.then(_POSITIVE).sum(), models).alias(_PREVALENCE))
        .with_columns(_share_of_cost(costs).min().over(rows.keys).alias(_LEAST_COST))
    )
    return corners.with_columns(
        *(pl.col(rate).shift(1).alias(f"{rate}_before") for rate in ("tpr", "fpr")),
        upper_threshold=pl.col("threshold").shift(1),
        lower_threshold="threshold",
    ).filter(~is_origin())


def _equal_odds(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the common fpr, with the coin that lowers its tpr.

    What a group saves at an fpr is a line along each edge, and all together can save no more
    than the lowest line says.
    """
    models, run, rise = rows.ordered, _step("fpr"), _step("tpr")
    slope, start, end = rise / run, pl.col("fpr_before"), pl.col("fpr")
    saved, spent = costs.fn * pl.col(_PREVALENCE), costs.fp * (1 - pl.col(_PREVALENCE))
    height = saved * (pl.col("tpr_before") - slope * start)
    target = highest_of_lowest(saved * slope - spent, height, start, end)
    leaning = edges.filter(slope.is_finite())
    targets = Rows(leaning, models).reduce(leaning, {_TARGET: target})
    joined = edges.join(targets, on=models) if models else edges.join(targets, how="cross")
    upright = pl.when(run == 0)
    own, common = pl.col("__own_tpr"), pl.col("__common_tpr")
    coin = pl.when(own - common > TOLERANCE).then((own - common) / (own - pl.col(_TARGET)))
    return (
        joined.filter(_reaches("fpr"))
        .with_columns(upright.then(1.0).otherwise(_share("fpr")).alias(_SHARE))
        .with_columns(_between("tpr").alias("__own_tpr"))
        .with_columns(over(own.min(), models).alias("__common_tpr"))
        # A vertical edge leads down to the others without a coin.
        .with_columns(
            upright.then(_share("tpr", "__common_tpr")).otherwise(_SHARE).alias(_SHARE),
            coin_probability=upright.then(0.0).otherwise(coin).fill_null(0.0),
        )
        .with_columns(
            coin_rate=pl.when(pl.col("coin_probability") > 0).then(_TARGET).otherwise(0.0)
        )
    )


def _equal_tpr(edges: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its edge at the tpr from which on more of it costs more than it saves.

    What the next of it costs is the sum over the groups of what it costs on their edges, which
    grows at each corner.
    """
    models = rows.ordered
    spent = costs.fp * pl.col(_NEGATIVE) * _step("fpr") / _step("tpr")
    saved = costs.fn * pl.col(_PREVALENCE)
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
            _share("tpr").alias(_SHARE), coin_probability=pl.lit(0.0), coin_rate=pl.lit(0.0)
        )
    )


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


def _between(rate: str) -> pl.Expr:
    share = pl.col(_SHARE)
    return (1 - share) * pl.col(f"{rate}_before") + share * pl.col(rate)


def _decided(edges: pl.LazyFrame) -> pl.LazyFrame:
    """Write how to decide on an edge, and the rates that this has."""
    share, coin = pl.col(_SHARE), pl.col("coin_probability")
    return edges.with_columns(
        *(
            (coin * pl.col("coin_rate") + (1 - coin) * _between(rate)).alias(rate)
            for rate in ("tpr", "fpr")
        ),
        upper_threshold=pl.when(share == 1).then("lower_threshold").otherwise("upper_threshold"),
        lower_threshold=pl.when(share == 0).then("upper_threshold").otherwise("lower_threshold"),
        lower_probability=pl.when(share == 0).then(1.0).otherwise(share),
    )


def _share_of_cost(costs: Costs) -> pl.Expr:
    """What the decisions in a group add to the cost of everybody."""
    missed = pl.col(_POSITIVE) * (1 - pl.col("tpr"))
    return costs.fn * missed + costs.fp * pl.col(_NEGATIVE) * pl.col("fpr")


def _with_costs(decided: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Add what the decisions cost, and what others would."""
    models = rows.ordered
    rule = choose_rule("cost", cost_fn=costs.fn, cost_fp=costs.fp)
    counted = rows.frame.join(decided, on=rows.keys, how="semi", nulls_equal=True)
    cells = choose(Rows(counted, models), rule)
    positives, negatives = totals()
    wrong = costs.fn * pl.col("fn") + costs.fp * pl.col("fp")
    one = cells.select(*models, overall_cost_common=wrong / (positives + negatives))
    beside = decided.join(one, on=models) if models else decided.join(one, how="cross")
    cost = _share_of_cost(costs)
    return beside.with_columns(
        expected_cost=cost / (pl.col(_POSITIVE) + pl.col(_NEGATIVE)),
        overall_cost=over(cost.sum(), models),
        overall_cost_unconstrained=over(pl.col(_LEAST_COST).sum(), models),
    )
