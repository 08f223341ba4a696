"""Changes between two audits as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.change_sentences import (
    KINDS,
    ChangeKind,
    count_others,
    name_metric,
    name_segment,
    write_changes,
)
from polars_wroc.audits.provenance import write_foot
from polars_wroc.audits.say import ComparedRow
from polars_wroc.audits.tables import Run
from polars_wroc.charts.options import Show
from polars_wroc.documents.blocks import Block, Cell, Column, Figures, Fold, Row, Table, TextBlock
from polars_wroc.documents.numbers import gap_form, value_form, write_p_value
from polars_wroc.documents.phrases import capitalise, many
from polars_wroc.documents.screen import Screen
from polars_wroc.groups.comparisons import GAP_CHANGES
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL

# The most charts, and the most changes that are not significant.
_CHARTS, _OTHERS = 4, 500
_TERMS = (
    ("New", "the gap differs only after, and its change is significant"),
    ("Closed", "the gap differs only before, and its change is significant"),
    ("Grown, shrunk, reversed", "the size of the gap, or its sign, changed significantly"),
    (
        "Now shown, no longer shown",
        "the gap differs in one audit only, but is not shown to have changed",
    ),
)
_ADJUSTED = {
    "holm": "adjusted for their number by Holm's method",
    "bh": "adjusted for their number by Benjamini and Hochberg's method",
    "none": "not adjusted for their number",
}


def choose_shown(metric: str) -> Show:
    """Return the number that a chart draws: changes of gaps, values of other metrics."""
    return "gap" if metric in GAP_CHANGES else "value"


def lay_out_notable_changes(changes: Changes, screen: Screen) -> list[Block]:
    """Return what a terminal shows: sentences, and tables of notable changes."""
    screen.check_columns(changes.table)
    notable, others = changes.divide()
    blocks: list[Block] = [TextBlock(" ".join(write_changes(changes)))]
    for kind in KINDS:
        rows = kind.select(notable)
        if rows.is_empty():
            continue
        if screen.columns is None:
            table = _lay_out_table(rows.head(screen.rows or rows.height), kind, changes)
            blocks.append(replace(table, note=screen.count_left_out(rows)))
        else:
            named = rows.with_columns(pl.col("segment").fill_null(MISSING))
            keys = [*AUDIT_KEYS, *([MODEL] if changes.words.several else []), "metric"]
            blocks.append(replace(screen.lay_out_asked(named, keys), title=kind.title))
    if notable.height and others.height:
        blocks.append(TextBlock(count_others(others)))
    return blocks


def draw_changes(changes: Changes, metric: str | None, show: Show | None) -> list[Block]:
    """Return charts of the largest changes, or of one metric.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    # Only a page should cost the import of Altair.
    from polars_wroc.audits.figures import make_figure  # noqa: PLC0415
    from polars_wroc.charts.gap_chart import gap_chart  # noqa: PLC0415

    figures = [
        make_figure(gap_chart(changes.table, metric=each, show=show or choose_shown(each)))
        for each in changes.most_changed(metric)[:_CHARTS]
    ]
    return [Figures(figures)] if figures else []


def title_changes(names: tuple[str, str]) -> str:
    """Return the title of the changes between two named audits."""
    return f"What changed from {names[0]} to {names[1]}"


def lay_out_changes(
    changes: Changes, names: tuple[str, str], run: Run, charts: Sequence[Block]
) -> list[Block]:
    """Return the document of the changes between two named audits."""
    notable, others = changes.divide()
    is_notable = not notable.filter(changes.significant).is_empty()
    blocks: list[Block] = [
        TextBlock(title_changes(names), 1),
        TextBlock(_count_rows(changes), style="deck"),
        TextBlock(
            " ".join(write_changes(changes)), style="answer either" if is_notable else "answer"
        ),
        *charts,
        *_lay_out_tables(notable, changes),
    ]
    if others.height:
        more = f" The first {_OTHERS} are listed." if others.height > _OTHERS else ""
        tables = _lay_out_tables(others.head(_OTHERS), changes)
        blocks.append(
            Fold("Not significant", [TextBlock(f"{count_others(others)}{more}"), *tables])
        )
    return [*blocks, Fold("How to read this", _explain(changes)), *write_foot(run)]


def _count_rows(changes: Changes) -> str:
    """Return the numbers of rows of both audits, if known."""
    audits = {"before": changes.before, "after": changes.after}
    counts = {when: audit.segments.filter(attribute=OVERALL)["n"] for when, audit in audits.items()}
    known = {when: n for when, n in counts.items() if n.count()}
    return " · ".join(f"{many(n[0], 'row')} {when}" for when, n in known.items())


def _lay_out_tables(rows: pl.DataFrame, changes: Changes) -> list[Table]:
    """Return tables of changes, one for each kind of metric."""
    of_kinds = ((kind, kind.select(rows)) for kind in KINDS)
    return [_lay_out_table(some, kind, changes) for kind, some in of_kinds if some.height]


def _lay_out_table(rows: pl.DataFrame, kind: ChangeKind, changes: Changes) -> Table:
    """Return the table of the changes of a kind of metric."""
    words = changes.words
    has_findings = rows["finding"].count() > 0
    columns = [Column("Group")]
    if words.several:
        columns.append(Column("Score", style="name", essential=True))
    columns += [
        Column("Measure", style="name", essential=True),
        Column("Before", essential=True),
        Column("After", essential=True),
        Column("Change", f"{100 * words.confidence:g}% interval", essential=True),
        Column("p", "adjusted"),
    ]
    if has_findings:
        columns.append(Column("Finding", style="left", essential=True))
    marked = rows.select(changes.significant).to_series()
    lines = []
    for row, is_significant in zip(rows.iter_rows(named=True), marked, strict=True):
        cells = [Cell(row[MODEL])] if words.several else []
        cells.append(Cell(capitalise(name_metric(row["metric"], words))))
        cells += _write_numbers(row, is_significant=is_significant)
        if has_findings:
            cells.append(Cell(row["finding"] or ""))
        name = name_segment(row["attribute"], row["segment"], words)
        lines.append(Row(capitalise(name) if row["attribute"] == OVERALL else name, cells))
    return Table(columns, lines, kind.title, style="changes")


def _write_numbers(row: ComparedRow, *, is_significant: bool) -> list[Cell]:
    """Return cells of the values before and after, and of the change with limits and p-value."""
    form, form_of_change = value_form(row["metric"]), gap_form(row["metric"])
    low, high = row["gap_low"], row["gap_high"]
    return [
        Cell(form.write(row["reference_value"])),
        Cell(form.write(row["value"])),
        Cell(
            form_of_change.write(row["gap"]),
            tone="either" if is_significant else "",
            limits="" if low is None or high is None else form_of_change.write_limits(low, high),
        ),
        Cell(write_p_value(row["p_adjusted"]) or "not tested"),
    ]


def _explain(changes: Changes) -> list[Block]:
    """Return the explanation of how changes are tested, and of the findings."""
    alpha = f"{1 - changes.words.confidence:.2g}"
    method = (
        "A gap is the value of a group minus that of its reference in the same audit, and a change "
        "is the value after minus the value before. A change is significant if its p-value is at "
        f"most {alpha}; p-values are {_ADJUSTED[changes.adjust]}. The audits must be of different "
        "rows: to compare two scores on the same rows, use a release check."
    )
    return [TextBlock(method), *(TextBlock(f"{text}.", lead=f"{term}:") for term, text in _TERMS)]
