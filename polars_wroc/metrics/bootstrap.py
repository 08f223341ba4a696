"""Bootstrap standard errors and confidence intervals for any metric of a curve.

Each replicate multiplies the weights of the same rows by random numbers. A row's multiplier comes
from a hash of its identity, so that all groups and scores share the same draws and a seed repeats
them. Only the weights change, so all replicates share one scan and one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    MODEL,
    SCORE,
    WEIGHT,
    IntoColumn,
    IntoWeight,
    refuse_frequency,
)
from polars_wroc.inputs.frames import read_rows, score_precision
from polars_wroc.inputs.rows import IntoColumns, Rows, polars_frame
from polars_wroc.metrics.registry import Formula, Metrics, from_walk, named_metrics, need_scores
from polars_wroc.plans.config import compiled_when
from polars_wroc.plans.queries import FrameT, collect, like_input, probability
from polars_wroc.ranking.placements import REPLICATE, add_placements, row_curve
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.variances import (
    REPLICATES_AT_ONCE,
    Multiplier,
    in_batches,
    poisson,
    random_multiplier,
    seeds,
)

BOOTSTRAP_COLUMNS = ("metric", "value", "value_se", "value_low", "value_high", "n_replicates")


def bootstrap(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    metrics: Metrics,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    replicates: int = 500,
    seed: int = 0,
    multiplier: Multiplier = "poisson",
    design: IntoColumn | None = None,
    level: float = 0.95,
) -> FrameT:
    """Bootstrap standard errors and percentile confidence intervals of metrics of a curve.

    For an AUC alone the interval of `summary` is better and faster.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    metrics
        One metric or several, as for `curve_metrics`.
    replicates
        Number of replicates, 2 or more.
    seed
        Seed of the random numbers. Results repeat with the same seed and version of Polars, on
        both engines (see `Config`).
    multiplier
        Distribution of the number that a row's weight is multiplied by in a replicate.
        ``"poisson"``: Poisson with mean 1, as if rows were drawn with replacement. ``"gamma"``:
        exponential with mean 1, the Bayesian bootstrap [1]_, in which no class ever vanishes;
        its standard errors are slightly too small, as if each class had one row more.
    design
        Column name or expression of each row's cluster; the rows of a cluster share their
        multiplier. None draws a multiplier for each row; rows are first sorted by all their
        values, so that draws do not depend on the order of the rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and metric, sorted by the ``by`` columns, then in the
        order of ``metrics``. After them come ``metric`` (String), ``value, value_se, value_low,
        value_high`` (Float64; ``value`` is that of the data themselves) and ``n_replicates``
        (Int64), the number of replicates in which the metric is defined. Undefined is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown option.

    Notes
    -----
    For a LazyFrame all replicates are one query, whose memory grows by some 20 bytes per row
    and replicate. For a DataFrame they are computed a few at a time, and several times faster by
    the compiled engine (see `Config`). If it takes long, a line on a terminal says how many are
    done.

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
    level = arguments.level(level)
    formulas: dict[str, Formula] = _named(metrics, BOOTSTRAP_COLUMNS)
    table = polars_frame(frame)
    refuse_frequency(weight, "where rows are drawn")
    rows: Rows = read_rows(
        table, label, score, weight, by, pos_label, cluster=design, each_a_cluster=design is None
    )
    rows.check_names(BOOTSTRAP_COLUMNS)
    replicated = _replicates(table, rows, score, formulas, replicates, seed, multiplier)
    group = [*rows.keys, "metric"]
    names = list(formulas)
    long = replicated.unpivot(
        on=names, index=[*rows.keys, REPLICATE], variable_name="metric", value_name="value"
    ).with_columns(pl.col("metric").cast(pl.Enum(names)))
    value, drawn = pl.col("value"), pl.col(REPLICATE) > 0
    resampled = value.filter(drawn)
    result = long.group_by(group).agg(
        value.filter(~drawn).first(),
        value_se=resampled.std(),
        value_low=resampled.quantile((1 - level) / 2, "linear"),
        value_high=resampled.quantile((1 + level) / 2, "linear"),
        n_replicates=resampled.count().cast(pl.Int64),
    )
    in_order = rows.result(result.sort("metric"), BOOTSTRAP_COLUMNS)
    return like_input(frame, in_order.with_columns(pl.col("metric").cast(pl.String)))


