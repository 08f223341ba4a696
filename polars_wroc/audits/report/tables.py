"""The tables of the report, as headings and cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.findings import by_severity, is_material
from polars_wroc.audits.formats import below_four_fifths, impact_ratios_of, left_out
from polars_wroc.audits.sentences import is_target, margin_in_points
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    rows_with,
    segment_in_words,
    with_columns_of,
    with_small,
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
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    CLEARED,
    FAIRNESS,
    FINDINGS,
    GAP_CHANGES,
    GAP_METRICS,
    IMPACT_RATIO,
    SMD,
    is_finding,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.inputs.metric import MINUS, Metric
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from polars_wroc.thresholds.registry import AUDIT_RATES

_LEAST_P = 0.001


class Cell(NamedTuple):
    """A value, notes in smaller letters, and whether it is marked as different.

    A column ``is_text``, or is of numbers, as its first cell is.
    """

    text: str
    notes: tuple[str, ...] = ()
    marked: bool = False
    is_text: bool = False


# Cells, each with the heading of its column.
Row: TypeAlias = list[tuple[str, Cell]]


class Table(NamedTuple):
    """A table with its caption; all rows have the same headings."""

    title: str
    rows: list[Row]


def tables_of(audit: AuditTables, shown: AuditTables, attribute: str) -> list[Table]:
    """Lay out the tables of an attribute, with those of its segments that are shown."""
    settings = audit.settings
    segments, words = _segments(shown, attribute), Words.of(settings)
    intervals = f"{100 * settings.confidence:g}% confidence intervals"
    decided = "Decisions at the threshold" if settings.selected is None else "Recorded decisions"
    calibrated = [
        row for row in segments if row.get(CALIBRATION_ERROR, {}).get("value") is not None
    ]
    rows = {
        f"Gaps to {reference_of(settings, attribute)}, in points of 100, with {intervals}": [
            [*_keys(row, settings), *_gaps(row)] for row in segments if attribute != OVERALL
        ],
        f"Impact ratios to the segment most often {words.good}, with {intervals} for all pairs": (
            _impact(shown, attribute)
        ),
        f"Ranking, AUC with {intervals}": [
            _ranking(row, settings) for row in segments if settings.labeled
        ],
        f"{decided}, with {intervals}": [
            _decisions(row, settings) for row in segments if settings.decides
        ],
        f"Calibration, mean score and observed rate, with {intervals}": [
            _calibration(row, settings) for row in calibrated
        ],
        f"Mean scores in standard deviations, with {intervals}": [
            _scores(row, settings) for row in segments if SMD.name in row
        ],
        f"Fairness metrics between the segments, with {intervals}": _fairness(audit, attribute),
    }
    return [Table(title, listed) for title, listed in rows.items() if listed]


def _segments(shown: AuditTables, attribute: str) -> list[dict[str, Any]]:
    """List the segments with their counts and, by the name of its metric, each comparison."""
    of_attribute = shown.segments.filter(attribute=attribute)
    segments = with_small(of_attribute, shown.settings.min_rows).to_dicts()
    of_segment = {(row["segment"], row[MODEL]): row for row in segments}
    for row in shown.table.filter(attribute=attribute).iter_rows(named=True):
        # Impact ratios also have a row for unknown combinations, which are no segment.
        of_segment.get((row["segment"], row[MODEL]), {})[row["metric"]] = row
    return segments


def _keys(row: dict[str, Any], settings: AuditSettings, *marks: str) -> Row:
    """Name a segment, and its score if there are several."""
    return [("Segment", text_cell(name_of(row["segment"]), *marks)), *_score(row, settings)]


def _score(row: dict[str, Any], settings: AuditSettings) -> Row:
    return [("Score", text_cell(row[MODEL]))] if settings.several else []


def _gaps(row: dict[str, Any]) -> Row:
    """Write the gaps of a segment with their verdicts."""
    return [
        (metric.heading, _gap(row[name])) for name, metric in GAP_METRICS.items() if name in row
    ]


def _gap(compared: dict[str, Any]) -> Cell:
    verdict, p_value = compared["verdict"], compared["p_adjusted"]
    notes = [] if verdict is None else [verdict]
    notes += [] if p_value is None else [f"p {p_value_text(p_value)}"]
    return estimate(compared, "gap", points, *notes)._replace(marked=verdict in FINDINGS)


def _ranking(row: dict[str, Any], settings: AuditSettings) -> Row:
    """Write AUCs and counts; the AUC first, as a phone shows few columns."""
    words = Words.of(settings)
    classes = {"pos": capitalised(words.positive), "neg": capitalised(words.negative)}
    weighted = classes if settings.weight is not None else {}
    return [
        *_keys(row, settings, *_mark(row)),
        *_values(row, [ROC_AUC]),
        ("Rows", _count(row["n"])),
        *((name, _count(row[f"n_{side}"])) for side, name in classes.items()),
        ("Missing", _count(row["n_missing"])),
        *((f"{name}, weight", _count(row[f"w_{side}"], 1)) for side, name in weighted.items()),
        *_values(row, [CURVE_METRICS["average_precision"]]),
    ]


def _mark(row: dict[str, Any]) -> list[str]:
    """Say why a segment's AUC is not tested."""
    if not row["small"]:
        return []
    if not row["n"]:
        return ["no rows"]
    if row["n_pos"] is None:
        return ["too few rows: not tested"]
    return ["too few rows: AUC not tested" if row["n_pos"] and row["n_neg"] else "one class only"]


