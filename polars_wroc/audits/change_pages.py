"""What changed between two audits as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.audit_changes import (
    KINDS,
    Changes,
    not_significant,
    sentences_of,
    what_to_show,
)
from polars_wroc.audits.provenance import write_foot
from polars_wroc.audits.tables import Run, segment_in_words
from polars_wroc.audits.words import many, points
from polars_wroc.charts.options import Show
from polars_wroc.documents.blocks import Block, Cell, Column, Figures, Fold, Row, Table, Text
from polars_wroc.documents.numbers import write_number, write_p_value
from polars_wroc.documents.screen import Screen
from polars_wroc.groups.comparisons import CHANGED_METRICS, GAP_CHANGES, IMPACT_RATIO
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.looks import as_number

# Most charts, and most changes that are not significant.
_CHARTS, _OTHERS = 4, 500
_TERMS = (
    ("New", "a gap that is different only after, and whose change is significant"),
    ("Closed", "a gap that was different only before, and whose change is significant"),
    ("Grown, shrunk, reversed", "a gap whose size, or whose sign, changed significantly"),
    (
        "Now shown, no longer shown",
        "a gap that is different in one audit only, but is not itself shown to have changed",
    ),
)
_ADJUSTED = {
    "holm": "p-values are adjusted for their number by Holm's method",
    "bh": "p-values are adjusted for their number by Benjamini and Hochberg's method",
    "none": "p-values are not adjusted for their number",
}


def lay_out_notable_changes(changes: Changes, screen: Screen) -> list[Block]:
    """Return what a terminal shows: sentences, and tables of what is significant or a finding."""
    screen.check_columns(changes.table)
    notable, others = changes.divided()
    blocks: list[Block] = [Text(" ".join(sentences_of(changes)))]
    for kind in KINDS:
        rows = kind.rows(notable)
        if rows.height and screen.columns is None:
            table = _lay_out_table(rows.head(screen.rows or rows.height), kind.heading, changes)
            blocks.append(replace(table, note=screen.count_left_out(rows)))
        elif rows.height:
            named = rows.with_columns(pl.col("segment").fill_null(MISSING))
            keys = [*AUDIT_KEYS, *([MODEL] if changes.several else []), "metric"]
            blocks.append(replace(screen.lay_out_asked(named, keys), title=kind.heading))
    if notable.height and others.height:
        blocks.append(Text(not_significant(others)))
    return blocks


def draw_changes(changes: Changes, metric: str | None, show: Show | None) -> list[Block]:
    """Draw what changed most, or a metric.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    # Only a page should cost the import of Altair.
    from polars_wroc.audits.figures import make_figure  # noqa: PLC0415
    from polars_wroc.charts.gap_chart import gap_chart  # noqa: PLC0415

    figures = [
        make_figure(gap_chart(changes.table, metric=each, show=show or what_to_show(each)))
        for each in changes.most_changed(metric)[:_CHARTS]
    ]
    return [Figures(figures)] if figures else []


def title_changes(names: tuple[str, str]) -> str:
    """Name what changed between the audits of these names."""
    return f"What changed from {names[0]} to {names[1]}"


def lay_out_changes(
    changes: Changes, names: tuple[str, str], run: Run, charts: Sequence[Block]
) -> list[Block]:
    """Return the changes between the audits of these names: sentences, charts and tables."""
    notable, others = changes.divided()
    is_notable = not notable.filter(changes.significant).is_empty()
    blocks: list[Block] = [
        Text(title_changes(names), 1),
        Text(" · ".join(_count_rows(changes)), style="deck"),
        Text(" ".join(sentences_of(changes)), style="answer either" if is_notable else "answer"),
        *charts,
    ]
    for kind in KINDS:
        rows = kind.rows(notable)
        if rows.height:
            blocks.append(_lay_out_table(rows, kind.heading, changes))
    if others.height:
        shown = others.head(_OTHERS)
        left_out = others.height - shown.height
        more = f" The first {_OTHERS} are listed." if left_out else ""
        table = _lay_out_table(shown, "", changes)
        blocks.append(Fold("Not significant", [Text(f"{not_significant(others)}{more}"), table]))
    return [*blocks, Fold("How to read this", _explain(changes)), *write_foot(run)]


def _count_rows(changes: Changes) -> list[str]:
    """Count the rows of both audits, where that is known."""
    return [
        f"{many(overall['n'], 'row')} {when}"
        for when in ("before", "after")
        for overall in getattr(changes, when).segments.filter(attribute=OVERALL).head(1).to_dicts()
        if overall.get("n") is not None
    ]


def _lay_out_table(rows: pl.DataFrame, title: str, changes: Changes) -> Table:
    """Lay out changes as a table."""
    level = f"{100 * as_number(changes.level):g}% interval"
    has_findings = rows["finding"].count() > 0
    columns = [Column("Group")]
    if changes.several:
        columns.append(Column("Score", style="name", essential=True))
    columns += [
        Column("Metric", style="name", essential=True),
        Column("Before", essential=True),
        Column("After", essential=True),
        Column("Change", level, essential=True),
        Column("p", "adjusted"),
    ]
    if has_findings:
        columns.append(Column("Finding", style="left", essential=True))
    marked = rows.select(changes.significant).to_series()
    lines = []
    for row, is_significant in zip(rows.iter_rows(named=True), marked, strict=True):
        cells = [Cell(row[MODEL])] if changes.several else []
        # A title says that all rows are gaps.
        metric = row["metric"].removesuffix("_gap") if title else row["metric"]
        cells.append(Cell(CHANGED_METRICS[metric].label))
        cells += _write_numbers(row, is_significant=bool(is_significant))
        if has_findings:
            cells.append(Cell(row["finding"] or ""))
        lines.append(Row(segment_in_words(row["attribute"], row["segment"]), cells))
    return Table(columns, lines, title, label="Changes that are not significant", style="changes")


def _write_numbers(row: Mapping[str, Any], *, is_significant: bool) -> list[Cell]:
    """Write the values before and after, and their change with its p-value."""
    is_gap, is_ratio = row["metric"] in GAP_CHANGES, row["metric"] == IMPACT_RATIO
    before, after = (
        points(row[name]) if is_gap else f"{row[name]:.3f}" for name in ("reference_value", "value")
    )
    change, limits = _write_change(row["gap"], is_ratio=is_ratio), ""
    low, high = row["gap_low"], row["gap_high"]
    if low is not None and high is not None:
        limits = " to ".join(_write_change(end, is_ratio=is_ratio) for end in (low, high))
    return [
        Cell(before),
        Cell(after),
        Cell(
            change,
            tone="either" if is_significant else "",
            limits=f"({limits})" if limits else "",
        ),
        Cell(write_p_value(row["p_adjusted"]) or "not tested"),
    ]


def _write_change(change: float, *, is_ratio: bool) -> str:
    return write_number(change, "+.3f") if is_ratio else points(change)


def _explain(changes: Changes) -> list[Block]:
    """Say how changes are measured and tested, and what their verdicts are."""
    alpha = f"{1 - as_number(changes.level):.2g}"
    method = (
        "A gap is the value of a group minus that of its reference in the same audit. Gaps and "
        "changes are in points, that is in hundredths. A change is after minus before. It is "
        f"significant at a level of {alpha}, where {_ADJUSTED[changes.adjust]}. Both audits must "
        "be of different rows: two scores on the same rows need the paired tests of a release "
        "check."
    )
    return [Text(method), *(Text(f"{text}.", lead=f"{term}:") for term, text in _TERMS)]
