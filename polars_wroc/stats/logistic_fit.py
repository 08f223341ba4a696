"""Logistic regressions of the label on the logit of the score, one for each of many groups.

There are two regressions of the same rows: in the free one the slope is estimated, in the fixed
one it is 1. Newton's method finds both from points in memory that stand for the rows: these
themselves, or places in bins of the variable, the logit, that have the moments of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.designs import Replicates
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.kernels import BIN, DEGREES, FIT_WEIGHTS, MOMENTS
from polars_wroc.plans.queries import aggregate, collect, join_on_keys, over
from polars_wroc.stats.variances import (
    linear_variances,
    of_full_weights,
    of_replicated,
    replicated,
    unit_totals,
)

_Array: TypeAlias = NDArray[Any]

# Of a point: its group, the variable, and the weight of each class and the square of it.
GROUP, VALUE = "__fit_group", "__fit_value"
POINT_SCHEMA = {GROUP: pl.UInt32(), **dict.fromkeys((VALUE, *FIT_WEIGHTS), pl.Float64())}
# Of a group: the intercept of the fixed regression and the slope of the free one, the variances of
# both, the information on the slope if the model is right, and the intercept that goes with it.
FIT_OF_GROUP = (
    *(INTERCEPT, SLOPE, INTERCEPT_VARIANCE, SLOPE_VARIANCE, INFORMATION, FREE_INTERCEPT),
) = tuple(
    f"__fit_{name}"
    for name in (
        *("intercept", "slope", "intercept_variance", "slope_variance"),
        *("information", "free_intercept"),
    )
)
VARIANCES = INTERCEPT_VARIANCE, SLOPE_VARIANCE
FIT_SCHEMA = dict.fromkeys(FIT_OF_GROUP, pl.Float64())
_STEPS, _TOLERANCE = 30, 1e-8
# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13
# For a smaller float x, 1 - x would round to 1, or keep hardly a digit of x.
LEAST_PROBABILITY = 1e-15

# Widths of bins, of which the narrower are for slopes that are too steep for the wider.
BIN_WIDTHS = 0.1, 0.0125


def steepest(width: float) -> float:
    """Return the slope up to which a fit to bins of this width is exact but for rounding."""
    return 0.35 / width


def binned(rows: pl.LazyFrame, keys: list[str], width: float) -> pl.LazyFrame:
    """Add up the `MOMENTS` of rows that are points in bins of the variable, of this width.

    They are sums of weights times the Chebyshev polynomials of the place in the bin, from -1 to 1.
    """
    place = pl.col(VALUE) / width
    rows = rows.with_columns(place.floor().cast(pl.Int32).alias(BIN))
    polynomials = [pl.lit(1.0), 2 * (place - pl.col(BIN)) - 1]
    for power in range(1, DEGREES):
        name = f"__fit_polynomial_{power}"
        rows = rows.with_columns(polynomials[power].alias(name))
        polynomials[power] = pl.col(name)
        polynomials.append(2 * polynomials[1] * polynomials[power] - polynomials[power - 1])
    sums = {
        name: (pl.col(weight) * value).sum()
        for weight, names in _moments()
        for name, value in zip(names, polynomials, strict=False)
    }
    return rows.group_by(*keys, BIN).agg(**sums)


def _moments() -> Iterator[tuple[str, Sequence[str]]]:
    for place, weight in enumerate(FIT_WEIGHTS):
        yield weight, MOMENTS[place * DEGREES : (place + 1) * DEGREES]


def points_of_bins(bins: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return points that have the `MOMENTS` of the rows, with their null bins.

    They are the Chebyshev nodes of the bins; their weights may be negative. A sum of a smooth
    function over them is off by a power of the width of the bins, with `DEGREES` as exponent.
    """
    parts = []
    for node in range(DEGREES):
        angle = math.pi * (2 * node + 1) / (2 * DEGREES)
        factors = [(2 if k else 1) / DEGREES * math.cos(k * angle) for k in range(DEGREES)]
        weights = {
            # Not a horizontal sum, whose order depends on the number of threads.
            weight: reduce(add, (pl.col(m) * f for m, f in zip(names, factors, strict=True)))
            for weight, names in _moments()
        }
        value = (pl.col(BIN) + (1 + math.cos(angle)) / 2) * width
        parts.append(bins.lazy().select(GROUP, value.alias(VALUE), **weights))
    return collect(pl.concat(parts), reproducible=True)


