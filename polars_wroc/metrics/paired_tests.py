"""Tests of the difference of two AUCs of the same rows.

Columns of a pair are 1 - AUC of both models, `ONE_MINUS`, and the sums of the placement values that
`Variance` needs, once of the pair's differences and for score-type intervals of both models too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.looks import FEWEST_ROWS, Looks, if_enough
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Units, Variance
from polars_wroc.metrics.score_interval import SKEWNESS, Sized, score_sizes
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, min_of, together, when
from polars_wroc.ranking.placements import Placements
from polars_wroc.stats.difference_tests import contrast
from polars_wroc.stats.distributions import (
    p_value_at,
    student_p_value,
    t_quantile,
    two_sided_p_value,
    z_quantile,
)
from polars_wroc.stats.proportions import (
    TOLERANCE,
    Limits,
    Transformed,
    credible_correlation,
    margin,
)
from polars_wroc.stats.variances import design_df, design_effect

# Ten steps give all digits of nearly all differences, the others those of the rest.
_STEPS = 16
# Lower bounds of scales and of distances: the search divides by them, and needs a change of sign.
_LEAST_SCALE, _LEAST = 1e-100, 1e-300


@dataclass(frozen=True)
class ScoreDifference:
    """A ``difference`` of two values with the intervals of both.

    It is that of the values, or depends on them with the weights ``scales``. Without
    ``correlation`` the values are independent. With ``df`` p-values are those of Student's t.
    """

    one: Sized | Transformed
    other: Sized | Transformed
    difference: pl.Expr
    scales: tuple[pl.Expr, pl.Expr]
    correlation: pl.Expr | None = None
    df: pl.Expr | None = None

    def limits(self, quantile: pl.Expr) -> Limits:
        """Confidence limits for a quantile of the normal or of Student's distribution."""
        return self.combined(self.one.limits(quantile), self.other.limits(quantile))

    def combined(self, one: Limits, other: Limits) -> Limits:
        """Confidence limits from those of both values."""
        (value, other_value), scales = (self.one.value, self.other.value), self.scales
        below = self._margin(scales[0] * (value - one.low), scales[1] * (other.high - other_value))
        above = self._margin(scales[0] * (one.high - value), scales[1] * (other_value - other.low))
        return Limits(self.difference - below, self.difference + above)

    def tested(self) -> Formula[tuple[pl.Expr, pl.Expr]]:
        """Search the quantile at which a limit is 0; also return the p-value it belongs to.

        A place u of the search is the quantile ``start * u / (1 - u)``, from 0 to infinity. The
        excess of a place is by how much the distances from the limits there exceed the difference.
        """
        difference = self.difference.abs()
        # The limits that are between both values.
        facing = self.one.one_limit(self.difference > 0), self.other.one_limit(self.difference < 0)
        scales = [scale.clip(lower_bound=_LEAST_SCALE) for scale in self.scales]
        *parts, one_scale, other_scale = yield [*facing[0], *facing[1], *scales]
        first = len(facing[0])
        legs = type(facing[0])(*parts[:first]), type(facing[1])(*parts[first:])
        scales = [one_scale, other_scale]
        # Start with the quantile that Wald's intervals would give.
        spreads = [scale * leg.spread for leg, scale in zip(legs, scales, strict=True)]
        furthest = [scale * leg.furthest for leg, scale in zip(legs, scales, strict=True)]
        # Where no limit reaches so far, the search ends at an infinite quantile.
        beyond = (self._margin(*furthest) - difference).clip(lower_bound=_LEAST)
        start, at_near, at_far, near, far, place = yield [
            difference / self._margin(*spreads).clip(lower_bound=_LEAST),
            -difference,
            beyond,
            *(pl.lit(place) for place in (0.0, 1.0, 0.5)),
        ]
        for _ in range(_STEPS):
            quantile = start * place / (1 - place)
            distances = [
                scale * leg.distance(quantile) for leg, scale in zip(legs, scales, strict=True)
            ]
            (excess,) = yield [self._margin(*(yield distances)) - difference]
            # Replace one end of the interval by the place; the other one is kept or was replaced.
            same = when((excess < 0) == (at_near < 0))
            far, old, at_far, at_old = yield [
                same.then(far).otherwise(near),
                same.then(near).otherwise(far),
                same.then(at_far).otherwise(at_near),
                same.then(at_near).otherwise(at_far),
            ]
            near, at_near = place, excess
            (place,) = yield [_next_place((near, far, old), (at_near, at_far, at_old))]
        nearest = when(at_near.abs() < at_far.abs()).then(near).otherwise(far)
        (quantile,) = yield [start * nearest / (1 - nearest)]
        p_value = two_sided_p_value(quantile)
        if self.df is not None:
            p_value = student_p_value(quantile, self.df)
        none = when((self.difference == 0) & start.is_not_null())
        finite, infinite = when(quantile.is_finite()), when(quantile.is_infinite())
        p_value = infinite.then(0.0).otherwise(finite.then(p_value))
        return none.then(0.0).otherwise(finite.then(quantile)), none.then(1.0).otherwise(p_value)

    def _margin(self, one: pl.Expr, other: pl.Expr) -> pl.Expr:
        return margin(one, other, self.correlation)


