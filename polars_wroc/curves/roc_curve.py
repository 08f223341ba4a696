"""ROC and precision-recall curves: tables with one row per threshold, and bands around them.

Without bands and bins they are plans of Polars: a sort, and cumulative weights of each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.bounds import Bins, MaxPoints, Proportion
from polars_wroc.calls import check_call
from polars_wroc.counts.score_sums import Binning
from polars_wroc.curves.roc_point import (
    TPR_AT_FPR,
    RocCurves,
    draw_roc_curves,
    estimate_points,
    rate_in,
    read_binned_columns,
)
from polars_wroc.inputs.columns import (
    BAND_COLUMNS,
    ONE_SIDED,
    ROC_COLUMNS,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.designs import Design, GivenDesign, read_design
from polars_wroc.inputs.frames import read_rows, require_positives
from polars_wroc.inputs.rows import IntoColumns, PlannedRows
from polars_wroc.looks import ConfidenceLevel, refuse_looks, require_seen
from polars_wroc.metrics.auc_sums import measure_aucs
from polars_wroc.metrics.summary import AUC_BOUNDS
from polars_wroc.queries import FrameT, like_input
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, curve_frame, is_origin, ratio, totals
from polars_wroc.ranking.curve_points import AUC_CHANGE, thin
from polars_wroc.rows import Rows, SegmentColumns, table_of_segments
from polars_wroc.stats.levels import Level
from polars_wroc.stats.roc_limits import limit_curves, limit_points
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion

BandKind: TypeAlias = Literal["pointwise", "simultaneous"]

# The most points with limits by a design, which take seconds for as many rows.
_MOST_POINTS = 10_000
# The segment of a point, and its place among the points of all segments.
_SEGMENT, _PLACE = "__segment", "__place"


@check_call
def pr_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Return the points of the weighted precision-recall curve, per group.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``threshold``, descending from +inf;
    - ``recall, precision``: of rows with at least that score;
    - ``tp, fp, fn, tn``: the weights in the cells.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, after an origin row, sorted by the ``by`` columns,
        then by descending threshold. Numbers are Float64. Precision is null where nothing is
        selected, recall where there are no positives.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    Straight lines between the points would overestimate the area [1]_: `average_precision` joins
    them by steps, `pr_auc` as if the rows between two of them were evenly mixed.

    References
    ----------
    .. [1] Davis, J., Goadrich, M. (2006), Proceedings of ICML, 233-240.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1], "s": [0.9, 0.8, 0.7]})
    >>> wroc.pr_curve(df, "y", "s").select("threshold", "recall", "precision")
    shape: (4, 3)
    ┌───────────┬────────┬───────────┐
    │ threshold ┆ recall ┆ precision │
    │ ---       ┆ ---    ┆ ---       │
    │ f64       ┆ f64    ┆ f64       │
    ╞═══════════╪════════╪═══════════╡
    │ inf       ┆ 0.0    ┆ null      │
    │ 0.9       ┆ 0.5    ┆ 1.0       │
    │ 0.8       ┆ 0.5    ┆ 0.5       │
    │ 0.7       ┆ 1.0    ┆ 0.666667  │
    └───────────┴────────┴───────────┘
    """
    rows = read_rows(frame, label, score, weight, by, pos_label)
    points = Confusion(*[*(pl.col(name) for name in CURVE_COLUMNS), *totals()])
    rates = {"recall": THRESHOLD_METRICS["tpr"], "precision": THRESHOLD_METRICS["ppv"]}
    asked: dict[str, pl.Expr]
    asked = {name: rate.formula(points) for name, rate in rates.items()}
    table = curve_frame(rows).select(*rows.keys, "threshold", *CELLS, **asked)
    table = rows.sorted_result(table, ["threshold", *asked, *CELLS])
    table = _require_positives(table, pos_label, frame, label)
    return like_input(frame, table)


