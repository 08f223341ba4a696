"""Bootstrap standard errors and confidence intervals for any metric of a curve.

Each replicate multiplies the weights of the same rows by random numbers. A row's multiplier comes
from a hash of its identity, so that all groups and scores share the same draws and a seed repeats
them. Only the weights change, so all replicates share one scan and one sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, get_args

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
from polars_wroc.inputs.designs import Design, GivenDesign, Replicates, SampleDesign, read_design
from polars_wroc.inputs.frames import read_rows, score_precision
from polars_wroc.inputs.rows import IntoColumns, Rows, polars_frame
from polars_wroc.metrics.registry import Formula, Metrics, from_walk, named_metrics, need_scores
from polars_wroc.plans.config import compiled_when
from polars_wroc.plans.queries import (
    FrameT,
    collect,
    join_on_keys,
    like_input,
    probability,
    sum_unless_null,
)
from polars_wroc.ranking.placements import REPLICATE, add_placements, row_curve
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.distributions import t_quantile
from polars_wroc.stats.variances import (
    DESIGN_DF,
    PRESENT_CLASSES,
    REPLICATES_AT_ONCE,
    Multiplier,
    design_df,
    draws_of,
    in_batches,
    poisson,
    random_multiplier,
    rescaled,
    seeds,
    signed_weights,
    smaller_df,
    unit_totals,
    with_places,
    with_signed_weights,
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
    design: Design | None = None,
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
        values, so that draws do not depend on the order of the rows. With a `Survey` the sampling
        units of each stratum are drawn with replacement, one less than it has, and the weights of
        each are multiplied by the number of its draws and n / (n - 1) [2]_. It takes no ``fpc``,
        and a stratum with one unit needs ``lonely="certainty"``. `ReplicateWeights` are the
        replicates themselves, and ``replicates`` and ``seed`` are not used: the error follows from
        their factors, null if one of them has no value. With these two leave out ``multiplier``,
        and limits are the value and Student's t times its error, which has the degrees of freedom
        ``df`` of `summary`: percentiles of few sampling units are too close.
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
    .. [2] Rao, J. N. K., Wu, C. F. J., Yue, K. (1992), Survey Methodology 18, 209-217.

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
    arguments.refuse_looks(level, "a bootstrap")
    level = arguments.level(level)
    drawing = _Drawing(read_design(design), replicates, seed, multiplier)
    formulas: dict[str, Formula] = _named(metrics, BOOTSTRAP_COLUMNS)
    table = polars_frame(frame)
    refuse_frequency(weight, "where rows are drawn")
    rows: Rows = drawing.read(table, label, score, weight, by, pos_label)
    rows.check_names(BOOTSTRAP_COLUMNS)
    replicated = drawing.measure(table, rows, score, formulas)
    group = [*rows.keys, "metric"]
    names = list(formulas)
    long = replicated.unpivot(
        on=names, index=[*rows.keys, REPLICATE], variable_name="metric", value_name="value"
    ).with_columns(pl.col("metric").cast(pl.Enum(names)))
    resampled = pl.col("value").filter(pl.col(REPLICATE) > 0)
    full, error = pl.col("value").filter(pl.col(REPLICATE) == 0).first(), resampled.std()
    if isinstance(rows.design, Replicates):
        error = _error(full, rows.design)
    numbers = {"value": full, "value_se": error, "n_replicates": resampled.count().cast(pl.Int64)}
    limits = {
        f"value_{end}": resampled.quantile((1 + side * level) / 2, "linear")
        for end, side in (("low", -1), ("high", 1))
    }
    result = long.group_by(group).agg(**numbers, **limits)
    if rows.design is not None:
        result = join_on_keys(result, _degrees_of_freedom(rows, rows.design), rows.keys)
        margin = t_quantile(level, design_df(pl.col)) * pl.col("value_se")
        value = pl.col("value")
        result = result.with_columns(value_low=value - margin, value_high=value + margin)
    in_order = rows.result(result.sort("metric"), BOOTSTRAP_COLUMNS)
    return like_input(frame, in_order.with_columns(pl.col("metric").cast(pl.String)))


def _error(full: pl.Expr, design: Replicates) -> pl.Expr:
    """Aggregate the values of replicate weights to a standard error; null where one is."""
    factors = [0.0, *design.factors]
    factor = pl.col(REPLICATE).replace_strict(range(len(factors)), factors, return_dtype=pl.Float64)
    return sum_unless_null(factor * (pl.col("value") - full) ** 2).sqrt()


def _degrees_of_freedom(rows: Rows, design: SampleDesign) -> pl.LazyFrame:
    """Compute those of each group: of the class that has rows in fewer units."""
    units = rows.frame
    if not isinstance(design, Replicates):
        signs = zip(PRESENT_CLASSES, (1, -1), strict=True)
        present = {name: (pl.col(WEIGHT) * sign > 0).sum() for name, sign in signs}
        units = unit_totals(units, rows.keys, present)
    return smaller_df(units, rows.keys, design, PRESENT_CLASSES, DESIGN_DF)


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
    design: Design | None = None,
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
    drawing = _Drawing(read_design(design), replicates, seed, multiplier)
    formulas: dict[str, Formula] = _named(metrics)
    table, columns = polars_frame(frame), [REPLICATE, *formulas]
    refuse_frequency(weight, "where rows are drawn")
    rows: Rows = drawing.read(table, label, score, weight, by, pos_label)
    rows.check_names(columns)
    replicated = drawing.measure(table, rows, score, formulas)
    return like_input(frame, rows.result(replicated.sort(REPLICATE), columns))


def _named(metrics: Metrics, taken: Sequence[str] = ()) -> dict[str, Formula]:
    """Read the metrics, whose names differ from those of other columns."""
    formulas: dict[str, Formula] = named_metrics(metrics)
    for name in formulas:
        if name in (*taken, REPLICATE, MODEL):
            arguments.reject("metrics", "not have the name of a result column", repr(name))
    return formulas


@dataclass(frozen=True)
class _Drawing:
    """How weights change from one replicate to the next."""

    survey: GivenDesign
    replicates: int
    seed: int
    multiplier: Multiplier

    def __post_init__(self) -> None:
        """Check the options."""
        replicates = arguments.whole_number("replicates", self.replicates, low=2)
        seed = arguments.whole_number("seed", self.seed, low=0)
        arguments.hold(self, replicates=replicates, seed=seed)
        arguments.option("multiplier", self.multiplier, get_args(Multiplier))
        given = self.survey.survey
        if self.survey.more_than_clusters and self.multiplier != "poisson":
            msg = f"`multiplier` must be left out with a survey design; found {self.multiplier!r}"
            raise ValueError(msg)
        if given.fpc is not None:
            rule = "be None where units are drawn: without it errors are rather too large"
            arguments.reject("fpc", rule, given.fpc)
        if given.lonely == "adjust":
            arguments.reject("lonely", "be 'null' or 'certainty' where units are drawn", "'adjust'")

    def read(self, *given: Any) -> Rows:
        """Read the rows, each of which is a unit unless the design has others."""
        survey = self.survey if self.survey.more_than_clusters else None
        alone = self.survey.cluster is None and self.survey.replicate_weights is None
        cluster = self.survey.cluster
        return read_rows(*given, cluster=cluster, survey=survey, each_a_cluster=alone)

    def measure(
        self,
        frame: pl.DataFrame | pl.LazyFrame,
        rows: Rows,
        score: IntoColumns,
        formulas: dict[str, Formula],
    ) -> pl.LazyFrame:
        """Compute the metrics of the data as replicate 0, then of each replicate."""
        draws = [*islice(seeds(self.seed), self.replicates)]
        when, walked = compiled_when(frame, self.replicates), from_walk(formulas)
        if when and walked and rows.design is None:
            # Needs numba, which is an extra.
            from polars_wroc.ranking.compiled_rows import resampled_sums  # noqa: PLC0415

            limits = poisson() if self.multiplier == "poisson" else None
            sums = resampled_sums(rows, when, draws, limits)
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
        groups = ordered.select(rows.keys).unique()
        tables = []
        for number, reweighted in enumerate(self._reweighted(ordered, rows, draws, eager=eager)):
            replicate = pl.lit(number, pl.Int64).alias(REPLICATE)
            metrics = rows.aggregate(add_placements(reweighted, rows.keys, checked), values)
            if rows.keys and isinstance(rows.design, Replicates):
                # Those without complete rows too.
                metrics = join_on_keys(groups, metrics, rows.keys)
            tables.append(metrics.select(*rows.keys, replicate, *formulas))
        return in_batches(tables, REPLICATES_AT_ONCE, "replicates") if eager else pl.concat(tables)

    def _reweighted(
        self, ordered: pl.LazyFrame, rows: Rows, draws: Sequence[int], *, eager: bool
    ) -> Iterator[pl.LazyFrame]:
        """Yield the rows with their own weights, then with those of each replicate."""
        if isinstance(rows.design, Replicates):
            signed = with_signed_weights(ordered, rows.design)
            for name in signed_weights(rows.design):
                yield signed.with_columns(pl.col(name).alias(WEIGHT))
            return
        yield ordered
        if rows.design is None:
            for seed in draws:
                drawn = pl.col(WEIGHT) * random_multiplier(self.multiplier, seed)
                yield ordered.with_columns(drawn.alias(WEIGHT))
            return
        drawn_from, units = with_places(ordered), draws_of(rows.design)
        if eager:
            drawn_from, units = collect(drawn_from).lazy(), collect(units).lazy()
        for seed in draws:
            yield rescaled(drawn_from, units, seed)