def _next_place(
    places: tuple[pl.Expr, pl.Expr, pl.Expr], excesses: tuple[pl.Expr, pl.Expr, pl.Expr]
) -> pl.Expr:
    """Choose the next place of a search from both ends, and the end that was replaced last."""
    (near, far, old), (at_near, at_far, at_old) = places, excesses
    inner, rise = (near - far) / (old - far), (at_near - at_far) / (at_old - at_far)
    # Otherwise a parabola through the three places, as a function of the excess, turns back.
    safe = (rise**2 < inner) & ((1 - rise) ** 2 < 1 - inner)
    share = at_near / (at_far - at_near) * at_old / (at_far - at_old)
    share += (old - near) / (far - near) * at_near / (at_old - at_near) * at_far / (at_old - at_far)
    share = when(safe & share.is_between(0, 1, closed="none")).then(share).otherwise(0.5)
    return near + share * (far - near)


ComparisonMethod: TypeAlias = Literal["delong", "score"]

ONE_MINUS = "__one_minus_first", "__one_minus_second"
# Sums of the placement values, which each model has; those of weights are the same for all.
_OF_PLACEMENTS = ("first", "second")
# Of a pair by the design of a survey: the variances of both AUCs and their covariance.
DESIGN = ("__design_variance_first", "__design_variance_second", "__design_covariance")
# With fewer effective misranked rows in a class, these decide DeLong's variance.
_FEWEST_MISRANKED = 3
# A smaller proportion of the variances of both is rounding error of their difference.
_ROUNDING = 1e-14


_TESTED = ("difference_low", "difference_high", "p_value")


