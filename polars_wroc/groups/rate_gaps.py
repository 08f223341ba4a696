"""Differences and ratios of the rates of each group at a threshold to those of a reference."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.groups.references import Reference, other_name
from polars_wroc.groups.survey_gaps import correlation
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.metrics.score_difference import ScoreDifference
from polars_wroc.metrics.score_interval import WilsonInterval
from polars_wroc.plans.steps import Fields, Step, in_list
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.detectable import Comparison
from polars_wroc.stats.differences import (
    Estimate,
    Limits,
    difference_limits,
    ratio_limits,
    reported_ratio,
)
from polars_wroc.stats.equal_proportions import Sample, equal_proportions_p_value
from polars_wroc.stats.proportions import Proportion, Proportions, WeightedCount, proportion, wilson
from polars_wroc.thresholds.confusion_metrics import cell_counts
from polars_wroc.thresholds.rate_design import BY_DESIGN
from polars_wroc.thresholds.registry import GAP_RATES

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
        differences = {_p_value(rate): _difference(rate, pl.col) for rate in GAP_RATES}
        tests = in_list(differences, TEST_BY_DESIGN.steps, TEST.p_value) if self.designed else []
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
            p_value = field(_p_value(rate)) if self.designed else _test(own, other)
            gap[_p_value(rate)] = p_value
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


def _test(one: Proportion, other: Proportion) -> pl.Expr:
    return equal_proportions_p_value(*(Sample(each.value, each.size) for each in (one, other)))
