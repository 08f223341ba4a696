"""Confusion, precision-recall and ROC curves, with bands: tables with one row per threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import BAND_COLUMNS, ONE_SIDED, ROC_COLUMNS, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.summary import AUC_BOUNDS, auc_bounds
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.ranking.curve import (
    CELLS,
    CURVE_COLUMNS,
    curve_frame,
    is_origin,
    ratio,
    totals,
)
from polars_wroc.ranking.curve_points import AUC_CHANGE, thin
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.proportions import TOLERANCE, Limits, rate_limits, rate_side, shrunk
from polars_wroc.stats.variances import design_df
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion
from polars_wroc.thresholds.search import cell_counts


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


BandKind: TypeAlias = Literal["pointwise", "simultaneous"]

# Effective sample sizes of the classes, and the number of the curve of a row.
_POS_SIZE, _NEG_SIZE, CURVE = "__pos_size", "__neg_size", "__curve_number"
_WANTED, _QUANTILE = "__wanted", "__quantile"
# The other rate at the limits of the given one.
_REACHED = ("__reached_low", "__reached_high")
_SIDES: dict[str, Literal["backward", "forward"]] = {"before": "backward", "after": "forward"}


@dataclass(frozen=True)
class Axes:
    """Which rate of a ROC curve is ``given``, and which is ``found`` there.

    Where the curve has several values there, ``highest`` selects the highest (of true positive
    rates) instead of the lowest (of false positive rates).
    """

    given: str
    found: str
    given_size: str
    found_size: str
    highest: bool


TPR_AT_FPR = Axes("fpr", "tpr", _NEG_SIZE, _POS_SIZE, highest=True)
FPR_AT_TPR = Axes("tpr", "fpr", _POS_SIZE, _NEG_SIZE, highest=False)


@dataclass(frozen=True)
class Band:
    """Kind and level of a band."""

    kind: BandKind
    level: float
    # Whether points have sizes by the design of a survey, and its degrees of freedom.
    designed: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        arguments.option("band", self.kind, get_args(BandKind))
        arguments.hold(self, level=arguments.level(self.level))

    def prepare(self, curve: pl.LazyFrame) -> pl.LazyFrame:
        """Number the curves, and add what the limits of both rates rest on."""
        columns: dict[str, pl.Expr] = {CURVE: is_origin().cum_sum()}
        for rate, size in (("tpr", _POS_SIZE), ("fpr", _NEG_SIZE)):
            of_rate = rate_side(*cell_counts(rate, pl.col))
            columns[size] = 1 / of_rate.pool
            columns |= dict(zip(heavier(rate), (of_rate.events, of_rate.non_events), strict=True))
        return curve.with_columns(**columns)

    @property
    def flags(self) -> list[str]:
        """Columns that `around` adds in addition to the limits."""
        return [ONE_SIDED] if self.kind == "pointwise" else []

    def around(self, points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes) -> pl.LazyFrame:
        """Add the limits of the found rate, and `flags`, to ``points`` of the whole ``curve``.

        Both come from `prepare`, and their rates rise along each curve.
        """
        if self.kind == "pointwise":
            return _pointwise(points, curve, axes, self)
        return _simultaneous(points, curve, axes, self.level)

    @property
    def quantile(self) -> pl.Expr:
        """The quantile of the limits of a rate."""
        tail = (1 + self.level) / 2
        if self.designed:
            return student_quantile(tail, design_df(pl.col))
        return pl.lit(normal_quantile(tail))


def look_up(
    points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, wanted: pl.Expr, found: str
) -> pl.LazyFrame:
    """Add as ``found`` the other rate of the curve where the given rate is ``wanted``."""
    vertices = curve.select(CURVE, x=pl.col(axes.given), y=pl.col(axes.found))
    points = points.with_columns(wanted.alias(_WANTED))
    # A vertex that differs by rounding from the wanted rate counts as being there.
    shift = TOLERANCE if axes.highest else 0.0
    reach = {"before": shift, "after": shift - TOLERANCE}
    for side, strategy in _SIDES.items():
        side_vertices = vertices.select(
            CURVE, pl.col("x").alias(f"__x_{side}"), pl.col("y").alias(f"__y_{side}")
        )
        points = points.join_asof(
            side_vertices,
            left_on=pl.col(_WANTED) + reach[side],
            right_on=f"__x_{side}",
            by=CURVE,
            strategy=strategy,
            coalesce=False,
            # Both rise along each curve, which the engine cannot know.
            check_sortedness=False,
        )
    return points.select(
        pl.exclude(_WANTED, "^__[xy]_(before|after)$"), _between(axes).alias(found)
    )


def _between(axes: Axes) -> pl.Expr:
    """Interpolate between the vertices before and after the wanted rate."""
    x0, y0, x1, y1 = (pl.col(f"__{axis}_{side}") for side in _SIDES for axis in "xy")
    line = y0 + (pl.col(_WANTED) - x0) / (x1 - x0) * (y1 - y0)
    if axes.highest:
        return pl.when(x0 >= pl.col(_WANTED) - TOLERANCE).then(y0).otherwise(line)
    return pl.when(x1 <= pl.col(_WANTED) + TOLERANCE).then(y1).otherwise(line)


def _pointwise(points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, band: Band) -> pl.LazyFrame:
    """Combine the intervals of both rates, since the threshold is estimated too."""
    points = points.with_columns(band.quantile.alias(_QUANTILE))
    for name, size in ((axes.given, axes.given_size), (axes.found, axes.found_size)):
        points = in_columns(points, [partial(_limits_of, rate=name, rows=size)])
    for limit, name in zip(_ends_of(axes.given), _REACHED, strict=True):
        points = look_up(points, curve, axes, pl.col(limit), name)
    rate, found = pl.col(axes.found), map(pl.col, _ends_of(axes.found))
    # On a step of the curve the rate at a limit may be on the other side of the estimate.
    reached = (
        pl.min_horizontal(pl.col(_REACHED[0]), rate),
        pl.max_horizontal(pl.col(_REACHED[1]), rate),
    )
    distances = [
        ((rate - limit) ** 2 + (rate - end) ** 2).sqrt()
        for limit, end in zip(found, reached, strict=True)
    ]
    low, high = rate - distances[0], rate + distances[1]
    beyond = _beyond_all_rows(axes, band.level)
    if axes.highest:
        low = pl.when(beyond).then(0.0).otherwise(low)
    else:
        high = pl.when(beyond).then(1.0).otherwise(high)
    return _limited(points, axes, Limits(low, high), **{ONE_SIDED: beyond})


def _limits_of(field: Fields, rate: str, rows: str) -> Formula[Columns]:
    """Add the limits of a rate with a column of its sample size, and what they rest on."""
    value, inverse_size, (events, others) = field(rate), 1 / field(rows), map(field, heavier(rate))
    at_zero, at_one = shrunk(value, inverse_size, events), shrunk(1 - value, inverse_size, others)
    size, slope = yield [at_zero, at_one - at_zero]
    limits = yield from rate_limits(value, size, slope, field(_QUANTILE))
    named = _inverse_size(rate), _slope(rate), *_ends_of(rate)
    return dict(zip(named, (size, slope, *limits), strict=True))


def _inverse_size(rate: str) -> str:
    return f"__inverse_size_of_{rate}"


def _slope(rate: str) -> str:
    return f"__slope_of_{rate}"


def _ends_of(rate: str) -> list[str]:
    return [f"__{rate}_{end}" for end in Limits._fields]


def heavier(rate: str) -> tuple[str, str]:
    """Columns of how heavy the selected rows of a class are, and the others of it."""
    return f"__selected_of_{rate}", f"__others_of_{rate}"


def _beyond_all_rows(axes: Axes, level: float) -> pl.Expr:
    """Whether the true threshold of the given rate may be above all negatives.

    That is, with a probability of more than half of 1 minus the level; if the true positive rate is
    given, whether it may be below all positives.
    """
    given, size = pl.col(axes.given), pl.col(_inverse_size(axes.given))
    if not axes.highest:
        size += pl.col(_slope(axes.given))
    inner = 1 - given if axes.highest else given
    return inner ** (1 / size) > (1 - level) / 2


def _simultaneous(
    points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, level: float
) -> pl.LazyFrame:
    """Shift the curve by the band of each class's score distribution."""
    # Each band has level sqrt(level), so that both hold with probability level.
    factor = math.log(2 / (1 - math.sqrt(level))) / 2
    given_shift = (factor / pl.col(axes.given_size)).sqrt()
    found_shift = (factor / pl.col(axes.found_size)).sqrt()
    given = pl.col(axes.given)
    for place, name in zip((given - given_shift, given + given_shift), _REACHED, strict=True):
        points = look_up(points, curve, axes, place.clip(0.0, 1.0), name)
    low, high = (pl.col(name) for name in _REACHED)
    lower = pl.when(given - given_shift >= 0).then(low - found_shift).otherwise(0.0)
    return _limited(points, axes, Limits(lower, high + found_shift))


def _limited(points: pl.LazyFrame, axes: Axes, limits: Limits, **flags: pl.Expr) -> pl.LazyFrame:
    known = pl.when(
        pl.all_horizontal(
            pl.col(axes.given, axes.found, axes.given_size, axes.found_size).is_not_null()
        )
    )
    columns = {
        f"{axes.found}_{end}": known.then(limit.clip(0.0, 1.0))
        for end, limit in limits._asdict().items()
    }
    columns |= {name: known.then(flag) for name, flag in flags.items()}
    return points.with_columns(**columns).drop(_REACHED)


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
        As for `summary`; also for ``max_points`` below 3.

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
    checked = Band("pointwise" if band is None else band, level)
    limits: Band | None = None if band is None else checked
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
    columns = [*ROC_COLUMNS, *([] if max_points is None else [AUC_CHANGE])]
    columns += [] if limits is None else BAND_COLUMNS
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


def _drop_collinear(curve: pl.LazyFrame) -> pl.LazyFrame:
    tp, fp = pl.col("tp"), pl.col("fp")
    slope = (tp - tp.shift(1)) / (fp - fp.shift(1))
    ends = is_origin().shift(-1, fill_value=True)
    return curve.filter(is_origin() | ends | (slope != slope.shift(-1)))
