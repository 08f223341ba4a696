"""How far groups are apart at a threshold: the fairness metrics of the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.groups.abroca import distances_to_rest
from polars_wroc.groups.auc_sums import OWN_WEIGHTS
from polars_wroc.groups.min_rows import both_large_enough, large_enough, outside
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups, require_texts
from polars_wroc.inputs.names import MISSING
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.roc_auc_ci import IntervalOptions
from polars_wroc.metrics.summary import summarise
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.stats.differences import Estimate, difference_limits, ratio_limits
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import common_threshold, confusion_at

FAIRNESS_COLUMNS = ("metric", "value", "group_max", "group_min", "ci_low", "ci_high")
_RATES = {rate.fairness: name for name, rate in GAP_RATES.items() if rate.fairness}
_ODDS = ("equal_opportunity", "predictive_equality")
ABROCA = "max_abroca"


class FairnessMetric(NamedTuple):
    """What a fairness metric is called in tables, and the metrics of groups that it compares."""

    name: str
    label: str
    compares: tuple[str, ...]


def _of_rate(notion: str, *kinds: str) -> list[FairnessMetric]:
    """Compare the groups in the rate that a notion of fairness is about."""
    rate = _RATES[notion]
    words, rates = notion.replace("_", " ").capitalize(), f"{GAP_RATES[rate].label}s"
    return [
        FairnessMetric(f"{notion}_{kind}", f"{words}, {kind} of the {rates}", (rate,))
        for kind in kinds
    ]


_ODDS_RATES = tuple(_RATES[notion] for notion in _ODDS)
# In the order of the table.
METRICS: dict[str, FairnessMetric] = {
    metric.name: metric
    for metric in (
        *_of_rate("demographic_parity", "difference", "ratio"),
        *_of_rate("equal_opportunity", "difference", "ratio"),
        *_of_rate("predictive_equality", "difference"),
        FairnessMetric(
            "equalized_odds_difference",
            "Equalized odds, the larger of both differences",
            _ODDS_RATES,
        ),
        FairnessMetric(
            "equalized_odds_ratio", "Equalized odds, the smaller of both ratios", _ODDS_RATES
        ),
        *_of_rate("predictive_parity", "difference"),
        FairnessMetric("auc_difference", f"Difference of the {ROC_AUC.label}s", (ROC_AUC.column,)),
        FairnessMetric(
            ABROCA,
            "ABROCA, the largest area between the ROC curves of a group and of the rest",
            (ROC_AUC.column,),
        ),
    )
}


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
    """Weighted fairness metrics between groups: the largest difference and the smallest ratio.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, pos_label, level, weight_type
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    threshold
        Rows that score at least so much are predicted positive.
    min_rows
        Leave out what has fewer rows behind it, as `audit` does with 30: of each class for an
        AUC, and in the rest too for its ABROCA; all rows for a selection rate, positives for a
        tpr, negatives for an fpr, rows predicted positive for a ppv. A row with a frequency is
        as many rows as that says.
    max_groups
        Measure ``max_abroca`` where there are no more groups than these, and leave it null
        where there are more: it takes all rows once for each group, in time and in memory,
        while every other metric takes them once.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) metric, in this order: ``demographic_parity_difference``,
        ``demographic_parity_ratio`` (of the selection rates; less than 0.8 fails the four-fifths
        rule), ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr), ``equalized_odds_difference``,
        ``equalized_odds_ratio`` (the worse of tpr and fpr), ``predictive_parity_difference``
        (ppv), ``auc_difference``, and ``max_abroca``, the largest area between the ROC curves
        of a group and of the rest [2]_. The columns are ``metric``; ``value``; ``group_max,
        group_min`` (String: the groups with the largest and the smallest rate, several keys
        joined by a comma); ``ci_low, ci_high``, the interval of the difference or ratio of just
        these two. Rates that are undefined, or have too few rows behind them, are left out; all is
        null where fewer than two groups are left, and for equalized odds where one of its rates is.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number.

    Notes
    -----
    The metrics are fairlearn's [1]_, but for 0/0, which is null here. The largest difference of
    many small groups is large by chance, and the interval of the two does not know that they
    were picked: `group_gaps` tests every group. Intervals combine those of both groups, Wilson's
    of the rates and those of `summary` for the AUCs.

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
    few = pl.len() <= arguments.whole_number("max_groups", max_groups, low=1)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    require_texts(rows)
    thresholds = common_threshold(rows, limit)
    options = IntervalOptions(level, "logit-t", weight_type)
    metrics = ThresholdMetrics(level, weight_type)
    rates = in_columns(confusion_at(rows, thresholds), metrics.steps)
    aucs = summarise(rows, options)
    rates, aucs, distances = (each.sort(rows.keys) for each in (rates, aucs, _distances(rows, few)))
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
    """Lay out the metrics of groups, from their `ThresholdMetrics` and their summary.

    The tables are in the order of the groups, which decides between equals. Sorted by metric
    within the keys apart; without ``distances`` there is no ABROCA.
    """
    weights = dict(zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True))
    aucs = aucs.with_columns(**{name: pl.col(weight) for name, weight in weights.items()})
    counts = aucs.select(*rows.keys, "n_pos", "n_neg", *OWN_WEIGHTS)

    def known(table: pl.LazyFrame, metrics: dict[str, str]) -> pl.LazyFrame:
        """Keep the values that have rows enough behind the metric that they are about."""
        return table.with_columns(
            pl.when(large_enough(metric, weight_type, min_rows)).then(value).alias(value)
            for value, metric in metrics.items()
        )

    aucs = known(aucs, {"auc": "auc"})
    rates = known(join_on_keys(rates, counts, rows.keys), {rate: rate for rate in _RATES.values()})
    # Read once for each rate, and planned and computed once all the same.
    rates = rates.cache()
    estimates = [
        *(_estimates(rates, rows, notion, rate) for notion, rate in _RATES.items()),
        # Those with the name of the AUC are its bounds where scores are binned.
        _estimates(aucs, rows, "auc", "auc", limits="ci"),
    ]
    if distances is not None:
        # The counts of all groups, so that those of the rest are known.
        areas = join_on_keys(counts, distances, rows.keys)
        enough = both_large_enough("auc", weight_type, min_rows, outside(rows.model_keys))
        areas = areas.with_columns(pl.when(enough).then("abroca").alias("abroca"))
        estimates.append(_estimates(areas, rows, "abroca", "abroca"))
    table = _metrics(_extremes(pl.concat(estimates), rows).cache(), rows.model_keys)
    asked = [name for name in METRICS if distances is not None or name != ABROCA]
    named = pl.LazyFrame({"metric": asked})
    if rows.model_keys:
        named = rates.select(rows.model_keys).unique().join(named, how="cross")
    complete = named.join(table, on=[*rows.model_keys, "metric"], how="left", nulls_equal=True)
    return complete.sort(pl.col("metric").cast(pl.Enum(list(METRICS))))


