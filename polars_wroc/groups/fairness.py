"""Fairness metrics: the largest differences and smallest ratios between groups, with limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from polars_wroc.groups.abroca_test import distances_to_rest
from polars_wroc.groups.categories import Intersections, read_attributes
from polars_wroc.groups.comparisons import (
    COMPARED_RATES,
    FAIRNESS,
    OWN_WEIGHTS,
    PLACE,
    UNDEFINED,
    Kind,
    comparison_table,
    large_enough,
    sample_sizes,
    score_name,
)
from polars_wroc.groups.references import named_segment
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.queries import FrameT, Step, in_columns, join_on_keys, like_input, over
from polars_wroc.stats.distributions import (
    chi_squared_p_value,
    f_p_value,
    simultaneous_quantile,
    student_score,
)
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    RateLimits,
    difference_limits,
    proportion,
    proportion_column,
    rate_score,
    ratio_limits,
)
from polars_wroc.stats.variances import design_df
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.rules import Threshold, read_threshold
from polars_wroc.thresholds.search import cells_of_groups, common_threshold

# Of more groups than this not every pair is compared, but the ends of all limits.
MOST_IN_PAIRS = 200
_AUC = ROC_AUC.column
# Each criterion with the metrics it compares: it is as bad as the worst of them.
_CRITERIA = {m.criterion: m.compares for m in FAIRNESS.values() if m.kind != "area"}
_CRITERION, _GROUP, _GROUPS, _OTHER = "__criterion", "__group", "__groups", "__other"
_QUANTILE = "__quantile"
# Limits of the differences and ratios of all pairs.
_ENDS = ("difference_low", "difference_high", "ratio_low", "ratio_high")
# What a row has of the groups with the highest and with the lowest value.
_OF_GROUP = ("segment", "name", "value", "n")


def fairness_rows(
    groups: Rows,
    rates: pl.LazyFrame,
    aucs: pl.LazyFrame,
    interval: Interval,
    min_rows: int,
    distances: pl.LazyFrame | None = None,
) -> pl.LazyFrame:
    """Compute the fairness metrics from the metrics at a threshold and the AUC of each segment.

    Both tables have all columns of their steps, by the design of a survey or neither, and are
    sorted by segment: of equal ones the first is the largest and the last the smallest. The model
    keys of ``groups`` are those within which segments are compared. Without ``distances`` there is
    no ABROCA.
    """
    within = groups.model_keys
    weights = dict(zip(OWN_WEIGHTS, ("w_pos", "w_neg"), strict=True))
    aucs = aucs.with_columns(**{name: pl.col(weight) for name, weight in weights.items()}).cache()
    counts = aucs.select(*groups.keys, "n_pos", "n_neg", *OWN_WEIGHTS)
    rates = join_on_keys(rates, counts, groups.keys)
    # The tables are used several times but computed once.
    aucs = _with_enough_rows(aucs, [_AUC], min_rows).cache()
    rates = _with_enough_rows(rates, COMPARED_RATES.values(), min_rows).cache()
    table = _largest_gaps(rates, aucs, within, interval)
    if distances is not None:
        # With the counts of all segments, from which those of the complements follow.
        areas = join_on_keys(counts, distances, groups.keys)
        in_rest = [over(count.sum(), within) - count >= min_rows for count in sample_sizes(_AUC)]
        enough = pl.all_horizontal(large_enough(_AUC, min_rows), *in_rest)
        areas = areas.with_columns(pl.when(enough).then("abroca").alias("value"))
        table = pl.concat([table, _largest_area(areas, within)], how="diagonal")
    names = [m.name for m in FAIRNESS.values() if distances is not None or m.kind != "area"]
    places = rates.select(within).unique(maintain_order=True).with_row_index(PLACE)
    every = places.join(pl.LazyFrame({"metric": names}), how="cross", maintain_order="left_right")
    shown = pl.coalesce("gap", "ratio", pl.when(pl.col("reference") == "rest").then("value"))
    undefined = pl.when(shown.is_null()).then(pl.lit(UNDEFINED))
    return join_on_keys(every, table, [*within, "metric"]).with_columns(reason=undefined)


def _with_enough_rows(table: pl.LazyFrame, metrics: Iterable[str], min_rows: int) -> pl.LazyFrame:
    """Keep the values of metrics for which the segment has enough rows; count these."""
    metrics = list(metrics)
    counts = {f"n_{m}": pl.min_horizontal(sample_sizes(m)) for m in metrics}
    return table.with_columns(
        *(pl.when(large_enough(m, min_rows)).then(m).alias(m) for m in metrics),
        **{name: count.cast(pl.Int64, strict=False) for name, count in counts.items()},
    )


def _largest_gaps(
    rates: pl.LazyFrame, aucs: pl.LazyFrame, within: Sequence[str], interval: Interval
) -> pl.LazyFrame:
    """Find the largest difference and the smallest ratio, with limits and p-values of any gap.

    Each metric of a criterion has its share of the error.
    """
    segments = [
        _with_limits(aucs if metric == _AUC else rates, criterion, metric, within, interval)
        for criterion, metrics in _CRITERIA.items()
        for metric in metrics
    ]
    # Numbered, so that a group is not compared with itself.
    groups = pl.concat(segments).with_row_index(_GROUP).cache()
    keys = [*within, _CRITERION, "metric"]
    limits = pl.concat([_of_pairs(groups, keys), _of_ends(groups, keys)])
    table = _extremes(groups, keys)
    for each in (limits, _alike(groups, keys, designed=interval.designed)):
        table = join_on_keys(table, each, keys)
    table = table.cache()
    kinds: tuple[Kind, ...] = ("difference", "ratio")
    return pl.concat([_worst(table, kind, within) for kind in kinds], how="diagonal")


def _with_limits(
    table: pl.LazyFrame, criterion: str, metric: str, within: Sequence[str], interval: Interval
) -> pl.LazyFrame:
    """One row per group with a value, with its limits at the quantile for so many groups.

    An AUC has no effective sample size.
    """
    counted = table.drop_nulls(metric).with_columns(over(pl.len(), within).alias(_GROUPS))
    level = 1 - (1 - interval.level) / len(_CRITERIA[criterion])
    simultaneous = quantile = simultaneous_quantile(level, pl.col(_GROUPS))
    df = size = pl.lit(None, pl.Float64)
    if metric != _AUC:
        rate = proportion(metric, pl.col)
        size, quantile = rate.effective_size, rate_score(quantile, rate.inverse_df)
    if interval.designed:
        df = design_df(pl.col)
        quantile = student_score(simultaneous, df)
    ends: list[Step]
    if metric == _AUC:
        ends = [lambda field: interval.score_limits(field, field(_QUANTILE))._asdict()]
    else:
        size_at, slope = (proportion_column(metric, part) for part in ("size", "slope"))
        ends = RateLimits(metric, size_at, slope, _QUANTILE, *Limits._fields).steps
    return in_columns(counted.with_columns(quantile.alias(_QUANTILE)), ends).select(
        *within,
        pl.lit(criterion).alias(_CRITERION),
        pl.col(_GROUPS),
        metric=pl.lit(metric),
        segment=AUDIT_KEYS[1],
        name=named_segment(),
        value=metric,
        n=f"n_{metric}",
        low="low",
        high="high",
        size=size,
        df=df,
    )


def _extremes(groups: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Reduce the groups to the two with the largest and the smallest value, if there are two."""
    value, several = pl.col("value"), pl.when(pl.len() > 1)
    # The first of the largest and the last of the smallest, so that two groups are two different
    # ones. Not by arg_max, which returns any of the largest values of a sorted column.
    columns: dict[str, pl.Expr] = {}
    for name in _OF_GROUP:
        highest = pl.col(name).filter(value == value.max()).first()
        lowest = pl.col(name).filter(value == value.min()).last()
        columns |= {f"{name}_max": several.then(highest), f"{name}_min": several.then(lowest)}
    # The order decides between groups with equal values; without the option it may change.
    return groups.group_by(keys, maintain_order=True).agg(**columns)


