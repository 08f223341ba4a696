"""The sections of an audit: each turns it into blocks, or into none if it has nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from polars_wroc.audits.amounts import write_margin
from polars_wroc.audits.answer import (
    SHOWN,
    count_comparisons,
    find_mood,
    write_answer,
)
from polars_wroc.audits.cautions import (
    say_left_out,
    say_missing,
    say_not_given,
    say_unlabeled,
    say_values,
    write_cautions,
)
from polars_wroc.audits.context import (
    compare_pairs,
    explain_gaps,
    name_subgroups,
    write_deck,
    write_title,
)
from polars_wroc.audits.findings import add_tones
from polars_wroc.audits.gate_lines import write_gates
from polars_wroc.audits.glance import METRICS, lay_out_groups
from polars_wroc.audits.method import write_method
from polars_wroc.audits.provenance import write_foot
from polars_wroc.audits.say import AUC, Row, say_off, write_line
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.words import (
    Words,
    capitalised,
    label_group,
    listed,
    many,
    quote,
)
from polars_wroc.documents.blocks import (
    Beside,
    Block,
    Cell,
    Column,
    Figures,
    Fold,
    Line,
    Lines,
    Table,
    Text,
)
from polars_wroc.documents.blocks import Row as TableRow
from polars_wroc.documents.numbers import write_number, write_p_value
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    FAIRNESS,
    IMPACT_RATIO,
    NAMED_FOR,
    SMD,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT

# Groups whose differences have a line each, lines of the others, attributes with charts, and rows
# of the table of all numbers.
_GROUPS, _LINES, _ATTRIBUTES, _NUMBERS = 3, 8, 6, 800
# Metrics whose differences are told; others are in the table of all numbers.
_TOLD = ("selection_rate", *METRICS, SLOPE)
# Numbers that are no shares of rows.
_NO_SHARES = (AUC, "auc_difference", SLOPE, "average_precision", SMD.name)
_ALL_NUMBERS = "All numbers"


@dataclass(frozen=True)
class Report:
    """An audit with its words, and its comparisons with how they are shown."""

    audit: AuditTables
    words: Words

    @cached_property
    def table(self) -> pl.DataFrame:
        """The table of the audit with the tone of each comparison."""
        return add_tones(self.audit.table, self.audit.settings)


def begin(report: Report) -> Iterator[Block]:
    """Name the audit, and say what was audited."""
    text = report.audit.settings.text
    yield Text(write_title(report.audit.settings), 1)
    yield Text(write_deck(report.audit, report.words), style="deck")
    if text.note:
        yield Text(text.note, style="deck")


def answer(report: Report) -> Iterator[Block]:
    """Say who is worse off, and count what was compared if anything differs."""
    sentences = write_answer(report.audit, report.words)
    lead, colon, rest = sentences[0].partition(": ")
    mood = find_mood(report.audit)
    text = " ".join(filter(None, [rest, *sentences[1:]]))
    yield Text(text, style=f"answer {mood}".strip(), lead=f"{lead}{colon.strip()}")
    counted = count_comparisons(report.audit, report.words)
    if mood and counted:
        # Otherwise the answer has counted them.
        yield Text(counted, style="tally")


def checks(report: Report) -> Iterator[Block]:
    """List the conditions of a pipeline; those that failed come first."""
    gates = report.audit.gates
    if not gates:
        return
    lines = write_gates(gates, report.words)
    failed = sum(line.tone == "failed" for line in lines)
    unjudged = sum(line.tone == "unjudged" for line in lines)
    result = f"all {len(lines)} passed" if len(lines) > 1 else "passed"
    if failed or unjudged:
        parts = [f"{failed} of {len(lines)} failed"] if failed else []
        parts += [f"{unjudged} of {len(lines)} not judged"] if unjudged else []
        result = ", ".join(parts)
    yield Text(f"Pipeline checks: {result}", 2)
    yield Lines(lines, style="checks")


def groups(report: Report) -> Iterator[Block]:
    """Lay out all groups at a glance."""
    yield lay_out_groups(report.audit, report.words)


def differences(report: Report) -> Iterator[Block]:
    """List what differs, a line each, below its group; mirror images have one line each."""
    found = _find_differences(report)
    pairs = compare_pairs(report.audit, report.words)
    rest = _say_rest(found, report)
    if not found and not pairs and not rest:
        return
    yield Text("What differs", 2)
    if pairs:
        yield Lines([Line(text) for text in pairs], "The scores", "found")
    full, others, mirrored = list[Block](), list[Line](), list[Line]()
    for (attribute, segment), rows in found.items():
        told = sorted(
            (row for row in rows if row["metric"] in _TOLD),
            key=lambda row: _TOLD.index(row["metric"]),
        )
        tones = [row["tone"] for row in told]
        if attribute != OVERALL and "better" in tones and "worse" not in tones:
            mirrored.append(_write_in_short("better", attribute, segment, told, report))
        elif told and len(full) < _GROUPS:
            lines = [_write_difference(row, report) for row in told]
            full.append(Lines(lines, _head_group(attribute, segment, report), "found"))
        elif told:
            others.append(_write_in_short(tones[0], attribute, segment, told, report))
    yield from full
    for lines, heading in ((others, "Other groups"), (mirrored, "The other side")):
        if lines:
            more = len(lines) - _LINES
            shown = [*lines[:_LINES], Line(f"{more} more, listed under {_ALL_NUMBERS}.")]
            yield Lines(shown if more > 0 else lines, heading, "found")
    if rest:
        yield Text(rest, style="note")


def _find_differences(report: Report) -> dict[tuple[str, str | None], list[Row]]:
    """Return what differs and matters, by group, the most serious first."""
    found: dict[tuple[str, str | None], list[Row]] = {}
    ranked = report.table.filter(pl.col("rank").is_not_null(), pl.col("tone").is_in(SHOWN))
    for row in ranked.sort("rank").iter_rows(named=True):
        found.setdefault((row["attribute"], row["segment"]), []).append(row)
    return found


def _head_group(attribute: str, segment: str | None, report: Report) -> str:
    words = report.words
    name = capitalised(words.group(attribute, segment))
    if attribute == OVERALL or attribute in words.named:
        return name
    return f"{name}, against {words.others}"


def _write_difference(row: Row, report: Report) -> Line:
    """Say how a group differs in one metric, by which score if there are several."""
    score = quote(str(row[MODEL])) if report.words.several else ""
    return Line(write_line(row, report.words), row["tone"], score)


def _write_in_short(
    tone: Any, attribute: str, segment: str | None, rows: Sequence[Row], report: Report
) -> Line:
    """Say in one line how a group differs: ``White applicants (race): selected +21, ...``."""
    steps = [
        f"{quote(str(row[MODEL]))} {_write_step(row, report)}"
        if report.words.several
        else _write_step(row, report)
        for row in rows
    ]
    name = capitalised(report.words.group(attribute, segment))
    return Line(f"{', '.join(steps)}.", tone, f"{name}:")


def _write_step(row: Row, report: Report) -> str:
    """Write a comparison in a few words: ``selected +21``."""
    metric = row["metric"]
    if metric == CALIBRATION_ERROR:
        return f"scores {say_off(row['value']).removeprefix('are ')}"
    if metric == IMPACT_RATIO:
        return f"impact ratio {row['value']:.2f}"
    if metric == SLOPE:
        return f"slope of the scores {write_number(row['value'], '.2f')}"
    number = write_number(row["gap"], "+.2f")
    if metric != AUC:
        number = write_number(100 * row["gap"], "+.0f")
    return f"{report.words.heading(metric)} {number}"


def _say_rest(found: dict[tuple[str, str | None], list[Row]], report: Report) -> str:
    """Count what differs and is not told above."""
    words = report.words
    ranked = report.table.filter(pl.col("rank").is_not_null(), verdict=DIFFERENT)
    small = ranked.filter(~pl.col("matters")).height
    others = [row for rows in found.values() for row in rows if row["metric"] not in _TOLD]
    parts = []
    if others:
        names = sorted({f"“{words.heading(row['metric'])}”" for row in others})
        parts.append(f"{many(len(others), 'difference')} in {listed(names)}")
    if small:
        parts.append(f"{many(small, 'difference')} too small to matter")
    return f"Also shown, and listed under {_ALL_NUMBERS}: {listed(parts)}." if parts else ""


def charts(report: Report) -> Iterator[Block]:
    """Draw two charts of each attribute: ranking, and calibration or how scores spread."""
    # Only a page should cost the import of Altair.
    from polars_wroc.audits import figures  # noqa: PLC0415

    audit, words = report.audit, report.words
    if not audit.settings.score:
        return
    known = audit.segments["attribute"].unique(maintain_order=True).to_list()
    attributes = [name for name in audit.settings.attributes if name in known]
    for attribute in attributes[:_ATTRIBUTES]:
        second = figures.draw_calibration(audit, attribute, words)
        if second is None:
            second = figures.draw_distribution(audit, attribute, words)
        drawn = [figures.draw_ranking(audit, attribute, words), second]
        shown = [figure for figure in drawn if figure is not None]
        if shown:
            yield Text(f"Scores by {attribute}", 2)
            yield Figures(shown)


def surroundings(report: Report) -> Iterator[Block]:
    """Say what may explain the largest gap, which subgroups do worse, and what is not shown."""
    audit, words = report.audit, report.words
    left: list[Block] = []
    told = {
        "Why these gaps?": explain_gaps(audit, words),
        "Other subgroups": name_subgroups(audit, words),
    }
    for title, sentences in told.items():
        if sentences:
            left += [Text(title, 2), Text(" ".join(sentences))]
    cautions = Lines([Line(text) for text in write_cautions(audit, words)])
    right: list[Block] = [Text("Limits of this audit", 2), cautions]
    yield Beside([part for part in (left, right) if part])


def numbers(report: Report) -> Iterator[Block]:
    """List all numbers in one table."""
    interval = f"{100 * report.words.confidence:.4g}% interval"
    columns = [
        Column("Measure"),
        Column("Rows"),
        Column("Value", interval),
        Column("Compared with", style="left"),
        Column("Difference", interval),
        Column("p", "adjusted"),
        Column("Result"),
    ]
    table = report.table.filter(pl.col("value").is_not_null())
    shown = table.head(_NUMBERS)
    rows, before = list[TableRow](), None
    for row in shown.iter_rows(named=True):
        group = (row["attribute"], row["segment"], row[MODEL])
        if group != before:
            rows.append(TableRow(_name_group(row, report), kind="group"))
            before = group
        rows.append(_write_numbers(row, report))
    left_out = table.height - shown.height
    note = f"{left_out:,} more are in the CSV and JSON files." if left_out else ""
    count = many(shown.height, "number")
    label = f"{count}, with intervals and tests"
    instead = (
        f"All {many(table.height, 'number')}, with intervals and p-values, are in the HTML, CSV "
        "and JSON versions of this report."
    )
    yield Fold(
        _ALL_NUMBERS, [Table(columns, rows, label=label, note=note, style="numbers")], instead
    )


def _name_group(row: Row, report: Report) -> str:
    attribute = row["attribute"].replace(CROSSED, " and ")
    name = f"{label_group(row['segment'])} ({attribute})"
    if row["attribute"] == OVERALL:
        name = capitalised(report.words.everyone)
    return f"{name}, score {row[MODEL]}" if report.words.several else name


def _write_numbers(row: Row, report: Report) -> TableRow:
    """Write a comparison as a row of the table of all numbers."""
    metric = row["metric"]
    form, unit = (".3f", 1.0) if metric in _NO_SHARES else (".1f", 100.0)
    percent = "" if metric in (*_NO_SHARES, CALIBRATION_ERROR) else "%"
    gap = _with_limits(row, "gap", f"+{form}", unit)
    value = _with_limits(row, "value", form, unit, percent)
    against = ""
    if row["reference_value"] is not None:
        others = report.words.name_reference(row).removeprefix("the ")
        against = f"{others} {write_number(unit * row['reference_value'], form)}{percent}"
    named_for = NAMED_FOR.get(metric)
    if named_for == "ratio":
        value, gap = _with_limits(row, "ratio", ".2f", 1.0), ""
        if metric == IMPACT_RATIO:
            against = report.words.name_reference(row).removeprefix("the ")
    elif named_for == "gap":
        value, gap = gap, ""
    p = row["p_adjusted"] if row["p_adjusted"] is not None else row["p_value"]
    cells = [
        Cell(f"{row['n']:,}"),
        Cell(value),
        Cell(against),
        Cell(gap),
        Cell(write_p_value(p)),
        Cell(_write_result(row, report.words), tone=row["tone"]),
    ]
    return TableRow(capitalised(report.words.heading(metric)), cells)


def _with_limits(row: Row, name: str, form: str, unit: float, after: str = "") -> str:
    """Write a number with its limits in brackets; empty without a number."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return ""
    text = f"{write_number(unit * value, form)}{after}"
    if low is None or high is None:
        return text
    return f"{text} ({write_number(unit * low, form)} to {write_number(unit * high, form)})"


