"""Points of a ROC curve at a given rate, and limits of points: pointwise, and of bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import ONE_SIDED, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, GivenDesign, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.planned_summary import with_corners
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.ranking.curve import curve_frame, is_origin, ratio, totals
from polars_wroc.stats.distributions import z_quantile
from polars_wroc.stats.proportions import (
    TOLERANCE,
    Limits,
    credible_correlation,
    margin,
    rate_limits,
    rate_side,
    shrunk,
    size_by_design,
)
from polars_wroc.stats.variances import limit_quantile, linear_variances
from polars_wroc.thresholds.search import (
    SELECTS,
    THRESHOLD,
    cell_counts,
    rate_influence,
    rate_influences,
    rate_variance,
    thresholds_of,
    unit_cells,
)

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
    # By which points have sizes, and degrees of freedom.
    survey: GivenDesign

    def __post_init__(self) -> None:
        """Check the options."""
        arguments.option("band", self.kind, get_args(BandKind))
        arguments.hold(self, level=arguments.level(self.level))
        if self.kind == "simultaneous":
            arguments.refuse_looks(self.level, "band='simultaneous'")
            law = "whose law holds for independent rows: use band='pointwise'"
            self.survey.require_none(f"for band 'simultaneous', {law}")

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
    quantile = limit_quantile(pl.col, band.level, designed=band.survey.given)
    points = points.with_columns(**{_QUANTILE: quantile})
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
    related = pl.col(_CORRELATION) if band.survey.given else None
    distances = [
        margin(rate - limit, rate - end, related) for limit, end in zip(found, reached, strict=True)
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


_HEAVIER = (*heavier("tpr"), *heavier("fpr"))
# Both rates at the threshold of a point.
_GIVEN, _FOUND = "__rate_given", "__rate_found"
# Of both rates by a design: a unit with high scores has more of both.
_CORRELATION = "__correlation_of_rates"


def _beyond_all_rows(axes: Axes, level: float) -> pl.Expr:
    """Whether the true threshold of the given rate may be above all negatives.

    That is, with a probability of more than half of 1 minus the level; if the true positive rate is
    given, whether it may be below all positives.
    """
    given, size = pl.col(axes.given), pl.col(_inverse_size(axes.given))
    if not axes.highest:
        size += pl.col(_slope(axes.given))
    inner = 1 - given if axes.highest else given
    return inner ** (1 / size) > math.erfc(z_quantile(level) / math.sqrt(2)) / 2


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


def full_roc_table(rows: Rows, band: Band | None) -> pl.LazyFrame:
    """Return all points of the ROC curve, prepared for a band if there is one."""
    positives, negatives = totals()
    curve = curve_frame(rows, squares=band is not None).with_columns(
        fpr=ratio(pl.col("fp"), negatives), tpr=ratio(pl.col("tp"), positives)
    )
    # A band looks up values in its own curve, which is cached to be computed once.
    return curve if band is None else band.prepare(curve).cache()


def at_nearest(points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes) -> pl.LazyFrame:
    """Add to ``points`` the nearest threshold, and how heavy the rows of both classes are there.

    ``points`` and the whole ``curve`` have the columns of `Band.prepare`.
    """
    rates = pl.col(axes.given).alias(_GIVEN), pl.col(axes.found).alias(_FOUND)
    vertices = thresholds_of(curve, [CURVE], *rates, pl.col(_HEAVIER))
    shift = TOLERANCE if axes.highest else -TOLERANCE
    return points.drop(_HEAVIER).join_asof(
        vertices,
        left_on=pl.col(axes.given) + shift,
        right_on=_GIVEN,
        by=CURVE,
        strategy="backward" if axes.highest else "forward",
        coalesce=False,
        # Both rise along each curve, which the engine cannot know.
        check_sortedness=False,
    )


def at_own(points: pl.LazyFrame, axes: Axes) -> pl.LazyFrame:
    """Add to points of a curve the columns of `at_nearest`."""
    rates = pl.col(axes.given).alias(_GIVEN), pl.col(axes.found).alias(_FOUND)
    return thresholds_of(points, [], pl.all(), *rates)


def sizes_by_design(points: pl.LazyFrame, rows: Rows, axes: Axes) -> pl.LazyFrame:
    """Give points with a threshold the effective sample sizes of their rates by a design."""
    assert rows.design is not None
    points, keys = points.cache(), [*rows.keys, THRESHOLD, SELECTS]
    cells = unit_cells(rows, points.select(keys).unique(), keys)
    rates = {axes.given: (_GIVEN, axes.given_size), axes.found: (_FOUND, axes.found_size)}
    influences = {rate: rate_influence(rate) for rate in rates}
    products = {rate_variance(rate): (name, name) for rate, name in influences.items()}
    products[_CORRELATION] = (influences[axes.given], influences[axes.found])
    of_units = cells.with_columns(**rate_influences(rates, keys, rows.design))
    joined = join_on_keys(points, linear_variances(of_units, keys, rows.design, products), keys)
    variances = [pl.col(rate_variance(rate)) for rate in rates]
    columns = {
        size: size_by_design(pl.col(value), pl.col(size), variance)
        for (value, size), variance in zip(rates.values(), variances, strict=True)
    }
    columns[_CORRELATION] = credible_correlation(pl.col(_CORRELATION), *variances)
    # The variance of the design says how heavy the rows of each side are.
    return joined.with_columns(**columns, **dict.fromkeys(_HEAVIER, pl.lit(1.0)))


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
        interval then uses the variances of both rates by the design and their correlation, at the
        nearest threshold, and Student's t. Not with ``bins`` or ``tolerance``.

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
    rates = arguments.numbers(name, value, low=0, high=1)
    binning = Binning(bins, tolerance)
    rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    band = Band("pointwise", rows.look(level, frame), survey)
    axes = TPR_AT_FPR if name == "fpr" else FPR_AT_TPR
    return like_input(frame, _points(pool_in_bins(rows, binning), rates, axes, band))


def _points(rows: Rows, rates: Sequence[float], axes: Axes, band: Band) -> pl.LazyFrame:
    curve = full_roc_table(rows, band)
    given = pl.LazyFrame({axes.given: rates}, schema={axes.given: pl.Float64})
    groups = curve.filter(is_origin()).drop(axes.given, axes.found)
    points = groups.join(given, how="cross").sort(CURVE, axes.given)
    points = look_up(points, curve, axes, pl.col(axes.given), axes.found)
    points = at_nearest(points, curve, axes)
    if rows.design is not None:
        points = sizes_by_design(points, rows, axes)
    points = points.sort(CURVE, axes.given)
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
