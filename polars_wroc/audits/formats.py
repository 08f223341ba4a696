"""An audit as values for JSON, as Markdown, and as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias
from unicodedata import category, east_asian_width

import polars as pl

from polars_wroc.audits.closer_look import EXPLORATION, PARTS, exploration_sentences, sentences_on
from polars_wroc.audits.findings import findings_of, first_sentences, verdict_of
from polars_wroc.audits.remarks import (
    decision_remarks,
    lacking,
    left_out_rows,
    not_audited,
    number_remarks,
    unknown_remarks,
)
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditTables,
    keys_of,
    name_of,
    wide_table,
    with_columns_of,
    without_model,
)
from polars_wroc.audits.words import (
    DASH,
    NOT_HERE,
    adjustment_of,
    many,
    points,
    reading_of,
    reference_of,
)
from polars_wroc.charts.options import visible
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    IMPACT_RATIO,
    SMALL_SHARE,
    SMD,
    THE_REFERENCE,
    TOO_LITTLE,
    UNKNOWN_REASON,
)
from polars_wroc.inputs.arguments import FOUR_FIFTHS, did_you_mean, reject
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.stats.proportions import TOLERANCE

BETWEEN = "  "
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Fewest columns of the screen that a name is cut to.
_LEAST = 4
# Smaller numbers would be 0 with three decimals.
_SMALLEST = 0.0005


def text_table(table: pl.DataFrame, width: int, names: Sequence[str]) -> str:
    """Write a table with a heading; what is in the columns of ``names`` is cut to fit the width.

    Texts are in one line each, numbers have three decimals or, if small, one digit and the power
    of ten, and null is empty.
    """
    widths = widths_of(table)
    _narrow(widths, width, [name for name in names if name in widths])
    columns = [
        [_fitted(cell, widths[name], right=table.schema[name].is_numeric()) for cell in cells]
        for name, cells in _cells(table).items()
    ]
    return "\n".join(BETWEEN.join(row).rstrip() for row in zip(*columns, strict=True))


def widths_of(table: pl.DataFrame) -> dict[str, int]:
    """Count the columns of the screen that each column of a table takes."""
    return {name: max(map(_width, cells)) for name, cells in _cells(table).items()}


def limits_in_text(table: pl.DataFrame, low: str, high: str) -> pl.Series:
    """Write confidence limits; null where one is not known."""
    limits = [
        None if None in ends else f"{ends[0]:.3f} to {ends[1]:.3f}"
        for ends in table.select(low, high).iter_rows()
    ]
    return pl.Series(limits, dtype=pl.String)


def points_in_text(table: pl.DataFrame, *columns: str) -> pl.Series:
    """Write differences of proportions in points, or limits from one to the other; aligned."""
    texts = [
        "" if None in row else " to ".join(map(points, row))
        for row in table.select(columns).iter_rows()
    ]
    width = max(map(len, [columns[0] if len(columns) == 1 else "", *texts]))
    return pl.Series(columns[0], [text.rjust(width) for text in texts], pl.String)


def _narrow(widths: dict[str, int], width: int, names: Sequence[str]) -> None:
    """Take columns of the screen from the widest names until all fit."""
    excess = sum(widths.values()) + len(BETWEEN) * (len(widths) - 1) - width
    for _ in range(excess):
        widest = max(names, key=lambda name: widths[name], default=None)
        if widest is None or widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _cells(table: pl.DataFrame) -> dict[str, list[str]]:
    return {name: [cell_text(name), *map(cell_text, table[name])] for name in table.columns}


def cell_text(value: object) -> str:
    """Write a value for readers, in one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A small p-value is not 0.
        return f"{value:.0e}" if 0 < abs(value) < _SMALLEST else f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    # A name may hold anything, such as a line break or what a terminal takes for a command.
    return "".join(sign if sign.isprintable() else " " for sign in str(value))


