"""The changes between two audits as one HTML page that opens without a network."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.audits.audit_changes import GAP, HEADINGS, Changes, not_significant, sentences_of
from polars_wroc.audits.report.figures import change_figure
from polars_wroc.audits.report.page import page_of
from polars_wroc.audits.report.tables import Cell, Row, Table, p_value_text, text_cell
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import ADJUSTED, many, points
from polars_wroc.charts.options import Show
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.inputs.columns import MODEL, OVERALL

# Most charts, and most changes that are not significant.
_CHARTS, _OTHERS = 4, 500


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
    judged = rows["verdict"].count()
    marked = rows.select(changes.significant).to_series()
    return Table(
        title,
        [
            [
                ("Segment", text_cell(segment_in_words(row["attribute"], row["segment"]))),
                *([("Score", text_cell(row[MODEL]))] if changes.several else []),
                ("Metric", text_cell(_metric(row))),
                *_numbers(row, marked=significant),
                *([("Verdict", text_cell(row["verdict"] or ""))] if judged else []),
            ]
            for row, significant in zip(rows.iter_rows(named=True), marked, strict=True)
        ],
    )


def _metric(row: dict[str, Any]) -> str:
    return f"{'gap in ' if row['measure'] == GAP else ''}{GAP_METRICS[row['metric']].label}"


def _numbers(row: dict[str, Any], *, marked: bool) -> Row:
    """Write the values before and after, and the change with its limits and its p-value."""
    write = points if row["measure"] == GAP else "{:.3f}".format
    ends = (row["change_low"], row["change_high"])
    limits = [] if None in ends else [" to ".join(map(points, ends))]
    p_value = row["p_adjusted"]
    tested = "not tested" if p_value is None else f"p {p_value_text(p_value)}"
    return [
        ("Before", Cell(write(row["before"]))),
        ("After", Cell(write(row["after"]))),
        ("Change", Cell(points(row["change"]), (*limits, tested), marked)),
    ]
