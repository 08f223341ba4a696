"""Thresholds for each group that equalize error rates between groups, and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import Costs, read_costs
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows, require_groups, unless_moved
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.formulas import as_struct
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over
from polars_wroc.ranking.curve import MOVED, curve_frame, if_both_classes, is_origin, totals
from polars_wroc.ranking.curve_points import on_hull
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.thresholds.rules import least_cost
from polars_wroc.thresholds.search import choose_threshold

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
_OVERALL_WEIGHT, _LEAST_COST = "__overall_weight", "__least_cost"


def equalized_thresholds(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    constraint: Constraint = "equalized_odds",
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 0,
) -> FrameT:
    """Thresholds for each group that give all groups equal error rates at the least cost.

    With randomized decisions a group can reach any point between the diagonal and the convex hull
    of its ROC curve: each row is decided at random by one of two thresholds or by a coin [1]_. Of
    the points that all groups can reach this returns the one with the least cost, exactly, without
    a grid search.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    constraint
        ``"equalized_odds"``: all groups have the same tpr and the same fpr.
        ``"equal_opportunity"``: all groups have the same tpr.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive; only their ratio matters. If only one
        is given, it must be from 0 to 1, and the other is 1 minus it. Without both, all errors
        cost the same.
    min_rows
        Leave out groups with fewer rows in a class: the poor curve of a small group can limit the
        rates of all groups.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come Float64
        columns. The decision rule: ``upper_threshold, lower_threshold``, neighbours on the hull or
        twice the same; ``lower_probability``, the probability of using the lower one;
        ``coin_probability``, the probability of deciding by a coin instead of the thresholds, and
        ``coin_rate``, the probability that the coin predicts positive. Both are 0 without a coin,
        as always for equal opportunity. The results of the rule: ``tpr, fpr`` and
        ``expected_cost`` of the group. Overall costs, the same in all rows of a model:
        ``overall_cost`` of these rules; ``overall_cost_common``, of the best single threshold for
        all groups; ``overall_cost_unconstrained``, of the best threshold for each group. Costs are
        per row, scaled so that those of a false negative and a false positive sum to 1. A group
        without weight in both classes, or with fewer than ``min_rows``, is left out of the
        constraint and of all costs, and its row is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown constraint and for costs out of range.

    Notes
    -----
    A row is predicted positive with the probability ``coin_probability * coin_rate +
    (1 - coin_probability) * (lower_probability * (score >= lower_threshold) +
    (1 - lower_probability) * (score >= upper_threshold))``. A threshold of +inf selects no row;
    with scores of +inf it is ambiguous. Of points with equal costs the result is the one with the
    fewest positive predictions.

    ``overall_cost - overall_cost_unconstrained`` is the cost of the constraint. Under equalized
    odds the groups without a coin limit the rates of all groups; the curve of a small one may be
    poor by chance. On new data the rates differ by chance, and costs are likely to be higher. The
    hulls and the common rates are computed by Python functions inside the query.

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
    ...         "g": ["a"] * 2 + ["b"] * 8,
    ...         "y": [1, 0, 1, 1, 1, 0, 1, 0, 0, 0],
    ...         "s": [0.9, 0.3] + [0.8] * 4 + [0.4] * 4,
    ...     }
    ... )
    >>> table = wroc.equalized_thresholds(df, "y", "s", by="g")
    >>> table.select("g", "upper_threshold", "lower_threshold", "lower_probability")
    shape: (2, 4)
    ┌─────┬─────────────────┬─────────────────┬───────────────────┐
    │ g   ┆ upper_threshold ┆ lower_threshold ┆ lower_probability │
    │ --- ┆ ---             ┆ ---             ┆ ---               │
    │ str ┆ f64             ┆ f64             ┆ f64               │
    ╞═════╪═════════════════╪═════════════════╪═══════════════════╡
    │ a   ┆ 0.9             ┆ 0.3             ┆ 0.25              │
    │ b   ┆ 0.8             ┆ 0.8             ┆ 1.0               │
    └─────┴─────────────────┴─────────────────┴───────────────────┘
    >>> table.select("g", pl.col("coin_probability", "coin_rate", "tpr", "fpr").round(3))
    shape: (2, 5)
    ┌─────┬──────────────────┬───────────┬──────┬──────┐
    │ g   ┆ coin_probability ┆ coin_rate ┆ tpr  ┆ fpr  │
    │ --- ┆ ---              ┆ ---       ┆ ---  ┆ ---  │
    │ str ┆ f64              ┆ f64       ┆ f64  ┆ f64  │
    ╞═════╪══════════════════╪═══════════╪══════╪══════╡
    │ a   ┆ 0.333            ┆ 0.25      ┆ 0.75 ┆ 0.25 │
    │ b   ┆ 0.0              ┆ 0.0       ┆ 0.75 ┆ 0.25 │
    └─────┴──────────────────┴───────────┴──────┴──────┘
    >>> table.select("g", "overall_cost_unconstrained", "overall_cost")
    shape: (2, 3)
    ┌─────┬────────────────────────────┬──────────────┐
    │ g   ┆ overall_cost_unconstrained ┆ overall_cost │
    │ --- ┆ ---                        ┆ ---          │
    │ str ┆ f64                        ┆ f64          │
    ╞═════╪════════════════════════════╪══════════════╡
    │ a   ┆ 0.1                        ┆ 0.125        │
    │ b   ┆ 0.1                        ┆ 0.125        │
    └─────┴────────────────────────────┴──────────────┘
    """
    require_groups(by)
    arguments.option("constraint", constraint, get_args(Constraint))
    neither = cost_fn is None and cost_fp is None
    costs = read_costs(1, 1) if neither else read_costs(cost_fn, cost_fp)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    large: Rows = _large_groups(rows, arguments.whole_number("min_rows", min_rows, low=0))
    # The table is used several times but computed once.
    edges = _edges(large, costs).cache()
    decide = equal_odds if constraint == "equalized_odds" else equal_tpr
    decided = _decided(decide(edges, costs, large)).cache()
    table = _with_costs(decided, costs, large)
    complete = join_on_keys(rows.key_values(), table, rows.keys)
    return like_input(frame, rows.result(complete, _COLUMNS))


def _large_groups(rows: Rows, least: int) -> Rows:
    """Leave out groups with fewer rows in a class."""
    if not least:
        return rows
    counts = rows.aggregate(rows.frame, rows.class_counts())
    enough = counts.filter(pl.min_horizontal("n_pos", "n_neg") >= least).select(rows.keys)
    kept = rows.frame.join(
        enough, on=rows.keys, how="semi", nulls_equal=True, maintain_order="left"
    )
    return replace(rows, frame=kept)


def _edges(rows: Rows, costs: Costs) -> pl.LazyFrame:
    """Edges of the hull of each group with both classes, in order from the origin."""
    positives, negatives = totals()
    models, once_per_group = rows.model_keys, pl.when(is_origin())
    curve = curve_frame(rows).with_columns(
        on_hull(is_origin(), pl.col("tp"), pl.col("fp")).alias("__corner")
    )
    corners = curve.filter(if_both_classes(positives, negatives, pl.col("__corner")))
    if MOVED in corners.collect_schema():
        checked = unless_moved(pl.col("threshold"), pl.col(MOVED))
        corners = corners.with_columns(checked.alias("threshold"))
    corners = (
        corners.with_columns(
            over(once_per_group.then(positives + negatives).sum(), models).alias(_OVERALL_WEIGHT),
            tpr=pl.col("tp") / positives,
            fpr=pl.col("fp") / negatives,
        )
        # The sum of finite weights may overflow.
        .filter(pl.col(_OVERALL_WEIGHT).is_finite())
        .with_columns(
            (positives / pl.col(_OVERALL_WEIGHT)).alias(POSITIVE_SHARE),
            (negatives / pl.col(_OVERALL_WEIGHT)).alias(NEGATIVE_SHARE),
        )
        .with_columns(over(once_per_group.then(POSITIVE_SHARE).sum(), models).alias(PREVALENCE))
        .with_columns(_share_of_cost(costs).min().over(rows.keys).alias(_LEAST_COST))
    )
    return corners.with_columns(
        *(pl.col(rate).shift(1).alias(f"{rate}_before") for rate in ("tpr", "fpr")),
        upper_threshold=pl.col("threshold").shift(1),
        lower_threshold="threshold",
    ).filter(~is_origin())


def _decided(edges: pl.LazyFrame) -> pl.LazyFrame:
    """Add the decision rule of each group on its edge, and the resulting rates."""
    share, coin = pl.col(SHARE), pl.col("coin_probability")
    return edges.with_columns(
        *(
            (coin * pl.col("coin_rate") + (1 - coin) * between(rate)).alias(rate)
            for rate in ("tpr", "fpr")
        ),
        upper_threshold=pl.when(share == 1).then("lower_threshold").otherwise("upper_threshold"),
        lower_threshold=pl.when(share == 0).then("upper_threshold").otherwise("lower_threshold"),
        lower_probability=pl.when(share == 0).then(1.0).otherwise(share),
    )


def _share_of_cost(costs: Costs) -> pl.Expr:
    """Contribution of the errors in a group to the overall cost."""
    false_negatives = pl.col(POSITIVE_SHARE) * (1 - pl.col("tpr"))
    return costs.fn * false_negatives + costs.fp * pl.col(NEGATIVE_SHARE) * pl.col("fpr")


def _with_costs(decided: pl.LazyFrame, costs: Costs, rows: Rows) -> pl.LazyFrame:
    """Add the costs of the decision rules, of a common threshold and without a constraint."""
    models = rows.model_keys
    rule = least_cost(fn=costs.fn, fp=costs.fp)
    counted = rows.frame.join(decided, on=rows.keys, how="semi", nulls_equal=True)
    cells = choose_threshold(Rows(counted, models), rule)
    positives, negatives = totals()
    cost_of_errors = costs.fn * pl.col("fn") + costs.fp * pl.col("fp")
    common = cells.select(*models, overall_cost_common=cost_of_errors / (positives + negatives))
    prevalence, cost = positives / (positives + negatives), _share_of_cost(costs)
    return join_on_keys(decided, common, models).with_columns(
        expected_cost=costs.expected(1 - pl.col("tpr"), pl.col("fpr"), prevalence),
        overall_cost=over(cost.sum(), models),
        overall_cost_unconstrained=over(pl.col(_LEAST_COST).sum(), models),
    )