def _decisions(row: dict[str, Any], settings: AuditSettings) -> Row:
    threshold = ("Threshold", Cell(threshold_text(row["threshold"])))
    counts = {"Rows": "n", "Selected": "n_selected", "Missing": "n_missing"}
    # The table of ranking has the rows where there is a label.
    shown = {} if settings.labeled else counts
    return [
        *_keys(row, settings, *_mark(row)),
        *([threshold] if settings.selected is None and settings.labeled else []),
        *((heading, _count(row[name])) for heading, name in shown.items()),
        *_values(row, AUDIT_RATES.values()),
    ]


def _values(row: dict[str, Any], metrics: Iterable[Metric]) -> Row:
    """Write the values of metrics with their limits."""
    return [
        (metric.heading, estimate(row[metric.column], "value"))
        for metric in metrics
        if metric.column in row
    ]


def _calibration(row: dict[str, Any], settings: AuditSettings) -> Row:
    weight = row["w_pos"] + row["w_neg"]
    observed = row["w_pos"] / weight
    return [
        *_keys(row, settings),
        ("Rows", _count(row["n"])),
        *([] if settings.weight is None else [("Weight", _count(weight, 1))]),
        ("Mean score", Cell(_decimals(observed + row[CALIBRATION_ERROR]["value"]))),
        ("Observed rate", Cell(_decimals(observed))),
        ("Difference", estimate(row[CALIBRATION_ERROR], "value", partial(_decimals, sign="+"))),
        *([("Slope", estimate(row[SLOPE], "value"))] if SLOPE in row else []),
    ]


def _scores(row: dict[str, Any], settings: AuditSettings) -> Row:
    """Write how far the mean score of a segment is from that of its reference."""
    compared = row[SMD.name]
    return [
        *_keys(row, settings),
        ("Rows", _count(compared["n"])),
        ("Difference", estimate(compared, "value", partial(_decimals, sign="+"))),
        ("Compared with", text_cell(compared["reference"])),
        ("Left out", text_cell(left_out(compared))),
    ]


def _impact(shown: AuditTables, attribute: str) -> list[Row]:
    """Lay out the impact ratios."""
    counts = shown.segments.select(*ALL_KEYS, "n_selected")
    table = with_columns_of(impact_ratios_of(shown).filter(attribute=attribute), counts)
    words = Words.of(shown.settings)
    rate = "Selection rate" if words.good == words.selected else f"Rate of those {words.good}"
    return [
        [
            *_keys(row, shown.settings),
            ("Rows", _count(row["n"])),
            ("Selected", _count(row["n_selected"])),
            (rate, estimate(row, "rate")),
            ("Impact ratio", estimate(row, "ratio")),
            ("Below four fifths", text_cell(below_four_fifths(row))),
            ("Left out", text_cell(left_out(row))),
        ]
        for row in table.iter_rows(named=True)
    ]


