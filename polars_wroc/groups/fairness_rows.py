"""Rows of fairness metrics: the largest differences and smallest ratios, with limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import polars as pl

from polars_wroc.groups.comparison_tests import limited
from polars_wroc.groups.comparisons import (
    COMPARED_RATES,
    FAIRNESS,
    OWN_WEIGHTS,
    PLACE,
    UNDEFINED,
    Kind,
    large_enough,
    sample_sizes,
)
from polars_wroc.groups.references import named_segment
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.looks import Looks
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import SKEWNESS
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns, when
from polars_wroc.plans.queries import join_on_keys, over
from polars_wroc.stats.distributions import (
    chi_squared_p_value,
    f_p_value,
    student_score,
)
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    Proportion,
    difference_limits,
    rate_score,
    ratio_limits,
)
from polars_wroc.stats.studentized_range import simultaneous_quantile
from polars_wroc.stats.variances import design_df

# Of more groups than this not every pair is compared, but the ends of all limits.
MOST_IN_PAIRS = 200
_AUC = ROC_AUC.column
# Each criterion with the metrics it compares: it is as bad as the worst of them.
_CRITERIA = {m.criterion: m.compares for m in FAIRNESS.values() if m.kind != "area"}
_CRITERION, _GROUP, _GROUPS, _OTHER = "__criterion", "__group", "__groups", "__other"
_METRICS = "__metrics"
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
    *,
    at_once: bool,
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
    table = _largest_gaps(rates, aucs, within, interval, at_once=at_once)
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
    rates: pl.LazyFrame,
    aucs: pl.LazyFrame,
    within: Sequence[str],
    interval: Interval,
    *,
    at_once: bool,
) -> pl.LazyFrame:
    """Find the largest difference and the smallest ratio, with limits and p-values of any gap.

    Each metric of a criterion has its share of the error.
    """
    segments = [
        _segments_of(aucs if metric == _AUC else rates, criterion, metric, within, interval)
        for criterion, metrics in _CRITERIA.items()
        for metric in metrics
    ]
    long = pl.concat(segments, how="diagonal")
    # Numbered, so that a group is not compared with itself.
    numbered = in_columns(long, [partial(_limits, interval=interval)], at_once=at_once)
    numbered = numbered.with_row_index(_GROUP)
    columns = [_CRITERION, _GROUP, _GROUPS, "metric", *_OF_GROUP, *Limits._fields, "size", "df"]
    groups = numbered.select(*within, *columns).cache()
    keys = [*within, _CRITERION, "metric"]
    limits = pl.concat([_of_pairs(groups, keys), _of_ends(groups, keys)])
    table, alike = _extremes(groups, keys), _alike(groups, keys, designed=interval.designed)
    if isinstance(interval.level, Looks):
        # This test holds at one look.
        alike = alike.with_columns(p_value=pl.lit(None, pl.Float64))
    for each in (limits, alike):
        table = join_on_keys(table, each, keys)
    table = table.cache()
    kinds: tuple[Kind, ...] = ("difference", "ratio")
    return pl.concat([_worst(table, kind, within) for kind in kinds], how="diagonal")


def _segments_of(
    table: pl.LazyFrame, criterion: str, metric: str, within: Sequence[str], interval: Interval
) -> pl.LazyFrame:
    """One row per group with a value, with what its limits rest on, as in a comparison.

    An AUC has no effective sample size.
    """
    counted = table.drop_nulls(metric).with_columns(over(pl.len(), within).alias(_GROUPS))
    parts = interval.score_sizes(pl.col) | {"skew": pl.lit(SKEWNESS)}
    parts |= dict.fromkeys(("size", "slope_own", "inverse_df_own"), pl.lit(None, pl.Float64))
    if metric != _AUC:
        rate = Proportion.named(metric, pl.col)
        parts = {"complement_own": 1 - rate.value, "skew": pl.lit(0.0)}
        parts |= dict.fromkeys(("size_low_own", "size_high_own"), rate.size)
        parts |= {"size": rate.effective_size, "slope_own": rate.slope}
        parts |= {"inverse_df_own": rate.inverse_df}
    return counted.select(
        *within,
        pl.lit(criterion).alias(_CRITERION),
        pl.lit(len(_CRITERIA[criterion])).alias(_METRICS),
        pl.col(_GROUPS),
        metric=pl.lit(metric),
        segment=AUDIT_KEYS[1],
        name=named_segment(),
        value_own=metric,
        n=f"n_{metric}",
        df=design_df(pl.col) if interval.designed else pl.lit(None, pl.Float64),
        **parts,
    )


def _limits(field: Fields, interval: Interval) -> Formula[Columns]:
    """Add the value and limits that hold for all groups and the metrics of a criterion."""
    of_one, of_two = (
        simultaneous_quantile(interval.level, field(_GROUPS), metrics) for metrics in (1, 2)
    )
    quantile = when(field(_METRICS) == 1).then(of_one).otherwise(of_two)
    if interval.designed:
        quantile = student_score(quantile, field("df"))
    else:
        quantile = rate_score(quantile, field("inverse_df_own"))
    (quantile,) = yield [quantile]
    estimate = yield from limited("own", quantile, field)
    return estimate._asdict()


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
