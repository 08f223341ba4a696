"""What a table of gaps shows: differences, no differences, or too little data to tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.auc_gaps import auc_comparison, auc_gap_limits, auc_limits
from polars_wroc.groups.min_rows import ENOUGH_ROWS, compared_metrics
from polars_wroc.groups.rate_gaps import others_share, rate_comparison, rate_gap_limits, rate_limits
from polars_wroc.groups.references import DIFFERENCE
from polars_wroc.groups.survey_gaps import AUC_DF
from polars_wroc.inputs import arguments
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.detectable import Comparison, Detectable
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import student_score, upper_quantile
from polars_wroc.stats.multiple_tests import is_significant

_AUC = ROC_AUC.column
# Quantiles of one test, two-sided and one-sided, at its share of the error of all tests.
_QUANTILE, _ONE_SIDED = "__quantile_of_test", "__one_sided_quantile"
_SIDES = ("own", "other")


def verdict_columns(*, rates: bool) -> list[str]:
    """Name the columns of the AUC and, with a threshold, of the rates."""
    metrics, parts = compared_metrics(rates=rates), ("detectable", "verdict")
    return [f"{metric}_gap_{part}" for metric in metrics for part in parts]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on the gaps of some metrics; ``tests`` is the number that share the error.

    A gap is alike within the ``margin`` if two one-sided tests at the level of one test say that
    it is neither as large nor as small as that.
    """

    metrics: Sequence[str]
    tests: pl.Expr
    level: float
    margin: float
    # With the columns of `SurveyGaps`.
    designed: bool

    @property
    def steps(self) -> list[Step]:
        """Steps from adjusted gaps to the columns of the verdicts."""
        limits = [self._limits, self._gap_limits]
        return [self._quantiles, *self._detectable.steps, *limits, self._verdicts]

    @property
    def _detectable(self) -> Detectable:
        return Detectable(self._comparisons, tuple(self.metrics), _QUANTILE)

    def _quantiles(self, field: Fields) -> dict[str, pl.Expr]:
        error = (1 - self.level) / self.tests
        quantiles = {_QUANTILE: upper_quantile(error / 2), _ONE_SIDED: upper_quantile(error)}
        if self.designed:
            # The fewer, where there is an AUC.
            df = pl.coalesce(design_df(field, AUC_DF), design_df(field))
            return {name: student_score(z, df) for name, z in quantiles.items()}
        return quantiles

    def _comparisons(self, field: Fields) -> dict[str, Comparison]:
        return {
            metric: auc_comparison(field) if metric == _AUC else rate_comparison(metric, field)
            for metric in self.metrics
        }

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        quantile = field(_ONE_SIDED)
        for metric in self.metrics:
            is_auc = metric == _AUC
            sides = auc_limits(field, quantile) if is_auc else rate_limits(metric, field, quantile)
            for side, limits in zip(_SIDES, sides, strict=True):
                for end, limit in limits._asdict().items():
                    columns[_limit(metric, side, end)] = limit
        return columns

    def _gap_limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for metric in self.metrics:
            sides = [
                Limits(*(field(_limit(metric, side, end)) for end in Limits._fields))
                for side in _SIDES
            ]
            limits = (
                auc_gap_limits(field, *sides, designed=self.designed)
                if metric == _AUC
                else rate_gap_limits(metric, field, *sides, designed=self.designed)
            )
            for end, limit in limits._asdict().items():
                columns[_limit(metric, "gap", end)] = limit
        return columns

    def _verdicts(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for metric in self.metrics:
            share = field(DIFFERENCE.share if metric == _AUC else others_share(metric))
            smallest = share * field(self._detectable.difference(metric))
            if metric == _AUC:
                smallest += field(DIFFERENCE.slack)
            compared = pl.when(field(f"{metric}_gap").is_not_null())
            enough = field(ENOUGH_ROWS).struct.field(f"{metric}_gap")
            columns[f"{metric}_gap_detectable"] = compared.then(pl.when(enough).then(smallest))
            columns[f"{metric}_gap_verdict"] = compared.then(self._verdict(metric, enough, field))
        return columns

    def _verdict(self, metric: str, enough: pl.Expr, field: Fields) -> pl.Expr:
        low, high = (field(_limit(metric, "gap", end)) for end in Limits._fields)
        alike = enough & (low > -self.margin) & (high < self.margin)
        words = {
            "alike": alike,
            "different": is_significant(field(f"{metric}_gap_p_adjusted"), self.level),
        }
        verdict = pl.lit("too little data")
        for word, holds in reversed(words.items()):
            verdict = pl.when(holds.fill_null(value=False)).then(pl.lit(word)).otherwise(verdict)
        return verdict


def _limit(metric: str, side: str, end: str) -> str:
    """Column of a limit at the one-sided quantile: of a side, or of the gap."""
    return f"__one_sided_{end}_{metric}_{side}"


def check_margin(margin: float) -> float:
    """Check the size within which a gap does not matter."""
    return arguments.number("margin", margin, low=0.0, high=1.0, open_ends=True)