def _width(text: str) -> int:
    """Count the columns of the screen that a text takes."""
    return sum(map(_sign_width, text))


def _sign_width(sign: str) -> int:
    if category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept = ""
    for sign in text:
        if _width(kept + sign) >= width:
            break
        kept += sign
    return kept + _ELLIPSIS


def _fitted(text: str, width: int, *, right: bool) -> str:
    """Cut a text to a width, or fill it with spaces."""
    text = _cut(text, width)
    room = " " * (width - _width(text))
    return room + text if right else text + room


Columns: TypeAlias = Sequence[str] | Literal["all"]


@dataclass(frozen=True)
class Screen:
    """What is shown: the width of the screen, most rows, and columns that are asked for."""

    width: int
    # None shows all.
    rows: int | None = None
    # None shows the most important ones that fit.
    columns: Columns | None = None
    # How to see all rows, all columns and, of an audit, all findings.
    more_rows: str | None = None
    more_columns: str | None = None
    more_findings: str | None = None


def fitted_table(
    table: pl.DataFrame, short: pl.DataFrame, screen: Screen, keys: Sequence[str], least: int
) -> str:
    """Write a table that fits a screen, and what is left out.

    ``short`` has the columns of ``keys``, which are always shown, and what else is shown if no
    columns are asked for: the ``least`` of them, and others that fit. Columns that are asked for
    are those of the ``table``; where they do not fit, they are written in blocks below each other.
    """
    check_columns(table, screen)
    asked = short if screen.columns is None else chosen(table, screen.columns, keys)
    shown = asked if screen.rows is None else asked.head(screen.rows)
    taken = sum(widths_of(shown.select(keys)).values()) + len(BETWEEN) * len(keys)
    if screen.columns is None:
        names, blocks = keys, _blocks(shown, screen.width - taken, keys, least)[:1]
    else:
        names = [*keys, *(name for name, dtype in shown.schema.items() if dtype == pl.String)]
        # Long keys are cut, to at most half of the screen.
        blocks = _blocks(shown, screen.width - min(taken, screen.width // 2), keys)
    texts = [text_table(shown.select(*keys, *block), screen.width, names) for block in blocks]
    return "\n".join(["\n\n".join(texts), *_left_out(table, shown.height, screen)])


def check_columns(table: pl.DataFrame, screen: Screen) -> None:
    """Check that a table has the columns that are asked for."""
    if screen.columns is None or screen.columns == "all":
        return
    if unknown := [name for name in screen.columns if name not in table.columns]:
        listed, hint = ", ".join(table.columns), did_you_mean(unknown[0], table.columns)
        reject("columns", f"be all, or columns out of {listed}", f"{unknown[0]!r}{hint}")


def chosen(table: pl.DataFrame, columns: Columns, keys: Sequence[str]) -> pl.DataFrame:
    """Select the columns that are asked for, after the keys."""
    if columns == "all":
        return table.select(*keys, pl.exclude(keys))
    return table.select([*dict.fromkeys([*keys, *columns])])


def _blocks(shown: pl.DataFrame, room: int, keys: Sequence[str], least: int = 1) -> list[list[str]]:
    """Divide the columns, but for the keys, into blocks that fit, of ``least`` columns or more."""
    blocks, used = [list[str]()], 0
    for name, width in widths_of(shown.drop(keys)).items():
        if len(blocks[-1]) >= least and used + width > room:
            blocks.append([])
            used = 0
        blocks[-1].append(name)
        used += width + len(BETWEEN)
    return blocks


def _left_out(table: pl.DataFrame, rows: int, screen: Screen) -> list[str]:
    """Say how many rows are left out, and how to see them and all columns."""
    notes = list[str]()
    if more := table.height - rows:
        notes.append(many(more, "more row") + _how(screen.more_rows))
    if screen.columns is None and screen.more_columns:
        notes.append(f"all {table.width} columns{_how(screen.more_columns)}")
    return ["; ".join(notes)] if notes else []


def _how(text: str | None) -> str:
    return f": {text}" if text else ""


SCHEMA, SCHEMA_VERSION = "polars-wroc/audit", "2.1"


def json_of(audit: AuditTables) -> dict[str, Any]:
    """Return the audit as dictionaries and lists; null is undefined."""
    verdict, settings = verdict_of(audit), audit.settings
    overall = audit.segments.filter(attribute=OVERALL)
    used, missing = overall.select("n", "n_missing").row(0)
    # The rows of a file would tell how many are left out of the totals.
    files = [replace(file, rows=None) for file in audit.run.files]
    told = replace(audit.run, files=files) if audit.run.left_out_of_totals else audit.run
    run = told.as_dict() | {
        "rows_read": used + missing,
        "rows_used": used,
        "exclusions": outputs.rows_in_json(audit.missing),
    }
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "reading": reading_of(audit),
        "verdict": {"text": verdict.text, "counts": verdict.counts},
        "settings": {name: outputs.in_json(value) for name, value in settings.as_dict().items()},
        "run": run,
        "gates": [gate.as_dict() for gate in audit.gates],
        **{
            name: outputs.rows_in_json(getattr(audit, name))
            for name in ("table", "segments", "missing")
        },
        "further": {
            name: outputs.rows_in_json(table)
            for name, table in audit.further()._asdict().items()
            if isinstance(table, pl.DataFrame)
        },
    }


# Most findings, and most segments.
_FINDINGS, _SEGMENTS = 10, 50
# Metrics in the table of segments; all but the AUC are a share of rows.
_HEADINGS = {"auc": "AUC", "selection_rate": "Selected", "tpr": "tpr", "fpr": "fpr"}


def left_out(row: Mapping[str, Any]) -> str | None:
    """Say in short why a category is not among those that impact ratios compare."""
    reason = row["reason"] or ""
    if reason == UNKNOWN_REASON:
        return "unknown"
    return reason if reason.startswith(SMALL_SHARE) else None


def in_markdown(audit: AuditTables) -> str:
    """Write the verdict, the first findings, the segments and how they came about."""
    settings = audit.settings
    title = settings.text.title or f"Audit of {' and '.join(settings.audited)}"
    findings = findings_of(audit.table)
    parts = [f"# {markdown_text(title)}"]
    parts += [markdown_text(settings.text.note)] if settings.text.note else []
    parts += [markdown_text(reading)] if (reading := reading_of(audit)) else []
    parts += [f"**{markdown_text(verdict_of(audit).text)}**"]
    attributes = audit.segments["attribute"].unique(maintain_order=True)
    closer = (text for one in attributes for text in sentences_on(audit, one))
    sections = {
        "Gates": _listed(line for gate in audit.gates for line in gate.lines),
        "Findings": _listed(first_sentences(findings, _FINDINGS, NOT_HERE)),
        "Segments": _segments(audit),
        "Impact ratios": _impact(audit),
        "Scores": _scores(audit),
        "Limits of this audit": _listed(not_audited(audit)),
        PARTS: _listed(dict.fromkeys(closer)),
        EXPLORATION: _listed(exploration_sentences(audit)),
        "Method": _method(audit),
        "Run": _listed(_run(audit)),
    }
    parts += [f"## {heading}\n\n{text}" for heading, text in sections.items() if text]
    parts += ["Name, date and signature of who is responsible for the audit: ____________________"]
    return "\n\n".join(parts) + "\n"


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {markdown_text(text)}" for text in texts)


def _segments(audit: AuditTables) -> str:
    table = wide_table(audit)
    cells = {
        heading: partial(_number, name=name, percent=name != "auc")
        for name, heading in _HEADINGS.items()
        if name in table.columns
    }
    return _table_of(table, audit, cells)


def _impact(audit: AuditTables) -> str:
    """Lay out the impact ratios, those of categories that are left out too."""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "Selected": partial(_number, name="value", percent=True),
        "Impact ratio": partial(_number, name="ratio", percent=False),
        "Below four fifths": lambda row: markdown_text(below_four_fifths(row) or DASH),
        "Left out": lambda row: markdown_text(left_out(row) or DASH),
    }
    table = impact_ratios_of(audit)
    return "" if table.is_empty() else _table_of(table, audit, cells)


