"""Points of a ROC curve at a given rate, with limits."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.curves.roc_curve import (
    CURVE,
    FPR_AT_TPR,
    TPR_AT_FPR,
    Axes,
    Band,
    full_roc_table,
    heavier,
    look_up,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.summary import with_corners
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.ranking.curve import is_origin
from polars_wroc.stats.proportions import TOLERANCE, size_by_design
from polars_wroc.stats.variances import DESIGN_DF
from polars_wroc.thresholds.search import (
    SELECTS,
    THRESHOLD,
    rate_variance,
    rate_variances,
    thresholds_of,
    unit_cells,
)

_GIVEN, _FOUND = "__rate_given", "__rate_found"


def with_sizes(points: pl.LazyFrame, curve: pl.LazyFrame, rows: Rows, axes: Axes) -> pl.LazyFrame:
    """Give ``points`` the effective sample sizes at the nearest threshold.

    ``points`` and the whole ``curve`` have the columns of `Band.prepare`.
    """
    rates = pl.col(axes.given).alias(_GIVEN), pl.col(axes.found).alias(_FOUND)
    weights = [*heavier("tpr"), *heavier("fpr")]
    vertices = thresholds_of(curve, [CURVE], *rates, pl.col(weights))
    shift = TOLERANCE if axes.highest else -TOLERANCE
    at_vertices = points.drop(weights).join_asof(
        vertices,
        left_on=pl.col(axes.given) + shift,
        right_on=_GIVEN,
        by=CURVE,
        strategy="backward" if axes.highest else "forward",
        coalesce=False,
        # Both rise along each curve, which the engine cannot know.
        check_sortedness=False,
    )
    if rows.design is None:
        return at_vertices
    at_vertices = at_vertices.cache()
    keys = [*rows.keys, THRESHOLD, SELECTS]
    cells = unit_cells(rows, at_vertices.select(keys).unique(), keys)
    variances = rate_variances(cells, keys, rows.design)
    joined = join_on_keys(at_vertices, variances, keys)
    sizes = {
        size: size_by_design(pl.col(value), pl.col(size), pl.col(rate_variance(rate)))
        for value, rate, size in (
            (_GIVEN, axes.given, axes.given_size),
            (_FOUND, axes.found, axes.found_size),
        )
    }
    # The variance of the design says how heavy the rows of each side are.
    alike = dict.fromkeys(weights, pl.lit(1.0))
    return joined.with_columns(**sizes, **alike).select(*points.collect_schema(), DESIGN_DF)


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
    level: float = 0.95,
    design: Design | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
) -> FrameT:
    """Weighted true positive rate at given false positive rates, or the reverse, with intervals.

    The ROC curve is interpolated linearly between its points; where it is vertical its highest
    point counts, and where it is horizontal its leftmost.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label, bins, tolerance
        As for `summary`.
    fpr, tpr
        One or several rates from 0 to 1 of one kind; the result has the other.
    level
        Confidence level: see `roc_auc_ci`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. The
        interval then uses the variances of both rates by the design, at the nearest threshold, and
        Student's t. Not with ``bins`` or ``tolerance``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and rate, sorted by the ``by`` columns, then by the rate.
        After them come the Float64 columns ``fpr, tpr, tpr_low, tpr_high`` or ``tpr, fpr, fpr_low,
        fpr_high``, the last three null where a class has no weight; with ``bins`` or ``tolerance``
        also ``tpr_min, tpr_max`` or ``fpr_min, fpr_max``, between which the exact rate lies. The
        last column is the Boolean ``one_sided``: there are too few negatives for a lower limit of
        the tpr, which is 0, or too few positives for an upper limit of the fpr, which is 1. It is
        null where the limits are.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for rates outside [0, 1], and for both kinds of rates or none.

    Notes
    -----
    The threshold that reaches an fpr is estimated from the negatives and the tpr from the
    positives. The confidence interval combines those of both [1]_, which are those of
    `threshold_metrics` with the normal quantile; how heavy the negatives beyond the threshold are
    is that of the nearest point of the curve. It is null where the squares of the weights overflow
    or underflow. With weights that depend on the score and fewer than about eight effective
    negatives beyond the threshold, intervals of 95 % covered 90 to 92 % in simulations.

    With n negatives, effective ones where there are weights, the true threshold of the rate f lies
    above them all with probability ``(1 - f) ** n``. Where this is more than ``(1 - level) / 2``,
    which at the level 0.95 means ``n * f`` below 3.7, the data give no lower limit, and the
    interval is one-sided.

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
        msg = f"exactly one of `fpr` and `tpr` must be given; found {arguments.named(given)}"
        raise ValueError(msg)
    ((name, value),) = given.items()
    survey = read_design(design)
    band = Band("pointwise", level, designed=survey.given)
    rates = arguments.numbers(name, value, low=0, high=1)
    binning = Binning(bins, tolerance)
    rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    axes = TPR_AT_FPR if name == "fpr" else FPR_AT_TPR
    return like_input(frame, _points(pool_in_bins(rows, binning), rates, axes, band))


def _points(rows: Rows, rates: Sequence[float], axes: Axes, band: Band) -> pl.LazyFrame:
    curve = full_roc_table(rows, band)
    given = pl.LazyFrame({axes.given: rates}, schema={axes.given: pl.Float64})
    groups = curve.filter(is_origin()).drop(axes.given, axes.found)
    points = groups.join(given, how="cross").sort(CURVE, axes.given)
    points = look_up(points, curve, axes, pl.col(axes.given), axes.found)
    points = with_sizes(points, curve, rows, axes).sort(CURVE, axes.given)
    limited = band.around(points, curve, axes)
    columns = [axes.given, axes.found, f"{axes.found}_low", f"{axes.found}_high"]
    if rows.binned:
        # The highest curve has the highest true positive rate, but the lowest false positive rate.
        low, high = with_corners(curve, [CURVE])
        bounds = (low, high) if axes.highest else (high, low)
        for bound, end in zip(bounds, ("min", "max"), strict=True):
            columns.append(f"{axes.found}_{end}")
            limited = look_up(limited, bound, axes, pl.col(axes.given), columns[-1])
    return rows.sorted_result(limited.sort(CURVE, axes.given), columns + band.flags)
