"""An audit as values for JSON, as Markdown, and as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.closer_look import (
    ALONG_SCORES,
    EXPLORATION,
    exploration_sentences,
    sentences_on,
)
from polars_wroc.audits.findings import (
    by_severity,
    favorable_rates,
    findings_of,
    first_sentences,
)
from polars_wroc.audits.remarks import (
    lacking,
    left_out_remarks,
    left_out_rows,
    not_audited,
    number_remarks,
    remarks_of,
    spelling_remarks,
    unknown_remarks,
    unlabeled_remarks,
)
from polars_wroc.audits.table_pages import Screen, fitted_table, limits_in_text
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditTables,
    keys_of,
    name_of,
    wide_table,
    with_columns_of,
    without_model,
)
from polars_wroc.audits.verdicts import verdict_of
from polars_wroc.audits.words import (
    DASH,
    NOT_HERE,
    Words,
    adjustment_of,
    capitalised,
    many,
    reading_of,
    reference_of,
)
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.blocks import TONE_SIGNS
from polars_wroc.documents.markdown_writer import escape_markdown, markdown_table
from polars_wroc.documents.text_writer import ELLIPSIS
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import (
    CLEARED,
    FINDINGS,
    IMPACT_RATIO,
    SMALL_SHARE,
    SMD,
    THE_REFERENCE,
    UNKNOWN_REASON,
    join_rates,
)
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import MINUS
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.stats.families import INCONCLUSIVE

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
        "remarks": [sentence for part in remarks_of(audit) for sentence in part],
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
    parts = [f"# {escape_markdown(title)}"]
    parts += [escape_markdown(settings.text.note)] if settings.text.note else []
    parts += [escape_markdown(reading)] if (reading := reading_of(audit)) else []
    parts += [f"**{escape_markdown(verdict_of(audit).text)}**"]
    attributes = audit.segments["attribute"].unique(maintain_order=True)
    closer = (text for one in attributes for text in sentences_on(audit, one))
    sections = {
        "Gates": _listed(line for gate in audit.gates for line in gate.lines),
        "Findings": _listed(first_sentences(findings, _FINDINGS, NOT_HERE)),
        "Segments": _segments(audit),
        "Impact ratios": _impact(audit),
        "Scores": _scores(audit),
        "Limits of this audit": _listed(not_audited(audit)),
        ALONG_SCORES: _listed(dict.fromkeys(closer)),
        EXPLORATION: _listed(exploration_sentences(audit)),
        "Method": _method(audit),
        "Run": _listed(_run(audit)),
    }
    parts += [f"## {heading}\n\n{text}" for heading, text in sections.items() if text]
    parts += ["Name, date and signature of who is responsible for the audit: ____________________"]
    return "\n\n".join(parts) + "\n"


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(text)}" for text in texts)


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
    table, good = impact_ratios_of(audit), Words.of(audit.settings).good
    if table.is_empty() or good is None:
        return ""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        capitalised(good): partial(_number, name="rate", percent=True),
        "Impact ratio": partial(_number, name="ratio", percent=False),
        "Below four fifths": lambda row: escape_markdown(below_four_fifths(row) or DASH),
        "Left out": lambda row: escape_markdown(left_out(row) or DASH),
    }
    return _table_of(table, audit, cells)


def _scores(audit: AuditTables) -> str:
    """Lay out how far the mean scores of segments are apart."""
    table = audit.table.filter(metric=SMD.name)
    cells = {SMD.heading: partial(_number, name="value", percent=False)}
    return "" if table.is_empty() else _table_of(table, audit, cells)


def impact_ratios_of(audit: AuditTables) -> pl.DataFrame:
    """Return the impact ratios with the rates of the favorable decision, which they divide."""
    ratios = audit.table.filter(metric=IMPACT_RATIO)
    return join_rates(ratios, favorable_rates(audit.table, audit.settings))


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
        keys = [escape_markdown(row["attribute"]), escape_markdown(name_of(row["segment"]))]
        keys += [escape_markdown(row[MODEL]) for _ in models]
        rows.append([*keys, f"{row['n']:,}", *(cell(row) for cell in cells.values())])
    text = markdown_table(headings, rows, [name not in texts for name in headings])
    more = table.height - shown.height
    return text + (f"\n\n{many(more, 'more segment')}: {NOT_HERE}." if more else "")


def _method(audit: AuditTables) -> str:
    settings = audit.settings
    compared = {reference_of(settings, attribute) for attribute in settings.attributes}
    level = f"{100 * settings.confidence:g}%"
    recorded = f"Decisions are those recorded in {settings.selected}. " if settings.selected else ""
    return escape_markdown(
        f"{recorded}"
        f"Segments are compared with {' or '.join(sorted(compared))}. Brackets hold {level} "
        f"confidence intervals. A gap is different if it is significant at a level of "
        f"{1 - settings.confidence:.2g}, where {adjustment_of(audit)}, and equivalent if it is "
        f"shown to be within {100 * settings.margin:g} points. Otherwise it is inconclusive, "
        "which is not the same as no gap; so many rows as would tell show with a probability "
        "of 80% that no gap is equivalent. An audit certifies nothing."
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
        *unlabeled_remarks(audit),
        *left_out_remarks(audit),
        *unseen,
        *unknown_remarks(audit),
        *number_remarks(audit.segments),
        *spelling_remarks(audit.segments),
    ]
    parts += [textwrap.fill(text, screen.width) for text in remarks]
    return "\n\n".join(parts)


# What gaps are called in short, unless as their metrics.
_SHORT = {"selection_rate": "selected", "auc": "AUC", IMPACT_RATIO: "ratio", SLOPE: "slope"}
_SHORT |= {CALIBRATION_ERROR: "outcome"}
# Most of them that a segment has.
_GAPS = 2


def _table(audit: AuditTables, screen: Screen) -> str:
    """Write the segments, the most serious first, with their gaps."""
    is_overall = pl.col("attribute") == OVERALL
    findings = by_severity(audit).filter(~is_overall)
    ordered = findings.partition_by(ALL_KEYS, as_dict=True, maintain_order=True)
    outcomes = [(*keys, _outcome(rows.to_dicts())) for keys, rows in ordered.items()]
    schema = dict.fromkeys((*ALL_KEYS, "gaps"), pl.String)
    outcome = pl.DataFrame(outcomes, schema, orient="row").with_row_index("__place")
    table = with_columns_of(wide_table(audit), outcome)
    table = table.sort(~is_overall, "__place", nulls_last=True, maintain_order=True)
    table = without_model(table.drop("__place"), audit.settings)
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
    return fitted_table(table, short, screen, keys, least=3)


def _outcome(findings: list[dict[str, Any]]) -> str | None:
    """Write the most serious gaps of a segment, each with its sign, or that there are none."""
    different = [row for row in findings if row["verdict"] in FINDINGS]
    if not different:
        verdicts = {row["verdict"] for row in findings}
        little = [_short(row) for row in findings if row["verdict"] == INCONCLUSIVE]
        if little and verdicts & {*CLEARED}:
            return f"{INCONCLUSIVE}: {little[0]}{f' {ELLIPSIS}' if little[1:] else ''}"
        said = (INCONCLUSIVE, *CLEARED)
        return next((verdict for verdict in said if verdict in verdicts), None)
    side = different[0]["direction"]
    shown = [row for row in different if row["direction"] == side][:_GAPS]
    named = [f"{_short(row)} {number_of(row)}" for row in shown]
    more = f" {ELLIPSIS}" if len(different) > len(shown) else ""
    return f"{TONE_SIGNS[side]} {', '.join(named)}{more}"


def _short(finding: Mapping[str, Any]) -> str:
    return _SHORT.get(finding["metric"], str(finding["metric"]))


def number_of(finding: Mapping[str, Any]) -> str:
    """Write a ratio or a slope as it is, and other gaps in points."""
    if finding["metric"] == IMPACT_RATIO:
        return f"{finding['ratio']:.2f}"
    gap = finding["gap"]
    if gap is None:
        return DASH
    if finding["metric"] == SLOPE:
        return f"{finding['value']:.2f}"
    return f"{points:+d}".replace("-", MINUS) if (points := round(100 * gap)) else "0"
