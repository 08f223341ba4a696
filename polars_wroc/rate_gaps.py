"""How far the rates of a group at a threshold are from those of a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.cells import CELLS, SQUARES
from polars_wroc.distributions import two_sided_p_value
from polars_wroc.rates import (
    Estimate,
    Part,
    difference_limits,
    effective_share,
    ratio_limits,
    wilson,
)
from polars_wroc.references import over
from polars_wroc.staged import Fields, Step
from polars_wroc.variance import WeightType

# Each rate: the cells that it counts, and the others that it is a share of.
SHARES = {
    "selection_rate": (("tp", "fp"), ("fn", "tn")),
    "tpr": (("tp",), ("fn",)),
    "fpr": (("fp",), ("tn",)),
    "ppv": (("tp",), ("fp",)),
    "npv": (("tn",), ("fn",)),
}
_PARTS = ("value", "low", "high", "size")
# What a difference of sums may have lost.
_NOTHING = 1e-14

References: TypeAlias = Literal["rest", "overall", "group"]


def rate_gap_columns() -> list[str]:
    """Name the columns of the gaps, rate by rate."""
    names = ("", "_reference", "_gap", "_gap_low", "_gap_high", "_gap_p_value", "_gap_p_adjusted")
    ratios = ("_ratio", "_ratio_low", "_ratio_high")
    return [f"{rate}{name}" for rate in SHARES for name in (*names, *ratios)]


class _Share(NamedTuple):
    """A rate with its interval, and how many rows it is sure as."""

    value: pl.Expr
    low: pl.Expr
    high: pl.Expr
    size: pl.Expr

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, self.low, self.high)


def rate_gap_steps(
    kind: References, apart: Sequence[str], level: float, weight_type: WeightType, picked: pl.Expr
) -> list[Step]:
    """From the cells of each group to the gaps of its rates.

    The reference is made of the cells of the others with the same keys ``apart``: all of them
    for ``"rest"`` and ``"overall"``, those of the one that is ``picked`` for ``"group"``.
    """

    def reference(field: Fields) -> dict[str, pl.Expr]:
        columns = {}
        for name in (*CELLS, *SQUARES):
            own = field(name)
            if kind == "group":
                columns[_other(name)] = over(pl.when(picked).then(own).max(), apart)
            else:
                everybody = over(own.sum(), apart)
                rest = everybody - own
                columns[_other(name)] = (
                    pl.when(rest > _NOTHING * everybody).then(rest).otherwise(0.0)
                )
        return columns

    def shares(field: Fields) -> dict[str, pl.Expr]:
        columns = {}
        for rate in SHARES:
            for side, name in (("own", str), ("other", _other)):
                share = _share(rate, name, level, weight_type, field)
                columns |= {
                    _column(rate, side, part): value for part, value in share._asdict().items()
                }
        return columns

    def gaps(field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for rate in SHARES:
            own, other = (
                _Share(*(field(_column(rate, side, part)) for part in _PARTS))
                for side in ("own", "other")
            )
            share = _share_of_group(rate, field) if kind == "overall" else None
            known = pl.when(~picked) if kind == "group" else pl.when(pl.lit(value=True))
            columns |= {
                name: known.then(value) if name not in (rate, f"{rate}_reference") else value
                for name, value in _gap(rate, own, other, share).items()
            }
        return columns

    return [reference, shares, gaps]


def _other(name: str) -> str:
    return f"__other_{name}"


def _column(rate: str, side: str, part: str) -> str:
    return f"__{rate}_{side}_{part}"


def _share(
    rate: str,
    name: Callable[[str], str],
    level: float,
    weight_type: WeightType,
    field: Fields,
) -> _Share:
    squares = dict(zip(CELLS, CELLS if weight_type == "frequency" else SQUARES, strict=True))
    part, others = (
        reduce(add, (Part(field(name(cell)), field(name(squares[cell]))) for cell in cells))
        for cells in SHARES[rate]
    )
    value, size = effective_share(part, others)
    return _Share(value, *wilson(value, size, level), size)


def _share_of_group(rate: str, field: Fields) -> pl.Expr:
    """What share of everybody's rate is the group's own."""
    cells = [cell for side in SHARES[rate] for cell in side]
    own = pl.sum_horizontal(field(cell) for cell in cells)
    return own / (own + pl.sum_horizontal(field(_other(cell)) for cell in cells))


def _gap(rate: str, own: _Share, other: _Share, share: pl.Expr | None) -> dict[str, pl.Expr]:
    """Write the gap and the ratio, to everybody if the group has a ``share`` of them.

    Everybody's rate is a mean of the group's and the rest's, so that the gap to everybody is a
    part of that to the rest.
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


def _p_value(one: _Share, other: _Share) -> pl.Expr:
    """Test that two shares are equal, by the variance that they have if they are."""
    both = (one.size * one.value + other.size * other.value) / (one.size + other.size)
    variance = both * (1 - both) * (1 / one.size + 1 / other.size)
    tested = pl.when(variance > 0).then(
        two_sided_p_value((one.value - other.value) / variance.sqrt())
    )
    return tested.when(variance == 0).then(1.0)
