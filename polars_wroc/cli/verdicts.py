"""What the tables of commands say, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.phrases import capitalised, first_few, many, points
from polars_wroc.charts.labels import NAMES, GapMetric
from polars_wroc.groups.four_fifths import BELOW, LIKELY, SURELY
from polars_wroc.groups.groupings import CROSSED
from polars_wroc.inputs.names import MISSING, MODEL
from polars_wroc.plans.by_keys import over
from polars_wroc.stats.multiple_tests import is_significant

_SEPARATOR = "; "
# A share above the median that needs an explanation, which is ties.
_FEW_ABOVE_MEDIAN = 0.45


def of_pairs(table: pl.DataFrame, keys: Sequence[str], level: float) -> str:
    """Say which pairs of scores have different AUCs."""
    significant = is_significant(pl.col("p_adjusted"), level).fill_null(value=False)
    tested = table.drop_nulls("p_adjusted").height
    found = table.filter(significant).sort(pl.col("difference").abs(), descending=True)
    if found.is_empty():
        return f"No score is shown to have a higher AUC than another ({many(tested, 'test')})."
    groups = [key for key in keys if key not in ("model_a", "model_b")]
    names = [f"{_place(row, groups)}{_order(row)}" for row in found.iter_rows(named=True)]
    are = "differs" if found.height == 1 else "differ"
    counts = f"{found.height:,} of {many(tested, 'pair')} of AUCs {are}"
    return f"{counts}: {first_few(names, _SEPARATOR)}."


def of_gaps(
    table: pl.DataFrame, keys: Sequence[str], metric: GapMetric, reference: str, margin: float
) -> str:
    """Say which groups differ from their reference."""
    gap, verdict = f"{metric}_gap", pl.col(f"{metric}_gap_verdict")
    found = table.filter(verdict == "different").sort(pl.col(gap).abs(), descending=True)
    names = [f"{_place(row, keys, '')} ({points(row[gap])})" for row in found.iter_rows(named=True)]
    what = f"from {reference} in {NAMES[metric]}"
    first = f"No group is shown to differ {what}."
    if names:
        first = f"Different {what}, in points: {first_few(names, _SEPARATOR)}."
    alike = table.filter(verdict == "alike").height
    unclear = table.filter(verdict == "too little data").height
    counts = [
        *([f"alike within {100 * margin:g} points: {many(alike, 'group')}"] if alike else []),
        *([f"too little data to tell: {many(unclear, 'group')}"] if unclear else []),
    ]
    rest = f" {'; '.join(counts)}." if counts else ""
    return first + rest[:1] + rest[1:2].upper() + rest[2:] + _adjusted(table)


def _adjusted(table: pl.DataFrame) -> str:
    """Say for how many tests the verdicts are adjusted, if they are."""
    adjusted = table.select(pl.col(r"^.*_p_adjusted$").name.replace("adjusted$", "value"))
    if table.select(adjusted.columns).equals(adjusted):
        return ""
    tests = sum(column.count() for column in adjusted)
    return f" Verdicts are adjusted for {tests:,} tests, intervals are not."


def of_decisions(table: pl.DataFrame, keys: Sequence[str]) -> str | None:
    """Say where a rule can choose no threshold."""
    found = table.filter(pl.col("threshold").is_null())
    if found.is_empty():
        return None
    names = [_place(row, keys, "") for row in found.iter_rows(named=True)]
    groups = f" in {first_few(names, _SEPARATOR)}" if keys else ""
    return f"No threshold can be chosen{groups}: a class that the rule needs is missing."


def of_calibration(slopes: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say which scores are too high or too low, and of which the slope is not 1."""
    low, high = pl.col("calibration_slope_low"), pl.col("calibration_slope_high")
    said = {
        "Scores are too high on average": pl.col("oe_high") < 1,
        "Scores are too low on average": pl.col("oe_low") > 1,
        "Differences between scores are too large (slope below 1)": high < 1,
        "Differences between scores are too small (slope above 1)": low > 1,
    }
    sentences = []
    for text, condition in said.items():
        found = slopes.filter(condition)
        names = [_place(row, keys, "") for row in found.iter_rows(named=True)]
        if names:
            listed = f": {first_few(names, _SEPARATOR)}" if keys else ""
            sentences.append(f"{text}{listed}.")
    if not sentences:
        return "Neither O:E (observed to expected positives) nor a slope is shown to differ from 1."
    adjusted = " Limits are not adjusted for the number of groups." if keys else ""
    return f"{' '.join(sentences)}{adjusted}"


def of_impact(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say which categories are below four fifths."""
    below = pl.col(BELOW)
    judged = table.filter(pl.col("excluded").is_null(), below.is_not_null())
    if judged.is_empty():
        return "Nothing could be compared."
    # Crossed groups come after those of one attribute.
    crossed = pl.col("attribute").str.contains(CROSSED, literal=True)
    listed = {}
    for verdict in (SURELY, LIKELY):
        found = judged.filter(below == verdict).sort(crossed, "impact_ratio")
        listed[verdict] = [
            f"{_place(row, keys, '')} ({row['impact_ratio']:.2f})"
            for row in found.iter_rows(named=True)
        ]
    sentences = [
        f"{start}: {first_few(names, _SEPARATOR)}."
        for start, names in (
            ("Surely below four fifths", listed[SURELY]),
            ("Likely below", listed[LIKELY]),
        )
        if names
    ]
    if not listed[SURELY]:
        sentences.insert(0, "No category is surely below four fifths.")
    return " ".join(sentences)


def of_missing(table: pl.DataFrame, what: str) -> str:
    """Say how many rows lack one of these, if any do."""
    of_one, models = _of_one_attribute(table)
    found = of_one.select(over(pl.col("n_missing").sum(), models)).to_series()
    most = max(found.to_list(), default=0)
    if not most:
        return ""
    up_to = "" if found.n_unique() == 1 else "up to "
    have, were = ("has", "was") if most == 1 else ("have", "were")
    return capitalised(f"{up_to}{many(most, 'row')} {have} no {what} and {were} left out.")


def of_median(table: pl.DataFrame) -> str:
    """Say that far fewer than half of the rows score above the median, if so."""
    of_one, models = _of_one_attribute(table)
    above = (pl.col("selection_rate") * pl.col("weight")).sum() / pl.col("weight").sum()
    least = of_one.select(over(above, models)).to_series().min()
    if not isinstance(least, float) or least >= _FEW_ABOVE_MEDIAN:
        return ""
    return f"Only {least:.0%} score above the median, since many scores are equal to it."


def _of_one_attribute(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the categories of one attribute, which have all rows, and the key of the model."""
    of_one = table.filter(attribute=table["attribute"][0]) if table.height else table
    return of_one, [MODEL] if MODEL in table.columns else []


def _order(row: dict[str, Any]) -> str:
    """Name two scores, the one with the higher AUC first."""
    higher, lower = row["model_a"], row["model_b"]
    if row["difference"] < 0:
        higher, lower = lower, higher
    return f"{higher} is above {lower} by {abs(row['difference']):.3f}"


def _place(row: dict[str, Any], keys: Sequence[str], end: str = ": ") -> str:
    """Name a group, as in sex f, race a."""
    names = [MISSING if row[key] is None else str(row[key]) for key in keys]
    return f"{' '.join(names)}{end}" if names else ""