def _estimates(
    table: pl.LazyFrame, rows: Rows, notion: str, rate: str, limits: str | None = None
) -> pl.LazyFrame:
    """One row per group with the rate that a notion of fairness is about, and its ``limits``."""
    return table.select(
        *rows.keys,
        notion=pl.lit(notion),
        value=rate,
        low=f"{limits or rate}_low",
        high=f"{limits or rate}_high",
    )


def _distances(rows: Rows, few: pl.Expr) -> pl.LazyFrame:
    unknown = pl.lit(None, pl.Float64)
    return distances_to_rest(rows, few).with_columns(abroca_low=unknown, abroca_high=unknown)


def _extremes(estimates: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Reduce the groups to the two with the largest and the smallest value."""
    texts = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in rows.group_keys]
    name = pl.concat_str(texts, separator=", ")
    known = estimates.drop_nulls("value").with_columns(group=name)
    value = pl.col("value")
    # The first of the largest and the last of the smallest: never the same of several groups.
    # Not by arg_max, which takes any of the largest where the engine knows them to be sorted.
    columns: dict[str, pl.Expr] = {}
    for column in ("group", "value", "low", "high"):
        columns[f"{column}_max"] = pl.col(column).filter(value == value.max()).first()
        columns[f"{column}_min"] = pl.col(column).filter(value == value.min()).last()
    apart = (pl.len() > 1).alias("apart")
    # The order of the groups decides between equals, and a plan keeps it only where that is said.
    grouped = known.group_by([*rows.model_keys, "notion"], maintain_order=True)
    return grouped.agg(apart, **columns)


def _metrics(extremes: pl.LazyFrame, models: Sequence[str]) -> pl.LazyFrame:
    high, low = (
        Estimate(*(pl.col(f"{part}_{end}") for part in ("value", "low", "high")))
        for end in ("max", "min")
    )
    # One group alone is compared with nobody.
    apart = pl.when("apart")
    limits, quotients = difference_limits(high, low), ratio_limits(low, high)
    alone = pl.col("notion") == "abroca"
    differences = extremes.select(
        *models,
        metric=pl.when(alone).then(pl.lit(ABROCA)).otherwise(pl.col("notion") + "_difference"),
        value=pl.when(alone).then(high.value).when("apart").then(high.value - low.value),
        group_max=pl.when(alone | pl.col("apart")).then("group_max"),
        group_min=pl.when(~alone & pl.col("apart")).then("group_min"),
        ci_low=apart.then(limits.low),
        ci_high=apart.then(limits.high),
    )
    ratios = extremes.select(
        *models,
        metric=pl.col("notion") + "_ratio",
        value=pl.when(pl.col("apart") & (high.value > 0)).then(low.value / high.value),
        group_max=apart.then("group_max"),
        group_min=apart.then("group_min"),
        ci_low=apart.then(quotients.low),
        ci_high=apart.then(quotients.high),
    )
    odds = [
        _worse(table, kind, models, largest=kind == "difference")
        for table, kind in ((differences, "difference"), (ratios, "ratio"))
    ]
    return pl.concat([differences, ratios, *odds]).filter(pl.col("metric").is_in(list(METRICS)))


def _worse(table: pl.LazyFrame, kind: str, models: Sequence[str], *, largest: bool) -> pl.LazyFrame:
    """Take the worse of the two rates that equalised odds are about."""
    of_odds = table.filter(pl.col("metric").is_in([f"{notion}_{kind}" for notion in _ODDS]))
    value = pl.col("value")
    known = over(value.count(), models) == len(_ODDS)
    worst = known & (value == over(value.max() if largest else value.min(), models))
    rows = of_odds.filter(worst.fill_null(value=False))
    ordered = rows.sort("metric")
    first = ordered.unique(models, keep="first", maintain_order=True) if models else ordered.head(1)
    return first.with_columns(metric=pl.lit(f"equalized_odds_{kind}"))
