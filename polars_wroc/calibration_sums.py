"""What scores promise as probabilities and what comes true, from sums over rows."""

from __future__ import annotations

import polars as pl

from polars_wroc.confusion import class_weights, is_divisor
from polars_wroc.inputs import SCORE, WEIGHT
from polars_wroc.rates import Estimate, Part, Shares, share
from polars_wroc.rows import Rows
from polars_wroc.staged import Fields, Step
from polars_wroc.variance import WeightType

IN_THE_LARGE = "calibration_in_the_large"
_RATE = "observed_rate"
_PROMISED = "__promised"
_SIDES = ("positive", "negative")
# The sums of weights and of their squares in each class, and of weighted scores.
CALIBRATION_SUMS = (
    *(f"__{side}{name}" for side in _SIDES for name in ("", "_squares")),
    _PROMISED,
)


def calibration_columns(difference: str) -> tuple[str, ...]:
    """Name what is known of the calibration of rows; the ``difference`` has a name of its own."""
    return ("n", "weight", "mean_score", *_ends(_RATE), *_ends(difference))


def _ends(name: str) -> tuple[str, str, str]:
    """Columns of a value and of its limits."""
    return name, f"{name}_low", f"{name}_high"


def calibration_sums(rows: Rows, weight_type: WeightType) -> dict[str, pl.Expr]:
    """Add up rows to all that `calibration_steps` needs but ``n``."""
    weights = class_weights(pl.col(WEIGHT))
    squares = weights if weight_type == "frequency" else class_weights(rows.signed_squares)
    promised = pl.col(SCORE).cast(pl.Float64) * (weights[0] + weights[1])
    sums = (weights[0], squares[0], weights[1], squares[1], promised)
    return {name: value.sum() for name, value in zip(CALIBRATION_SUMS, sums, strict=True)}


def calibration_steps(difference: str, level: float) -> list[Step]:
    """From sums over rows to what they promised and what came true."""

    def parts(field: Fields) -> dict[str, tuple[Part, Part]]:
        pos, neg = (Part(field(f"__{side}"), field(f"__{side}_squares")) for side in _SIDES)
        return {_RATE: (pos, neg)}

    def measure(field: Fields) -> dict[str, pl.Expr]:
        ((positive, negative),) = parts(field).values()
        total = (positive + negative).weight
        known = pl.when(is_divisor(total))
        rate = Estimate(*(known.then(value) for value in share(_RATE, field).estimate))
        mean = known.then(field(_PROMISED) / total)
        above = mean - rate.value, mean - rate.high, mean - rate.low
        return {
            "weight": total,
            "mean_score": mean,
            **dict(zip(_ends(_RATE), rate, strict=True)),
            **dict(zip(_ends(difference), above, strict=True)),
        }

    return [*Shares(parts, level).steps, measure]
