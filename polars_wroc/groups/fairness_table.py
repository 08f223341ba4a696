"""The table of fairness metrics, from the rates and the AUC of each group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import polars as pl

from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.groups.fairness_metrics import ABROCA, COMPARED_RATES, EQUALIZED_ODDS, METRICS
from polars_wroc.groups.joint_limits import JOINT_COLUMNS, Compared, largest_gaps
from polars_wroc.groups.min_rows import both_large_enough, large_enough, outside
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.names import MISSING
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.differences import Estimate, difference_limits, ratio_limits, reported_ratio
from polars_wroc.stats.proportions import proportion, wilson

FAIRNESS_COLUMNS = (
    "metric",
    "value",
    "group_max",
    "group_min",
    "ci_low",
    "ci_high",
    *JOINT_COLUMNS,
)


def fairness_of(
    rows: Rows,
    rates: pl.LazyFrame,
    aucs: pl.LazyFrame,
    interval: Interval,
    min_rows: int,
    distances: pl.LazyFrame | None = None,
) -> pl.LazyFrame:
    """Compute the fairness metrics from the metrics at a threshold and the AUC of each group.

    ``rates`` and ``aucs`` have all columns of the steps of `ThresholdMetrics` and of the
    ``interval``, whose method is ``"score"``. Either both come from the design of a survey or
    neither does. They are sorted by group: of groups with equal values the first is the largest and
    the last the smallest.
    The result has the order of `METRICS`; without ``distances`` there is no ABROCA.
    """
    weight_type = interval.options.weight_type
    weights = dict(zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True))
    aucs = aucs.with_columns(**{name: pl.col(weight) for name, weight in weights.items()}).cache()
    counts = aucs.select(*rows.keys, "n_pos", "n_neg", *OWN_WEIGHTS)
    rates = join_on_keys(rates, counts, rows.keys)
    # The tables are used several times but computed once.
    aucs = _with_enough_rows(aucs, [ROC_AUC.column], weight_type, min_rows).cache()
    rates = _with_enough_rows(rates, COMPARED_RATES.values(), weight_type, min_rows).cache()
    estimates = [
        *(_estimates(rates, rows, criterion, rate) for criterion, rate in COMPARED_RATES.items()),
        # `auc_low` and `auc_high` are not its interval but its bounds where scores are binned.
        _estimates(aucs, rows, "auc", "auc", limits="ci"),
    ]
    if distances is not None:
        # With the counts of all groups, from which those of the complements follow.
        areas = join_on_keys(counts, distances, rows.keys)
        enough = both_large_enough("auc", weight_type, min_rows, outside(rows.model_keys))
        areas = areas.with_columns(pl.when(enough).then("abroca").alias("abroca"))
        estimates.append(_estimates(areas, rows, "abroca", "abroca"))
    table = _metrics(_extremes(pl.concat(estimates), rows).cache(), rows.model_keys)
    joint = largest_gaps(_compared(rates, aucs, interval), rows.model_keys, interval.options.level)
    names = [name for name in METRICS if distances is not None or name != ABROCA]
    complete = pl.LazyFrame({"metric": names})
    if rows.model_keys:
        complete = rates.select(rows.model_keys).unique().join(complete, how="cross")
    for columns in (table, joint):
        complete = join_on_keys(complete, columns, [*rows.model_keys, "metric"])
    return complete.sort(pl.col("metric").cast(pl.Enum(list(METRICS))))


def _with_enough_rows(
    table: pl.LazyFrame, metrics: Iterable[str], weight_type: WeightType, min_rows: int
) -> pl.LazyFrame:
    """Keep the values of metrics for which the group has enough rows."""
    return table.with_columns(
        pl.when(large_enough(metric, weight_type, min_rows)).then(metric).alias(metric)
        for metric in metrics
    )


def _compared(
    rates: pl.LazyFrame, aucs: pl.LazyFrame, interval: Interval
) -> dict[str, list[Compared]]:
    """List the metrics that each criterion compares, with the limits of each group."""

    def of_rate(rate: str) -> Compared:
        size = proportion(rate, pl.col).size
        return Compared(rate, rates, partial(wilson, pl.col(rate), size), size, df)

    df = design_df(pl.col) if interval.options.designed else None
    no_size = pl.lit(None, pl.Float64)
    limits = partial(interval.score_limits, pl.col)
    return {
        **{criterion: [of_rate(rate)] for criterion, rate in COMPARED_RATES.items()},
        "equalized_odds": [of_rate(COMPARED_RATES[criterion]) for criterion in EQUALIZED_ODDS],
        "auc": [Compared(ROC_AUC.column, aucs, limits, no_size, df)],
    }


def _estimates(
    table: pl.LazyFrame, rows: Rows, criterion: str, rate: str, limits: str | None = None
) -> pl.LazyFrame:
    """One row per group with the rate that a fairness criterion compares, and its interval."""
    return table.select(
        *rows.keys,
        criterion=pl.lit(criterion),
        value=rate,
        low=f"{limits or rate}_low",
        high=f"{limits or rate}_high",
    )


def _extremes(estimates: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Reduce the groups to the two with the largest and the smallest value."""
    texts = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in rows.group_keys]
    name = pl.concat_str(texts, separator=", ")
    known = estimates.drop_nulls("value").with_columns(group=name)
    value = pl.col("value")
    # The first of the largest and the last of the smallest, so that two groups are two different
    # ones. Not by arg_max, which returns any of the largest values of a sorted column.
    columns: dict[str, pl.Expr] = {}
    for column in ("group", "value", "low", "high"):
        columns[f"{column}_max"] = pl.col(column).filter(value == value.max()).first()
        columns[f"{column}_min"] = pl.col(column).filter(value == value.min()).last()
    several = (pl.len() > 1).alias("several")
    # The order decides between groups with equal values; without the option it may change.
    grouped = known.group_by([*rows.model_keys, "criterion"], maintain_order=True)
    return grouped.agg(several, **columns)