@check_call
def roc_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    drop_collinear: bool = False,
    max_points: MaxPoints | None = None,
    band: BandKind | None = None,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
    bins: Bins | None = None,
    tolerance: Proportion | None = None,
) -> FrameT:
    """Return the points of the weighted ROC curve, per group.

    Use it to draw curves with `roc_chart`, or to look up rates at every threshold; for limits at
    one rate use `roc_point`.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``threshold``, descending from +inf;
    - ``fpr, tpr``: the rates of rows with at least that score;
    - ``tp, fp, fn, tn``: the weights in the cells;
    - with ``band``, ``tpr_low, tpr_high``.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.
    drop_collinear
        Drop points that lie on a straight line between their neighbours; the curve stays the same.
    max_points
        Keep at most this many points of each curve, evenly along its length. This adds
        ``auc_change``, the AUC of the kept points minus the AUC of the whole curve: at most ``1 /
        (max_points - 2)`` in size, and usually far less.
    band
        ``"pointwise"``: a confidence interval of the tpr at each fpr, which allows for the
        estimated threshold. ``"simultaneous"``: a band that contains the whole true curve with a
        probability of at least ``level``; conservative and wide.
    level
        Confidence level of the band: see `roc_auc_ci`.
    design
        As for `summary`, for ``band="pointwise"`` without bins. Time grows with rows times points:
        pass ``max_points`` if there are many.
    bins, tolerance
        Keep only the points between bins of scores: see `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, after an origin row, sorted by the ``by`` columns,
        then by descending threshold. Numbers are Float64; the rate of a class without weight is
        null. ``bins`` or ``tolerance`` add ``auc_min, auc_max``, bounds of the exact AUC; the
        pointwise band adds ``one_sided`` (Boolean), see `roc_point`.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a ``design`` without a pointwise band.

    Notes
    -----
    Points are joined by straight lines, whose area is the AUC [1]_. The pointwise band is as in
    `roc_point`; the simultaneous one combines bands of the score distributions of both classes
    [2]_.

    References
    ----------
    .. [1] Bamber, D. (1975), Journal of Mathematical Psychology 12, 387-415.
    .. [2] Campbell, G. (1994), Statistics in Medicine 13, 499-508.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> wroc.roc_curve(df, "y", "s").select("threshold", "fpr", "tpr")
    shape: (5, 3)
    ┌───────────┬─────┬─────┐
    │ threshold ┆ fpr ┆ tpr │
    │ ---       ┆ --- ┆ --- │
    │ f64       ┆ f64 ┆ f64 │
    ╞═══════════╪═════╪═════╡
    │ inf       ┆ 0.0 ┆ 0.0 │
    │ 0.9       ┆ 0.0 ┆ 0.5 │
    │ 0.8       ┆ 0.5 ┆ 0.5 │
    │ 0.7       ┆ 0.5 ┆ 1.0 │
    │ 0.1       ┆ 1.0 ┆ 1.0 │
    └───────────┴─────┴─────┘
    """
    given = read_design(design)
    _check_band(band, level, given)
    binning = Binning(bins, tolerance)
    fewer = _FewerPoints(drop_collinear, max_points)
    if band is None and not binning:
        rows: PlannedRows = read_rows(frame, label, score, weight, by, pos_label)
        if not rows.is_binned:
            require_seen(rows.look(level, frame))
            curves = _require_positives(_plan_curves(rows, fewer), pos_label, frame, label)
            return like_input(frame, curves)
    columns = read_binned_columns(binning, frame, label, score, weight, by, pos_label, design)
    names = fewer.names
    if band is not None:
        names += BAND_COLUMNS
    if columns.is_binned:
        names += AUC_BOUNDS
    types: dict[str, pl.DataType] = dict.fromkeys(names, pl.Float64())
    if band == "pointwise":
        types[ONE_SIDED] = pl.Boolean()
    measure = partial(_measure_segments, fewer=fewer, band=band)
    return table_of_segments(frame, columns, types, measure, level)


def _check_band(band: BandKind | None, level: ConfidenceLevel, given: GivenDesign) -> None:
    """Check the kind of a band, and that it exists at repeated looks and with a design."""
    if band is None:
        given.require_none("without band='pointwise', which alone has limits by it")
        return
    if band == "simultaneous":
        refuse_looks(level, "band='simultaneous'")
        law = "whose law holds for independent rows: use band='pointwise'"
        given.require_none(f"for band 'simultaneous', {law}")