def _scores(audit: AuditTables) -> str:
    """Lay out how far the mean scores of segments are apart."""
    table = audit.table.filter(metric=SMD.name)
    cells = {SMD.heading: partial(_number, name="value", percent=False)}
    return "" if table.is_empty() else _table_of(table, audit, cells)


def impact_ratios_of(audit: AuditTables) -> pl.DataFrame:
    """Return the impact ratios with the rates of those selected, whether or not that is good."""
    table = audit.table.filter(metric=IMPACT_RATIO)
    if audit.settings.favorable != "rejected":
        return table
    opposite = {"value": "value", "value_low": "value_high", "value_high": "value_low"}
    return table.with_columns(**{name: 1 - pl.col(of) for name, of in opposite.items()})


def below_four_fifths(row: Mapping[str, Any]) -> str | None:
    """Say how sure it is that an impact ratio is below four fifths, or that it is not."""
    ratio, low, high = (row[f"ratio{end}"] for end in ("", "_low", "_high"))
    if ratio is None or row["reason"] == THE_REFERENCE:
        return None
    if high is not None and high < FOUR_FIFTHS:
        return "surely"
    if ratio < FOUR_FIFTHS - TOLERANCE:
        return "by the estimate"
    return "surely not" if low is not None and low >= FOUR_FIFTHS else "not by the estimate"


