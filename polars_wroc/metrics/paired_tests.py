"""Tests of the difference of two AUCs of the same rows.

Columns of a pair are 1 - AUC of both models, `ONE_MINUS`, and the sums of the placement values that
`Variance` needs, once of the pair's differences and for score-type intervals of both models too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Units, Variance
from polars_wroc.metrics.score_interval import ScoreInterval, SizedInterval, lower_limit
from polars_wroc.plans.formulas import Fields, Step, max_of, min_of, when
from polars_wroc.ranking.placements import Placements
from polars_wroc.stats.difference_tests import contrast
from polars_wroc.stats.distributions import (
    normal_quantile,
    student_p_value,
    student_quantile,
    two_sided_p_value,
)
from polars_wroc.stats.proportions import TOLERANCE, Limits, credible_correlation, margin
from polars_wroc.stats.variances import design_df, design_effect

# Ten steps give all digits of nearly all differences, the others those of the rest.
_STEPS = 16
# Lower bounds of scales and of distances: the search divides by them, and needs a change of sign.
_LEAST_SCALE, _LEAST = 1e-100, 1e-300
# The least ``auc * (1 - auc)`` that the search starts from, times the inverse size if that is
# below 1.
_LEAST_VARIANCE = 0.01
# A place u is the quantile ``start * u / (1 - u)``, from 0 to infinity; that of the next step.
_START, _PLACE = "__search_start", "__search_place"
# Three places: both ends of the interval that is searched, the newest of them first, and the end
# that was replaced last. `_excess` of a place is by how much the distances there exceed the
# difference.
_ENDS = _NEAR, _FAR, _OLD = "__search_near", "__search_far", "__search_old"


def _excess(place: str) -> str:
    return f"{place}_excess"


class _Leg(NamedTuple):
    """Columns of an AUC and of its distance from a limit, as of a lower limit."""

    auc: str
    complement: str
    inverse_size: str
    scale: str
    distance: str


_ONE, _OTHER = (_Leg(*(f"__{part}_{leg}" for part in _Leg._fields)) for leg in ("one", "other"))


@dataclass(frozen=True)
class ScoreDifference:
    """A column ``difference`` of two AUCs, and the score-type interval of each.

    It is the difference of both AUCs, or depends on them with the weights ``scale_one`` and
    ``scale_other``, which are columns too. Without ``correlation``, a column, the AUCs are
    independent. With ``df``, the column of degrees of freedom, the p-value is that of Student's t.
    """

    one: SizedInterval
    other: SizedInterval
    difference: str
    scale_one: str
    scale_other: str
    correlation: str | None = None
    df: str | None = None

    @property
    def quantile(self) -> str:
        """Column of the quantile at which a limit is 0, which `steps` add."""
        return "__difference_quantile"

    @property
    def p_value(self) -> str:
        """Column of the p-value, which `steps` add."""
        return "__difference_p_value"

    @property
    def steps(self) -> list[Step]:
        """Steps from the columns of both intervals to those of `limits` and to the p-value."""
        search = [self._distances, self._narrow, self._improve] * _STEPS
        intervals = [*self.one.steps, *self.other.steps]
        return [*intervals, self._legs, self._start, *search, self._p_value]

    def limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Confidence limits for a quantile of the normal or of Student's distribution."""
        return self.combined(
            field, *(each.limits(field, quantile) for each in (self.one, self.other))
        )

    def combined(self, field: Fields, one: Limits, other: Limits) -> Limits:
        """Confidence limits from those of both AUCs."""
        difference = field(self.difference)
        auc, other_auc = field(self.one.auc), field(self.other.auc)
        scales = field(self.scale_one), field(self.scale_other)
        below = [scales[0] * (auc - one.low), scales[1] * (other.high - other_auc)]
        above = [scales[0] * (one.high - auc), scales[1] * (other_auc - other.low)]
        return Limits(
            difference - self._margin(below, field), difference + self._margin(above, field)
        )

    def _legs(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the AUCs as seen from those limits that are between them, as lower limits."""
        difference = field(self.difference)
        columns: dict[str, pl.Expr] = {}
        for leg, each, scale, seen in (
            (_ONE, self.one, self.scale_one, when(difference > 0)),
            (_OTHER, self.other, self.scale_other, when(difference < 0)),
        ):
            auc, complement = field(each.auc), field(each.one_minus_auc)
            low, high = (field(each.inverse_size(side)) for side in ("low", "high"))
            columns |= {
                leg.auc: seen.then(auc).otherwise(complement),
                leg.complement: seen.then(complement).otherwise(auc),
                leg.inverse_size: seen.then(low).otherwise(high),
                leg.scale: field(scale).clip(lower_bound=_LEAST_SCALE),
            }
        return columns

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        """Start with the quantile that Wald's intervals would give."""
        spreads, furthest = [], []
        for leg in (_ONE, _OTHER):
            size = field(leg.inverse_size)
            variance = field(leg.auc) * field(leg.complement)
            least = _LEAST_VARIANCE * size.clip(upper_bound=1.0)
            variance = size * max_of(variance, least)
            spreads.append(field(leg.scale) * variance.sqrt())
            furthest.append(field(leg.scale) * field(leg.auc))
        difference = field(self.difference).abs()
        beyond = self._margin(furthest, field) - difference
        return {
            _START: difference / self._margin(spreads, field).clip(lower_bound=_LEAST),
            _PLACE: pl.lit(0.5),
            _NEAR: pl.lit(0.0),
            _excess(_NEAR): -difference,
            _FAR: pl.lit(1.0),
            # Where no limit reaches so far, the search ends at an infinite quantile.
            _excess(_FAR): beyond.clip(lower_bound=_LEAST),
        }

    def _distances(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the distances from the limits."""
        quantile = _quantile(field(_PLACE), field)
        columns: dict[str, pl.Expr] = {}
        for leg, each in ((_ONE, self.one), (_OTHER, self.other)):
            auc, complement, size = (field(name) for name in leg[:3])
            low = lower_limit(auc, complement, size, quantile, each.skewness(field))
            columns[leg.distance] = field(leg.scale) * (auc - low).clip(lower_bound=0.0)
        return columns

    def _narrow(self, field: Fields) -> dict[str, pl.Expr]:
        """Replace one end of the interval by the last place."""
        excess = self._margin([field(leg.distance) for leg in (_ONE, _OTHER)], field)
        excess -= field(self.difference).abs()
        same = when((excess < 0) == (field(_excess(_NEAR)) < 0))
        columns = {_NEAR: field(_PLACE), _excess(_NEAR): excess}
        for name in (str, _excess):
            near, far = field(name(_NEAR)), field(name(_FAR))
            columns[name(_FAR)] = same.then(far).otherwise(near)
            columns[name(_OLD)] = same.then(near).otherwise(far)
        return columns

    def _improve(self, field: Fields) -> dict[str, pl.Expr]:
        """Choose the next place."""
        near, far, old = (field(place) for place in _ENDS)
        at_near, at_far, at_old = (field(_excess(place)) for place in _ENDS)
        inner, rise = (near - far) / (old - far), (at_near - at_far) / (at_old - at_far)
        # Otherwise a parabola through the three places, as a function of the excess, turns back.
        safe = (rise**2 < inner) & ((1 - rise) ** 2 < 1 - inner)
        share = at_near / (at_far - at_near) * at_old / (at_far - at_old)
        share += (
            (old - near) / (far - near) * at_near / (at_old - at_near) * at_far / (at_old - at_far)
        )
        share = when(safe & share.is_between(0, 1, closed="none")).then(share).otherwise(0.5)
        return {_PLACE: near + share * (far - near)}

    def _p_value(self, field: Fields) -> dict[str, pl.Expr]:
        nearer = when(field(_excess(_NEAR)).abs() < field(_excess(_FAR)).abs())
        quantile = _quantile(nearer.then(field(_NEAR)).otherwise(field(_FAR)), field)
        p_value = two_sided_p_value(quantile)
        if self.df is not None:
            p_value = student_p_value(quantile, field(self.df))
        none = when((field(self.difference) == 0) & field(_START).is_not_null())
        finite, infinite = when(quantile.is_finite()), when(quantile.is_infinite())
        return {
            self.quantile: none.then(0.0).otherwise(finite.then(quantile)),
            self.p_value: none.then(1.0).otherwise(
                infinite.then(0.0).otherwise(finite.then(p_value))
            ),
        }

    def _margin(self, distances: Sequence[pl.Expr], field: Fields) -> pl.Expr:
        correlation = None if self.correlation is None else field(self.correlation)
        return margin(distances[0], distances[1], correlation)


def _quantile(place: pl.Expr, field: Fields) -> pl.Expr:
    return field(_START) * place / (1 - place)


ComparisonMethod: TypeAlias = Literal["delong", "score"]

ONE_MINUS = "__one_minus_first", "__one_minus_second"
_CENTRE, _DIFFERENCE, _CORRELATION, _SCALE = "__centre", "__difference", "__correlation", "__scale"
_QUANTILE = "__quantile_of_limits"
# Sums that models on the same rows share, and those that each has.
_OF_WEIGHTS, _OF_PLACEMENTS = ("weight", "squares", "cubes", "rows"), ("first", "second")
# Of a pair by the design of a survey: the variances of both AUCs and their covariance.
DESIGN = ("__design_variance_first", "__design_variance_second", "__design_covariance")
_VARIANCE_BY_DESIGN, _DF = "__variance_by_design", "__df_by_design"
# With fewer effective misranked rows in a class, these decide DeLong's variance.
_FEWEST_MISRANKED = 3
# A smaller proportion of the variances of both is rounding error of their difference.
_ROUNDING = 1e-14


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
        return Variance(self.units, centre=_CENTRE)

    @property
    def _total(self) -> str:
        """Column of the variance of the difference."""
        return _VARIANCE_BY_DESIGN if self.designed else self.variance.total

    def model_sums(self, model: int, placements: Placements) -> dict[str, pl.Expr]:
        """Aggregate the rows of a group to what is needed of each model."""
        if self.method == "delong":
            return {}
        return self._of_model(model).sums_of_values(placements, pl.col)

    def of_models(self, *models: int) -> dict[str, pl.Expr]:
        """Rename these sums of two models to the columns of a pair."""
        if self.method == "delong":
            return {}
        return {
            each.column(name, side): pl.col(self._of_model(model).column(name, side))
            for model, each in zip(models, self._variances, strict=True)
            for name in _OF_PLACEMENTS
            for side in CLASSES
        }

    def steps(self, level: float) -> list[Step]:
        """Steps from the columns of a pair to its interval and test, as `CONTRAST_COLUMNS`."""
        ends = [partial(self._quantile, level=level), partial(self._result, level=level)]
        return [*self._sizes, *ends]

    @property
    def _sizes(self) -> list[Step]:
        """Steps to what these rest on."""
        of_difference = [_centre, *([_design] if self.designed else self.variance.steps)]
        if self.method == "delong":
            return of_difference
        both = [step for each in self._variances for step in (*each.steps, each.add_moments)]
        effects = [self._design_effects] if self.designed else []
        return [*of_difference, self._start, *both, *effects, self._correlation, *self._test.steps]

    def _quantile(self, field: Fields, level: float) -> dict[str, pl.Expr]:
        """Add the quantile of the limits by score."""
        tail = (1 + level) / 2
        designed = student_quantile(tail, field(_DF)) if self.designed else None
        return {_QUANTILE: pl.lit(normal_quantile(tail)) if designed is None else designed}

    def _result(self, field: Fields, level: float) -> dict[str, pl.Expr]:
        """Add interval and test; ``z`` is what the p-value belongs to."""
        difference, variance = field(_DIFFERENCE), field(self._total)
        df = field(_DF) if self.designed else self.variance.degrees_of_freedom(field)
        delong = contrast(difference, variance, level, df)
        if self.method == "delong":
            return delong
        limits = self._test.limits(field, field(_QUANTILE))
        known = when(limits.low.is_not_null())
        by_score = delong | {
            "difference_low": limits.low,
            "difference_high": limits.high,
            "z": known.then(difference.sign() * field(self._test.quantile)),
            "p_value": known.then(field(self._test.p_value)),
        }
        if self.method == "score":
            return by_score
        few = when(self._few_misranked(field))
        return {name: few.then(by_score[name]).otherwise(value) for name, value in delong.items()}

    def _few_misranked(self, field: Fields) -> pl.Expr:
        """Whether an AUC is so near 1 or 0 that too few rows of a class decide it."""
        rows = self._variances[0]
        size = min_of(field(rows.effective(side)) for side in CLASSES)
        shares = (share for column in ONE_MINUS for share in (field(column), 1 - field(column)))
        return size * min_of(shares) < _FEWEST_MISRANKED * (1 - TOLERANCE)

    @property
    def _variances(self) -> list[Variance]:
        """The variances of both AUCs."""
        return [Variance(self.units, centre=column, name=column) for column in ONE_MINUS]

    def _of_model(self, model: int) -> Variance:
        return Variance(self.units, centre=_CENTRE, name=f"_of_{model}")

    @property
    def _test(self) -> ScoreDifference:
        one, other = (
            ScoreInterval(
                _auc(each.centre),
                each.centre,
                each.moments,
                each.name,
                _design_effect(each.centre) if self.designed else None,
            )
            for each in self._variances
        )
        df = _DF if self.designed else None
        return ScoreDifference(one, other, _DIFFERENCE, _SCALE, _SCALE, _CORRELATION, df)

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        """Add both AUCs, and the sums of weights under the names of both."""
        columns = {_SCALE: pl.lit(1.0)} | {_auc(column): 1 - field(column) for column in ONE_MINUS}
        return columns | {
            each.column(name, side): field(self.variance.column(name, side))
            for each in self._variances
            for name in _OF_WEIGHTS
            for side in CLASSES
        }

    def _design_effects(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times larger the variances are than if rows were independent."""
        columns: dict[str, pl.Expr] = {}
        for each, name in zip(self._variances, DESIGN, strict=False):
            effect = design_effect(field(name), field(each.total))
            columns[_design_effect(each.centre)] = effect
        return columns

    def _correlation(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the correlation of the AUCs."""
        names = DESIGN[:2] if self.designed else [each.total for each in self._variances]
        one, other = (field(name) for name in names)
        covariance = (one + other - field(self._total)) / 2
        return {_CORRELATION: credible_correlation(covariance, one, other)}


def _design(field: Fields) -> dict[str, pl.Expr]:
    """Add the variance of the difference by the design of a survey."""
    one, other, covariance = (field(name) for name in DESIGN)
    variance = (one + other - 2 * covariance).clip(lower_bound=0.0)
    # Models that rank all rows alike may differ by rounding.
    known = when(variance > _ROUNDING * (one + other)).then(variance).otherwise(0.0)
    return {
        _VARIANCE_BY_DESIGN: when(variance.is_not_null()).then(known),
        _DF: design_df(field),
    }


def _centre(field: Fields) -> dict[str, pl.Expr]:
    """Add the difference of the AUCs, and that of the placement values' means."""
    first, second = (field(column) for column in ONE_MINUS)
    return {_CENTRE: first - second, _DIFFERENCE: second - first}


def _design_effect(one_minus_auc: str) -> str:
    return f"{one_minus_auc}_design_effect"


def _auc(one_minus_auc: str) -> str:
    return f"{one_minus_auc}_auc"