def _fairness(audit: AuditTables, attribute: str) -> list[Row]:
    """Lay out the fairness metrics; of ratios the segment is the lowest, of others the highest."""
    of_attribute = audit.table.filter(attribute=attribute)
    rows = []
    for metric in FAIRNESS.values():
        for row in of_attribute.filter(metric=metric.column).iter_rows(named=True):
            extremes = [text_cell(DASH)] * 2
            if row["reference"] is not None:
                extremes = [text_cell(name_of(row["segment"])), text_cell(row["reference"])]
            highest, lowest = extremes if row["ratio"] is None else reversed(extremes)
            size = estimate(row, "ratio" if row["gap"] is None else "gap")
            rows.append(
                [
                    ("Metric", text_cell(metric.label)),
                    *_score(row, audit.settings),
                    ("Value", Cell(size.text, _four_fifths(row))),
                    ("Highest", highest),
                    ("Lowest", lowest),
                    ("For all pairs", Cell("".join(size.notes) or DASH)),
                    ("p, all alike", Cell(p_value_text(row["p_value"]))),
                ]
            )
    return rows


def _four_fifths(row: dict[str, Any]) -> tuple[str, ...]:
    """Say whether a ratio of selection rates is below four fifths."""
    ratio, high = row["ratio"], row["ratio_high"]
    if row["metric"] != "demographic_parity_ratio" or ratio is None or ratio >= FOUR_FIFTHS:
        return ()
    sure = high is not None and high < FOUR_FIFTHS
    return ("below four fifths" if sure else "below four fifths by the estimate",)


def text_cell(value: str | None, *notes: str) -> Cell:
    """Write what is read as a text."""
    return Cell(DASH if value is None else value, notes, is_text=True)


def _count(value: float | None, decimals: int = 0) -> Cell:
    return Cell(DASH if value is None else f"{value:,.{decimals}f}")


def _decimals(value: float, sign: str = "") -> str:
    # Adding 0 removes the sign of zero.
    return f"{round(value, 3) + 0.0:{sign}.3f}".replace("-", MINUS)


def estimate(
    compared: dict[str, Any], name: str, write: Callable[[float], str] = _decimals, *notes: str
) -> Cell:
    """Write a number of a comparison with its limits."""
    if compared[name] is None:
        return Cell(DASH)
    ends = [compared[f"{name}_low"], compared[f"{name}_high"]]
    limits = [] if None in ends else [" to ".join(map(write, ends))]
    return Cell(write(compared[name]), (*limits, *notes))


def p_value_text(value: float | None) -> str:
    """Write a p-value with three decimals."""
    if value is None:
        return DASH
    return f"< {_LEAST_P}" if value < _LEAST_P else f"{value:.3f}"


def change_table(rows: pl.DataFrame, title: str, changes: Changes) -> Table:
    """Lay out changes as a table."""
    has_findings = rows["finding"].count()
    marked = rows.select(changes.significant).to_series()
    return Table(
        title,
        [
            [
                ("Segment", text_cell(segment_in_words(row["attribute"], row["segment"]))),
                *([("Score", text_cell(row[MODEL]))] if changes.several else []),
                ("Metric", text_cell(CHANGED_METRICS[row["metric"]].label)),
                *_numbers(row, marked=significant),
                *([("Finding", text_cell(row["finding"] or ""))] if has_findings else []),
            ]
            for row, significant in zip(rows.iter_rows(named=True), marked, strict=True)
        ],
    )


def _numbers(row: dict[str, Any], *, marked: bool) -> Row:
    """Write the values before and after, and the change with its limits and its p-value."""
    write = points if row["metric"] in GAP_CHANGES else "{:.3f}".format
    change = partial(_decimals, sign="+") if row["metric"] == IMPACT_RATIO else points
    p_value = row["p_adjusted"]
    tested = "not tested" if p_value is None else f"p {p_value_text(p_value)}"
    return [
        ("Before", Cell(write(row["reference_value"]))),
        ("After", Cell(write(row["value"]))),
        ("Change", estimate(row, "gap", change, tested)._replace(marked=marked)),
    ]


