"""The tables of the report, as headings and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.findings import by_severity, is_material
from polars_wroc.audits.formats import LEFT_OUT, below_four_fifths
from polars_wroc.audits.matrix import SYMBOLS, Outcome, outcome_of
from polars_wroc.audits.sentences import OBSERVED, is_target, size
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    wide_table,
    without_model,
)
from polars_wroc.audits.words import (
    DASH,
    Words,
    capitalised,
    many,
    points,
    reference_of,
    threshold_text,
)
from polars_wroc.charts.options import MINUS
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.curves.calibration_summary import IN_THE_LARGE
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    FAIRNESS,
    IMPACT_RATIO,
    METRICS,
    TOO_LITTLE,
)
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.thresholds.registry import GAP_RATES, RATES

_LEAST_P = 0.001
# Columns of a table with their headings.
Headings: TypeAlias = Mapping[str, str]
_KEYS = {"segment": "Segment", MODEL: "Score"}
_RANKING = {
    # First, as a phone shows few columns.
    "auc": ROC_AUC.heading,
    "n": "Rows",
    "n_pos": "Positive",
    "n_neg": "Negative",
    "n_missing": "Missing",
    "w_pos": "Positive weight",
    "w_neg": "Negative weight",
    CURVE_METRICS["average_precision"].column: CURVE_METRICS["average_precision"].heading,
}
_DECISIONS = {
    "threshold": "Threshold",
    **{name: rate.heading for name, rate in (GAP_RATES | RATES).items()},
}
_GAPS = {f"{name}_gap": metric.heading for name, metric in GAP_METRICS.items()}
_CALIBRATION = {
    "n": "Rows",
    "weight": "Weight",
    "mean_score": "Mean score",
    OBSERVED: "Observed rate",
    IN_THE_LARGE: "Difference",
    SLOPE: "Slope",
}
_IMPACT = {
    "n": "Rows",
    "n_selected": "Selected",
    "selected": "Selection rate",
    "ratio": "Impact ratio",
    "below": "Below four fifths",
    "left_out": "Left out",
}
_FAIRNESS = {
    "metric": "Metric",
    MODEL: "Score",
    "size": "Value",
    "highest": "Highest",
    "lowest": "Lowest",
    "limits": "For all pairs",
    "p_value": "p, all alike",
}
_TEXTS = ("segment", MODEL, "metric", "highest", "lowest", "below", "left_out")
_WEIGHTS = ("w_pos", "w_neg", "weight")
# Gaps are in points.
_IN_POINTS = [*_GAPS]


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
    settings = audit.settings
    intervals = f"{100 * settings.level:g}% confidence intervals"
    words = Words.of(settings)
    segments = _of_segments(shown, attribute)
    # Marks of small segments are about AUCs.
    unmarked = segments.drop("small")
    tables = [
        _table(
            unmarked if attribute != OVERALL else unmarked.clear(),
            f"Gaps to {reference_of(settings, attribute)}, in points of 100, with {intervals}",
            _GAPS,
        ),
        _table(
            _impact(shown, attribute),
            f"Impact ratios to the segment most often {words.good}, with {intervals} for all pairs",
            _IMPACT,
        ),
        _table(segments, f"Ranking, AUC with {intervals}", _RANKING | _class_headings(words)),
    ]
    if settings.decides:
        title, hidden = f"Decisions at the threshold, with {intervals}", list[str]()
        if settings.selected is not None:
            title, hidden = f"Recorded decisions, with {intervals}", ["threshold"]
        tables.append(_table(segments.drop(hidden), title, _DECISIONS))
    if IN_THE_LARGE in segments.columns:
        title = f"Calibration, mean score and observed rate, with {intervals}"
        tables.append(_table(unmarked.drop_nulls(IN_THE_LARGE), title, _CALIBRATION))
    title = f"Fairness metrics between the segments, with {intervals}"
    tables.append(_table(_fairness(audit, attribute), title, _FAIRNESS))
    return [table for table in tables if table.rows]


def _of_segments(shown: AuditTables, attribute: str) -> pl.DataFrame:
    """Add what the table on calibration has of each segment."""
    table = wide_table(shown, unnamed=True).filter(attribute=attribute)
    weight = pl.col("w_pos") + pl.col("w_neg")
    if IN_THE_LARGE in table.columns:
        observed = pl.col("w_pos") / weight
        table = table.with_columns(
            (observed + pl.col(IN_THE_LARGE)).alias("mean_score"), observed.alias(OBSERVED)
        )
    if shown.settings.weight is None:
        return table.drop("w_pos", "w_neg")
    return table.with_columns(weight=weight)


def _impact(shown: AuditTables, attribute: str) -> pl.DataFrame:
    """Lay out the impact ratios; the rate is that of those selected, whether or not it is good."""
    table = shown.table.filter(attribute=attribute, metric=IMPACT_RATIO)
    ends = ("", "_low", "_high")
    rate = {f"selected{end}": pl.col(f"value{end}") for end in ends}
    if shown.settings.favorable == "rejected":
        opposite = ("value", "value_high", "value_low")
        rate = {name: 1 - pl.col(of) for name, of in zip(rate, opposite, strict=True)}
    counts = shown.segments.select(*ALL_KEYS, "n_selected")
    table = table.join(
        counts, on=list(ALL_KEYS), how="left", nulls_equal=True, maintain_order="left"
    )
    below = [below_four_fifths(row) for row in table.iter_rows(named=True)]
    left_out = pl.col("reason").replace_strict(LEFT_OUT, default=None, return_dtype=pl.String)
    laid_out = table.with_columns(
        **rate, below=pl.Series(below, dtype=pl.String), left_out=left_out
    )
    return without_model(laid_out, shown.settings)


def _fairness(audit: AuditTables, attribute: str) -> pl.DataFrame:
    """Lay out the fairness metrics; of ratios the segment is the lowest, of others the highest."""
    table = audit.table.filter(pl.col("metric").is_in([*FAIRNESS]), attribute=attribute)
    metric = pl.col("metric").cast(pl.Enum([*FAIRNESS]))
    is_ratio, segment = pl.col("ratio").is_not_null(), pl.col("segment").fill_null(MISSING)
    highest, lowest = (
        pl.when(is_ratio == low).then(segment).otherwise("reference") for low in (False, True)
    )
    laid_out = table.sort(metric, maintain_order=True).with_columns(
        size=pl.coalesce("gap", "ratio"),
        limits=pl.coalesce("gap", "ratio"),
        limits_low=pl.coalesce("gap_low", "ratio_low"),
        limits_high=pl.coalesce("gap_high", "ratio_high"),
        highest=highest,
        lowest=lowest,
    )
    return without_model(laid_out, audit.settings)


def _class_headings(words: Words) -> dict[str, str]:
    """Head the columns of the classes by the label's own name."""
    names = {"pos": capitalised(words.positive), "neg": capitalised(words.negative)}
    counts = {f"n_{side}": name for side, name in names.items()}
    return counts | {f"w_{side}": f"{name}, weight" for side, name in names.items()}


