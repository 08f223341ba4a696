"""What the gaps of an audit say, in sentences."""

from __future__ import annotations

from typing import Any

import polars as pl

_NAMES = {
    "auc": "AUC",
    "selection_rate": "share selected",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision",
    "npv": "negative predictive value",
}
REFERENCES = {"rest": "the rest", "overall": "everybody", "best": "the best segment"}
_PARTS = ("gap", "gap_low", "gap_high", "gap_p_value", "gap_p_adjusted")
_MOST = 5


def gap_finding(gaps: pl.DataFrame, settings: dict[str, Any]) -> str:
    """Say which gaps are more than chance, and how many there were to look at."""
    tests = _tests(gaps)
    tested = tests.filter(pl.col("gap_p_value").is_not_null())
    if tested.is_empty():
        return "No segment has rows enough to be compared with the others."
    reference = REFERENCES[settings["reference"]]
    chance = 1 - settings["level"]
    found = tested.filter(pl.col("gap_p_adjusted") <= chance).sort("gap_p_adjusted")
    looked = f"{tested.height} comparisons with {reference}"
    if found.is_empty():
        largest = tested.sort(pl.col("gap").abs()).row(-1, named=True)
        return (
            f"None of {looked} finds more than chance would, at a level of {chance:.2g} for all of "
            f"them. The largest gap: {_sentence(largest, reference)}."
        )
    listed = [_sentence(row, reference) for row in found.head(_MOST).iter_rows(named=True)]
    more = found.height - len(listed)
    ends = f" There are {more} more in the tables." if more else ""
    return (
        f"Of {looked}, {found.height} find{'s' if found.height == 1 else ''} more than chance "
        f"would, at a level of {chance:.2g} for all of them: {'; '.join(listed)}.{ends}"
    )


def _tests(gaps: pl.DataFrame) -> pl.DataFrame:
    """One row per test of the table."""
    keys = [name for name in ("attribute", "segment", "model") if name in gaps.columns]
    return pl.concat(
        gaps.select(*keys, pl.lit(rate).alias("rate"), **{p: f"{rate}_{p}" for p in _PARTS})
        for rate in _NAMES
        if f"{rate}_gap" in gaps.columns
    )


def _sentence(test: dict[str, Any], reference: str) -> str:
    segment = "(missing)" if test["segment"] is None else test["segment"]
    model = f" with {test['model']}" if "model" in test else ""
    side = "higher" if test["gap"] > 0 else "lower"
    ends = sorted(abs(test[end]) for end in ("gap_low", "gap_high"))
    crosses = test["gap_low"] * test["gap_high"] < 0
    shown = (
        f"{test['gap_low']:+.3f} to {test['gap_high']:+.3f}"
        if crosses
        else f"{ends[0]:.3f} to {ends[1]:.3f}"
    )
    p = test["gap_p_adjusted"]
    return (
        f"in {test['attribute']} {segment} the {_NAMES[test['rate']]}{model} is "
        f"{abs(test['gap']):.3f} {side} than in {reference} ({shown}; adjusted p "
        f"{'below 0.001' if p < 0.001 else f'{p:.3f}'})"  # noqa: PLR2004
    )
