"""How far the rates of a group at a threshold are from those of a reference."""

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
    """From the cells of each group to the gaps of its rates."""

    reference: Reference
    level: float
    weight_type: WeightType

    @property
    def steps(self) -> list[Step]:
        """From cells and their squares to the columns of the gaps."""
        return [self._cells, *Proportions(self._shares, self.level).steps, self._gaps]

    def _cells(self, field: Fields) -> dict[str, pl.Expr]:
        return {_other(name): self.reference.cell(field(name)) for name in (*CELLS, *SQUARES)}

    def _shares(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        return {
            name(rate): parts_of(rate, self.weight_type, field, name)
            for rate in GAP_RATES
            for name in (str, _other)
        }

    def _gaps(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for rate in GAP_RATES:
            own, other = (proportion(name, field) for name in (rate, _other(rate)))
            share = self.reference.share_of_group(*_weights_behind(rate, field))
            for name, value in _gap(rate, own, other, share).items():
                is_rate = name in (rate, f"{rate}_reference")
                columns[name] = value if is_rate else self.reference.to_others(value)
        return columns


def _other(name: str) -> str:
    return f"__other_{name}"


def _weights_behind(rate: str, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """Add up the cells of a rate, in the group and in the others."""
    cells = GAP_RATES[rate].cells
    own = pl.sum_horizontal(field(cell) for cell in cells)
    return own, pl.sum_horizontal(field(_other(cell)) for cell in cells)


def _gap(
    rate: str, own: Proportion, other: Proportion, share: pl.Expr | None
) -> dict[str, pl.Expr]:
    """Write the gap and the ratio, to all rows if the group has a ``share`` of them.

    The overall rate is a mean of the group's and the rest's, so that the gap to it is a part of
    that to the rest.
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
    """Test that two shares are equal, by the variance that they have if they are."""
    both = (one.size * one.value + other.size * other.value) / (one.size + other.size)
    variance = both * (1 - both) * (1 / one.size + 1 / other.size)
    tested = pl.when(variance > 0).then(
        two_sided_p_value((one.value - other.value) / variance.sqrt())
    )
    return tested.when(variance == 0).then(1.0)
