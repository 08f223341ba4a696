"""Gaps of AUCs: `OWN` and `OTHER` compared, with intervals and p-values."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.groups.compared_auc import OTHER, OWN
from polars_wroc.groups.references import DIFFERENCE, Reference, other_name
from polars_wroc.groups.survey_gaps import AUC, AUC_DF, SurveyGaps, correlation, gap_variance
from polars_wroc.metrics.score_difference import ScoreDifference
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.stats.design_variance import design_df, design_effect
from polars_wroc.stats.detectable import Comparison
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.thresholds.rate_design import rate_variance

# How AUCs are compared: by their score-type intervals, or by Student's t on their logits.
GapMethod: TypeAlias = Literal["score", "logit-t"]

_CORRELATION, _DF, _QUANTILE = "__auc_correlation", "__auc_df", "__auc_gap_quantile"
_TEST = ScoreDifference(
    OWN.interval,
    OTHER.interval,
    DIFFERENCE.difference,
    DIFFERENCE.scale_own,
    DIFFERENCE.scale_other,
)
_TEST_BY_DESIGN = replace(
    _TEST,
    one=OWN.interval_by_design,
    other=OTHER.interval_by_design,
    correlation=_CORRELATION,
    df=_DF,
)


def with_auc_gaps(
    sums: pl.LazyFrame,
    reference: Reference,
    level: float,
    method: GapMethod,
    survey: SurveyGaps | None = None,
) -> pl.LazyFrame:
    """Add the columns of the gap in AUC."""
    compared = in_columns(sums, reference.steps)
    if survey is not None:
        designed = in_columns(survey.with_variances(compared, reference), [_design])
        quantile = student_quantile((1 + level) / 2, pl.col(_DF)).alias(_QUANTILE)
        tested = in_columns(designed, _TEST_BY_DESIGN.steps).with_columns(quantile)
        return _with_gaps(tested, _score_test_by_design())
    if method == "score":
        return with_gaps_by_score(compared, level)
    return _with_gaps(in_columns(compared, _TEST.intervals), reference.logit_test(level))


def with_gaps_by_score(compared: pl.LazyFrame, level: float) -> pl.LazyFrame:
    """Add the columns of the gap by score-type intervals to `OWN`, `OTHER` and `DIFFERENCE`."""
    return _with_gaps(in_columns(compared, _TEST.steps), _score_test(level))


def _design(field: Fields) -> dict[str, pl.Expr]:
    """Add how many times larger the variances are than if rows were independent, and the rest."""
    df = design_df(field, AUC_DF)
    columns = {_CORRELATION: correlation(AUC, field), _DF: df}
    for each, name in ((OWN, AUC), (OTHER, other_name(AUC))):
        effect = design_effect(field(rate_variance(name)), field(each.column("variance")))
        columns[each.column("design_effect")] = pl.when(df.is_not_null()).then(effect)
    return columns


def _with_gaps(compared: pl.LazyFrame, parts: dict[str, pl.Expr]) -> pl.LazyFrame:
    return compared.with_columns(
        pl.col(OWN.column("auc")).alias("auc"),
        pl.col(DIFFERENCE.reference_auc).alias("auc_reference"),
        auc_gap=parts["difference"],
        auc_gap_se=parts["se"],
        auc_gap_low=parts["ci_low"],
        auc_gap_high=parts["ci_high"],
        auc_gap_p_value=parts["p_value"],
    )


def _score_test(level: float) -> dict[str, pl.Expr]:
    variances = [
        pl.col(each.column("variance")) * pl.col(scale) ** 2
        for each, scale in ((OWN, DIFFERENCE.scale_own), (OTHER, DIFFERENCE.scale_other))
    ]
    quantile = pl.lit(normal_quantile((1 + level) / 2))
    return _parts(_TEST, quantile, (variances[0] + variances[1]).sqrt())


def _score_test_by_design() -> dict[str, pl.Expr]:
    # Where the difference is a share of that of the two AUCs, both have it as their scale.
    se = pl.col(DIFFERENCE.scale_own) * gap_variance(AUC, pl.col).sqrt()
    se = pl.when(pl.col(_DF).is_not_null()).then(se)
    return _parts(_TEST_BY_DESIGN, pl.col(_QUANTILE), se)


def _parts(test: ScoreDifference, quantile: pl.Expr, se: pl.Expr) -> dict[str, pl.Expr]:
    limits = test.limits(pl.col, quantile)
    difference = pl.col(DIFFERENCE.difference)
    return {
        "difference": difference,
        "se": pl.when(difference.is_not_null()).then(se),
        "ci_low": limits.low,
        "ci_high": limits.high,
        "p_value": pl.col(test.p_value),
    }


def auc_limits(field: Fields, quantile: pl.Expr) -> tuple[Limits, Limits]:
    """Score-type limits of the AUC and of that of its reference."""
    return OWN.interval.limits(field, quantile), OTHER.interval.limits(field, quantile)


def auc_gap_limits(field: Fields, own: Limits, other: Limits, *, designed: bool) -> Limits:
    """Limits of the gap from those of both, wider by the change that score bins can make."""
    low, high = (_TEST_BY_DESIGN if designed else _TEST).combined(field, own, other)
    return Limits(low - field(DIFFERENCE.slack), high + field(DIFFERENCE.slack))


def auc_comparison(field: Fields) -> Comparison:
    """Compare two AUCs with the smaller effective sizes of both sides of their intervals."""
    share = field(DIFFERENCE.share)
    # The AUC that the gap is a share of the difference to.
    reference = field(OWN.column("auc")) - field(DIFFERENCE.difference) / share
    sizes = [
        pl.max_horizontal(field(each.interval.inverse_size(side)) for side in ("low", "high"))
        * (field(scale) / share) ** 2
        for each, scale in ((OWN, DIFFERENCE.scale_own), (OTHER, DIFFERENCE.scale_other))
    ]
    return Comparison(reference, sizes[0], sizes[1], reference - 0.5)