def _table(table: pl.DataFrame, title: str, headings: Headings) -> Table:
    every = headings if "metric" in headings else {**_KEYS, **headings}
    names = [name for name in every if name in table.columns]
    return Table(
        title,
        [every[name] for name in names],
        [name in _TEXTS for name in names],
        [[_cell(name, row) for name in names] for row in table.iter_rows(named=True)],
    )


def _cell(name: str, row: dict[str, Any]) -> Cell:
    value = row[name]
    if name == "segment":
        return Cell(name_of(value), _mark(row))
    words = _in_words(name, row)
    if words is not None:
        return Cell(words)
    notes = _limits(row, name)
    verdict, p_value = row.get(f"{name}_verdict"), row.get(f"{name}_p_adjusted")
    notes += [] if verdict is None else [verdict]
    notes += [] if p_value is None else [f"p {p_value_text(p_value)}"]
    if row.get("metric") == "demographic_parity_ratio" and value < FOUR_FIFTHS:
        high = row["limits_high"]
        sure = high is not None and high < FOUR_FIFTHS
        notes.append(f"{'surely ' if sure else ''}below four fifths")
    return Cell(_number(name, value), tuple(notes), marked=verdict == DIFFERENT)


def _in_words(name: str, row: dict[str, Any]) -> str | None:
    """Write a cell that is no single number with its notes; None if it is one."""
    value = row[name]
    if value is None:
        return DASH
    if name == "metric":
        return METRICS[value].label
    if name == "limits":
        return next(iter(_limits(row, name)), DASH)
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
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
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