# Most findings in the open, and of those so many that are not different.
_FIRST, _UNDECIDED = 12, 6


# What a finding says, from the verdict and the direction of its finding.
Outcome: TypeAlias = Literal["worse", "better", "either", "alike", "little", "none"]


class Found(NamedTuple):
    """A finding: its rank, what it says, and what that is based on."""

    rank: int
    outcome: Outcome
    sentence: str
    note: str


class Findings(NamedTuple):
    """The first findings, the others below headings, and how many are not on the page."""

    first: list[Found]
    folded: dict[str, list[Found]]
    left_out: int
    # Those that can be linked.
    ranks: set[int]


def findings_on_page(audit: AuditTables, shown: pl.DataFrame) -> Findings:
    """Lay out the findings on the segments that are ``shown``."""
    settings, every = audit.settings, by_severity(audit)
    told = every.filter(pl.col("rank").is_not_null() | pl.col("verdict").is_null())
    on_page = rows_with(told, shown)
    first = _first(on_page.filter(is_finding() | (pl.col("verdict") == INCONCLUSIVE)))
    others = on_page.filter(~pl.col("number").is_in(first["number"].implode()))
    margin = f"{margin_in_points(settings.margin)} points"
    headings = {
        DIFFERENT: ("comparison", "with a difference"),
        BELOW_FOUR_FIFTHS: ("impact ratio", "below four fifths"),
        INCONCLUSIVE: ("inconclusive comparison", ""),
        EQUIVALENT: ("comparison", f"equivalent within {margin}"),
        AT_LEAST_FOUR_FIFTHS: ("impact ratio", "of at least four fifths"),
        None: ("comparison", "that could not be made: undefined, or the reference itself"),
    }
    more = "more " if first.height else ""
    folded = {
        f"{many(part.height, f'{more}{thing}')} {ending}".rstrip(): _found(part, settings)
        for verdict, (thing, ending) in headings.items()
        if not (part := others.filter(pl.col("verdict").eq_missing(pl.lit(verdict)))).is_empty()
    }
    left_out = told["rank"].count() - on_page["rank"].count()
    return Findings(_found(first, settings), folded, left_out, set(on_page["number"]))


def found_on(audit: AuditTables, attribute: str) -> list[Found]:
    """List what is different by an attribute."""
    found = by_severity(audit).filter(
        pl.col("rank").is_not_null(), is_finding(), attribute=attribute
    )
    return _found(found, audit.settings)


def outcome_of(finding: Mapping[str, Any]) -> Outcome:
    """Say what a finding says, from the verdict and the direction."""
    others: dict[str | None, Outcome] = {
        **dict.fromkeys(CLEARED, "alike"),
        INCONCLUSIVE: "little",
        None: "none",
    }
    direction: Outcome = finding["direction"]
    return others.get(finding["verdict"], direction)


def _first(serious: pl.DataFrame) -> pl.DataFrame:
    """Take the first findings, and further ones only if they are different."""
    place = pl.int_range(pl.len())
    kept = (place < _UNDECIDED) | is_finding()
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
    if verdict in (*CLEARED, None):
        return ""
    limit = _margin(finding, settings)
    p_text = "" if p_value is None else f" (p {p_value_text(p_value)})"
    if finding["metric"] == IMPACT_RATIO:
        if verdict == BELOW_FOUR_FIFTHS:
            return f"Even its upper limit, for all segments jointly, is below {limit}."
        return f"Below {limit} by the estimate alone." if finding["material"] else ""
    if verdict == DIFFERENT:
        worth = "and at least" if finding["material"] else "but less than"
        return f"Different{p_text}, {worth} {limit}."
    little = f"Inconclusive{p_text}"
    return f"{little}, though at least {limit}." if finding["material"] else f"{little}."


def _margin(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Name the margin of a metric."""
    if finding["metric"] == IMPACT_RATIO:
        return f"four fifths ({FOUR_FIFTHS:.2f})"
    if finding["metric"] == SLOPE:
        least, most = right_slopes(settings.margin)
        other = "" if is_target(finding) else " times the other slope"
        return f"the margin of {least:.2f} to {most:.2f}{other}"
    return f"the margin of {margin_in_points(settings.margin)} points"
