"""Tests of the difference of two AUCs of the same rows.

Columns of a pair are 1 - AUC of both models, `ONE_MINUS`, and the sums of the placement values that
`Variance` needs, once of the pair's differences and for score-type intervals of both models too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Units, Variance
from polars_wroc.metrics.score_difference import ScoreDifference
from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.placements import Placements
from polars_wroc.stats.design_variance import design_df, design_effect
from polars_wroc.stats.difference_tests import contrast
from polars_wroc.stats.differences import credible_correlation
from polars_wroc.stats.distributions import normal_quantile, student_quantile

ComparisonMethod: TypeAlias = Literal["delong", "score"]

ONE_MINUS = ONE_MINUS_FIRST, ONE_MINUS_SECOND = "__one_minus_first", "__one_minus_second"
_CENTRE, _DIFFERENCE, _CORRELATION, _SCALE = "__centre", "__difference", "__correlation", "__scale"
# Sums that models on the same rows share, and those that each has.
_OF_WEIGHTS, _OF_PLACEMENTS = ("weight", "squares", "cubes"), ("first", "second")
# Of a pair by the design of a survey: the variances of both AUCs and their covariance.
DESIGN = ("__design_variance_first", "__design_variance_second", "__design_covariance")
_VARIANCE_BY_DESIGN, _DF = "__variance_by_design", "__df_by_design"
# A smaller proportion of the variances of both is rounding error of their difference.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class DelongTest:
    """The normal interval and test, from the variance of the difference.

    If ``designed``, from that by the design of a survey, which comes with `DESIGN` in columns of a
    pair; then with Student's t.
    """

    units: Units
    designed: bool = False

    @property
    def variance(self) -> Variance:
        """The variance of the difference."""
        return Variance(self.units, centre=_CENTRE)

    def model_sums(self, model: int, placements: Placements) -> dict[str, pl.Expr]:  # noqa: ARG002
        """Aggregate the rows of a group to what is needed of each model."""
        return {}

    def of_models(self, *models: int) -> dict[str, pl.Expr]:  # noqa: ARG002
        """Rename these sums of two models to the columns of a pair."""
        return {}

    @property
    def steps(self) -> list[Step]:
        """Steps from the columns of a pair to those that `result` needs."""
        return [_centre, *([_design] if self.designed else self.variance.steps)]

    def result(self, level: float) -> dict[str, pl.Expr]:
        """Return interval and test as `CONTRAST_COLUMNS`."""
        df = pl.col(_DF) if self.designed else None
        return contrast(pl.col(_DIFFERENCE), pl.col(self._total), level, df)

    @property
    def _total(self) -> str:
        """Column of the variance of the difference."""
        return _VARIANCE_BY_DESIGN if self.designed else self.variance.total


@dataclass(frozen=True)
class ScoreTest(DelongTest):
    """Interval and test from the score-type intervals of both AUCs and their correlation."""

    def model_sums(self, model: int, placements: Placements) -> dict[str, pl.Expr]:
        """Aggregate the rows of a group to what is needed of each model."""
        return self._of_model(model).sums_of_values(placements, pl.col)

    def of_models(self, *models: int) -> dict[str, pl.Expr]:
        """Rename these sums of two models to the columns of a pair."""
        return {
            name: pl.col(of_model)
            for model, variance in zip(models, self._variances, strict=True)
            for name, of_model in zip(
                _columns(variance, _OF_PLACEMENTS),
                _columns(self._of_model(model), _OF_PLACEMENTS),
                strict=True,
            )
        }

    @property
    def steps(self) -> list[Step]:
        """Steps from the columns of a pair to those that `result` needs."""
        both = [step for each in self._variances for step in (*each.steps, each.add_moments)]
        effects = [self._design_effects] if self.designed else []
        related = [*effects, self._correlation]
        return [*super().steps, self._start, *both, *related, *self._test.steps]

    def result(self, level: float) -> dict[str, pl.Expr]:
        """Return interval and test as `CONTRAST_COLUMNS`; ``z`` is what the p-value belongs to."""
        difference, quantile = pl.col(_DIFFERENCE), pl.col(self._test.quantile)
        tail = (1 + level) / 2
        normal = pl.lit(normal_quantile(tail))
        student = student_quantile(tail, pl.col(_DF)) if self.designed else normal
        limits = self._test.limits(pl.col, student)
        known = pl.when(limits.low.is_not_null())
        return {
            "difference": difference,
            "se": pl.col(self._total).sqrt(),
            "ci_low": limits.low,
            "ci_high": limits.high,
            "z": known.then(difference.sign() * quantile),
            "p_value": known.then(pl.col(self._test.p_value)),
        }

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
        shared = _columns(self.variance, _OF_WEIGHTS)
        for each in self._variances:
            names = _columns(each, _OF_WEIGHTS)
            columns |= {name: field(own) for name, own in zip(names, shared, strict=True)}
        return columns

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


def paired_test(method: ComparisonMethod, units: Units, *, designed: bool) -> DelongTest:
    """Choose how the AUCs of two models are compared."""
    arguments.option("method", method, get_args(ComparisonMethod))
    return (DelongTest if method == "delong" else ScoreTest)(units, designed)


def _design(field: Fields) -> dict[str, pl.Expr]:
    """Add the variance of the difference by the design of a survey."""
    one, other, covariance = (field(name) for name in DESIGN)
    variance = (one + other - 2 * covariance).clip(lower_bound=0.0)
    # Models that rank all rows alike may differ by rounding.
    known = pl.when(variance > _ROUNDING * (one + other)).then(variance).otherwise(0.0)
    return {
        _VARIANCE_BY_DESIGN: pl.when(variance.is_not_null()).then(known),
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


def _columns(variance: Variance, sums: tuple[str, ...]) -> list[str]:
    return [variance.column(name, side) for name in sums for side in CLASSES]
