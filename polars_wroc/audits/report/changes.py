"""The changes between two audits as one HTML page that opens without a network."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.audits.audit_changes import GAP, HEADINGS, Changes, not_significant, sentences_of
from polars_wroc.audits.report.figures import change_figure
from polars_wroc.audits.report.page import page_of
from polars_wroc.audits.report.tables import Cell, Table, p_value_text
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import ADJUSTED, many, points
from polars_wroc.charts.options import Show
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.inputs.columns import MODEL, OVERALL

# Most charts, and most changes that are not significant.
_CHARTS, _OTHERS = 4, 500
_TERMS = {
    "New": "a gap that is different only after, and whose change is significant",
    "Gone": "a gap that was different only before, and whose change is significant",
    "Grown, shrunk, reversed": "a gap whose size, or whose sign, changed significantly",
    "Now detected, no longer detected": "a gap that is different in one audit only, but whose "
    "change is not significant: the gap itself is not shown to have changed",
}


def render_changes(
    changes: Changes,
    names: tuple[str, str],
    metric: str | None = None,
    measure: Show | None = None,
) -> str:
    """Render the changes between the audits of these names, and the charts that are asked for.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    notable, others = changes.divided()
    figures = [
        change_figure(changes.table, *drawn, changes.level)
        for drawn in changes.most_changed(metric, measure)[:_CHARTS]
    ]
    tables = [
        _table(rows, heading, changes)
        for kind, heading in HEADINGS.items()
        if not (rows := notable.filter(measure=kind)).is_empty()
    ]
    listed = others.head(_OTHERS)
    return page_of(
        "changes.html",
        figures,
        page_title=f"What changed from {names[0]} to {names[1]}",
        title_line=_rows(changes),
        significant=not notable.filter(changes.significant).is_empty(),
        sentences=sentences_of(changes),
        figures=figures,
        tables=tables,
        others=None if listed.is_empty() else _table(listed, "Not significant", changes),
        others_counted=not_significant(others),
        left_out=others.height - listed.height,
        level=f"{100 * changes.level:g}%",
        alpha=f"{1 - changes.level:.2g}",
        adjusted=ADJUSTED[changes.adjust],
        terms=_TERMS,
    )


def _rows(changes: Changes) -> list[str]:
    """Count the rows of both audits, where that is known."""
    return [
        f"{many(overall['n'], 'row')} {when}"
        for when in ("before", "after")
        for overall in getattr(changes, when).segments.filter(attribute=OVERALL).head(1).to_dicts()
        if overall.get("n") is not None
    ]


def _table(rows: pl.DataFrame, title: str, changes: Changes) -> Table:
    """Lay out changes as a table."""
    models = ["Score"] if changes.several else []
    findings = ["Verdict"] if rows["verdict"].count() else []
    headings = ["Segment", *models, "Metric", "Before", "After", "Change", *findings]
    texts = [name in ("Segment", "Score", "Metric", "Verdict") for name in headings]
    marked = rows.select(changes.significant).to_series()
    cells = [
        [Cell(segment_in_words(row["attribute"], row["segment"]))]
        + [Cell(row[MODEL]) for _ in models]
        + [Cell(_metric(row)), *_numbers(row, marked=significant)]
        + [Cell(row["verdict"] or "") for _ in findings]
        for row, significant in zip(rows.iter_rows(named=True), marked, strict=True)
    ]
    return Table(title, headings, texts, cells)


def _metric(row: dict[str, Any]) -> str:
    return f"{'gap in ' if row['measure'] == GAP else ''}{GAP_METRICS[row['metric']].label}"


def _numbers(row: dict[str, Any], *, marked: bool) -> list[Cell]:
    """Write the values before and after, and the change with its limits and its p-value."""
    both = (row["before"], row["after"])
    values = [points(one) if row["measure"] == GAP else f"{one:.3f}" for one in both]
    ends = (row["change_low"], row["change_high"])
    limits = [] if None in ends else [" to ".join(map(points, ends))]
    p_value = row["p_adjusted"]
    notes = [*limits, "not tested" if p_value is None else f"p {p_value_text(p_value)}"]
    return [*map(Cell, values), Cell(points(row["change"]), tuple(notes), marked)]
