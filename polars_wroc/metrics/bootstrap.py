"""A bootstrap for what has no formula: the same rows, weighted anew at random.

A row's multiplier in a replicate is made from a hash of its identity, so that all groups
and all scores see the same draw, a seed repeats it, and nothing but the weights changes: all
replicates share one scan and one sort.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.formulas import Metric
from polars_wroc.metrics.registry import Metrics, named_metrics
from polars_wroc.plans.collect import FrameT, collect, like_input
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements, row_curve
from polars_wroc.stats.resampling import in_batches, seeds

Multiplier: TypeAlias = Literal["poisson", "gamma"]

BOOTSTRAP_COLUMNS = ("metric", "value", "se", "ci_low", "ci_high", "n_replicates")
REPLICATE = "replicate"
# A Poisson variable of mean 1 is larger once in a million million draws.
_LARGEST_POISSON = 14
# Replicates that share the memory.
_AT_ONCE = 16


def bootstrap(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    metrics: Metrics,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    replicates: int = 500,
    seed: int = 0,
    multiplier: Multiplier = "poisson",
    cluster: IntoColumn | None = None,
    level: float = 0.95,
) -> FrameT:
    """Standard errors and percentile intervals of metrics of a curve, by resampling.

    For an AUC alone `summary` is better and faster.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, by, pos_label
        As for `summary`.
    metrics
        One metric or several, as for `curve_metrics`.
    replicates
        How often to resample.
    seed
        Another seed gives other draws; the same repeats them, with one version of Polars.
    multiplier
        What a row's weight is multiplied by in a replicate. ``"poisson"``: how often it would
        be drawn. ``"gamma"``: an exponential variable, the Bayesian bootstrap [1]_, in which
        no class ever vanishes; its standard errors are too small by one row in the smaller
        class.
    cluster
        Column name or expression that is equal in rows that belong together: they share their
        multipliers. None draws for each row by itself; rows are sorted by all that they hold
        first, so that draws do not depend on their order.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and metric, sorted by the ``by`` columns, then in the
        order of ``metrics``. After them come ``metric`` (String), ``value, se, ci_low,
        ci_high`` (Float64; the first is that of the data themselves) and ``n_replicates``
        (Int64): in how many replicates the metric was defined. Undefined is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an option that does not exist.

    Notes
    -----
    All replicates of a LazyFrame are one query, whose memory grows with their number, by some
    20 bytes a row for each. A DataFrame's are worked on a few at a time.

    References
    ----------
    .. [1] Rubin, D. B. (1981), Annals of Statistics 9, 130-134.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0] * 50, "s": [0.9, 0.8, 0.7, 0.1] * 50})
    >>> wroc.bootstrap(df, "y", "s", metrics="ks", replicates=200).select("metric", "value")
    shape: (1, 2)
    ┌────────┬───────┐
    │ metric ┆ value │
    │ ---    ┆ ---   │
    │ str    ┆ f64   │
    ╞════════╪═══════╡
    │ ks     ┆ 0.5   │
    └────────┴───────┘
    """
    arguments.level(level)
    formulas: dict[str, Metric] = named_metrics(metrics)
    names: list[str] = list(formulas)
    _check_names(names, [*BOOTSTRAP_COLUMNS, REPLICATE, MODEL])
    taken = [*BOOTSTRAP_COLUMNS, REPLICATE, *names]
    rows: Rows = _rows(frame, label, score, weight, by, pos_label, cluster, taken)
    table = _replicates(
        rows, formulas, replicates, seed, multiplier, eager=isinstance(frame, pl.DataFrame)
    )
    group = [*rows.keys, "metric"]
    long = table.unpivot(
        on=names, index=[*rows.keys, REPLICATE], variable_name="metric", value_name="value"
    ).with_columns(pl.col("metric").cast(pl.Enum(names)))
    value, drawn = pl.col("value"), pl.col(REPLICATE) > 0
    resampled = value.filter(drawn)
    result = long.group_by(group).agg(
        value.filter(~drawn).first(),
        se=resampled.std(),
        ci_low=resampled.quantile((1 - level) / 2, "linear"),
        ci_high=resampled.quantile((1 + level) / 2, "linear"),
        n_replicates=resampled.count().cast(pl.Int64),
    )
    in_order = rows.sorted_by_keys(result.sort("metric")).with_columns(
        pl.col("metric").cast(pl.String)
    )
    return like_input(frame, in_order.select(*rows.keys, *BOOTSTRAP_COLUMNS))


def bootstrap_replicates(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    metrics: Metrics,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    replicates: int = 500,
    seed: int = 0,
    multiplier: Multiplier = "poisson",
    cluster: IntoColumn | None = None,
) -> FrameT:
    """The metrics in each replicate of `bootstrap`: for differences and other contrasts.

    Groups and scores of one replicate were drawn together, so that a difference between them
    within each replicate keeps their correlation.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, metrics, replicates, seed, multiplier, cluster
        As for `bootstrap`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and replicate, sorted by the ``by`` columns, then by
        ``replicate`` (Int64), which is 0 for the data themselves and counts up from 1. After it
        comes a Float64 column for each metric, null where a class has no weight.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `bootstrap`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0] * 50, "s": [0.9, 0.8, 0.7, 0.1] * 50})
    >>> wroc.bootstrap_replicates(df, "y", "s", metrics="ks", replicates=200).shape
    (201, 2)
    """
    formulas: dict[str, Metric] = named_metrics(metrics)
    _check_names(formulas, [REPLICATE, MODEL])
    taken = [REPLICATE, *formulas]
    rows: Rows = _rows(frame, label, score, weight, by, pos_label, cluster, taken)
    table = _replicates(
        rows, formulas, replicates, seed, multiplier, eager=isinstance(frame, pl.DataFrame)
    )
    return like_input(frame, rows.sorted_by_keys(table.sort(REPLICATE)))


def _check_names(names: Iterable[str], taken: Sequence[str]) -> None:
    for name in names:
        if name in taken:
            msg = f"`metrics` must not have the name of a result column; found {name!r}"
            raise ValueError(msg)


def _rows(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
    cluster: IntoColumn | None,
    result_columns: Sequence[str],
) -> Rows:
    return read_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        result_columns=result_columns,
        cluster=cluster,
        each_a_cluster=cluster is None,
    )


def _replicates(
    rows: Rows,
    formulas: dict[str, Metric],
    replicates: int,
    seed: int,
    multiplier: Multiplier,
    *,
    eager: bool,
) -> pl.LazyFrame:
    """Lay out the metrics of the data as replicate 0, then of each replicate."""
    arguments.whole_number("replicates", replicates, low=2)
    arguments.whole_number("seed", seed, low=0)
    arguments.option("multiplier", multiplier, get_args(Multiplier))
    ordered = by_descending_score(rows)
    if eager:
        ordered = collect(ordered).lazy()
    checked = rows.observations.signed_weight
    values = {name: formula(row_curve()) for name, formula in formulas.items()}
    tables = []
    draws = seeds(seed)
    for number in range(replicates + 1):
        drawn = _multiplier(multiplier, next(draws)) if number else pl.lit(1.0)
        again = ordered.with_columns((pl.col(WEIGHT) * drawn).alias(WEIGHT))
        replicate = pl.lit(number, pl.Int64).alias(REPLICATE)
        metrics = rows.aggregate(add_placements(again, rows.keys, checked), values)
        tables.append(metrics.select(*rows.keys, replicate, *formulas))
    return in_batches(tables, _AT_ONCE) if eager else pl.concat(tables)


def _multiplier(kind: Multiplier, seed: int) -> pl.Expr:
    """Turn the hash of a row's identity into a random variable of mean 1."""
    share = pl.col(CLUSTER).hash(seed).cast(pl.Float64) / 2.0**64
    if kind == "gamma":
        return -(share.clip(lower_bound=2.0**-64)).log()
    probabilities = (math.exp(-1) / math.factorial(k) for k in range(_LARGEST_POISSON))
    return pl.sum_horizontal((share > limit).cast(pl.Int8) for limit in accumulate(probabilities))
