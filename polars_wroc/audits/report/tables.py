"""The tables of the report, as headings and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.audits.calibration_findings import TARGET
from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.matrix import SYMBOLS, Outcome
from polars_wroc.audits.sentences import IMPACT_RATIO, size
from polars_wroc.audits.tables import AuditSettings, AuditTables, name_of
from polars_wroc.audits.words import (
    DASH,
    Words,
    capitalised,
    many,
    points,
    reference_of,
    threshold_text,
)
from polars_wroc.charts.options import MINUS, NAMES, heading
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.curves.calibration_slope import SLOPE
from polars_wroc.groups.comparisons import FAIRNESS as METRICS
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.metrics.registry import ROC_AUC, SUMMARY_METRICS
from polars_wroc.thresholds.registry import GAP_RATES, RATES

_LEAST_P = 0.001
_MEASURES = {
    "segment": "Segment",
    "model": "Score",
    # First, as a phone shows few columns.
    ROC_AUC.column: ROC_AUC.heading,
    "n": "Rows",
    "n_pos": "Positive",
    "n_neg": "Negative",
    "n_missing": "Missing",
    "w_pos": "Positive weight",
    "w_neg": "Negative weight",
    **{metric.column: metric.heading for metric in SUMMARY_METRICS},
}
_DECISIONS = {
    "segment": "Segment",
    "model": "Score",
    "threshold": "Threshold",
    **{name: rate.heading for name, rate in (GAP_RATES | RATES).items()},
}
_GAPS = {
    "segment": "Segment",
    "model": "Score",
    **{f"{metric}_gap": heading(metric) for metric in NAMES},
}
_CALIBRATION = {
    "segment": "Segment",
    "model": "Score",
    "n": "Rows",
    "weight": "Weight",
    "mean_score": "Mean score",
    "observed_rate": "Observed rate",
    IN_THE_LARGE: "Difference",
    "oe_ratio": "Observed / expected",
    SLOPE: "Slope",
}
_FAIRNESS = {
    "metric": "Metric",
    "model": "Score",
    "value": "Value",
    "group_max": "Highest",
    "group_min": "Lowest",
    "joint_low": "For all pairs",
    "p_value": "p, all alike",
}
_IMPACT = {
    "segment": "Segment",
    "model": "Score",
    "n": "Rows",
    "share": "Share",
    "n_selected": "Selected",
    "selection_rate": "Selection rate",
    "impact_ratio": "Impact ratio",
    "below_four_fifths": "Below four fifths",
    "excluded": "Left out",
}
_TEXTS = (
    *("segment", "model", "metric", "group_max", "group_min"),
    *("below_four_fifths", "excluded"),
)
_WEIGHTS = ("w_pos", "w_neg", "weight")
# Gaps are in points.
_IN_POINTS = [f"{rate}_gap" for rate in NAMES]


@dataclass(frozen=True)
class Cell:
    """A value, notes in smaller letters, and whether it is marked as different."""

    text: str
    notes: tuple[str, ...] = ()
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption, its headings, and which of its columns are text."""

    title: str
    headings: list[str]
    texts: list[bool]
    rows: list[list[Cell]]


def tables_of(audit: AuditTables, shown: AuditTables, attribute: str) -> list[Table]:
    """Lay out the tables of an attribute, with those of its segments that are shown."""
    intervals = f"{100 * audit.parameters.level:g}% confidence intervals"

    def of_attribute(table: pl.DataFrame | None) -> pl.DataFrame:
        if table is None:
            return pl.DataFrame()
        weighted = audit.parameters.weight is not None
        rows = table.filter(attribute=attribute)
        return rows if weighted else rows.drop(_WEIGHTS, strict=False)

    segments = of_attribute(shown.segments)
    reference = reference_of(audit.parameters, attribute)
    title = f"Gaps to {reference}, in points of 100, with {intervals}"
    limits = {name: name for name in _IN_POINTS}
    tables = [_table(of_attribute(shown.gaps), title, _GAPS, limits)]
    most = f"most often {Words.of(audit.parameters).good}"
    title = f"Impact ratios to the segment {most}, with {intervals} for all pairs"
    limits = {"selection_rate": "selection_rate", "impact_ratio": "impact_ratio_joint"}
    tables.append(_table(of_attribute(shown.impact), title, _IMPACT, limits))
    measures = _MEASURES | _class_headings(audit)
    tables.append(_table(segments, f"Ranking, AUC with {intervals}", measures, {"auc": "ci"}))
    if "threshold" in segments.columns:
        rates = {name: name for name in _DECISIONS if f"{name}_low" in segments.columns}
        title = f"Decisions at the threshold, with {intervals}"
        if audit.parameters.selected is not None:
            title = f"Recorded decisions, with {intervals}"
            segments = segments.drop("threshold")
        tables.append(_table(segments, title, _DECISIONS, rates))
    title = f"Calibration, mean score and observed rate, with {intervals}"
    limits = {name: name for name in ("observed_rate", IN_THE_LARGE, SLOPE)} | {"oe_ratio": "oe"}
    tables.append(_table(of_attribute(shown.calibration), title, _CALIBRATION, limits))
    title = "Fairness metrics between the segments"
    tables.append(_table(of_attribute(audit.fairness), title, _FAIRNESS, {}))
    return [table for table in tables if table.rows]