def _number(row: dict[str, Any], name: str, *, percent: bool) -> str:
    value = row[name]
    if value is None:
        return DASH
    factor, decimals, sign = (100, 0, "%") if percent else (1, 3, "")
    ends = [row[f"{name}_{end}"] for end in ("low", "high")]
    known = [f"{factor * end:.{decimals}f}" for end in ends if end is not None]
    limits = f" ({' to '.join(known)})" if known else ""
    return f"{factor * value:.{decimals}f}{sign}{limits}"


def _table_of(
    table: pl.DataFrame, audit: AuditTables, cells: Mapping[str, Callable[[dict[str, Any]], str]]
) -> str:
    """Write a table with the segments and the cells by their headings; numbers on the right."""
    models = ["Score"] if audit.settings.several else []
    headings = ["Attribute", "Segment", *models, "Rows", *cells]
    texts = ("Attribute", "Segment", "Score", "Below four fifths", "Left out")
    shown = table.head(_SEGMENTS)
    rows = []
    for row in shown.iter_rows(named=True):
        keys = [markdown_text(row["attribute"]), markdown_text(name_of(row["segment"]))]
        keys += [markdown_text(row[MODEL]) for _ in models]
        rows.append([*keys, f"{row['n']:,}", *(cell(row) for cell in cells.values())])
    text = markdown_table(headings, rows, [name for name in headings if name not in texts])
    more = table.height - shown.height
    return text + (f"\n\n{many(more, 'more segment')}: {NOT_HERE}." if more else "")


def markdown_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str]
) -> str:
    """Write cells, which are escaped, as a table; some columns are aligned to the right."""
    rule = ["---:" if name in right else "---" for name in headings]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def _method(audit: AuditTables) -> str:
    settings = audit.settings
    compared = {reference_of(settings, attribute) for attribute in settings.attributes}
    level = f"{100 * settings.level:g}%"
    recorded = f"Decisions are those recorded in {settings.selected}. " if settings.selected else ""
    return markdown_text(
        f"{recorded}"
        f"Segments are compared with {' or '.join(sorted(compared))}. Brackets hold {level} "
        f"confidence intervals. A gap is different if it is significant at a level of "
        f"{1 - settings.level:.2g}, where {adjustment_of(settings)}, and alike if it is shown "
        f"to be within {100 * settings.margin:g} points. Otherwise there is too little data to "
        "tell, which is not the same as no gap; so many rows as would tell show with a probability "
        "of 80% that no gap is alike. An audit certifies nothing."
    )