class FitPoints(NamedTuple):
    """Points of groups, one group after another, whose first ones are at ``starts``.

    A point has a ``value`` of the variable, the weights of both classes there and the sums of their
    squares. Each group has points.
    """

    value: _Array
    pos: _Array
    neg: _Array
    squares_pos: _Array
    squares_neg: _Array
    starts: _Array

    def spread(self, values: _Array) -> _Array:
        """Repeat values of groups for each of their points."""
        return np.repeat(values, np.diff(self.starts, append=len(self.value)))

    def total(self, terms: _Array) -> _Array:
        """Add up the terms of the points of each group."""
        return np.add.reduceat(terms, self.starts)

    def powers(self, terms: _Array, highest: int) -> list[_Array]:
        """Add up terms times the powers of the variable, from 0 on."""
        sums = [self.total(terms)]
        for _ in range(highest):
            terms = terms * self.value
            sums.append(self.total(terms))
        return sums

    def at(self, some: _Array) -> FitPoints:
        """Return the points of some of the groups."""
        if some.all():
            return self
        places = self.spread(some)
        counts = np.diff(self.starts, append=len(self.value))[some]
        columns = (column[places] for column in self[:-1])
        return FitPoints._make([*columns, np.cumsum(counts) - counts])


class LogisticFits(NamedTuple):
    """The regressions of groups; NaN where there is none.

    ``intercept`` is that of the fixed regression and ``slope`` that of the free one, with their
    variances, the ``information`` on the slope if the model is right, and the intercept that goes
    with it.
    """

    intercept: _Array
    slope: _Array
    intercept_variance: _Array
    slope_variance: _Array
    information: _Array
    free_intercept: _Array


class _Coefficients(NamedTuple):
    """Of each group; NaN where there are none."""

    a: _Array
    b: _Array

    def probabilities(self, points: FitPoints) -> tuple[_Array, _Array]:
        """Return the probabilities of both classes at each point."""
        odds = np.exp(points.spread(self.a) + points.spread(self.b) * points.value)
        return 1 / (1 + 1 / odds), 1 / (1 + odds)


def fitted(points: pl.DataFrame) -> pl.DataFrame:
    """Return `FIT_OF_GROUP` of each `GROUP` that has points; null where there is none.

    That is where a class lacks, or a value is null; where the variable separates the classes there
    is no slope. A step that changes the coefficients by less than 1e-8 of one plus their size, if
    the variable is standardised, is the last.
    """
    if points.is_empty():
        return pl.DataFrame(schema={GROUP: points.schema[GROUP], **FIT_SCHEMA})
    held = points.sort(GROUP, maintain_order=True)
    groups, starts = np.unique(held[GROUP].to_numpy(), return_index=True)
    columns = (held[name].to_numpy() for name in (VALUE, *FIT_WEIGHTS))
    fits = fit_points_of_groups(FitPoints._make([*columns, starts]))
    found = zip(FIT_OF_GROUP, fits, strict=True)
    numbers = pl.Series(GROUP, groups, dtype=points.schema[GROUP])
    return pl.DataFrame([numbers, *(pl.Series(n, v, nan_to_null=True) for n, v in found)])


class FreeSlopes(NamedTuple):
    """The slopes of the free regressions of groups, with their variances and the information.

    NaN where there is none, as is the ``intercept`` that goes with the slope. ``has_classes`` says
    where both classes have weight, and each row has a value.
    """

    slope: _Array
    intercept: _Array
    variance: _Array
    information: _Array
    has_classes: _Array