def _class_headings(audit: AuditTables) -> dict[str, str]:
    """Head the columns of the classes by the label's own name."""
    words = Words.of(audit.parameters)
    names = {"pos": capitalised(words.positive), "neg": capitalised(words.negative)}
    counts = {f"n_{side}": name for side, name in names.items()}
    return counts | {f"w_{side}": f"{name}, weight" for side, name in names.items()}


def _table(
    table: pl.DataFrame,
    title: str,
    headings: dict[str, str],
    limits: dict[str, str],
) -> Table:
    names = [name for name in headings if name in table.columns]
    return Table(
        title,
        [headings[name] for name in names],
        [name in _TEXTS for name in names],
        [
            [_cell(name, row, limits.get(name)) for name in names]
            for row in table.iter_rows(named=True)
        ],
    )


def _cell(name: str, row: dict[str, Any], limits: str | None) -> Cell:
    value = row[name]
    if name == "segment":
        return Cell(name_of(value), _mark(row))
    words = _in_words(name, row)
    if words is not None:
        return Cell(words)
    notes = [] if limits is None else _limits(row, limits)
    verdict, p_value = row.get(f"{name}_verdict"), row.get(f"{name}_p_adjusted")
    notes += [] if verdict is None else [verdict]
    notes += [] if p_value is None else [f"p {p_value_text(p_value)}"]
    if row.get("metric") == "demographic_parity_ratio" and value < FOUR_FIFTHS:
        joint_high = row["joint_high"]
        sure = joint_high is not None and joint_high < FOUR_FIFTHS
        notes.append(f"{'surely ' if sure else ''}below four fifths")
    return Cell(_number(name, value), tuple(notes), marked=verdict == "different")


def _in_words(name: str, row: dict[str, Any]) -> str | None:
    """Write a cell that is no single number with its notes; None if it is one."""
    value = row[name]
    if value is None:
        return DASH
    if name == "metric":
        return METRICS[value].label
    if name == "joint_low":
        return _limits(row, "joint")[0]
    if name == "p_value":
        return p_value_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else None


def _mark(row: dict[str, Any]) -> tuple[str, ...]:
    """Say why a segment's AUC is not tested."""
    if not row.get("small"):
        return ()
    if not row["n"]:
        return ("no rows",)
    return ("too few rows: AUC not tested" if row["n_pos"] and row["n_neg"] else "one class only",)


def _limits(row: dict[str, Any], name: str) -> list[str]:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None or high is None:
        return []
    return [" to ".join(_number(name, end) for end in (low, high))]


def _number(name: str, value: float) -> str:
    if name == "threshold":
        return threshold_text(value)
    if name in _WEIGHTS:
        return f"{value:,.1f}"
    if name in _IN_POINTS:
        return points(value)
    sign = "+" if name == IN_THE_LARGE else ""
    # Adding 0 removes the sign of zero.
    return f"{round(value, 3) + 0.0:{sign}.3f}".replace("-", MINUS)


def p_value_text(value: float) -> str:
    """Write a p-value with three decimals."""
    return f"< {_LEAST_P}" if value < _LEAST_P else f"{value:.3f}"


# Most findings in the open, and of those so many that are not different.
_FIRST, _UNDECIDED = 12, 6