def _write_result(row: Row, words: Words) -> str:
    """Write the verdict on a comparison, or why there is none."""
    if row["metric"] in FAIRNESS:
        return ""
    if row["verdict"] is None:
        return row["reason"] or ""
    results = {
        DIFFERENT: "differs",
        BELOW_FOUR_FIFTHS: "below 0.8",
        AT_LEAST_FOUR_FIFTHS: "at least 0.8",
        EQUIVALENT: f"within {write_margin(words.margin)}",
    }
    return results.get(row["verdict"], "inconclusive")


def method(report: Report) -> Iterator[Block]:
    """Say how it was measured."""
    yield Fold("How this was measured", write_method(report.audit, report.words))


def end(report: Report) -> Iterator[Block]:
    """Say when, with what and from which data this was made, and leave room for a signature."""
    yield from write_foot(report.audit.run, "This audit is not a certification.")


_BEGINNING = (begin, answer, checks, groups)
SECTIONS: Sequence[Callable[[Report], Iterator[Block]]] = (
    *_BEGINNING,
    differences,
    charts,
    surroundings,
    numbers,
    method,
    end,
)


def write_report(audit: AuditTables, *, with_charts: bool) -> list[Block]:
    """Turn an audit into a document; charts need vl-convert."""
    report = Report(audit, Words.of(audit.settings))
    sections = [section for section in SECTIONS if with_charts or section is not charts]
    return [block for section in sections for block in section(report)]


def write_summary(audit: AuditTables) -> list[Block]:
    """Turn an audit into what a terminal and a notebook show: the answer, and all groups."""
    report = Report(audit, Words.of(audit.settings))
    blocks = [block for section in _BEGINNING for block in section(report)]
    words = report.words
    remarks = [*say_unlabeled(audit, words), *say_left_out(audit, words), *say_values(audit)]
    if not audit.settings.labeled:
        unseen = [*say_not_given(audit.settings), *say_missing(audit, report.words)]
        remarks = [*unseen, *remarks]
    if remarks:
        blocks.append(Lines([Line(text) for text in remarks]))
    return blocks
