"""What an audit found of scores that may be probabilities, in sentences made of its numbers."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.calibration_sums import IN_THE_LARGE
from polars_wroc.findings import of_models, quoted, sized
from polars_wroc.rows import MODEL, OVERALL


def calibration_findings(calibration: pl.DataFrame | None, settings: dict[str, Any]) -> list[str]:
    """Say how far the mean of each score is from the share of positives, and where most.

    Where most is asked of the segments with rows enough only.
    """
    if calibration is None:
        return []
    return [
        sentence
        for of_model in of_models(calibration)
        for sentence in _of_score(of_model, settings)
    ]


def _of_score(calibration: pl.DataFrame, settings: dict[str, Any]) -> list[str]:
    everybody = calibration.row(0, named=True)
    if everybody[IN_THE_LARGE] is None:
        return []
    share = "share" if settings["weight"] is None else "weighted share"
    of_everybody = (
        f"Read as a probability, the score{quoted(everybody.get(MODEL))} is "
        f"{everybody['mean_score']:.3f} on average, and the {share} of positives is "
        f"{everybody['observed_rate']:.3f}: {_difference(everybody)}."
    )
    # A row with a frequency is as many rows as that says.
    behind = "weight" if settings["weight_type"] == "frequency" else "n"
    enough = calibration.drop_nulls(IN_THE_LARGE).filter(
        pl.col("attribute") != OVERALL, pl.col(behind) >= settings["min_rows"]
    )
    if enough.height < 2:  # noqa: PLR2004  (a range needs two)
        return [of_everybody]
    ordered = enough.sort(IN_THE_LARGE).to_dicts()
    low, high = (
        f"{_difference(one)} in {one['attribute']} {sized(one)}"
        for one in (ordered[0], ordered[-1])
    )
    return [of_everybody, f"In the segments it is from {low}, to {high}; this is not tested."]


def _difference(one: dict[str, Any]) -> str:
    low, high = (one[f"{IN_THE_LARGE}_{end}"] for end in ("low", "high"))
    limits = "" if low is None else f" ({_off(low)} to {_off(high)})"
    return f"{_off(one[IN_THE_LARGE])}{limits}"


def _off(difference: float) -> str:
    size = f"{abs(difference):.3f}"
    if not float(size):
        return "about right"
    return f"{size} too {'high' if difference > 0 else 'low'}"