def findings_on_page(audit: AuditTables, shown: pl.DataFrame) -> Findings:
    """Lay out the findings on the segments that are ``shown``."""
    settings, every = audit.settings, by_severity(audit)
    told = every.filter(pl.col("rank").is_not_null() | pl.col("verdict").is_null())
    on_page = told.join(
        shown, on=shown.columns, how="semi", nulls_equal=True, maintain_order="left"
    )
    first = _first(on_page.filter(pl.col("verdict").is_in([DIFFERENT, TOO_LITTLE])))
    others = on_page.filter(~pl.col("number").is_in(first["number"].implode()))
    margin = f"{size(settings.margin)} points"
    headings = {
        DIFFERENT: "{} with a difference",
        TOO_LITTLE: "{} with too little data to tell",
        ALIKE: f"{{}} alike within {margin}",
        None: "{} that could not be made: undefined, or the reference itself",
    }
    more = "more " if first.height else ""
    folded = [
        FoldedFindings(
            heading.format(many(part.height, f"{more}comparison")), _found(part, settings)
        )
        for verdict, heading in headings.items()
        if not (part := others.filter(pl.col("verdict").eq_missing(pl.lit(verdict)))).is_empty()
    ]
    left_out = told["rank"].count() - on_page["rank"].count()
    return Findings(_found(first, settings), folded, left_out)


def found_on(audit: AuditTables, attribute: str) -> list[Found]:
    """List what is different by an attribute."""
    found = by_severity(audit).filter(
        pl.col("rank").is_not_null(), attribute=attribute, verdict=DIFFERENT
    )
    return _found(found, audit.settings)


def _first(serious: pl.DataFrame) -> pl.DataFrame:
    """Take the first findings, and further ones only if they are different."""
    place = pl.int_range(pl.len())
    kept = (place < _UNDECIDED) | (pl.col("verdict") == DIFFERENT)
    return serious.head(_FIRST).filter(kept)


def _found(part: pl.DataFrame, settings: AuditSettings) -> list[Found]:
    marked = part.with_columns(material=is_material(settings))
    return [
        Found(row["number"], outcome_of(row), row["sentence"], _note(row, settings))
        for row in marked.iter_rows(named=True)
    ]


def _note(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Say how sure a finding is, and whether it is at least the margin."""
    verdict, p_value = finding["verdict"], finding["p_adjusted"]
    if verdict in (ALIKE, None):
        return ""
    limit = _margin(finding, settings)
    p_text = "" if p_value is None else f" (p {p_value_text(p_value)})"
    if finding["metric"] == IMPACT_RATIO:
        if verdict == DIFFERENT:
            return f"Surely: even its upper limit, for all segments jointly, is below {limit}."
        return f"Likely, but not surely, below {limit}." if finding["material"] else ""
    if verdict == DIFFERENT:
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
        other = "" if is_target(finding) else " times the other slope"
        return f"the margin of {least:.2f} to {most:.2f}{other}"
    return f"the margin of {size(settings.margin)} points"
