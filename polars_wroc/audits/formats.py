"""An audit as values for JSON, as Markdown, and as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.findings import first_sentences
from polars_wroc.audits.not_audited import not_audited, unknown_remarks
from polars_wroc.audits.tables import AuditTables, name_of, segment_keys
from polars_wroc.audits.text_table import Screen, fitted_table, limits_in_text
from polars_wroc.audits.verdict import number_remarks, verdict_of
from polars_wroc.audits.words import ADJUSTED, NOT_HERE, many, reading_of, reference_of
from polars_wroc.charts.options import visible
from polars_wroc.files import outputs
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL

SCHEMA, SCHEMA_VERSION = "polars-wroc/audit", "1.0"
# The tables in the order in which they are written; of curves there are charts.
TABLES = ("segments", "gaps", "impact", "calibration", "fairness", "missing")


def dossier_of(audit: AuditTables, findings: pl.DataFrame) -> dict[str, Any]:
    """Return the audit as dictionaries and lists; null is undefined."""
    settings = audit.parameters
    verdict = verdict_of(findings, settings)
    overall = audit.segments.filter(pl.col("attribute") == OVERALL)
    used, missing = overall.select("n", "n_missing").row(0)
    # The rows of a file would tell how many are left out of the totals.
    files = [replace(file, rows=None) for file in audit.run.files]
    told = replace(audit.run, files=files) if audit.left_out_of_totals else audit.run
    run = told.as_dict() | {
        "title": settings.text.title,
        "note": settings.text.note,
        "rows_read": used + missing,
        "rows_used": used,
        "exclusions": outputs.rows_in_json(audit.missing),
        "left_out": list(audit.left_out),
        "left_out_of_totals": list(audit.left_out_of_totals),
    }
    tables = {name: table for name in TABLES if (table := getattr(audit, name)) is not None}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "run": run,
        "settings": {name: outputs.in_json(value) for name, value in settings.as_dict().items()},
        "reading": reading_of(audit),
        "verdict": {"text": verdict.text, "counts": verdict.counts},
        "gates": [gate.as_dict() for gate in audit.gates],
        "findings": outputs.rows_in_json(findings),
        "tables": {name: outputs.rows_in_json(table) for name, table in tables.items()},
    }


# Most findings, and most segments.
_FINDINGS, _SEGMENTS = 10, 50
_HEADINGS = {
    "attribute": "Attribute",
    "segment": "Segment",
    MODEL: "Score",
    "n": "Rows",
    "auc": "AUC",
    "selection_rate": "Selected",
    "tpr": "tpr",
    "fpr": "fpr",
    "calibration_slope": "Slope",
}
_IMPACT = {
    "attribute": "Attribute",
    "segment": "Segment",
    MODEL: "Score",
    "n": "Rows",
    "share": "Share",
    "selection_rate": "Selected",
    "impact_ratio": "Impact ratio",
    "below_four_fifths": "Below four fifths",
    "excluded": "Left out",
}
_LIMITS = {
    "auc": ("ci_low", "ci_high"),
    "impact_ratio": ("impact_ratio_joint_low", "impact_ratio_joint_high"),
}
_PERCENT = ("share", "selection_rate", "tpr", "fpr")


def in_markdown(audit: AuditTables, findings: pl.DataFrame) -> str:
    """Write the verdict, the first findings, the segments and how they came about."""
    settings = audit.parameters
    title = settings.text.title or f"Audit of {' and '.join(settings.score)}"
    verdict = verdict_of(findings, settings)
    parts = [f"# {_text(title)}"]
    parts += [_text(settings.text.note)] if settings.text.note else []
    parts += [_text(reading)] if (reading := reading_of(audit)) else []
    parts += [f"**{_text(verdict.text)}**"]
    parts += _section("Findings", _listed(first_sentences(findings, _FINDINGS, NOT_HERE)))
    parts += _section("Segments", _segments(audit))
    parts += _section("Impact ratios", _impact(audit))
    parts += _section("Gates", _listed(gate.sentence for gate in audit.gates))
    parts += _section("Limits of this audit", _listed(not_audited(audit)))
    parts += _section("Method", _method(audit))
    parts += _section("Run", _listed(_run(audit)))
    parts += ["Name, date and signature of who is responsible for the audit: ____________________"]
    return "\n\n".join(parts) + "\n"


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}", text] if text else []


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_text(text)}" for text in texts)


def _segments(audit: AuditTables) -> str:
    columns = [name for name in _HEADINGS if name in audit.segments.columns]
    shown = audit.segments.head(_SEGMENTS)
    lines = _lines(shown, {name: _HEADINGS[name] for name in columns})
    more = audit.segments.height - shown.height
    return lines + (f"\n\n{many(more, 'more segment')}: {NOT_HERE}." if more else "")


def _lines(table: pl.DataFrame, headings: dict[str, str]) -> str:
    """Write a table; numbers are on the right."""
    texts = [table.schema[name] == pl.String for name in headings]
    lines = [
        _row([*headings.values()]),
        _row(["---" if text else "---:" for text in texts]),
        *(_row([_cell(row, name) for name in headings]) for row in table.iter_rows(named=True)),
    ]
    return "\n".join(lines)


def _impact(audit: AuditTables) -> str:
    """Lay out the impact ratios, those of categories that are left out too."""
    if audit.impact is None:
        return ""
    columns = [name for name in _IMPACT if name in audit.impact.columns]
    shown = audit.impact.head(_SEGMENTS)
    lines = _lines(shown, {name: _IMPACT[name] for name in columns})
    more = audit.impact.height - shown.height
    return lines + (f"\n\n{many(more, 'more segment')}: {NOT_HERE}." if more else "")


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name in ("attribute", "segment"):
        return _text(name_of(value))
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return _text(value)
    if name == "n":
        return f"{value:,}"
    factor, decimals, sign = (100, 0, "%") if name in _PERCENT else (1, 3, "")
    names = _LIMITS.get(name, (f"{name}_low", f"{name}_high"))
    ends = [f"{factor * row[end]:.{decimals}f}" for end in names if row.get(end) is not None]
    limits = f" ({' to '.join(ends)})" if ends else ""
    return f"{factor * value:.{decimals}f}{sign}{limits}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _method(audit: AuditTables) -> str:
    settings = audit.parameters
    compared = {reference_of(settings, attribute) for attribute in settings.by}
    level = f"{100 * settings.level:g}%"
    recorded = f"Decisions are those recorded in {settings.selected}. " if settings.selected else ""
    return _text(
        f"{recorded}"
        f"Segments are compared with {' or '.join(sorted(compared))}. Brackets hold {level} "
        f"confidence intervals. A gap is different if it is significant at a level of "
        f"{1 - settings.level:.2g}, where {ADJUSTED[settings.adjust]}, and alike if it is shown "
        f"to be within {100 * settings.margin:g} points. Otherwise there is too little data to "
        "tell, which is not the same as no gap. An audit certifies nothing."
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


def _text(text: str) -> str:
    """Escape what Markdown or HTML would take for its own, in one line."""
    text = visible(text)
    for sign in "\\`*_[]<>|#&":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


# Most segments if nothing else is asked for, and most sentences.
SEGMENTS, _SENTENCES = 20, 8

# What else is shown of the segments where there is room.
_MORE = ("n_pos", "tpr", "fpr", "ppv", "npv", "average_precision", "ks")


def in_text(audit: AuditTables, findings: pl.DataFrame, screen: Screen) -> str:
    """Write the verdict, a table of the segments, and the most serious findings."""
    verdict = verdict_of(findings, audit.parameters)
    said = [text for text in (reading_of(audit), verdict.text) if text]
    parts = [*(textwrap.fill(text, screen.width) for text in said), _table(audit, findings, screen)]
    how = [screen.more_findings] if screen.more_findings else []
    if listed := first_sentences(findings, _SENTENCES, *how):
        parts.append("\n".join(_item(text, screen.width) for text in listed))
    remarks = [*unknown_remarks(audit), *number_remarks(audit.segments)]
    parts += [textwrap.fill(text, screen.width) for text in remarks]
    return "\n\n".join(parts)


def _item(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="* ", subsequent_indent="  ")


def _table(audit: AuditTables, findings: pl.DataFrame, screen: Screen) -> str:
    keys = segment_keys(findings)
    said = pl.col("side").filter(pl.col("verdict") == "different").is_in(["worse", "either"])
    of_segments = findings.filter(pl.col("attribute") != OVERALL)
    outcome = of_segments.group_by(keys).agg(
        pl.when(said.any())
        .then(pl.lit("different"))
        .when((pl.col("verdict") == "too little data").any())
        .then(pl.lit("too little data"))
        .when((pl.col("verdict") == "alike").any())
        .then(pl.lit("alike"))
        .alias("gaps")
    )
    table = audit.segments.join(outcome, on=keys, how="left", nulls_equal=True)
    table = table.with_columns(pl.col(key).fill_null(MISSING) for key in keys)
    short = table.select(
        *keys,
        "n",
        "gaps",
        "auc",
        limits_in_text(table, "ci_low", "ci_high").alias("interval"),
        *(pl.col(name).alias("selected") for name in ("selection_rate",) if name in table.columns),
        *(name for name in _MORE if name in table.columns),
    )
    return fitted_table(table, short, screen, keys, least=4)