class FixedSlopes(NamedTuple):
    """The intercepts of regressions with a slope of 1, and their variances; NaN without one."""

    intercept: _Array
    variance: _Array


class _StandardPoints(NamedTuple):
    """Points with standardised values and with weights that add up to 1 in each group.

    ``mean`` and ``sd`` are those of the values, ``total`` is the weight, and ``odds`` are the
    logarithms of the odds of a positive; NaN without both classes, or with a value of NaN.
    """

    points: FitPoints
    mean: _Array
    sd: _Array
    total: _Array
    odds: _Array


def _standardise(points: FitPoints) -> _StandardPoints:
    value, pos, neg, squares_pos, squares_neg, starts = points
    positives, negatives = points.total(pos), points.total(neg)
    total, counts = positives + negatives, np.diff(starts, append=len(value))
    mean = points.total(value) / counts
    sd = np.sqrt(points.total((value - points.spread(mean)) ** 2) / counts)
    # Equal or nearly equal values are not standardised.
    differ = np.maximum.reduceat(value, starts) > np.minimum.reduceat(value, starts)
    sd = np.where(differ & (sd > 0), sd, 1.0)
    shares = points.spread(total)
    weights = pos / shares, neg / shares, squares_pos / shares**2, squares_neg / shares**2
    standardised = (value - points.spread(mean)) / points.spread(sd)
    odds = np.log(positives / negatives)
    odds[~np.isfinite(odds) | np.isnan(mean)] = np.nan
    return _StandardPoints(FitPoints(standardised, *weights, starts), mean, sd, total, odds)


def _fit_free(points: FitPoints, standard: _StandardPoints) -> _Coefficients:
    """Return the free regressions of standardised points, with the prevalence at first."""
    overlap = np.where(_overlap(points), standard.odds, np.nan)
    start = _Coefficients(overlap, np.zeros(len(overlap)))
    return _newton(standard.points, start, free=True)


@np.errstate(all="ignore")
def fit_free_slopes(points: FitPoints) -> FreeSlopes:
    """Return the slopes of the free regressions of each group of points.

    Values may be NaN, and so is then what follows from them.
    """
    standard = _standardise(points)
    free = _fit_free(points, standard)
    variance, information = _slope_precision(standard.points, free)
    return FreeSlopes(
        free.b / standard.sd,
        free.a - free.b * standard.mean / standard.sd,
        variance / standard.sd**2,
        information * standard.sd**2 * standard.total,
        ~np.isnan(standard.odds),
    )


