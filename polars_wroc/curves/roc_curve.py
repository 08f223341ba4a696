"""Confusion, precision-recall and ROC curves, with bands: tables with one row per threshold."""

from __future__ import annotations

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.curves.roc_point import (
    TPR_AT_FPR,
    Band,
    BandKind,
    at_own,
    full_roc_table,
    sizes_by_design,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import BAND_COLUMNS, ROC_COLUMNS, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.planned_summary import auc_bounds
from polars_wroc.metrics.summary import AUC_BOUNDS
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, require_at_collect
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, curve_frame, is_origin, totals
from polars_wroc.ranking.curve_points import AUC_CHANGE, thin
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion


def confusion_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted confusion matrix at every distinct score, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf`` where nothing is predicted
        positive. After the ``by`` columns (and ``model``) come the Float64 columns
        ``threshold, tp, fp, fn, tn``, the last four in units of weight and null where they
        overflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    ``fn`` and ``tn`` are totals minus cumulative sums: rounding loses a weight that is 1e15 times
    smaller than another.

    Examples
    --------
    The example of R's WeightedROC:

    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {"y": [-1, -1, 1, 1, 1], "w": [1, 1, 1, 4, 5], "s": [1, 2, 3, 1, 1]}
    ... )
    >>> wroc.confusion_curve(df, "y", "s", weight="w")
    shape: (4, 5)
    ┌───────────┬──────┬─────┬──────┬─────┐
    │ threshold ┆ tp   ┆ fp  ┆ fn   ┆ tn  │
    │ ---       ┆ ---  ┆ --- ┆ ---  ┆ --- │
    │ f64       ┆ f64  ┆ f64 ┆ f64  ┆ f64 │
    ╞═══════════╪══════╪═════╪══════╪═════╡
    │ inf       ┆ 0.0  ┆ 0.0 ┆ 10.0 ┆ 2.0 │
    │ 3.0       ┆ 1.0  ┆ 0.0 ┆ 9.0  ┆ 2.0 │
    │ 2.0       ┆ 1.0  ┆ 1.0 ┆ 9.0  ┆ 1.0 │
    │ 1.0       ┆ 10.0 ┆ 2.0 ┆ 0.0  ┆ 0.0 │
    └───────────┴──────┴─────┴──────┴─────┘
    """
    rows = read_rows(frame, label, score, weight, by, pos_label)
    return like_input(frame, rows.sorted_result(curve_frame(rows), CURVE_COLUMNS))


def pr_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted precision-recall curve per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf``. After the ``by`` columns (and
        ``model``) come the Float64 columns ``threshold, recall, precision, tp, fp, fn, tn``.
        Precision is null where nothing is predicted positive, recall where there are no positives.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    Straight lines between the points would overestimate the area [1]_: `average_precision`
    joins them by steps, `pr_auc` as if the rows between two of them were evenly mixed.

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
    return like_input(frame, rows.sorted_result(table, ["threshold", *asked, *CELLS]))


def roc_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    drop_collinear: bool = False,
    max_points: int | None = None,
    band: BandKind | None = None,
    level: float = 0.95,
    design: Design | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
) -> FrameT:
    """Weighted ROC curve per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    drop_collinear
        Drop points on the straight line between their neighbours, which leaves the drawn curve
        unchanged. Points that are off the line by rounding stay.
    max_points
        Keep at most this many points of each curve, evenly along its length. The AUC of the
        kept points differs by at most ``1 / (max_points - 2)``, usually by far less; the column
        ``auc_change`` has the difference.
    band
        ``"pointwise"`` adds a confidence interval of the true positive rate at each false
        positive rate, which allows for the estimated threshold too. ``"simultaneous"`` adds a
        band that contains the whole true curve with a probability of at least ``level``; it is
        conservative, and wide.
    level
        Confidence level of the band: see `roc_auc_ci`.
    design
        Clusters, a `Survey` or `ReplicateWeights`, for ``band="pointwise"``: see `roc_point`. The
        time grows with the number of rows times that of points, of which there may be 10,000:
        give ``max_points`` where there are more. Not with ``bins`` or ``tolerance``.
    bins, tolerance
        Keep only the points between bins of scores: see `summary`. ``bins`` takes one pass and
        little memory; ``tolerance`` takes three passes and bounds the AUC more closely.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf``. After the ``by`` columns (and
        ``model``) come the Float64 columns ``threshold, fpr, tpr, tp, fp, fn, tn``; with
        ``max_points`` also ``auc_change``, the AUC of the kept points minus that of the whole
        curve; with ``band`` also ``tpr_low, tpr_high``; with ``bins`` or ``tolerance`` also
        ``auc_min, auc_max``, between which the exact AUC lies; with ``band="pointwise"`` also the
        Boolean ``one_sided``: see `roc_point`. The rate of a class without weight is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``max_points`` below 3, and for a ``design`` without a pointwise
        band.

    Notes
    -----
    Points are joined by straight lines; a tie between classes gives a sloping line. The area
    under the lines is the AUC [1]_. The pointwise band combines the intervals of both rates as in
    `roc_point`. The simultaneous band shifts the curve by simultaneous bands of the score
    distributions of both classes [2]_, with Kish's effective sample sizes where there are weights.

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
    arguments.flag("drop_collinear", drop_collinear)
    if max_points is not None:
        max_points = arguments.whole_number("max_points", max_points, low=3)
    survey = read_design(design)
    if band is None:
        survey.require_none("without band='pointwise', which alone has limits by it")
    binning = Binning(bins, tolerance)
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    checked = Band("pointwise" if band is None else band, rows.look(level, frame), survey)
    limits: Band | None = None if band is None else checked
    rows = pool_in_bins(rows, binning)
    whole = full_roc_table(rows, limits)
    curve = whole
    if drop_collinear:
        curve = _drop_collinear(curve)
    if max_points is not None:
        curve = thin(curve, rows.keys, max_points)
    if limits is not None:
        if rows.design is not None:
            curve = sizes_by_design(at_own(_few_enough(curve), TPR_AT_FPR), rows, TPR_AT_FPR)
        curve = limits.around(curve, whole, TPR_AT_FPR)
    columns = [*ROC_COLUMNS, *([] if max_points is None else [AUC_CHANGE])]
    columns += [] if limits is None else BAND_COLUMNS
    flags = [] if limits is None else limits.flags
    if rows.binned:
        selected = curve.select(*rows.keys, *columns, *flags)
        curve = join_on_keys(selected, auc_bounds(rows), rows.keys)
        columns += AUC_BOUNDS
    return like_input(frame, rows.sorted_result(curve, columns + flags))


# Points at which limits by a design take seconds, if there are as many rows.
_MOST_POINTS = 10_000


def _few_enough(curve: pl.LazyFrame) -> pl.LazyFrame:
    """Raise at collect for so many points that limits by a design would take minutes."""
    rule = f"`max_points` must be given for more than {_MOST_POINTS} points with `design`"
    few = require_at_collect(pl.len() <= _MOST_POINTS, rule, pl.len())
    return curve.filter(few)


def _drop_collinear(curve: pl.LazyFrame) -> pl.LazyFrame:
    tp, fp = pl.col("tp"), pl.col("fp")
    slope = (tp - tp.shift(1)) / (fp - fp.shift(1))
    ends = is_origin().shift(-1, fill_value=True)
    return curve.filter(is_origin() | ends | (slope != slope.shift(-1)))
