"""ROC curves: tables with one row per threshold."""

from __future__ import annotations

import polars as pl

from polars_wroc.counts.binned_rows import pool_in_bins
from polars_wroc.counts.binning import Binning
from polars_wroc.curves.bands import TPR_AT_FPR, Band, BandKind
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.names import BAND_COLUMNS, ROC_COLUMNS
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_bounds import AUC_BOUNDS, auc_bounds
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.ranking.curve import curve_frame, is_origin, ratio, totals
from polars_wroc.ranking.thinning import AUC_CHANGE, thin


def roc_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    drop_collinear: bool = False,
    max_points: int | None = None,
    band: BandKind | None = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
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
    level, weight_type
        Confidence level of the band, and meaning of the weights: see `roc_auc_ci`.
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
        ``auc_low, auc_high``, between which the exact AUC lies; with ``band="pointwise"`` also the
        Boolean ``one_sided``: see `tpr_at_fpr`. The rate of a class without weight is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``max_points`` below 3.

    Notes
    -----
    Points are joined by straight lines; a tie between classes gives a sloping line. The area
    under the lines is the AUC [1]_. The pointwise band combines Wilson intervals of both rates as
    in `tpr_at_fpr`. The simultaneous band shifts the curve by simultaneous bands of the score
    distributions of both classes [2]_. With weights both use Kish's effective sample sizes.

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
    checked = Band("pointwise" if band is None else band, level, weight_type)
    limits: Band | None
    limits = None if band is None else checked
    binning = Binning(bins, tolerance)
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label)
    rows = pool_in_bins(rows, binning)
    whole = full_roc_table(rows, limits)
    curve = whole
    if drop_collinear:
        curve = _drop_collinear(curve)
    if max_points is not None:
        curve = thin(curve, rows.keys, max_points)
    if limits is not None:
        curve = limits.around(curve, whole, TPR_AT_FPR)
    columns = _columns(max_points, limits)
    flags = [] if limits is None else limits.flags
    if rows.binned:
        selected = curve.select(*rows.keys, *columns, *flags)
        curve = join_on_keys(selected, auc_bounds(rows), rows.keys)
        columns += AUC_BOUNDS
    return like_input(frame, rows.sorted_result(curve, columns + flags))


def full_roc_table(rows: Rows, band: Band | None) -> pl.LazyFrame:
    """Return all points of the ROC curve, prepared for a band if there is one."""
    positives, negatives = totals()
    curve = curve_frame(rows, squares=band is not None).with_columns(
        fpr=ratio(pl.col("fp"), negatives), tpr=ratio(pl.col("tp"), positives)
    )
    # A band looks up values in its own curve, which is cached to be computed once.
    return curve if band is None else band.prepare(curve).cache()


def _columns(max_points: int | None, band: Band | None) -> list[str]:
    added = [] if max_points is None else [AUC_CHANGE]
    return [*ROC_COLUMNS, *added, *([] if band is None else BAND_COLUMNS)]


def _drop_collinear(curve: pl.LazyFrame) -> pl.LazyFrame:
    tp, fp = pl.col("tp"), pl.col("fp")
    slope = (tp - tp.shift(1)) / (fp - fp.shift(1))
    ends = is_origin().shift(-1, fill_value=True)
    return curve.filter(is_origin() | ends | (slope != slope.shift(-1)))