def _of_pairs(groups: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Compare every group with every other."""
    few = groups.filter(pl.col(_GROUPS) <= MOST_IN_PAIRS)
    pairs = join_on_keys(few, few, keys, how="inner", maintain_order="none", suffix=_OTHER)
    pairs = pairs.filter(pl.col(_GROUP) != pl.col(f"{_GROUP}{_OTHER}"))
    one, other = (
        Estimate(*(pl.col(f"{part}{suffix}") for part in Estimate._fields))
        for suffix in ("", _OTHER)
    )
    gap, ratio = difference_limits(one, other), ratio_limits(one, other)
    ends = (gap.low.max(), gap.high.max(), ratio.low.min(), ratio.high.min())
    return _known_ends(pairs, keys, ends)


def _of_ends(groups: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Bound what the pairs of many groups would give by the ends of the limits of all groups."""
    many = groups.filter(pl.col(_GROUPS) > MOST_IN_PAIRS)
    low, high = pl.col("low"), pl.col("high")
    gaps = (low.max() - high.min(), high.max() - low.min())
    ratios = (low.min() / high.max(), high.min() / low.max())
    return _known_ends(many, keys, (*gaps, *ratios))


def _known_ends(
    table: pl.LazyFrame, keys: Sequence[str], ends: tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate limits; null unless every group has some, of ratios also if all values are 0."""
    known = pl.col("low").null_count() == 0
    defined = {"difference": known, "ratio": known & (pl.col("value").max() > 0)}
    columns = {
        name: pl.when(defined[name.partition("_")[0]]).then(end)
        for name, end in zip(_ENDS, ends, strict=True)
    }
    return table.group_by(keys, maintain_order=True).agg(**columns)


def _alike(groups: pl.LazyFrame, keys: Sequence[str], *, designed: bool) -> pl.LazyFrame:
    """Test that all groups have the same proportion, by chi-squared with effective sizes.

    By the design of a survey the statistic has an estimated variance, with the degrees of freedom
    of the group that has most.
    """
    value, size = pl.col("value"), pl.col("size")
    mean = over((size * value).sum(), keys) / over(size.sum(), keys)
    measured = groups.with_columns(mean=mean)
    mean = pl.col("mean")
    statistic = (size * (value - mean) ** 2).sum() / (mean * (1 - mean)).first()
    known = pl.when(size.null_count() == 0)
    # Without variance all groups are alike.
    tested = known.then(pl.when((mean * (1 - mean)).first() > 0).then(statistic).otherwise(0.0))
    sums = measured.group_by(keys, maintain_order=True).agg(
        statistic=tested,
        df=pl.len().cast(pl.Int64) - 1,
        df_of_variance=pl.col("df").max(),
    )
    p_value = chi_squared_p_value(pl.col("statistic"), pl.col("df"))
    if designed:
        p_value = f_p_value(pl.col("statistic"), pl.col("df"), pl.col("df_of_variance"))
    return sums.select(*keys, p_value=p_value)


def _worst(table: pl.LazyFrame, kind: Kind, within: Sequence[str]) -> pl.LazyFrame:
    """Reduce the metrics of a criterion to the worst; null unless all are known."""
    is_ratio = kind == "ratio"
    high, low, number = pl.col("value_max"), pl.col("value_min"), pl.col("number")
    worst = number.min() if is_ratio else number.max()
    metrics = pl.col(_CRITERION).replace_strict({c: len(m) for c, m in _CRITERIA.items()})
    expected = pl.col("expected").first()
    alone = pl.col("expected") == 1
    known = pl.when((number.count() == expected) | alone.first())

    def of_worst(column: str) -> pl.Expr:
        return known.then(pl.col(column).filter((number == worst) | alone).first())

    def of_all(column: str) -> pl.Expr:
        end = pl.col(column)
        return pl.when(end.count() == expected).then(end.min() if is_ratio else end.max())

    (own, other), shown = (("min", "max"), "ratio") if is_ratio else (("max", "min"), "gap")
    p_value = pl.col("p_value")
    smallest = (p_value.min() * p_value.count()).clip(upper_bound=1.0)
    columns = {
        "segment": of_worst(f"segment_{own}"),
        "n": of_worst(f"n_{own}"),
        "value": of_worst(f"value_{own}"),
        "reference": of_worst(f"name_{other}"),
        "n_reference": of_worst(f"n_{other}"),
        "reference_value": of_worst(f"value_{other}"),
        shown: known.then(worst),
        f"{shown}_low": of_all(f"{kind}_low").clip(lower_bound=0.0),
        f"{shown}_high": of_all(f"{kind}_high").clip(upper_bound=1.0),
        "p_value": pl.when(p_value.count() == expected).then(smallest),
    }
    numbers = pl.when(high > 0).then(low / high) if is_ratio else high - low
    of_criteria = table.with_columns(number=numbers, expected=metrics)
    of_criteria = of_criteria.group_by(*within, _CRITERION, maintain_order=True).agg(**columns)
    named = of_criteria.with_columns(metric=pl.col(_CRITERION) + f"_{kind}").drop(_CRITERION)
    return named.filter(pl.col("metric").is_in([*FAIRNESS]))


def _largest_area(areas: pl.LazyFrame, within: Sequence[str]) -> pl.LazyFrame:
    """Find the segment whose curve is farthest from that of its complement."""
    known, value = areas.drop_nulls("value"), pl.col("value")
    largest = pl.col(AUDIT_KEYS[1]).filter(value == value.max()).first()
    metric = next(metric.name for metric in FAIRNESS.values() if metric.kind == "area")
    return (
        known.group_by(within, maintain_order=True)
        .agg(segment=largest, value=value.max())
        .with_columns(metric=pl.lit(metric), reference=pl.lit("rest"))
    )


def fairness(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 0,
    max_groups: int = 200,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Weighted fairness metrics: the largest difference and smallest ratio between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level
        As for `summary`. Without a ``score`` the ``selected`` are compared, and there is no AUC.
    attributes, intersections
        The attributes, whose values are the groups: see `group_gaps`.
    threshold
        Rows with at least this score are predicted positive.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    min_rows
        Leave out estimates from fewer rows, as `audit` does with 30: rows of each class for an
        AUC, and of each class of the complement too for an ABROCA; all rows for a selection rate,
        positives for a tpr, negatives for an fpr, rows predicted positive for a ppv.
    max_groups
        With more groups than this ``max_abroca`` is null: its time and memory grow with the
        number of rows times the number of groups, those of all other metrics with the number of
        rows.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. All
        limits and tests then use the variances of the design and its degrees of freedom.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with a row for each attribute, score and metric, in
        this order: ``demographic_parity_difference``, ``demographic_parity_ratio`` (of the
        selection rates; less than 0.8 fails the four-fifths rule),
        ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr),
        ``equalized_odds_difference``, ``equalized_odds_ratio`` (the worse of tpr and fpr),
        ``predictive_parity_difference`` (ppv), ``auc_difference``, and ``max_abroca``, the largest
        area between the ROC curves of a group and of its complement [2]_.

        - Of a difference ``segment`` is the group with the largest value and ``reference`` that
          with the smallest; ``gap, gap_low, gap_high`` are the largest difference and limits that
          hold for it whichever groups have it.
        - Of a ratio ``segment`` is the group with the smallest value and ``reference`` that with
          the largest; ``ratio, ratio_low, ratio_high`` are the smallest ratio and its limits.
        - ``n, value, n_reference, reference_value``: rows and rates of both; of equalized odds
          those of the rate that decides.
        - ``p_value`` of the test that all groups are alike, the same for a difference and its
          ratio; null for ``auc_difference``, which `audit` tests by the gaps of the groups.
        - ``reason``: ``"undefined"`` where there is no difference, ratio or area; ``segment`` and
          ``reference`` are null where fewer than two groups are left. Values that are undefined or
          from too few rows are left out. Equalized odds need both rates. A ratio is undefined where
          the larger rate is 0.

        ``max_abroca`` has the area as ``value``, the reference ``"rest"`` and no limits. Limits are
        within 0 and 1, and null where a group has no limits and for more than 10,000 groups. All
        other columns are null: these are no tests of their own.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number, and unless one of ``threshold``
        and ``selected`` is given.

    Notes
    -----
    The rates are compared as in fairlearn [1]_, except that 0/0 is null. The largest difference
    between many small groups is large by chance: with 20 equal groups of 100 rows and a selection
    rate of 0.2 the interval of the picked pair alone leaves out parity in nine of ten samples. The
    limits here account for that, so that they say that some groups differ by at least so much.

    Intervals combine those of both groups: Wilson's for rates, those of ``method="score"`` for
    AUCs; differences and ratios by Donner and Zou [3]_, where a ratio excludes 1 exactly where the
    difference excludes 0. Each group has limits at the quantile of the
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
    >>> table = wroc.fairness(df, "y", "s", attributes="g", threshold=0.5)
    >>> table.select("metric", "segment", "value", "reference", "reference_value").head(3)
    shape: (3, 5)
    ┌───────────────────────────────┬─────────┬───────┬───────────┬─────────────────┐
    │ metric                        ┆ segment ┆ value ┆ reference ┆ reference_value │
    │ ---                           ┆ ---     ┆ ---   ┆ ---       ┆ ---             │
    │ str                           ┆ str     ┆ f64   ┆ str       ┆ f64             │
    ╞═══════════════════════════════╪═════════╪═══════╪═══════════╪═════════════════╡
    │ demographic_parity_difference ┆ a       ┆ 0.75  ┆ b         ┆ 0.25            │
    │ demographic_parity_ratio      ┆ b       ┆ 0.25  ┆ a         ┆ 0.75            │
    │ equal_opportunity_difference  ┆ a       ┆ 1.0   ┆ b         ┆ 0.5             │
    └───────────────────────────────┴─────────┴───────┴───────────┴─────────────────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    if choice is None:
        msg = "exactly one of `threshold` and `selected` must be given; found none"
        raise ValueError(msg)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    within_limit = pl.len() <= arguments.whole_number("max_groups", max_groups, low=1)
    survey = read_design(design)
    source = read_source(frame)
    name = score_name(source, score)
    score = score_or_decisions(source, score, selected)
    given = source, label, score, weight, attributes, pos_label
    rows: Rows = read_rows(*given, survey=survey, selected=selected, called="attributes")
    divisions = read_attributes(rows, intersections)
    thresholds = common_threshold(rows, choice)
    metrics = ThresholdMetrics(level, designed=survey.given)
    interval = Interval(level, "score", designed=survey.given).for_rows(rows)
    tables: list[list[pl.LazyFrame]] = [[], [], []]
    for division in divisions:
        grouped = rows.regrouped(division.keys)
        parts = (
            in_columns(cells_of_groups(grouped, thresholds), metrics.steps),
            summary_of(sum_groups(grouped, interval), interval),
            distances_to_rest(grouped, within_limit),
        )
        for part, table in zip(parts, tables, strict=True):
            table.append(division.named_once(part.sort(grouped.keys), rows.model_keys))
    within = [AUDIT_KEYS[0], *rows.model_keys]
    groups = Rows(rows.frame, [*AUDIT_KEYS, *rows.model_keys], within)
    rates, aucs, distances = (pl.concat(each) for each in tables)
    found = fairness_rows(groups, rates, aucs, interval, least, distances)
    if name is None:
        of_score = [metric.name for metric in FAIRNESS.values() if _AUC in metric.compares]
        found = found.filter(~pl.col("metric").is_in(of_score))
    return like_input(frame, comparison_table(found, rows, name))
