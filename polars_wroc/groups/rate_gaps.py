"""How far the rates of a group at a threshold are from those of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.confusion_curve import CELLS, SQUARES
from polars_wroc.stats.differences import Estimate, difference_limits, ratio_limits
from polars_wroc.stats.distributions import two_sided_p_value
from polars_wroc.stats.proportions import Proportion, Proportions, WeightedCount, proportion
from polars_wroc.thresholds.confusion_metrics import parts_of
from polars_wroc.thresholds.registry import GAP_RATES

# What a difference of sums may have lost.
_NOTHING = 1e-14

RATE_GAP_COLUMNS = tuple(
    f"{rate}{ending}"
    for rate in GAP_RATES
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


@dataclass(frozen=True)
class RateGaps:
    """From the cells of each group to the gaps of its rates.

    The reference is made of the cells of the others with the same keys ``apart``: all of them
    for ``"rest"`` and ``"overall"``, those of the one that is ``picked`` for ``"group"``.
    """

    kind: Literal["rest", "overall", "group"]
    partition_keys: Sequence[str]
    level: float
    weight_type: WeightType
    is_reference: pl.Expr

    @property
    def steps(self) -> list[Step]:
        """From cells and their squares to the columns of the gaps."""
        return [self._reference, *Proportions(self._shares, self.level).steps, self._gaps]

    def _reference(self, field: Fields) -> dict[str, pl.Expr]:
        return {_other(name): self._of_reference(field(name)) for name in (*CELLS, *SQUARES)}

    def _of_reference(self, own: pl.Expr) -> pl.Expr:
        if self.kind == "group":
            return over(pl.when(self.is_reference).then(own).max(), self.partition_keys)
        everybody = over(own.sum(), self.partition_keys)
        rest = everybody - own
        return pl.when(rest > _NOTHING * everybody).then(rest).otherwise(0.0)

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
            of_everybody = _share_of_group(rate, field) if self.kind == "overall" else None
            columns |= _gap(rate, own, other, of_everybody)
            if self.kind == "group":
                # A reference has no gap to itself.
                gaps = [
                    name for name in columns if name.startswith((f"{rate}_gap", f"{rate}_ratio"))
                ]
                columns |= {name: pl.when(~self.is_reference).then(columns[name]) for name in gaps}
        return columns


def _other(name: str) -> str:
    return f"__other_{name}"


def _share_of_group(rate: str, field: Fields) -> pl.Expr:
    """What share of everybody's rate is the group's own."""
    cells = GAP_RATES[rate].cells
    own = pl.sum_horizontal(field(cell) for cell in cells)
    return own / (own + pl.sum_horizontal(field(_other(cell)) for cell in cells))


def _gap(rate: str, own: Proportion, other: Proportion, part: pl.Expr | None) -> dict[str, pl.Expr]:
    """Write the gap and the ratio, to everybody if the group is a ``part`` of them.

    Everybody's rate is a mean of the group's and the rest's, so that the gap to everybody is a
    part of that to the rest.
    """
    gap = Estimate(own.value - other.value, *difference_limits(own.estimate, other.estimate))
    ratio = Estimate(own.value / other.value, *ratio_limits(own.estimate, other.estimate))
    reference = other.value
    if part is not None:
        gap = Estimate(*((1 - part) * each for each in gap))
        ratio = Estimate(*(1 / (part + (1 - part) / each) for each in ratio))
        reference = part * own.value + (1 - part) * other.value
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