def bootstrap_replicates(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    metrics: Metrics,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    replicates: int = 500,
    seed: int = 0,
    multiplier: Multiplier = "poisson",
    design: IntoColumn | None = None,
) -> FrameT:
    """Metrics in each replicate of `bootstrap`, for differences and other contrasts.

    Groups and scores share the draws of a replicate, so that a difference between them, taken
    within each replicate, keeps their correlation.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, metrics, replicates, seed, multiplier, design
        As for `bootstrap`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and replicate, sorted by the ``by`` columns, then by
        ``replicate`` (Int64), which is 0 for the data themselves and from 1 for the replicates.
        After it comes a Float64 column for each metric, null where it is not defined.

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
    formulas: dict[str, Formula] = _named(metrics)
    columns = [REPLICATE, *formulas]
    table = polars_frame(frame)
    refuse_frequency(weight, "where rows are drawn")
    rows: Rows = read_rows(
        table, label, score, weight, by, pos_label, cluster=design, each_a_cluster=design is None
    )
    rows.check_names(columns)
    replicated = _replicates(table, rows, score, formulas, replicates, seed, multiplier)
    return like_input(frame, rows.result(replicated.sort(REPLICATE), columns))


def _named(metrics: Metrics, taken: Sequence[str] = ()) -> dict[str, Formula]:
    """Read the metrics, whose names differ from those of other columns."""
    formulas: dict[str, Formula] = named_metrics(metrics)
    for name in formulas:
        if name in (*taken, REPLICATE, MODEL):
            msg = f"`metrics` must not have the name of a result column; found {name!r}"
            raise ValueError(msg)
    return formulas


def _replicates(
    frame: pl.DataFrame | pl.LazyFrame,
    rows: Rows,
    score: IntoColumns,
    formulas: dict[str, Formula],
    replicates: int,
    seed: int,
    multiplier: Multiplier,
) -> pl.LazyFrame:
    """Compute the metrics of the data as replicate 0, then of each replicate."""
    replicates = arguments.whole_number("replicates", replicates, low=2)
    seed = arguments.whole_number("seed", seed, low=0)
    arguments.option("multiplier", multiplier, get_args(Multiplier))
    draws = list(islice(seeds(seed), replicates))
    when, walked = compiled_when(frame, replicates), from_walk(formulas)
    if when and walked:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_rows import resampled_sums  # noqa: PLC0415

        sums = resampled_sums(rows, when, draws, poisson() if multiplier == "poisson" else None)
        return sums.select(*rows.keys, REPLICATE, **walked)
    curve, ordered = row_curve(), by_descending_score(rows)
    if need_scores(formulas):
        known = pl.col(SCORE).cast(pl.Float64)
        curve = replace(curve, score=known, precision=score_precision(frame, score))
        ordered = ordered.with_columns(probability("score", pl.col(SCORE)).alias(SCORE))
    eager = not isinstance(frame, pl.LazyFrame)
    if eager:
        ordered = collect(ordered).lazy()
    checked = rows.observations.signed_weight
    values = {name: formula(curve) for name, formula in formulas.items()}
    tables = []
    for number in range(replicates + 1):
        drawn = random_multiplier(multiplier, draws[number - 1]) if number else pl.lit(1.0)
        reweighted = ordered.with_columns((pl.col(WEIGHT) * drawn).alias(WEIGHT))
        replicate = pl.lit(number, pl.Int64).alias(REPLICATE)
        metrics = rows.aggregate(add_placements(reweighted, rows.keys, checked), values)
        tables.append(metrics.select(*rows.keys, replicate, *formulas))
    return in_batches(tables, REPLICATES_AT_ONCE, "replicates") if eager else pl.concat(tables)
