"""Gaps of AUCs and of rates, with intervals and p-values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.groups.auc_sums import OF_GROUP, OF_REFERENCE
from polars_wroc.groups.references import DIFFERENCE, Reference, other_name
from polars_wroc.groups.survey_gaps import AUC, AUC_DF, SurveyGaps, correlation, gap_variance
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.score_interval import WilsonInterval
from polars_wroc.plans.queries import Fields, Step, in_columns, in_list
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.stats.difference_tests import (
    Comparison,
    Sample,
    equal_proportions,
    numbers_of_rows,
)
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    Proportion,
    Proportions,
    WeightedCount,
    difference_limits,
    proportion,
    ratio_limits,
    reported_ratio,
    wilson,
)
from polars_wroc.stats.variances import design_df, design_effect
from polars_wroc.thresholds.confusion_matrix import BY_DESIGN, cell_counts, rate_variance
from polars_wroc.thresholds.registry import GAP_RATES

# How AUCs are compared: by their score-type intervals, or by Student's t on their logits.
GapMethod: TypeAlias = Literal["score", "logit-t"]

_CORRELATION, _DF, _QUANTILE = "__auc_correlation", "__auc_df", "__auc_gap_quantile"
_TEST = ScoreDifference(
    OF_GROUP.interval,
    OF_REFERENCE.interval,
    DIFFERENCE.difference,
    DIFFERENCE.scale_own,
    DIFFERENCE.scale_other,
)
_TEST_BY_DESIGN = replace(
    _TEST,
    one=OF_GROUP.interval_by_design,
    other=OF_REFERENCE.interval_by_design,
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
    for each, name in ((OF_GROUP, AUC), (OF_REFERENCE, other_name(AUC))):
        effect = design_effect(field(rate_variance(name)), field(each.column("variance")))
        columns[each.column("design_effect")] = pl.when(df.is_not_null()).then(effect)
    return columns


def _with_gaps(compared: pl.LazyFrame, parts: dict[str, pl.Expr]) -> pl.LazyFrame:
    return compared.with_columns(
        pl.col(OF_GROUP.column("auc")).alias("auc"),
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
        for each, scale in (
            (OF_GROUP, DIFFERENCE.scale_own),
            (OF_REFERENCE, DIFFERENCE.scale_other),
        )
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
    return OF_GROUP.interval.limits(field, quantile), OF_REFERENCE.interval.limits(field, quantile)


def auc_gap_limits(field: Fields, own: Limits, other: Limits, *, designed: bool) -> Limits:
    """Limits of the gap from those of both, wider by the change that score bins can make."""
    low, high = (_TEST_BY_DESIGN if designed else _TEST).combined(field, own, other)
    return Limits(low - field(DIFFERENCE.slack), high + field(DIFFERENCE.slack))


def auc_comparison(field: Fields) -> Comparison:
    """Compare two AUCs with the smaller effective sizes of both sides of their intervals."""
    share = field(DIFFERENCE.share)
    # The AUC that the gap is a share of the difference to.
    reference = field(OF_GROUP.column("auc")) - field(DIFFERENCE.difference) / share
    sizes = [
        pl.max_horizontal(field(each.interval.inverse_size(side)) for side in ("low", "high"))
        * (field(scale) / share) ** 2
        for each, scale in (
            (OF_GROUP, DIFFERENCE.scale_own),
            (OF_REFERENCE, DIFFERENCE.scale_other),
        )
    ]
    return Comparison(reference, sizes[0], sizes[1], reference - 0.5)


# The columns of each rate.
RATE_GAPS = {
    rate: tuple(
        f"{rate}{ending}"
        for ending in (
            "",
            "_reference",
            "_gap",
            "_gap_low",
            "_gap_high",
            "_gap_p_value",
            "_gap_p_adjusted",
            "_ratio",
            "_ratio_low",
            "_ratio_high",
        )
    )
    for rate in GAP_RATES
}
RATE_GAP_COLUMNS = tuple(name for names in RATE_GAPS.values() for name in names)
# Tests of the difference of two rates, of which each has a row.
SIDES = ("own", "other")
INTERVALS = {
    side: WilsonInterval(f"value_{side}", f"complement_{side}", f"size_{side}") for side in SIDES
}
TEST = ScoreDifference(INTERVALS["own"], INTERVALS["other"], "difference", "scale", "scale")
TEST_BY_DESIGN = replace(TEST, correlation="correlation", df="df")


@dataclass(frozen=True)
class RateGaps:
    """Gaps of rates, computed from the cells of each group."""

    reference: Reference
    level: float
    weight_type: WeightType
    # With the columns of `SurveyGaps`.
    designed: bool = False

    @property
    def steps(self) -> list[Step]:
        """Compute the columns of the gaps from cells and their squared weights."""
        design = BY_DESIGN if self.designed else None
        proportions = Proportions(self._proportions, self.level, design=design)
        prepared, steps = (
            (_difference, TEST_BY_DESIGN.steps) if self.designed else (_numbers, [_plain_test])
        )
        compared = {_p_value(rate): prepared(rate, pl.col) for rate in GAP_RATES}
        tests = in_list(compared, steps, TEST.p_value)
        return [self._cells, *proportions.steps, *tests, self._gaps]

    def _cells(self, field: Fields) -> dict[str, pl.Expr]:
        return {other_name(name): self.reference.cell(field(name)) for name in (*CELLS, *SQUARES)}

    def _proportions(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        return {
            name(rate): cell_counts(rate, self.weight_type, field, name)
            for rate in GAP_RATES
            for name in (str, other_name)
        }

    def _gaps(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for rate in GAP_RATES:
            own, other = (proportion(name, field) for name in (rate, other_name(rate)))
            share = self.reference.share_of_group(*_denominators(rate, field))
            columns[others_share(rate)] = pl.lit(1.0) if share is None else 1 - share
            related = correlation(rate, field) if self.designed else None
            gap = _gap(rate, own, other, share, related)
            gap[_p_value(rate)] = field(_p_value(rate))
            for name, value in gap.items():
                is_rate = name in (rate, f"{rate}_reference")
                columns[name] = value if is_rate else self.reference.to_others(value)
        return columns


def others_share(rate: str) -> str:
    """Column of the share of the difference to the other rows that the gap is."""
    return f"__others_share_{rate}"


def rate_limits(rate: str, field: Fields, quantile: pl.Expr) -> tuple[Limits, Limits]:
    """Limits of a rate and of that of the other rows, at a quantile of the normal distribution."""
    own, other = (proportion(name, field) for name in (rate, other_name(rate)))
    return wilson(own.value, own.size, quantile), wilson(other.value, other.size, quantile)


def rate_gap_limits(
    rate: str, field: Fields, own: Limits, other: Limits, *, designed: bool
) -> Limits:
    """Limits of the gap from those of both rates."""
    one, two = (
        Estimate(proportion(name, field).value, *limits)
        for name, limits in ((rate, own), (other_name(rate), other))
    )
    related = correlation(rate, field) if designed else None
    limits = difference_limits(one, two, related)
    return Limits(*(field(others_share(rate)) * end for end in limits))


def rate_comparison(rate: str, field: Fields) -> Comparison:
    """Compare a rate with that of the other rows."""
    own, other = (proportion(name, field) for name in (rate, other_name(rate)))
    return Comparison(other.value, 1 / own.size, 1 / other.size, other.value)


def _p_value(rate: str) -> str:
    return f"{rate}_gap_p_value"


def _difference(rate: str, field: Fields) -> dict[str, pl.Expr]:
    own, other = (proportion(name, field) for name in (rate, other_name(rate)))
    return difference_by_design(own, other, correlation(rate, field), design_df(field))


def difference_by_design(
    own: Proportion, other: Proportion, related: pl.Expr, df: pl.Expr
) -> dict[str, pl.Expr]:
    """Name the columns that `TEST_BY_DESIGN` needs of two rates and their correlation."""
    columns = {
        TEST.difference: own.value - other.value,
        "scale": pl.lit(1.0),
        "correlation": related,
        "df": df,
    }
    for interval, rate_of_side in zip(INTERVALS.values(), (own, other), strict=True):
        value, size = rate_of_side.value, rate_of_side.size
        names = interval.auc, interval.one_minus_auc, interval.size
        columns |= dict(zip(names, (value, 1 - value, 1 / size), strict=True))
    return columns


def _denominators(rate: str, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """Weights of the rows that a rate is a proportion of, in the group and in the complement."""
    cells = GAP_RATES[rate].cells
    own = pl.sum_horizontal(field(cell) for cell in cells)
    return own, pl.sum_horizontal(field(other_name(cell)) for cell in cells)


def _gap(
    rate: str,
    own: Proportion,
    other: Proportion,
    share: pl.Expr | None,
    related: pl.Expr | None,
) -> dict[str, pl.Expr]:
    """Compute the gap and the ratio; to all rows if the group's ``share`` of them is given.

    The overall rate is a weighted mean of the rates of the group and of its complement, so that
    the gap to it is ``1 - share`` times the gap to the complement.
    """
    both = own.estimate, other.estimate, related
    gap = Estimate(own.value - other.value, *difference_limits(*both))
    ratio = Estimate(own.value / other.value, *ratio_limits(*both))
    reference = other.value
    if share is not None:
        gap = Estimate(*((1 - share) * each for each in gap))
        ratio = Estimate(*(1 / (share + (1 - share) / each) for each in ratio))
        reference = share * own.value + (1 - share) * other.value
    ratio = reported_ratio(ratio, reference)
    return {
        rate: own.value,
        f"{rate}_reference": reference,
        f"{rate}_gap": gap.value,
        f"{rate}_gap_low": gap.low,
        f"{rate}_gap_high": gap.high,
        f"{rate}_ratio": ratio.value,
        f"{rate}_ratio_low": ratio.low,
        f"{rate}_ratio_high": ratio.high,
    }


def _numbers(rate: str, field: Fields) -> dict[str, pl.Expr]:
    own, other = (proportion(name, field) for name in (rate, other_name(rate)))
    return numbers_of_rows(*(Sample(each.value, each.size) for each in (own, other)))


def _plain_test(field: Fields) -> dict[str, pl.Expr]:
    return {TEST.p_value: equal_proportions(field)}