def _run(audit: AuditTables) -> list[str]:
    run = audit.run
    overall = audit.segments.filter(attribute=OVERALL).row(0, named=True)
    used, missing = overall["n"], overall["n_missing"]
    lines = [
        f"{run.date:%Y-%m-%d %H:%M} UTC",
        f"{many(used, 'row')} used of {used + missing:,}",
        *(f"{many(rows, 'row')} without {name}" for name, rows in audit.missing.rows() if rows),
    ]
    for file in run.files:
        size = "" if file.bytes is None else f", {file.bytes:,} bytes"
        digest = "" if file.sha256 is None else f", SHA-256 {file.sha256}"
        lines.append(f"File {file.name}{size}{digest}")
    if run.command:
        lines.append(f"Command: {run.command}")
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    return [*lines, versions]


def markdown_text(text: str) -> str:
    """Escape what Markdown or HTML would take for its own, in one line."""
    text = visible(text)
    for sign in "\\`*_[]<>|#&":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


# Most segments if nothing else is asked for, and most sentences.
SEGMENTS, _SENTENCES = 20, 8

# What else is shown of the segments where there is room.
_MORE = ("n_pos", "tpr", "fpr", "ppv", "npv", "average_precision", "accuracy")


def in_text(audit: AuditTables, screen: Screen) -> str:
    """Write the verdict, a table of the segments, and the most serious findings."""
    said = [text for text in (reading_of(audit), verdict_of(audit).text) if text]
    parts = [*(textwrap.fill(text, screen.width) for text in said), _table(audit, screen)]
    how = [screen.more_findings] if screen.more_findings else []
    if listed := first_sentences(findings_of(audit.table), _SENTENCES, *how):
        wrapper = textwrap.TextWrapper(screen.width, initial_indent="* ", subsequent_indent="  ")
        parts.append("\n".join(map(wrapper.fill, listed)))
    # That decisions were not audited is said in the verdict.
    unseen = [] if audit.settings.labeled else [*lacking(audit), *left_out_rows(audit)]
    remarks = [
        *decision_remarks(audit),
        *unseen,
        *unknown_remarks(audit),
        *number_remarks(audit.segments),
    ]
    parts += [textwrap.fill(text, screen.width) for text in remarks]
    return "\n\n".join(parts)


def _table(audit: AuditTables, screen: Screen) -> str:
    verdict = pl.col("verdict")
    said = (verdict == DIFFERENT) & pl.col("direction").is_in(["worse", "either"])
    of_segments = audit.table.filter(pl.col("attribute") != OVERALL)
    first = (said, verdict == TOO_LITTLE, verdict == ALIKE)
    outcome = of_segments.group_by(ALL_KEYS).agg(
        gaps=pl.coalesce(verdict.filter(some).first() for some in first)
    )
    table = without_model(with_columns_of(wide_table(audit), outcome), audit.settings)
    keys = keys_of(table)
    table = table.with_columns(pl.col(key).fill_null(MISSING) for key in keys)
    selected = pl.col("selection_rate").alias("selected")
    headline = "auc" if audit.settings.labeled else "selection_rate"
    short = table.select(
        *keys,
        "n",
        "gaps",
        "auc" if audit.settings.labeled else selected,
        limits_in_text(table, f"{headline}_low", f"{headline}_high").alias("interval"),
        *([selected] if audit.settings.labeled and audit.settings.decides else []),
        *(name for name in _MORE if name in table.columns and table[name].count()),
    )
    return fitted_table(table, short, screen, keys, least=4)