@np.errstate(all="ignore")
def fit_fixed_slopes(points: FitPoints) -> FixedSlopes:
    """Return the intercepts of the regressions of each group of points with a slope of 1.

    Values may be NaN, and so is then what follows from them.
    """
    held, mean, sd, total, odds = _standardise(points)
    # By the mean probability at first
    promised = points.total((points.pos + points.neg) / (1 + np.exp(-points.value))) / total
    promised = np.clip(promised, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    start = odds - np.log(promised / (1 - promised)) + mean
    fit = _newton(held, _Coefficients(start, sd), free=False)
    return FixedSlopes(fit.a - mean, _intercept_variance(held, fit))


def fit_points_of_groups(points: FitPoints) -> LogisticFits:
    """Return both regressions of each group of points, as `fitted` does."""
    fixed, free = fit_fixed_slopes(points), fit_free_slopes(points)
    return LogisticFits(
        intercept=fixed.intercept,
        slope=free.slope,
        intercept_variance=fixed.variance,
        slope_variance=free.variance,
        information=free.information,
        free_intercept=free.intercept,
    )


def _overlap(points: FitPoints) -> _Array:
    """Whether the values of the classes of a group overlap."""
    lowest, highest = (
        [end.reduceat(np.where(w != 0, points.value, beyond), points.starts) for w in points[1:3]]
        for end, beyond in ((np.minimum, np.inf), (np.maximum, -np.inf))
    )
    overlap: _Array = (lowest[0] < highest[1]) & (lowest[1] < highest[0])
    return overlap


def _newton(points: FitPoints, start: _Coefficients, *, free: bool) -> _Coefficients:
    """Return the coefficients of the regressions that converge."""
    found = np.full((2, len(start.a)), np.nan)
    going = np.flatnonzero(np.isfinite(start.a))
    some, now = points.at(np.isfinite(start.a)), np.array(start)[:, going]
    for _ in range(_STEPS):
        if not len(going):
            break
        step = _step(some, _Coefficients(*now), free=free)
        now = now + step
        small = (np.abs(step) <= _TOLERANCE * (1 + np.abs(now - step).sum(axis=0))).all(axis=0)
        found[:, going[small]] = now[:, small]
        # A group that has converged, or never will, takes no more time.
        on = ~small & np.isfinite(now).all(axis=0)
        if not on.all():
            some, going, now = some.at(on), going[on], now[:, on]
    return _Coefficients(*found)


def _step(points: FitPoints, at: _Coefficients, *, free: bool) -> _Array:
    p, q = at.probabilities(points)
    h0, h1, h2 = points.powers((points.pos + points.neg) * p * q, 2)
    g0, g1 = points.powers(points.pos * q - points.neg * p, 1)
    if not free:
        return np.array([g0 / h0, np.zeros(len(g0))])
    determinant = h0 * h2 - h1**2
    # Equal values have no variance, and rounding must not be one.
    determinant = np.where(determinant > _ROUNDING * h0 * h2, determinant, np.nan)
    step: _Array = np.array([h2 * g0 - h1 * g1, h0 * g1 - h1 * g0]) / determinant
    return step


def _squares(points: FitPoints, at: _Coefficients, highest: int) -> tuple[list[_Array], ...]:
    """Add up the Hessian, squared weights times squared residuals, and those that are expected."""
    p, q = at.probabilities(points)
    residuals = points.squares_pos * q * q + points.squares_neg * p * p
    expected = (points.squares_pos + points.squares_neg) * p * q
    terms = (points.pos + points.neg) * p * q, residuals, expected
    return tuple(points.powers(each, highest) for each in terms)


def _slope_precision(points: FitPoints, at: _Coefficients) -> tuple[_Array, _Array]:
    """Return the variance of the slope and the information on it.

    The variance is the larger of the sandwich and of what the model expects of it: in small
    samples the squared residuals of the rare rows are often missing, and a curved model is only
    in the sandwich.
    """
    (h0, h1, h2), *squares = _squares(points, at, 2)
    determinant = h0 * h2 - h1**2
    # The square of what a row moves it by, times the determinant, by powers of the variable.
    moved = h1**2, -2 * h0 * h1, h0**2
    sums = (sum(s * m for s, m in zip(each, moved, strict=True)) for each in squares)
    return np.maximum(*sums) / determinant**2, determinant / h0


def _intercept_variance(points: FitPoints, at: _Coefficients) -> _Array:
    (hessian,), (residuals,), (expected,) = _squares(points, at, 0)
    variance: _Array = np.maximum(residuals, expected) / hessian**2
    return variance


# Groups of so few rows, and all of them if they have few together, are fitted to the rows. Others
# are if the bins do not show their slope, some rows at a time.
_FEW, _FEW_TOGETHER, _ROWS_AT_ONCE = 2_000, 1 << 18, 1 << 23
# Probabilities of a row by both regressions.
_FITTED = ("__fitted_with_slope_1", "__fitted")
# The number of rows of a group.
SIZE = "__fit_size"


def logit(clip: float | None = None) -> pl.Expr:
    """Return the logit of a score; null where it is infinite."""
    score = pl.col(SCORE).cast(pl.Float64)
    inside = score if clip is None else score.clip(clip, 1 - clip)
    return pl.when((inside > 0) & (inside < 1)).then((inside / (1 - inside)).log())


def points(rows: Rows, clip: float | None = None) -> pl.LazyFrame:
    """Return the rows as points of the fits, with their keys; without those that are missing."""
    weights = *class_weights(pl.col(WEIGHT)), *class_weights(rows.signed_squares)
    return rows.frame.filter(pl.col(WEIGHT).is_not_null()).select(
        *rows.keys,
        logit(clip).alias(VALUE),
        **{name: each.cast(pl.Float64) for name, each in zip(FIT_WEIGHTS, weights, strict=True)},
    )


class FittedRows(Protocol):
    """Rows whose logits are fitted, with the keys of the smallest groups."""

    @property
    def are_held(self) -> bool:
        """Whether there are `points`; if not, bins have the smallest of the `BIN_WIDTHS`."""

    def bins(self, width: float) -> pl.DataFrame:
        """Add up all rows in bins, as `binned` does; infinite logits are in bin null."""

    def points(self, groups: pl.DataFrame | None) -> pl.DataFrame:
        """Return the rows of the smallest groups that have these keys, or all, as `points` does."""


class RowsOfPoints(NamedTuple):
    """Rows that are points already."""

    points_of_rows: pl.LazyFrame
    keys: list[str]
    are_held: bool = True

    def bins(self, width: float) -> pl.DataFrame:
        """Add up all rows."""
        return collect(binned(self.points_of_rows, self.keys, width))

    def points(self, groups: pl.DataFrame | None) -> pl.DataFrame:
        """Return some rows or all."""
        rows = self.points_of_rows
        if groups is not None:
            rows = join_on_keys(rows, groups.lazy(), self.keys, how="inner")
        return collect(rows)


def fit_groups(
    sizes: pl.DataFrame,
    rows: FittedRows,
    grouped: Callable[[pl.LazyFrame, pl.LazyFrame], pl.LazyFrame],
) -> pl.DataFrame:
    """Fit groups, each of which has a `GROUP` and `SIZE`: its row has `FIT_OF_GROUP`.

    ``grouped`` gives the rows of a table that has the keys of the smallest groups the `GROUP` in
    the second table, instead of the keys; a row may be in several. Of rows that are not held, no
    slope is found that is too steep for bins.
    """

    def of(table: pl.DataFrame, some: pl.DataFrame) -> pl.LazyFrame:
        return grouped(table.lazy(), some.lazy().select(GROUP))

    are_few = (pl.col(SIZE) <= _FEW) | (pl.col(SIZE).sum() <= _FEW_TOGETHER)
    few = sizes.filter(are_few & pl.lit(rows.are_held))
    many = sizes.join(few, on=GROUP, how="anti")
    smallest, found = None, []
    for width in BIN_WIDTHS if rows.are_held else BIN_WIDTHS[-1:]:
        if many.is_empty():
            break
        bins = rows.bins(width)
        added = of(bins, many).group_by(GROUP, BIN).agg(pl.col(MOMENTS).sum()).sort(GROUP, BIN)
        fit = fitted(points_of_bins(collect(added, reproducible=True), width))
        shown = pl.col(SLOPE).abs() <= steepest(width)
        known = shown.fill_null(value=False) | pl.col(INTERCEPT).is_null()
        found.append(fit.filter(known))
        many = many.join(fit.filter(~known), on=GROUP, how="semi")
        smallest = bins.select(pl.exclude(BIN, *MOMENTS)).unique()
    left = pl.concat([few, many]) if rows.are_held else few
    for _, some in left.group_by(pl.col(SIZE).cum_sum() // _ROWS_AT_ONCE):
        chosen = smallest
        if smallest is not None:
            numbers = of(smallest.with_row_index(SIZE), some).select(pl.col(SIZE).unique())
            chosen = smallest[collect(numbers)[SIZE]]
        found.append(fitted(collect(of(rows.points(chosen), some), reproducible=True)))
    return pl.concat(found) if found else fitted(pl.DataFrame(schema=POINT_SCHEMA))


def fit_points(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Fit each group of `points`: its row has the keys and `FIT_OF_GROUP`."""
    sizes = collect(aggregate(rows.lazy(), keys, {SIZE: pl.len()}).with_row_index(GROUP))

    def grouped(table: pl.LazyFrame, some: pl.LazyFrame) -> pl.LazyFrame:
        known = sizes.lazy().select(*keys, GROUP).join(some, on=GROUP, how="semi")
        return join_on_keys(table, known, keys, how="inner").drop(keys)

    found = fit_groups(sizes.select(GROUP, SIZE), RowsOfPoints(rows.lazy(), keys), grouped)
    return sizes.join(found, on=GROUP, how="left").select(*keys, *FIT_OF_GROUP)


def fit_rows(rows: Rows, clip: float | None) -> pl.LazyFrame:
    """Fit each group of rows; the variances are at least those of `_influences` by the design."""
    types = rows.frame.select(rows.keys).collect_schema()
    fit = points(rows, clip).map_batches(
        partial(fit_points, keys=rows.keys), schema={**types, **FIT_SCHEMA}
    )
    if rows.design is None:
        return fit
    fit = fit.cache()
    influences = _influences(rows, clip, fit)
    products = {name: (name, name) for name in VARIANCES}
    variances = linear_variances(influences, rows.keys, rows.design, products)
    of_design = {name: f"{name}_by_design" for name in VARIANCES}
    joined = join_on_keys(fit, variances.rename(of_design), rows.keys)
    larger = {
        name: pl.when(pl.col(own).is_not_null()).then(pl.max_horizontal(name, own))
        for name, own in of_design.items()
    }
    return joined.with_columns(**larger).select(*rows.keys, *FIT_OF_GROUP)


def _influences(rows: Rows, clip: float | None, fit: pl.LazyFrame) -> pl.LazyFrame:
    """Influences of sampling units on both coefficients of a fit, as `VARIANCES`.

    Those of replicates are differences from the fit, each of which is fitted itself.
    """
    keys, design = rows.keys, rows.design
    if isinstance(design, Replicates):
        again = fit_rows(replicated(rows, design), clip)
        both = of_replicated(again, keys, [INTERCEPT, SLOPE], design)
        values = dict(zip(VARIANCES, map(pl.col, (INTERCEPT, SLOPE)), strict=True))
        return both.with_columns(
            (value - of_full_weights(value, keys)).alias(name) for name, value in values.items()
        )
    x, w = pl.col(VALUE), pl.col(WEIGHT).abs().cast(pl.Float64)
    complete = rows.frame.filter(pl.col(WEIGHT).is_not_null()).with_columns(
        logit(clip).alias(VALUE)
    )
    linear = pl.col(INTERCEPT) + x, pl.col(FREE_INTERCEPT) + pl.col(SLOPE) * x
    fitted_rows = join_on_keys(complete, fit, keys).with_columns(
        (1 / (1 + (-each).exp())).alias(name) for name, each in zip(_FITTED, linear, strict=True)
    )
    (fixed, of_fixed), (free, of_free) = (
        (w * ((pl.col(WEIGHT) > 0) - pl.col(name)), w * pl.col(name) * (1 - pl.col(name)))
        for name in _FITTED
    )
    middle = over((of_free * x).sum(), keys) / over(of_free.sum(), keys)
    values = {
        INTERCEPT_VARIANCE: fixed / over(of_fixed.sum(), keys),
        SLOPE_VARIANCE: free * (x - middle) / pl.col(INFORMATION),
    }
    moved = fitted_rows.with_columns(**values)
    return unit_totals(moved, keys, {name: pl.col(name).sum() for name in values})
