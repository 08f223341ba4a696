"""The largest gap among all groups: limits that hold for all pairs at once, and tests of any gap.

The pair with the largest gap is picked because its gap is large, so that its own interval leaves
out equality far too often. The limits here are those of the largest gap itself: every group has
limits at the quantile at which those of all pairs hold together, and no pair is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.plans.queries import join_on_keys, over
from polars_wroc.stats.distributions import (
    chi_squared_p_value,
    f_p_value,
    simultaneous_quantile,
    student_score,
)
from polars_wroc.stats.proportions import Estimate, Limits, difference_limits, ratio_limits

JOINT_COLUMNS = ("joint_low", "joint_high", "p_value")
# Of more groups than this not every pair is compared, but the ends of all limits.
MOST_IN_PAIRS = 200

_CRITERION, _METRIC = "__criterion", "__metric"
_GROUP, _GROUPS, _QUANTILE = "__group", "__groups", "__quantile"
_OTHER = "__other"
# Limits of the differences and ratios of all pairs.
_ENDS = ("difference_low", "difference_high", "ratio_low", "ratio_high")
_KEYS = (_CRITERION, _METRIC)


class Compared(NamedTuple):
    """A metric that a criterion compares between groups.

    ``table`` has a row for each group with the column ``metric``, null where it is left out.
    ``limits`` are those of a group at a quantile, and ``size`` is its effective sample size, null
    where the metric is no proportion. By the design of a survey variances have ``df`` degrees of
    freedom, and the quantile is Student's.
    """

    metric: str
    table: pl.LazyFrame
    limits: Callable[[pl.Expr], Limits]
    size: pl.Expr
    df: pl.Expr | None = None


def largest_gaps(
    criteria: dict[str, list[Compared]], partition_keys: Sequence[str], level: float
) -> pl.LazyFrame:
    """Limits of the largest difference and smallest ratio, and p-values of any difference.

    A criterion of several metrics is as bad as the worst of them; each has its share of the
    error. One row for each criterion and kind, ``metric`` being the name of both.
    """
    estimates = [
        _with_limits(criterion, compared, partition_keys, 1 - (1 - level) / len(several))
        for criterion, several in criteria.items()
        for compared in several
    ]
    # Numbered, so that a group is not compared with itself.
    groups = pl.concat(estimates).with_row_index(_GROUP).cache()
    keys = [*partition_keys, *_KEYS]
    limits = pl.concat([_of_pairs(groups, keys), _of_ends(groups, keys)])
    designed = any(one.df is not None for several in criteria.values() for one in several)
    of_metrics = join_on_keys(limits, _alike(groups, keys, designed=designed), keys)
    metrics = {criterion: len(several) for criterion, several in criteria.items()}
    return _worst(of_metrics, [*partition_keys, _CRITERION], metrics)


def _with_limits(
    criterion: str, compared: Compared, partition_keys: Sequence[str], level: float
) -> pl.LazyFrame:
    """One row per group with a value, with its limits at the quantile for so many groups."""
    known = compared.table.drop_nulls(compared.metric)
    groups = over(pl.len(), partition_keys)
    counted = known.with_columns(groups.alias(_GROUPS))
    counted = counted.with_columns(simultaneous_quantile(level, pl.col(_GROUPS)).alias(_QUANTILE))
    if compared.df is not None:
        students = student_score(pl.col(_QUANTILE), compared.df)
        counted = counted.with_columns(students.alias(_QUANTILE))
    limits = compared.limits(pl.col(_QUANTILE))
    return counted.select(
        *partition_keys,
        pl.lit(criterion).alias(_CRITERION),
        pl.lit(compared.metric).alias(_METRIC),
        pl.col(_GROUPS),
        value=pl.col(compared.metric),
        low=limits.low,
        high=limits.high,
        size=compared.size,
        df=pl.lit(None, pl.Float64) if compared.df is None else compared.df,
    )


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
    """Bound what the pairs of many groups would give by the ends of the limits of all groups.

    The limits of a pair are never farther apart than those of both groups.
    """
    many = groups.filter(pl.col(_GROUPS) > MOST_IN_PAIRS)
    low, high = pl.col("low"), pl.col("high")
    gaps = (low.max() - high.min(), high.max() - low.min())
    ratios = (low.min() / high.max(), high.min() / low.max())
    return _known_ends(many, keys, (*gaps, *ratios))


def _known_ends(
    table: pl.LazyFrame, keys: Sequence[str], ends: tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate the limits of a criterion; null unless every group has limits.

    Those of ratios also where all values are 0.
    """
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


def _worst(table: pl.LazyFrame, keys: Sequence[str], metrics: dict[str, int]) -> pl.LazyFrame:
    """Reduce the metrics of a criterion to the worst; null unless all are known."""
    expected = pl.col(_CRITERION).replace_strict(metrics, return_dtype=pl.Int64)

    def of_all(column: str, reduce: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
        value = pl.col(column)
        return pl.when(value.count() == expected.first()).then(reduce(value))

    limits = [
        of_all(name, pl.Expr.max if name.startswith("difference") else pl.Expr.min).alias(name)
        for name in _ENDS
    ]
    p_value = of_all("p_value", lambda p: (p.min() * p.count()).clip(upper_bound=1.0))
    worst = table.group_by(keys, maintain_order=True).agg(*limits, p_value=p_value)
    return pl.concat(
        worst.select(
            *keys[:-1],
            metric=pl.col(_CRITERION) + f"_{kind}",
            joint_low=pl.col(f"{kind}_low").clip(lower_bound=0.0),
            joint_high=pl.col(f"{kind}_high").clip(upper_bound=1.0),
            p_value="p_value",
        )
        for kind in ("difference", "ratio")
    )