@dataclass(frozen=True)
class Found:
    """A finding: its rank, what it says, and what that is based on."""

    rank: int
    outcome: Outcome
    sentence: str
    note: str

    @property
    def symbol(self) -> str:
        """The sign that its cell of the matrix has."""
        return SYMBOLS[self.outcome]


@dataclass(frozen=True)
class FoldedFindings:
    """Findings below a heading, which are folded."""

    heading: str
    found: list[Found]


@dataclass(frozen=True)
class Findings:
    """The first findings, the others by their verdict, and how many are not on the page."""

    first: list[Found]
    folded: list[FoldedFindings]
    left_out: int

    @property
    def ranks(self) -> set[int]:
        """The findings that can be linked."""
        everything = [self.first, *(part.found for part in self.folded)]
        return {found.rank for part in everything for found in part}


def findings_on_page(
    findings: pl.DataFrame, shown: pl.DataFrame, settings: AuditSettings
) -> Findings:
    """Lay out the findings on the segments that are ``shown``."""
    told = findings.filter(~pl.col("mirror"))
    on_page = told.join(
        shown, on=shown.columns, how="semi", nulls_equal=True, maintain_order="left"
    )
    serious = on_page.filter(~pl.col("verdict").is_in(["alike", "not compared"]))
    first = _first(serious)
    others = on_page.filter(~pl.col("rank").is_in(first["rank"].implode()))
    margin = f"{size(settings.margin)} points"
    headings = {
        "different": "{} with a difference",
        "too little data": "{} with too little data to tell",
        "alike": f"{{}} alike within {margin}",
        "not compared": "{} that could not be made: undefined, or the reference itself",
    }
    more = "more " if first.height else ""
    folded = [
        FoldedFindings(
            heading.format(many(part.height, f"{more}comparison")), _found(part, settings)
        )
        for verdict, heading in headings.items()
        if not (part := others.filter(verdict=verdict)).is_empty()
    ]
    compared = pl.col("verdict") != "not compared"
    left_out = told.filter(compared).height - on_page.filter(compared).height
    return Findings(_found(first, settings), folded, left_out)


def found_on(findings: pl.DataFrame, attribute: str, settings: AuditSettings) -> list[Found]:
    """List what is different by an attribute."""
    different = findings.filter(~pl.col("mirror"), attribute=attribute, verdict="different")
    return _found(different, settings)


def _first(serious: pl.DataFrame) -> pl.DataFrame:
    """Take the first findings, and further ones only if they are different."""
    place = pl.int_range(pl.len())
    kept = (place < _UNDECIDED) | (pl.col("verdict") == "different")
    return serious.head(_FIRST).filter(kept)


def _found(part: pl.DataFrame, settings: AuditSettings) -> list[Found]:
    return [
        Found(row["rank"], _outcome(row), row["sentence"], _note(row, settings))
        for row in part.iter_rows(named=True)
    ]


def _outcome(finding: Mapping[str, Any]) -> Outcome:
    others: dict[str, Outcome] = {
        "alike": "alike",
        "too little data": "little",
        "not compared": "none",
    }
    side: Outcome = finding["side"]
    return others.get(finding["verdict"], side)


def _note(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Say how sure a finding is, and whether it is at least the margin."""
    verdict, p_value = finding["verdict"], finding["p_adjusted"]
    if verdict in ("alike", "not compared"):
        return ""
    limit = _margin(finding, settings)
    p_text = "" if p_value is None else f" (p {p_value_text(p_value)})"
    if finding["metric"] == IMPACT_RATIO:
        if verdict == "different":
            return f"Surely: even its upper limit, for all segments jointly, is below {limit}."
        return f"Likely, but not surely, below {limit}." if finding["material"] else ""
    if verdict == "different":
        worth = "and at least" if finding["material"] else "but less than"
        return f"Different{p_text}, {worth} {limit}."
    little = f"Too little data{p_text}"
    return f"{little}, though at least {limit}." if finding["material"] else f"{little}."


def _margin(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Name the margin of a metric."""
    if finding["metric"] == IMPACT_RATIO:
        return f"four fifths ({FOUR_FIFTHS:.2f})"
    if finding["metric"] == SLOPE:
        least, most = right_slopes(settings.margin)
        other = "" if finding["reference"] == TARGET else " times the other slope"
        return f"the margin of {least:.2f} to {most:.2f}{other}"
    return f"the margin of {size(settings.margin)} points"
