"""Bootstrap standard errors and confidence intervals for any metric of a curve.

Each replicate multiplies the weights of the same rows by random numbers. A row's multiplier comes
from a hash of its identity, so that all groups and scores share the same draws and a seed repeats
them. Only the weights change, so all replicates share one scan and one sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import Confidence, Resamples, Seed
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight, refuse_frequency
from polars_wroc.inputs.designs import Design, GivenDesign, read_design
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.metrics.auc_sums import auc_influences
from polars_wroc.metrics.mean_sums import read_precision, require_all_probabilities
from polars_wroc.metrics.registry import Formula, Metrics, named_metrics, need_scores
from polars_wroc.progress import Progress
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import curve_of_points
from polars_wroc.rows import (
    Columns,
    Rows,
    Sampling,
    SegmentColumns,
    read_columns,
    replicate_rows,
    table_of,
    tabulate_models,
)
from polars_wroc.stats import resampling
from polars_wroc.stats.designs import Units
from polars_wroc.stats.levels import Level
from polars_wroc.stats.resampling import Multiplier
from polars_wroc.steps import SegmentRows, descend, find_steps
from polars_wroc.thresholds.honest import number_rows

_TYPES: Mapping[str, type[pl.DataType]] = {
    "metric": pl.String,
    **dict.fromkeys(("value", "value_se", "value_low", "value_high"), pl.Float64),
    "n_replicates": pl.Int64,
}
_REPLICATE = "replicate"


@check_call
def bootstrap(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    metrics: Metrics,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    resamples: Resamples = 500,
    seed: Seed = 0,
    multiplier: Multiplier = "poisson",
    design: Design | None = None,
    level: Confidence = 0.95,
    replicates: bool = False,
) -> FrameT:
    """Return metrics of a curve with bootstrap standard errors and intervals, per group.

    Use it for metrics for which no other function gives limits, or, with ``replicates=True``, for
    contrasts between groups and scores.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``metric``;
    - ``value``: the metric in the data;
    - ``value_low, value_high, value_se``: its confidence limits and standard error;
    - ``n_replicates``: the number of replicates in which the metric is defined.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.
    metrics
        One metric or several, as for `curve_metrics`.
    resamples
        Number of replicates, 2 or more.
    seed
        Seed of the random numbers: the same seed gives the same results with the same version of
        Polars.
    multiplier
        Distribution of the factors that multiply the weights in a replicate. ``"poisson"``: as if
        rows were drawn with replacement. ``"gamma"``: exponential with mean 1, the Bayesian
        bootstrap [1]_, in which no class ever vanishes; its standard errors are slightly too small.
    design
        A column or expression of clusters, whose rows share a factor. A `Survey`: sampling units
        are drawn with replacement within strata [2]_; it takes no ``fpc``, and a stratum with one
        unit needs ``lonely="certainty"``. `ReplicateWeights` are the replicates themselves, so
        ``resamples`` and ``seed`` are not used. With a `Survey` or `ReplicateWeights`, leave out
        ``multiplier``; limits then use Student's t.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    replicates
        Return the metrics of each replicate instead. Groups and scores share the draws, so the
        differences within a replicate keep their correlation.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and metric, sorted by the ``by`` columns, then in the order of
        ``metrics``. ``metric`` is String, ``n_replicates`` Int64, the other columns are Float64;
        undefined numbers are null.

        With ``replicates``, one row per group (and model) and ``replicate`` (Int64; 0 is the data
        themselves) with a Float64 column for each metric.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`.

    References
    ----------
    .. [1] Rubin, D. B. (1981), Annals of Statistics 9, 130-134.
    .. [2] Rao, J. N. K., Wu, C. F. J., Yue, K. (1992), Survey Methodology 18, 209-217.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0] * 50, "s": [0.9, 0.8, 0.7, 0.1] * 50})
    >>> wroc.bootstrap(df, "y", "s", metrics="ks", resamples=200).select("metric", "value")
    shape: (1, 2)
    ┌────────┬───────┐
    │ metric ┆ value │
    │ ---    ┆ ---   │
    │ str    ┆ f64   │
    ╞════════╪═══════╡
    │ ks     ┆ 0.5   │
    └────────┴───────┘
    >>> wroc.bootstrap(df, "y", "s", metrics="ks", resamples=200, replicates=True).shape
    (201, 2)
    """
    given = read_design(design)
    _check_design(given, multiplier)
    formulas = _read_metrics(metrics)
    frame_of_rows = polars_frame(frame)
    refuse_frequency(weight, "if rows are drawn")
    columns = read_columns(frame_of_rows, label, score, weight, by, pos_label, design)
    types: dict[str, type[pl.DataType]] = dict(_TYPES)
    if replicates:
        types = {_REPLICATE: pl.Int64, **dict.fromkeys(formulas, pl.Float64)}
    drawing = _Drawing(given, [*islice(resampling.seeds(seed), resamples)], multiplier)
    plan = _Plan(columns, formulas, drawing, Level.of(level), replicates)
    return table_of(frame, columns, columns.schema(types), partial(_resample_rows, plan=plan))


def _check_design(given: GivenDesign, multiplier: Multiplier) -> None:
    """Raise for arguments that have no meaning if sampling units are drawn."""
    if given.more_than_clusters and multiplier != "poisson":
        msg = f"`multiplier` must be left out with a survey design; found {multiplier!r}"
        raise ValueError(msg)
    if given.survey.fpc is not None:
        rule = "be None if sampling units are drawn, which makes errors rather too large"
        checks.reject("fpc", rule, given.survey.fpc)
    if given.survey.lonely == "adjust":
        checks.reject("lonely", "be 'null' or 'certainty' if sampling units are drawn", "'adjust'")


def _read_metrics(metrics: Metrics) -> dict[str, Formula]:
    """Read the metrics, and check that their names differ from the names of other columns."""
    formulas: dict[str, Formula] = named_metrics(metrics)
    for name in formulas:
        if name in (*_TYPES, _REPLICATE, MODEL):
            checks.reject("metrics", "not have the name of a result column", repr(name))
    return formulas


@dataclass(frozen=True)
class _Drawing:
    """The draws of weights: a seed for each replicate, and the distribution of multipliers."""

    given: GivenDesign
    seeds: Sequence[int]
    multiplier: Multiplier

    def weights(self, rows: Rows, segments: SegmentRows, identity: pl.Series) -> Iterator[Array]:
        """Yield the weights of the rows of segments, then those in each replicate."""
        own = np.abs(segments.weight)
        if self.given.replicate_weights is not None:
            assert rows.sample is not None
            for each in replicate_rows(rows.sample, segments):
                yield np.abs(each.weight)
            return
        yield own
        if self.given.more_than_clusters:
            assert rows.sample is not None
            units = rows.sample.units
            assert isinstance(units, Units)
            order, unit = _order_units(rows.sample, identity), rows.sample.unit[segments.order]
            for times in self._draw_units(units, order):
                yield own * times[unit]
            return
        known = identity.gather(segments.order)
        draw = resampling.MULTIPLIERS[self.multiplier]
        for seed in self.seeds:
            yield own * draw(resampling.hash_evenly(known, seed))

    def _draw_units(self, units: Units, order: Ints) -> Iterator[Array]:
        """Yield the multipliers of the weights of units in each replicate."""
        if units.lonely != "certainty" and (units.size == 1).any():
            rule = "be 'certainty' if a stratum with one sampling unit is resampled"
            checks.reject("lonely", rule, repr(units.lonely))
        draws = pl.Series(np.arange(resampling.count_draws(units).sum()), dtype=pl.UInt32)
        for seed in self.seeds:
            yield resampling.rescale_units(units, order, resampling.hash_evenly(draws, seed))


def _order_units(sample: Sampling, identity: pl.Series) -> Ints:
    """Return the units ordered by stratum, independently of the order of the rows.

    Units without rows come last. If rows are units, they are in the order of their ``identity``.
    """
    rank = np.full(len(sample.stratum), np.inf)
    rank[sample.unit] = sample.unit if sample.cluster is not None else identity.to_numpy()
    return np.lexsort((rank, sample.stratum))


@dataclass(frozen=True)
class _Plan:
    """The metrics that are computed in each replicate."""

    columns: Columns
    formulas: Mapping[str, Formula]
    drawing: _Drawing
    level: Level
    replicates: bool

    def expressions(self, model: str) -> list[pl.Expr]:
        """Return the metrics as aggregations of the points of a curve of a model."""
        tp, fp = pl.col("tp"), pl.col("fp")
        curve = curve_of_points(tp, fp, tp.last(), fp.last())
        if need_scores(self.formulas):
            precision = pl.lit(read_precision(self.columns)[model])
            curve = replace(curve, score=pl.col("score"), precision=precision)
        return [formula(curve).alias(name) for name, formula in self.formulas.items()]


@dataclass(frozen=True)
class _Curves:
    """The curves of segments, with rows in descending order of the score.

    ``firsts`` are the places of the first rows of the steps. The steps of the ``filled`` segments
    begin at ``starts``. The weights of both classes are written to ``sides`` and added up in
    ``sums``, since new arrays for each replicate would take most of the time.
    """

    segments: SegmentRows
    firsts: Ints
    filled: Ints
    starts: Ints
    is_positive: Array
    sides: Array
    sums: Array

    def draw(self, weight: Array) -> pl.DataFrame:
        """Return the points of all curves with new weights, valid until the next draw."""
        positive, negative = self.sides
        np.multiply(weight, self.is_positive, out=positive)
        np.subtract(weight, positive, out=negative)
        steps = self.sides
        if len(self.firsts) < len(weight):
            steps = np.add.reduceat(self.sides, self.firsts, axis=-1)
        for first, stop in pairwise([*self.starts.tolist(), len(self.firsts)]):
            np.cumsum(steps[:, first:stop], axis=-1, out=self.sums[:, first:stop])
        tp, fp = self.sums
        return self.points.with_columns(pl.Series("tp", tp), pl.Series("fp", fp))

    @cached_property
    def points(self) -> pl.DataFrame:
        """The segment and the score of each step."""
        segment = np.repeat(self.filled, np.diff(self.starts, append=len(self.firsts)))
        return pl.DataFrame({"segment": segment, "score": self.segments.score[self.firsts]})


def _sort_rows(segments: SegmentRows) -> _Curves:
    """Return the curves of segments, with their rows in descending order of the score."""
    ordered = descend(segments)
    firsts, starts = find_steps(ordered)
    filled = np.flatnonzero(np.diff(starts) > 0)
    number = len(ordered.weight)
    return _Curves(
        ordered,
        firsts,
        filled,
        starts[filled],
        (ordered.weight > 0).astype(np.float64),
        np.empty((2, number)),
        np.empty((2, len(firsts))),
    )


def _resample_rows(rows: Rows, plan: _Plan) -> pl.DataFrame:
    if need_scores(plan.formulas):
        require_all_probabilities(rows)
    sample = rows.sample
    number = len(plan.drawing.seeds)
    if sample is not None and sample.factors is not None:
        number = len(sample.factors)
    identity = None if sample is None else sample.cluster
    if identity is None:
        identity = number_rows(rows)
    with Progress((1 + number) * len(rows.scores), "replicates") as progress:
        resample = partial(_resample_segments, plan=plan, identity=identity, progress=progress)
        return tabulate_models(rows, plan.columns, resample)


def _resample_segments(
    rows: Rows,
    segments: SegmentRows,
    plan: _Plan,
    identity: pl.Series,
    progress: Progress,
) -> list[SegmentColumns]:
    (model,) = rows.scores
    curves, expressions = _sort_rows(segments), plan.expressions(model)
    found = []
    for weight in plan.drawing.weights(rows, curves.segments, identity):
        found.append(_measure_curves(curves.draw(weight), expressions, segments.number))
        progress.advance()
    values = np.stack(found)
    if plan.replicates:
        return [_tabulate_replicates(values, plan)]
    return [_summarise_replicates(values, rows, segments, plan)]


def _measure_curves(points: pl.DataFrame, expressions: Sequence[pl.Expr], number: int) -> Array:
    """Return metrics of the curves of segments (metric, segment); NaN where undefined."""
    if number == 1:
        found, places = points.select(expressions), np.zeros(1, np.int64)
    else:
        grouped = points.group_by("segment", maintain_order=True).agg(expressions)
        found, places = grouped.drop("segment"), grouped["segment"].to_numpy()
    values = np.full((found.width, number), np.nan)
    values[:, places] = found.to_numpy().T
    return values


def _tabulate_replicates(values: Array, plan: _Plan) -> SegmentColumns:
    """Return the metrics of each segment and replicate."""
    number, _, segments = values.shape
    columns: dict[str, Array | Ints] = {_REPLICATE: np.tile(np.arange(number), segments)}
    for place, name in enumerate(plan.formulas):
        columns[name] = values[:, place].T.ravel()
    return SegmentColumns(np.repeat(np.arange(segments), number), columns)


def _summarise_replicates(
    values: Array, rows: Rows, segments: SegmentRows, plan: _Plan
) -> SegmentColumns:
    """Return the error and the limits of each segment and metric."""
    full, resampled = values[0], values[1:]
    error = resampling.find_standard_deviation(resampled)
    if rows.sample is not None and rows.sample.factors is not None:
        # If one replicate is unknown, so is the error.
        error = np.sqrt(np.einsum("r,rms->ms", rows.sample.factors, (resampled - full) ** 2))
    if rows.sample is not None and plan.drawing.given.more_than_clusters:
        df = rows.sample.units.df(auc_influences(rows, segments))
        margin = plan.level.quantile(df) * error
        low, high = full - margin, full + margin
    else:
        tail = plan.level.error / 2
        low, high = (
            resampling.find_quantile(resampled, tail),
            resampling.find_quantile(resampled, 1 - tail),
        )
    columns = {
        "value": full,
        "value_se": error,
        "value_low": low,
        "value_high": high,
        "n_replicates": (~np.isnan(resampled)).sum(axis=0),
    }
    table: dict[str, Array | Ints] = {name: each.T.ravel() for name, each in columns.items()}
    metrics = len(plan.formulas)
    names = np.tile(np.array([*plan.formulas]), segments.number)
    return SegmentColumns(
        np.repeat(np.arange(segments.number), metrics), {"metric": names, **table}
    )
