"""Points of a ROC curve at a given rate, with limits, and the points of bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.bounds import Between, Bins, Proportion
from polars_wroc.calls import check_call
from polars_wroc.counts.count_table import pool_in_bins, refuse_design_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs.columns import ONE_SIDED, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import ratio
from polars_wroc.rows import (
    Columns,
    Rows,
    SegmentColumns,
    read_columns,
    read_counted,
    table_of_segments,
)
from polars_wroc.stats.contrasts import credible_correlation
from polars_wroc.stats.estimates import limit_columns, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Rate
from polars_wroc.stats.roc_limits import RatesAlongCurves, RocPoints, limit_points
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import Cells, split_segments, sum_cells_at
from polars_wroc.thresholds.choice import CurvePoints, trace_curves
from polars_wroc.thresholds.registry import RATES


@dataclass(frozen=True)
class Axes:
    """The rate of a ROC curve that is ``given``, and the rate that is ``found`` there.

    Where the curve has several values there, ``highest`` selects the highest (of true positive
    rates) instead of the lowest (of false positive rates).
    """

    given: str
    found: str
    highest: bool


TPR_AT_FPR = Axes("fpr", "tpr", highest=True)
FPR_AT_TPR = Axes("tpr", "fpr", highest=False)


@dataclass(frozen=True)
class RocCurves:
    """The ROC curves of segments: their points, and both rates at each."""

    points: CurvePoints
    rates: dict[str, Array]

    def along(self, axes: Axes) -> RatesAlongCurves:
        """Return both rates along the curves."""
        given, found = self.rates[axes.given], self.rates[axes.found]
        return RatesAlongCurves(given, found, self.points.starts, axes.highest)

    def bounds(self, axes: Axes) -> tuple[RatesAlongCurves, RatesAlongCurves]:
        """Return the curves of the lowest and of the highest rates found, for rows in bins.

        Within a bin of several scores either class may rank above the other, so the curves have
        corners there.
        """
        assert self.points.several is not None
        corners = np.flatnonzero(self.points.several)
        starts = self.points.starts + np.searchsorted(corners, self.points.starts)
        given, found = self.rates[axes.given], self.rates[axes.found]
        low, high = (
            RatesAlongCurves(
                np.insert(given, corners, given[places]),
                np.insert(found, corners, found[others]),
                starts,
                axes.highest,
            )
            for places, others in ((corners, corners - 1), (corners - 1, corners))
        )
        return low, high


def draw_roc_curves(segments: SegmentRows) -> RocCurves:
    """Return the ROC curve of each segment."""
    points = trace_curves(segments)
    tp, fp, _, _ = points.cells.weight
    ends, lengths = points.starts[1:] - 1, np.diff(points.starts)
    rates = {
        name: ratio(weight, np.repeat(weight[ends], lengths))
        for name, weight in (("tpr", tp), ("fpr", fp))
    }
    return RocCurves(points, rates)


def rate_in(cells: Cells, name: str) -> Rate:
    """Return a rate by its name."""
    return cells.rate(RATES[name].counted, RATES[name].others)


def estimate_points(
    rows: Rows,
    segments: SegmentRows,
    curves: RocCurves,
    axes: Axes,
    rates: tuple[Array, Array],
    starts: Ints,
    nearest: Ints,
) -> RocPoints:
    """Return the estimates of the rates given and found at points of curves.

    The heaviness of rows and variances by a design are taken at the ``nearest`` vertices.
    """
    cells = curves.points.cells.at(nearest)
    vertex_rates = [rate_in(cells, name) for name in (axes.given, axes.found)]
    correlation: Array | float = 0.0
    df: Array | float = np.inf
    if rows.sample is not None:
        threshold, is_origin = curves.points.threshold, np.isin(nearest, curves.points.starts)
        sampled = _sample_rates(rows, segments, axes, threshold[nearest], ~is_origin, starts)
        *variances, covariance, df = sampled
        vertex_rates = [
            replace(rate, variance=variance)
            for rate, variance in zip(vertex_rates, variances, strict=True)
        ]
        correlation = credible_correlation(covariance, *variances)
    given, found = (
        rate.estimate_near(value, df) for value, rate in zip(rates, vertex_rates, strict=True)
    )
    return RocPoints(given, found, starts, correlation)


def _sample_rates(
    rows: Rows, segments: SegmentRows, axes: Axes, threshold: Array, selects: Mask, starts: Ints
) -> Array:
    """Return the variances of both rates at thresholds, their covariance and their df, in rows."""
    assert rows.sample is not None
    units = rows.sample.units
    sampled = np.full((4, len(threshold)), np.nan)
    for part, some in split_segments(segments, rows.sample):
        firsts, numbers = starts[:-1][part], np.diff(starts)[part]
        for number in range(numbers.max(initial=0)):
            # One point of each segment at a time; NaN where a segment has fewer.
            has_point = number < numbers
            place = firsts[has_point] + number
            value = np.full(some.number, np.nan)
            value[has_point] = threshold[place]
            selected = np.zeros(some.number, dtype=bool)
            selected[has_point] = selects[place]
            cells = sum_cells_at(some, value, rows.sample, selects=selected)
            given, found = (
                cells.influence(units, RATES[name].counted, RATES[name].cells)
                for name in (axes.given, axes.found)
            )
            variances = units.variance(given), units.variance(found)
            both = units.covariance(given, found), units.df(given, found)
            sampled[:, place] = np.stack([*variances, *both])[:, has_point]
    return sampled


def read_binned_columns(
    binning: Binning,
    frame: object,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    pos_label: object,
    design: Design | None,
) -> Columns:
    """Return the columns of a call; its rows are pooled if bins of scores are given."""
    if not binning:
        return read_columns(frame, label, score, weight, by, pos_label, design)
    refuse_design_in_bins(read_design(design), binning)
    rows = read_rows(read_source(frame), label, score, weight, by, pos_label)
    return read_counted(pool_in_bins(rows, binning))


@check_call
def roc_point(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    fpr: float | Sequence[float] | None = None,
    tpr: float | Sequence[float] | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
    bins: Bins | None = None,
    tolerance: Proportion | None = None,
) -> FrameT:
    """Return the true positive rate at false positive rates, or the reverse, with intervals.

    Use it for "sensitivity at 90 % specificity". The interval allows for the threshold being
    estimated from the same rows. The curve is interpolated linearly; if it is vertical at the given
    rate its highest point counts, if horizontal its leftmost.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``fpr``: the given rate;
    - ``tpr, tpr_low, tpr_high``: the rate of the other class with limits;
    - ``one_sided``: there are too few negatives for a lower limit, which is 0.

    For given ``tpr`` the roles are exchanged.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level, bins, tolerance
        As for `summary`.
    fpr, tpr
        One or several rates from 0 to 1. Pass exactly one of the two; the result has the other.
    design
        As for `summary`. Not with ``bins`` or ``tolerance``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and rate, sorted by the ``by`` columns, then by the rate.
        Rates are Float64; they are null where a class has no weight, limits also where the variance
        is unknown. With ``bins`` or ``tolerance``, ``tpr_min, tpr_max`` or ``fpr_min, fpr_max``
        bound the exact rate. ``one_sided`` is Boolean; for a given tpr it means that the upper
        limit of the fpr is 1.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`; also for rates outside 0 to 1.

    Notes
    -----
    The interval combines the intervals of both rates [1]_. It is one-sided where the data give no
    lower limit: at the level 0.95, if the effective number of negatives times the fpr is below 3.7.
    [Formulas](../explanation/statistics.md#roc_point).

    References
    ----------
    .. [1] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> wroc.roc_point(df, "y", "s", fpr=[0.1, 0.5]).select("fpr", "tpr")
    shape: (2, 2)
    ┌─────┬─────┐
    │ fpr ┆ tpr │
    │ --- ┆ --- │
    │ f64 ┆ f64 │
    ╞═════╪═════╡
    │ 0.1 ┆ 0.5 │
    │ 0.5 ┆ 1.0 │
    └─────┴─────┘
    >>> wroc.roc_point(df, "y", "s", tpr=0.9)["fpr"].item()
    0.5
    """
    given = {name: value for name, value in (("fpr", fpr), ("tpr", tpr)) if value is not None}
    if len(given) != 1:
        msg = f"exactly one of `fpr` and `tpr` must be given; found {checks.quote_names(given)}"
        raise ValueError(msg)
    ((name, value),) = given.items()
    rates = np.array(checks.numbers(name, value, Between(0, 1)))
    axes: Axes = TPR_AT_FPR if name == "fpr" else FPR_AT_TPR
    binning = Binning(bins, tolerance)
    columns = read_binned_columns(binning, frame, label, score, weight, by, pos_label, design)
    names = [axes.given, *name_limits(axes.found)]
    if columns.is_binned:
        names += [f"{axes.found}_min", f"{axes.found}_max"]
    types = dict.fromkeys(names, pl.Float64()) | {ONE_SIDED: pl.Boolean()}
    measure = partial(_measure_segments, rates=rates, axes=axes)
    return table_of_segments(frame, columns, types, measure, level)


def _measure_segments(
    rows: Rows, segments: SegmentRows, rates: Array, axes: Axes, level: Level
) -> list[SegmentColumns]:
    curves = draw_roc_curves(segments)
    along = curves.along(axes)
    given = np.tile(rates, segments.number)
    starts = np.arange(segments.number + 1) * len(rates)
    found = along.look_up(given, starts)
    nearest = along.find_nearest(given, starts)
    points = estimate_points(rows, segments, curves, axes, (given, found), starts, nearest)
    limits, one_sided = limit_points(points, along, level.quantile(points.given.df))
    columns = {
        axes.given: given,
        **limit_columns(axes.found, found, limits),
        ONE_SIDED: np.where(np.isnan(limits.low), np.nan, one_sided),
    }
    if curves.points.several is not None:
        for end, bound in zip(("min", "max"), curves.bounds(axes), strict=True):
            columns[f"{axes.found}_{end}"] = bound.look_up(given, starts)
    return [SegmentColumns(np.repeat(np.arange(segments.number), len(rates)), columns)]
