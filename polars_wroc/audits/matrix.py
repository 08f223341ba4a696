"""The findings as a matrix: a row for each segment, most serious first, a cell for each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.findings import by_severity
from polars_wroc.audits.sentences import decimals_of
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables
from polars_wroc.audits.words import DASH, Words, capitalised, many
from polars_wroc.charts.options import MINUS
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.curves.calibration_summary import IN_THE_LARGE
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    FEW,
    IMPACT_RATIO,
    THE_REFERENCE,
    TOO_LITTLE,
)
from polars_wroc.inputs.columns import OVERALL

# What a cell says, from the verdict and the side of its finding.
Outcome: TypeAlias = Literal["worse", "better", "either", "alike", "little", "none"]

SYMBOLS: dict[Outcome, str] = {
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "better": "\N{WHITE UP-POINTING TRIANGLE}",
    "either": "\N{BLACK DIAMOND}",
    "alike": "\N{ALMOST EQUAL TO}",
    "little": "?",
    "none": "",
}
_METRICS = ("selection_rate", IMPACT_RATIO, "tpr", "fpr", "auc", IN_THE_LARGE)
# Metrics without a column, named only where they differ.
_FURTHER = {"ppv": GAP_METRICS["ppv"].label, "npv": "npv", SLOPE: "slope"}
# Gaps of more than so many margins have the same colour.
_MOST = 4
# Of two segments, one is better off because the other is worse off, which is marked once.
_REPEATED = "the other side of the same comparison"


class Column(NamedTuple):
    """A metric in plain words, and its short name."""

    metric: str
    heading: str
    short: str


@dataclass(frozen=True)
class Cell:
    """A finding: its number, what it says, its size in margins from 1 to 4, and its rank.

    The ``rank`` is that of the finding with the sentence: of two segments that are compared with
    each other, that of the first.
    """

    number: str
    outcome: Outcome
    size: int
    rank: int
    # Why there is no outcome.
    reason: str = ""

    @property
    def symbol(self) -> str:
        """A sign, so that a colour is never alone."""
        return SYMBOLS[self.outcome]


@dataclass(frozen=True)
class Row:
    """A segment with its cells, in the order of the columns; None where nothing is known."""

    attribute: str
    segment: str | None
    model: str
    n: int
    cells: list[Cell | None]
    # Further metrics that differ.
    further: list[tuple[str, Cell]]
    differs: bool


@dataclass(frozen=True)
class Matrix:
    """The segments of single attributes and those of crossed ones, each the most serious first."""

    columns: list[Column]
    single: list[Row]
    crossed: list[Row]

    @property
    def has_further(self) -> bool:
        """Whether a metric without a column differs somewhere."""
        return any(row.further for row in (*self.single, *self.crossed))


def matrix_of(audit: AuditTables) -> Matrix:
    """Lay out the comparisons of all segments."""
    settings = audit.settings
    # All rows together are no segment.
    rows = by_severity(audit).filter(pl.col("attribute") != OVERALL)
    present = set(rows["metric"].unique())
    columns = [column for column in _columns(settings) if column.metric in present]
    counts = {row[:3]: row[3] for row in audit.segments.select(*ALL_KEYS, "n").rows()}
    segments = rows.with_columns(size=_in_margins(settings.margin)).partition_by(
        ALL_KEYS, as_dict=True, maintain_order=True
    )
    laid_out = [
        _row(keys, counts[keys], of_segment.to_dicts(), columns)
        for keys, of_segment in segments.items()
        # Impact ratios also have a row for unknown combinations, which are no segment.
        if keys in counts
    ]
    return Matrix(
        columns,
        [row for row in laid_out if row.attribute in settings.attributes],
        [row for row in laid_out if row.attribute not in settings.attributes],
    )


def summed_up(rows: Iterable[Row]) -> str:
    """Say how many more rows there are, and how many of them differ."""
    listed = [*rows]
    differ = sum(row.differs for row in listed)
    said = f"{differ:,} of them different" if differ else "none different"
    return f"{many(len(listed), 'more segment')}, {said}"


def _columns(settings: AuditSettings) -> list[Column]:
    words = Words.of(settings)
    selected = capitalised(words.selected)
    headings = {
        "selection_rate": (f"{selected} of all", "rate"),
        IMPACT_RATIO: ("Impact ratio", "4/5"),
        "tpr": (f"{selected} of those actually {words.positive}", "tpr"),
        "fpr": (f"{selected} of those actually {words.negative}", "fpr"),
        "auc": ("Ranking", "AUC"),
        IN_THE_LARGE: ("Predicted minus observed", "outcome"),
    }
    return [Column(metric, *headings[metric]) for metric in _METRICS]


def _in_margins(margin: float) -> pl.Expr:
    """Measure a finding in margins, an impact ratio by its distance from 1."""
    from_one = (1 - pl.col("ratio")).abs()
    distance = pl.when(metric=IMPACT_RATIO).then(from_one).otherwise(pl.col("gap").abs())
    return distance / margin


def _row(
    keys: tuple[Any, ...], n: int, findings: list[dict[str, Any]], columns: list[Column]
) -> Row:
    of_metric = {finding["metric"]: finding for finding in findings}
    cells = [_cell(of_metric.get(column.metric)) for column in columns]
    further = [
        (name, _with_number(finding))
        for metric, name in _FURTHER.items()
        if (finding := of_metric.get(metric)) and finding["verdict"] == DIFFERENT
    ]
    differs = any(finding["verdict"] == DIFFERENT for finding in findings)
    attribute, segment, model = keys
    return Row(attribute, segment, model, n, cells, further, differs)


def _cell(finding: Mapping[str, Any] | None) -> Cell | None:
    if finding is None:
        return None
    number, reason = finding["number"], finding["reason"] or ""
    if finding["verdict"] is None:
        text = "reference" if reason == THE_REFERENCE else DASH
        return Cell(text, "none", 0, number, reason=reason)
    better = finding["verdict"] == DIFFERENT and finding["direction"] == "better"
    if finding["rank"] is None and better:
        return Cell(_number(finding), "none", 0, number, reason=_REPEATED)
    if reason.startswith(FEW):
        return Cell(f"({finding['n']:,})", "little", 0, number, reason=reason)
    return _with_number(finding)


def outcome_of(finding: Mapping[str, Any]) -> Outcome:
    """Say what a cell says, from the verdict and the direction."""
    others: dict[str | None, Outcome] = {ALIKE: "alike", TOO_LITTLE: "little", None: "none"}
    direction: Outcome = finding["direction"]
    return others.get(finding["verdict"], direction)


def _with_number(finding: Mapping[str, Any]) -> Cell:
    size, different = finding["size"], finding["verdict"] == DIFFERENT
    level = min(math.ceil(size), _MOST) if size is not None and math.isfinite(size) else _MOST
    colour = max(level, 1) if different else 0
    return Cell(_number(finding), outcome_of(finding), colour, finding["number"])


def _number(finding: Mapping[str, Any]) -> str:
    """Write a ratio or a slope as it is, and other gaps in points."""
    if finding["metric"] == IMPACT_RATIO:
        return f"{finding['ratio']:.2f}"
    gap = finding["gap"]
    if gap is None:
        return DASH
    if finding["metric"] == SLOPE:
        return f"{finding['value']:.2f}"
    # Adding 0 removes the sign of zero.
    points = round(100 * gap, decimals_of(gap)) + 0.0
    sign = "+" if points > 0 else ""
    return f"{sign}{points:.{decimals_of(gap)}f}".replace("-", MINUS)
