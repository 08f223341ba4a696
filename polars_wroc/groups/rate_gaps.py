"""Differences and ratios of the rates of each group at a threshold to those of a reference."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.groups.references import Reference
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.stats.differences import Estimate, difference_limits, ratio_limits
from polars_wroc.stats.distributions import two_sided_p_value
from polars_wroc.stats.proportions import Proportion, Proportions, WeightedCount, proportion
from polars_wroc.thresholds.confusion_metrics import parts_of
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


@dataclass(frozen=True)
class RateGaps:
    """Gaps of rates, computed from the cells of each group."""

    reference: Reference
    level: float
    weight_type: WeightType

    @property
    def steps(self) -> list[Step]:
        """Compute the columns of the gaps from cells and their squared weights."""
        return [self._cells, *Proportions(self._proportions, self.level).steps, self._gaps]

    def _cells(self, field: Fields) -> dict[str, pl.Expr]:
        return {_other(name): self.reference.cell(field(name)) for name in (*CELLS, *SQUARES)}

    def _proportions(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        return {
            name(rate): parts_of(rate, self.weight_type, field, name)
            for rate in GAP_RATES
            for name in (str, _other)
        }

    def _gaps(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for rate in GAP_RATES:
            own, other = (proportion(name, field) for name in (rate, _other(rate)))
            share = self.reference.share_of_group(*_denominators(rate, field))
            for name, value in _gap(rate, own, other, share).items():
                is_rate = name in (rate, f"{rate}_reference")
                columns[name] = value if is_rate else self.reference.to_others(value)
        return columns


def _other(name: str) -> str:
    return f"__other_{name}"


def _denominators(rate: str, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """Weights of the rows that a rate is a proportion of, in the group and in the complement."""
    cells = GAP_RATES[rate].cells
    own = pl.sum_horizontal(field(cell) for cell in cells)
    return own, pl.sum_horizontal(field(_other(cell)) for cell in cells)


def _gap(
    rate: str, own: Proportion, other: Proportion, share: pl.Expr | None
) -> dict[str, pl.Expr]:
    """Compute the gap and the ratio; to all rows if the group's ``share`` of them is given.

    The overall rate is a weighted mean of the rates of the group and of its complement, so that
    the gap to it is ``1 - share`` times the gap to the complement.
    """
    gap = Estimate(own.value - other.value, *difference_limits(own.estimate, other.estimate))
    ratio = Estimate(own.value / other.value, *ratio_limits(own.estimate, other.estimate))
    reference = other.value
    if share is not None:
        gap = Estimate(*((1 - share) * each for each in gap))
        ratio = Estimate(*(1 / (share + (1 - share) / each) for each in ratio))
        reference = share * own.value + (1 - share) * other.value
    defined = pl.when(reference > 0)
    return {
        rate: own.value,
        f"{rate}_reference": reference,
        f"{rate}_gap": gap.value,
        f"{rate}_gap_low": gap.low,
        f"{rate}_gap_high": gap.high,
        f"{rate}_gap_p_value": _p_value(own, other),
        f"{rate}_ratio": defined.then(ratio.value),
        f"{rate}_ratio_low": defined.then(ratio.low),
        f"{rate}_ratio_high": defined.then(ratio.high),
    }


def _p_value(one: Proportion, other: Proportion) -> pl.Expr:
    """Two-sided z-test that two proportions are equal, with their pooled variance."""
    pooled = (one.size * one.value + other.size * other.value) / (one.size + other.size)
    variance = pooled * (1 - pooled) * (1 / one.size + 1 / other.size)
    tested = pl.when(variance > 0).then(
        two_sided_p_value((one.value - other.value) / variance.sqrt())
    )
    return tested.when(variance == 0).then(1.0)