@dataclass(frozen=True)
class PairedTest:
    """The interval and the test of a difference of two AUCs.

    If ``method`` is ``"delong"``, they are Student's t, from the variance of the difference; if
    ``"score"``, from the score-type intervals of both AUCs and their correlation; if None, by score
    where few rows are misranked. If ``designed``, variances are those by the design of a survey,
    which come with `DESIGN` in columns of a pair, and both are Student's t.
    """

    method: ComparisonMethod | None
    units: Units
    designed: bool = False

    def __post_init__(self) -> None:
        """Check the method."""
        if self.method is not None:
            arguments.option("method", self.method, get_args(ComparisonMethod))

    @property
    def variance(self) -> Variance:
        """The variance of the difference."""
        return Variance(self.units, of_pairs=True)

    def model_sums(self, model: int, placements: Placements) -> Columns:
        """Aggregate the rows of a group to what is needed of each model."""
        if self.method == "delong":
            return {}
        return Variance(self.units, f"_of_{model}").sums_of_values(placements, pl.col)

    def of_models(self, *models: int) -> Columns:
        """Rename these sums of two models to the columns of a pair."""
        if self.method == "delong":
            return {}
        return {
            self._of_model(name, column): pl.col(f"{name}_of_{model}")
            for model, column in zip(models, ONE_MINUS, strict=True)
            for name in self._values
        }

    @property
    def _values(self) -> list[str]:
        return [self.variance.column(name, side) for name in _OF_PLACEMENTS for side in CLASSES]

    def _of_model(self, name: str, one_minus_auc: str) -> str:
        """Name a column of a model, whose sums of weights are those of both."""
        return f"{name}{one_minus_auc}" if name in self._values else name

    def steps(self, level: float) -> list[Step]:
        """Steps from the columns of a pair to its interval and test, as `CONTRAST_COLUMNS`."""
        return [partial(self._tested, level=level)]

    def _tested(self, field: Fields, level: float) -> Formula[Columns]:
        """Compute interval and test; ``z`` is what the p-value belongs to."""
        first, second = (field(column) for column in ONE_MINUS)
        centre, difference = yield [first - second, second - first]
        if self.designed:
            variance, df = yield [variance_by_design(field), design_df(field)]
        else:
            estimate = yield from self.variance.estimate(field, centre)
            variance, df = estimate.total, estimate.df
        delong = contrast(difference, variance, level, df)
        rows = self.variance.rows_of_classes(field)
        delong |= {name: if_enough(level, delong[name], *rows) for name in _TESTED}
        if self.method == "delong":
            return delong
        both = yield from together({column: self._of_auc(field, column) for column in ONE_MINUS})
        (one, one_variance, size), (other, other_variance, _) = both.values()
        covariance = (one_variance + other_variance - variance) / 2
        correlation, quantile, scale = yield [
            credible_correlation(covariance, one_variance, other_variance),
            t_quantile(level, df) if self.designed else pl.lit(z_quantile(level)),
            pl.lit(1.0),
        ]
        given = one, other, difference, (scale, scale), correlation
        test = ScoreDifference(*given, df if self.designed else None)
        at_zero, p_value = yield from test.tested()
        limits = test.limits(quantile)
        known = when(limits.low.is_not_null())
        by_score = delong | {
            "difference_low": limits.low,
            "difference_high": limits.high,
            "z": known.then(difference.sign() * at_zero),
            "p_value": known.then(p_value_at(level, p_value)),
        }
        if self.method == "score":
            return by_score
        # An AUC may be so near 1 or 0 that too few rows of a class decide it.
        least = min_of(share for each in (first, second) for share in (each, 1 - each))
        is_few = size * least < _FEWEST_MISRANKED * (1 - TOLERANCE)
        if isinstance(level, Looks):
            is_few |= min_of(rows) < FEWEST_ROWS
        few = when(is_few)
        return {name: few.then(by_score[name]).otherwise(value) for name, value in delong.items()}

    def _of_auc(self, field: Fields, column: str) -> Formula[tuple[Sized, pl.Expr, pl.Expr]]:
        """Return an AUC with its inverse sizes, its variance, and the size of the smaller class."""

        def of_model(name: str) -> pl.Expr:
            return field(self._of_model(name, column))

        complement = field(column)
        (auc,) = yield [1 - complement]
        own = Variance(self.units)
        estimate = yield from own.estimate(of_model, complement)
        moments = yield from own.moments(of_model, estimate)
        variance, effect = estimate.total, pl.lit(1.0)
        if self.designed:
            variance = field(DESIGN[ONE_MINUS.index(column)])
            (effect,) = yield [design_effect(variance, estimate.total)]
        sizes = yield from score_sizes(auc, complement, moments, effect)
        sized = Sized(auc, complement, sizes.low, sizes.high, SKEWNESS)
        return sized, variance, min_of(estimate.effective.values())


def variance_by_design(field: Fields) -> pl.Expr:
    """Return the variance of the difference by the design of a survey."""
    one, other, covariance = (field(name) for name in DESIGN)
    variance = (one + other - 2 * covariance).clip(lower_bound=0.0)
    # Models that rank all rows alike may differ by rounding.
    known = when(variance > _ROUNDING * (one + other)).then(variance).otherwise(0.0)
    return when(variance.is_not_null()).then(known)
