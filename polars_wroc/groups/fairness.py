"""Fairness metrics: differences and ratios between groups at a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from polars_wroc.groups.abroca_test import distances_to_rest
from polars_wroc.groups.auc_sums import OWN_WEIGHTS, both_large_enough, large_enough, outside
from polars_wroc.groups.joint_limits import JOINT_COLUMNS, Compared, largest_gaps
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import MISSING, IntoColumn
from polars_wroc.inputs.designs import Lonely, ReplicateWeights, SurveyArguments
from polars_wroc.inputs.frames import read_rows, require_groups, require_texts
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_interval import Interval, IntervalOptions
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.queries import FrameT, in_columns, join_on_keys, like_input, over
from polars_wroc.stats.proportions import (
    Estimate,
    difference_limits,
    proportion,
    ratio_limits,
    reported_ratio,
    wilson,
)
from polars_wroc.stats.variances import design_df
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.rules import threshold_or_rule
from polars_wroc.thresholds.search import cells_of_groups, common_threshold

# The rate that each fairness criterion compares.
COMPARED_RATES = {rate.fairness: name for name, rate in GAP_RATES.items() if rate.fairness}
EQUALIZED_ODDS = ("equal_opportunity", "predictive_equality")
ABROCA = "max_abroca"


class FairnessMetric(NamedTuple):
    """A fairness metric: its name, its label in tables, and the metrics that it compares."""

    name: str
    label: str
    compares: tuple[str, ...]


def _of_rate(criterion: str, *kinds: str) -> list[FairnessMetric]:
    """Metrics that compare the rate of a fairness criterion between groups."""
    rate = COMPARED_RATES[criterion]
    words, rates = criterion.replace("_", " ").capitalize(), f"{GAP_RATES[rate].label}s"
    return [
        FairnessMetric(f"{criterion}_{kind}", f"{words}, {kind} of the {rates}", (rate,))
        for kind in kinds
    ]


_ODDS_RATES = tuple(COMPARED_RATES[criterion] for criterion in EQUALIZED_ODDS)
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
            "ABROCA, the largest area between the ROC curves of a group and of its complement",
            (ROC_AUC.column,),
        ),
    )
}


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


def fairness(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    threshold: float | None = None,
    selected: IntoColumn | None = None,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    min_rows: int = 0,
    max_groups: int = 200,
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
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
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    min_rows
        Leave out estimates from fewer rows, as `audit` does with 30: rows of each class for an
        AUC, and of each class of the complement too for an ABROCA; all rows for a selection rate,
        positives for a tpr, negatives for an fpr, rows predicted positive for a ppv. A row with a
        frequency weight counts that many times.
    max_groups
        With more groups than this ``max_abroca`` is null: its time and memory grow with the
        number of rows times the number of groups, those of all other metrics with the number of
        rows.
    cluster, strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. With ``cluster`` alone there is one stratum. All
        limits and tests then use the variances of the design and its degrees of freedom.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) metric, in this order: ``demographic_parity_difference``,
        ``demographic_parity_ratio`` (of the selection rates; less than 0.8 fails the four-fifths
        rule), ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr), ``equalized_odds_difference``,
        ``equalized_odds_ratio`` (the worse of tpr and fpr), ``predictive_parity_difference``
        (ppv), ``auc_difference``, and ``max_abroca``, the largest area between the ROC curves
        of a group and of its complement [2]_. The columns are, with several scores, ``model``
        (String); ``metric`` (String); ``value`` (Float64); ``group_max, group_min`` (String), the
        groups with the largest and the smallest value, several keys joined by a comma; ``ci_low,
        ci_high`` (Float64), the confidence interval of the difference or ratio of these two groups,
        as if they had been named beforehand; ``joint_low, joint_high`` (Float64), that of the
        largest difference or smallest ratio among all groups, whichever have it, and within 0 and
        1; ``p_value`` (Float64) of the test that all groups are alike. Values that are undefined
        or from too few rows are left out. A difference or ratio is null where fewer than two groups
        are left, and for equalized odds where that of the tpr or of the fpr is null. A ratio is
        null, and so are all its limits, where the larger rate is 0; ``ci_high`` of a ratio is
        also null where it is infinite. Joint limits are null too where a group has no limits, and
        for more than 10,000 groups; ``p_value``, the same for a difference and its ratio, is null
        for ``auc_difference``, which `audit` tests by the gaps of the groups. ``max_abroca`` has
        no ``group_min``, no intervals and no test.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number, and unless one of ``threshold``
        and ``selected`` is given.

    Notes
    -----
    The rates are compared as in fairlearn [1]_, except that 0/0 is null. The largest difference
    between many small groups is large by chance. ``ci_low, ci_high`` do not account for the
    selection of the two groups: with 20 equal groups of 100 rows and a selection rate of 0.2 they
    leave out parity in nine of ten samples. The joint limits do, so that only they say that some
    groups differ by at least so much.

    Intervals combine those of both groups: Wilson's for rates, those of ``method="score"`` for
    AUCs; differences and ratios by Donner and Zou [3]_, where a ratio excludes 1 exactly where the
    difference excludes 0. For the joint limits each group has its own at the quantile of the
    studentised range [4]_ divided by the square root of 2, and all pairs are compared; of more than
    200 groups the ends of their limits are, which gives wider ones. Equalized odds need both
    rates at half of the error each, and twice the smaller of their p-values. Rates are tested by
    chi-squared with their effective sample sizes.

    By the design of a survey the effective sizes of rates are those that their variances imply,
    AUCs have its design effect, quantiles are Student's, and rates are tested by Rao and Scott's
    chi-squared [5]_, divided by its degrees of freedom and compared with the F distribution. The
    correlation of groups that share sampling units is ignored, which is too cautious where it is
    positive, as it is where the rows of a unit are similar; `group_gaps` uses it.

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.
    .. [2] Gardner, J. et al. (2019), Proceedings of LAK, 225-234.
    .. [3] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.
    .. [4] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.
    .. [5] Rao, J. N. K., Scott, A. J. (1992), Biometrics 48, 577-585.

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
    choice = threshold_or_rule(threshold, selected)
    if choice is None:
        msg = "exactly one of `threshold` and `selected` must be given; found none"
        raise ValueError(msg)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    within_limit = pl.len() <= arguments.whole_number("max_groups", max_groups, low=1)
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    design = survey if survey.given else None
    rows: Rows = read_rows(
        frame, label, score, weight, by, pos_label, survey=design, selected=selected
    )
    require_texts(rows)
    thresholds = common_threshold(rows, choice)
    metrics = ThresholdMetrics(level, weight_type, designed=survey.given)
    rates = in_columns(cells_of_groups(rows, thresholds), metrics.steps)
    interval = IntervalOptions(level, "score", weight_type, designed=survey.given).for_rows(rows)
    aucs = summary_of(sum_groups(rows, interval), interval)
    tables = (rates, aucs, _distances(rows, within_limit))
    rates, aucs, distances = (each.sort(rows.keys) for each in tables)
    table = fairness_of(rows, rates, aucs, interval, least, distances)
    return like_input(frame, rows.regrouped([]).result(table, FAIRNESS_COLUMNS))


def _distances(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    null = pl.lit(None, pl.Float64)
    areas = distances_to_rest(rows, within_limit)
    return areas.with_columns(abroca_low=null, abroca_high=null)
