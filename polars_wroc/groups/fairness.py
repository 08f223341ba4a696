"""Fairness metrics: differences and ratios between groups at a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.groups.fairness_metrics import (
    ABROCA,
    COMPARED_RATES,
    EQUALIZED_ODDS,
    METRICS,
)
from polars_wroc.groups.min_rows import both_large_enough, large_enough, outside
from polars_wroc.groups.rest_distances import distances_to_rest
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups, require_texts
from polars_wroc.inputs.names import MISSING
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.roc_auc_ci import IntervalOptions
from polars_wroc.metrics.summary import summarise
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.stats.differences import Estimate, difference_limits, ratio_limits
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.search import common_threshold, confusion_at

FAIRNESS_COLUMNS = ("metric", "value", "group_max", "group_min", "ci_low", "ci_high")


def fairness(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    threshold: float,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    min_rows: int = 0,
    max_groups: int = 200,
) -> FrameT:
    """Weighted fairness metrics: the largest difference and smallest ratio between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, weight_type
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    threshold
        Rows with at least this score are predicted positive.
    min_rows
        Leave out estimates from fewer rows, as `audit` does with 30: rows of each class for an
        AUC, and of each class of the complement too for an ABROCA; all rows for a selection rate,
        positives for a tpr, negatives for an fpr, rows predicted positive for a ppv. A row with a
        frequency weight counts that many times.
    max_groups
        With more groups than this ``max_abroca`` is null: its time and memory grow with the
        number of rows times the number of groups, those of all other metrics with the number of
        rows.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) metric, in this order: ``demographic_parity_difference``,
        ``demographic_parity_ratio`` (of the selection rates; less than 0.8 fails the four-fifths
        rule), ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr), ``equalized_odds_difference``,
        ``equalized_odds_ratio`` (the worse of tpr and fpr), ``predictive_parity_difference``
        (ppv), ``auc_difference``, and ``max_abroca``, the largest area between the ROC curves
        of a group and of its complement [2]_. The columns are ``metric``; ``value``; ``group_max,
        group_min`` (String: the groups with the largest and the smallest value, several keys
        joined by a comma); ``ci_low, ci_high``, the confidence interval of the difference or
        ratio of these two groups. Values that are undefined or from too few rows are left out. A
        difference or ratio is null where fewer than two groups are left, and for equalized odds
        where that of the tpr or of the fpr is null. ``max_abroca`` has no ``group_min`` and no
        interval.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number.

    Notes
    -----
    The rates are compared as in fairlearn [1]_, except that 0/0 is null. The largest difference
    between many small groups is large by chance, and its interval does not account for the
    selection of the two groups: `group_gaps` tests every group. Intervals combine those of both
    groups: Wilson's for rates, those of `summary` for AUCs.

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.
    .. [2] Gardner, J. et al. (2019), Proceedings of LAK, 225-234.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": list("aaaabbbb"),
    ...         "y": [1, 1, 0, 0, 1, 1, 0, 0],
    ...         "s": [0.9, 0.6, 0.7, 0.1, 0.8, 0.4, 0.3, 0.2],
    ...     }
    ... )
    >>> table = wroc.fairness(df, "y", "s", by="g", threshold=0.5)
    >>> table.select("metric", "value", "group_max", "group_min").head(3)
    shape: (3, 4)
    ┌───────────────────────────────┬──────────┬───────────┬───────────┐
    │ metric                        ┆ value    ┆ group_max ┆ group_min │
    │ ---                           ┆ ---      ┆ ---       ┆ ---       │
    │ str                           ┆ f64      ┆ str       ┆ str       │
    ╞═══════════════════════════════╪══════════╪═══════════╪═══════════╡
    │ demographic_parity_difference ┆ 0.5      ┆ a         ┆ b         │
    │ demographic_parity_ratio      ┆ 0.333333 ┆ a         ┆ b         │
    │ equal_opportunity_difference  ┆ 0.5      ┆ a         ┆ b         │
    └───────────────────────────────┴──────────┴───────────┴───────────┘
    """
    require_groups(by)
    limit = arguments.number("threshold", threshold) + 0.0
    least = arguments.whole_number("min_rows", min_rows, low=0)
    within_limit = pl.len() <= arguments.whole_number("max_groups", max_groups, low=1)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    require_texts(rows)
    thresholds = common_threshold(rows, limit)
    options = IntervalOptions(level, "logit-t", weight_type)
    metrics = ThresholdMetrics(level, weight_type)
    rates = in_columns(confusion_at(rows, thresholds), metrics.steps)
    aucs = summarise(rows, options)
    tables = (rates, aucs, _distances(rows, within_limit))
    rates, aucs, distances = (each.sort(rows.keys) for each in tables)
    table = fairness_of(rows, rates, aucs, weight_type, least, distances)
    return like_input(frame, rows.regrouped([]).result(table, FAIRNESS_COLUMNS))


def fairness_of(
    rows: Rows,
    rates: pl.LazyFrame,
    aucs: pl.LazyFrame,
    weight_type: WeightType,
    min_rows: int,
    distances: pl.LazyFrame | None = None,
) -> pl.LazyFrame:
    """Compute the fairness metrics from the `ThresholdMetrics` and the summary of each group.

    The tables are sorted by group: of groups with equal values the first is the largest and the
    last the smallest. The result has the order of `METRICS`; without ``distances`` there is no
    ABROCA.
    """
    weights = dict(zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True))
    aucs = aucs.with_columns(**{name: pl.col(weight) for name, weight in weights.items()})
    counts = aucs.select(*rows.keys, "n_pos", "n_neg", *OWN_WEIGHTS)

    def with_enough_rows(table: pl.LazyFrame, metrics: dict[str, str]) -> pl.LazyFrame:
        """Keep the values of metrics for which the group has enough rows."""
        return table.with_columns(
            pl.when(large_enough(metric, weight_type, min_rows)).then(value).alias(value)
            for value, metric in metrics.items()
        )

    aucs = with_enough_rows(aucs, {"auc": "auc"})
    rates = join_on_keys(rates, counts, rows.keys)
    rates = with_enough_rows(rates, {rate: rate for rate in COMPARED_RATES.values()})
    # The table is used once for each rate but computed once.
    rates = rates.cache()
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
    names = [name for name in METRICS if distances is not None or name != ABROCA]
    named = pl.LazyFrame({"metric": names})
    if rows.model_keys:
        named = rates.select(rows.model_keys).unique().join(named, how="cross")
    complete = named.join(table, on=[*rows.model_keys, "metric"], how="left", nulls_equal=True)
    return complete.sort(pl.col("metric").cast(pl.Enum(list(METRICS))))


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


def _distances(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    null = pl.lit(None, pl.Float64)
    areas = distances_to_rest(rows, within_limit)
    return areas.with_columns(abroca_low=null, abroca_high=null)


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
    limits, quotients = difference_limits(high, low), ratio_limits(low, high)
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
        value=pl.when(pl.col("several") & (high.value > 0)).then(low.value / high.value),
        group_max=several.then("group_max"),
        group_min=several.then("group_min"),
        ci_low=several.then(quotients.low),
        ci_high=several.then(quotients.high),
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