@dataclass(frozen=True)
class _FewerPoints:
    """The rules by which points of curves are left out."""

    drop_collinear: bool
    max_points: int | None

    @property
    def names(self) -> list[str]:
        """The columns of the curve after the group."""
        return [*ROC_COLUMNS] if self.max_points is None else [*ROC_COLUMNS, AUC_CHANGE]

    def select(self, curve: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
        """Return the points that are kept, given the points of contiguous curves."""
        if self.drop_collinear:
            curve = _drop_collinear(curve)
        return curve if self.max_points is None else thin(curve, keys, self.max_points)


def _require_positives(
    curves: pl.LazyFrame, pos_label: object, frame: object, label: IntoColumn
) -> pl.LazyFrame:
    """Raise at collect for curves with points, but without a row with the positive label."""
    if pos_label is None:
        return curves

    def check(table: pl.DataFrame) -> pl.DataFrame:
        classes = pl.col("tp") + pl.col("fn"), pl.col("fp") + pl.col("tn")
        has_positives, has_negatives = table.select((each > 0).any() for each in classes).row(0)
        found = has_positives or not has_negatives
        require_positives(pos_label, frame, label, found=found)
        return table

    return curves.map_batches(check, schema=curves.collect_schema(), streamable=False)


def _plan_curves(rows: PlannedRows, fewer: _FewerPoints) -> pl.LazyFrame:
    """Return the points of curves as a plan."""
    positives, negatives = totals()
    curve = curve_frame(rows).with_columns(
        fpr=ratio(pl.col("fp"), negatives), tpr=ratio(pl.col("tp"), positives)
    )
    return rows.sorted_result(fewer.select(curve, rows.keys), fewer.names)


def _measure_segments(
    rows: Rows, segments: SegmentRows, fewer: _FewerPoints, band: BandKind | None, level: Level
) -> list[SegmentColumns]:
    curves = draw_roc_curves(segments)
    points = fewer.select(_table_of_curves(curves).lazy(), [_SEGMENT]).collect()
    if rows.sample is not None and points.height > _MOST_POINTS:
        rule = f"be given for more than {_MOST_POINTS} points with `design`"
        checks.reject("max_points", rule, points.height)
    segment, place = points[_SEGMENT].to_numpy(), points[_PLACE].to_numpy()
    columns = {name: points[name].to_numpy() for name in fewer.names}
    starts = np.searchsorted(segment, np.arange(segments.number + 1))
    along = curves.along(TPR_AT_FPR)
    fpr, tpr = columns["fpr"], columns["tpr"]
    if band == "pointwise":
        estimates = estimate_points(rows, segments, curves, TPR_AT_FPR, (fpr, tpr), starts, place)
        limits, one_sided = limit_points(estimates, along, level.quantile(estimates.given.df))
        columns |= dict(zip(BAND_COLUMNS, limits, strict=True))
        columns[ONE_SIDED] = np.where(np.isnan(limits.low), np.nan, one_sided)
    elif band == "simultaneous":
        cells = curves.points.cells.at(place)
        sizes = rate_in(cells, "fpr").inverse_size, rate_in(cells, "tpr").inverse_size
        limits = limit_curves(fpr, starts, sizes, along, level.error)
        columns |= dict(zip(BAND_COLUMNS, limits, strict=True))
    if segments.bins is not None:
        aucs = measure_aucs(segments)
        bounds = aucs.lowest_auc[segment], aucs.highest_auc[segment]
        columns |= dict(zip(AUC_BOUNDS, bounds, strict=True))
    return [SegmentColumns(segment, columns)]


def _table_of_curves(curves: RocCurves) -> pl.DataFrame:
    """Return the points of curves as a table."""
    points = curves.points
    columns: dict[str, Array] = {"threshold": points.threshold, **curves.rates}
    for cell, weight in zip(CELLS, points.cells.weight, strict=True):
        # Undefined where it overflows
        columns[cell] = np.where(np.isfinite(weight), weight, np.nan)
    table = pl.DataFrame(columns, nan_to_null=True)
    return table.with_columns(
        pl.Series(_SEGMENT, points.segment), pl.Series(_PLACE, np.arange(table.height))
    )


def _drop_collinear(curve: pl.LazyFrame) -> pl.LazyFrame:
    tp, fp = pl.col("tp"), pl.col("fp")
    slope = (tp - tp.shift(1)) / (fp - fp.shift(1))
    ends = is_origin().shift(-1, fill_value=True)
    return curve.filter(is_origin() | ends | (slope != slope.shift(-1)))