def _metrics(extremes: pl.LazyFrame, models: Sequence[str]) -> pl.LazyFrame:
    high, low = (
        Estimate(*(pl.col(f"{part}_{end}") for part in ("value", "low", "high")))
        for end in ("max", "min")
    )
    # A single group has no difference.
    several = pl.when("several")
    limits = difference_limits(high, low)
    ratio = Estimate(low.value / high.value, *ratio_limits(low, high))
    ratio = reported_ratio(ratio, high.value)
    of_one_group = pl.col("criterion") == "abroca"
    differences = extremes.select(
        *models,
        metric=pl.when(of_one_group)
        .then(pl.lit(ABROCA))
        .otherwise(pl.col("criterion") + "_difference"),
        value=pl.when(of_one_group).then(high.value).when("several").then(high.value - low.value),
        group_max=pl.when(of_one_group | pl.col("several")).then("group_max"),
        group_min=pl.when(~of_one_group & pl.col("several")).then("group_min"),
        ci_low=several.then(limits.low),
        ci_high=several.then(limits.high),
    )
    ratios = extremes.select(
        *models,
        metric=pl.col("criterion") + "_ratio",
        value=several.then(ratio.value),
        group_max=several.then("group_max"),
        group_min=several.then("group_min"),
        ci_low=several.then(ratio.low),
        ci_high=several.then(ratio.high),
    )
    odds = [
        _worse(table, kind, models, largest=kind == "difference")
        for table, kind in ((differences, "difference"), (ratios, "ratio"))
    ]
    return pl.concat([differences, ratios, *odds]).filter(pl.col("metric").is_in(list(METRICS)))


def _worse(table: pl.LazyFrame, kind: str, models: Sequence[str], *, largest: bool) -> pl.LazyFrame:
    """Return the worse of the metrics of the tpr and of the fpr, for equalized odds."""
    metrics = [f"{criterion}_{kind}" for criterion in EQUALIZED_ODDS]
    of_odds = table.filter(pl.col("metric").is_in(metrics))
    value = pl.col("value")
    known = over(value.count(), models) == len(EQUALIZED_ODDS)
    worst = known & (value == over(value.max() if largest else value.min(), models))
    rows = of_odds.filter(worst.fill_null(value=False))
    ordered = rows.sort("metric")
    first = ordered.unique(models, keep="first", maintain_order=True) if models else ordered.head(1)
    return first.with_columns(metric=pl.lit(f"equalized_odds_{kind}"))
