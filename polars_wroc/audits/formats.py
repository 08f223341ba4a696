"""An audit as values for JSON, as Markdown, and as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.audits.findings import findings_of, first_sentences
from polars_wroc.audits.not_audited import not_audited, unknown_remarks
from polars_wroc.audits.tables import ALL_KEYS, AuditTables, keys_of, name_of
from polars_wroc.audits.text_table import Screen, fitted_table, limits_in_text
from polars_wroc.audits.verdict import number_remarks, verdict_of
from polars_wroc.audits.views import VALUES, wide_table, without_model
from polars_wroc.audits.words import ADJUSTED, DASH, NOT_HERE, many, reading_of, reference_of
from polars_wroc.charts.options import visible
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    IMPACT_RATIO,
    THE_REFERENCE,
    TOO_LITTLE,
    UNKNOWN_REASON,
    small_share,
)
from polars_wroc.groups.impact_ratios import MIN_SHARE
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.stats.proportions import TOLERANCE

SCHEMA, SCHEMA_VERSION = "polars-wroc/audit", "2.0"


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
    }


# Most findings, and most segments.
_FINDINGS, _SEGMENTS = 10, 50
# Metrics in the table of segments, and those that are a share of rows.
_SEGMENT_METRICS = ("auc", "selection_rate", "tpr", "fpr")
_HEADINGS = {"auc": "AUC", "selection_rate": "Selected"}
_PERCENT = ("selection_rate", "tpr", "fpr")
# Why a category is not among those that impact ratios compare.
LEFT_OUT = {UNKNOWN_REASON: "unknown", small_share(MIN_SHARE): "small share"}


def in_markdown(audit: AuditTables) -> str:
    """Write the verdict, the first findings, the segments and how they came about."""
    settings = audit.settings
    title = settings.text.title or f"Audit of {' and '.join(settings.score)}"
    findings = findings_of(audit.table)
    parts = [f"# {_text(title)}"]
    parts += [_text(settings.text.note)] if settings.text.note else []
    parts += [_text(reading)] if (reading := reading_of(audit)) else []
    parts += [f"**{_text(verdict_of(audit).text)}**"]
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
    table = wide_table(audit, parts=VALUES)
    metrics = [name for name in _SEGMENT_METRICS if name in table.columns]
    cells = {_HEADINGS.get(name, name): partial(_with_limits, name) for name in metrics}
    return _table_of(table, audit, cells)


def _impact(audit: AuditTables) -> str:
    """Lay out the impact ratios, those of categories that are left out too."""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "Selected": _selected(audit),
        "Impact ratio": _ratio,
        "Below four fifths": _below,
        "Left out": lambda row: _text(LEFT_OUT.get(row["reason"], DASH)),
    }
    table = audit.table.filter(metric=IMPACT_RATIO)
    return "" if table.is_empty() else _table_of(table, audit, cells)


def _selected(audit: AuditTables) -> Callable[[dict[str, Any]], str]:
    """Write how many are selected, whether or not that is good."""
    rejected = audit.settings.favorable == "rejected"

    def cell(row: dict[str, Any]) -> str:
        shares = [row[f"value{end}"] for end in ("", "_low", "_high")]
        if rejected:
            value, low, high = (None if one is None else 1 - one for one in shares)
            shares = [value, high, low]
        return _number(shares[0], shares[1:], percent=True)

    return cell


def _ratio(row: dict[str, Any]) -> str:
    return _number(row["ratio"], [row["ratio_low"], row["ratio_high"]], percent=False)


def below_four_fifths(row: Mapping[str, Any]) -> str | None:
    """Say how sure it is that an impact ratio is below four fifths, or that it is not."""
    ratio, low, high = (row[f"ratio{end}"] for end in ("", "_low", "_high"))
    if ratio is None or row["reason"] == THE_REFERENCE:
        return None
    if high is not None and high < FOUR_FIFTHS:
        return "surely"
    if ratio < FOUR_FIFTHS - TOLERANCE:
        return "likely"
    return "surely not" if low is not None and low >= FOUR_FIFTHS else "likely not"


def _below(row: dict[str, Any]) -> str:
    return _text(below_four_fifths(row) or DASH)


def _with_limits(name: str, row: dict[str, Any]) -> str:
    ends = [row[f"{name}_low"], row[f"{name}_high"]]
    return _number(row[name], ends, percent=name in _PERCENT)


def _number(value: float | None, ends: Sequence[float | None], *, percent: bool) -> str:
    if value is None:
        return DASH
    factor, decimals, sign = (100, 0, "%") if percent else (1, 3, "")
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
    lines = [_row(headings), _row(["---" if name in texts else "---:" for name in headings])]
    for row in shown.iter_rows(named=True):
        keys = [_text(row["attribute"]), _text(name_of(row["segment"]))]
        keys += [_text(row[MODEL]) for _ in models]
        lines.append(_row([*keys, f"{row['n']:,}", *(cell(row) for cell in cells.values())]))
    more = table.height - shown.height
    return "\n".join(lines) + (f"\n\n{many(more, 'more segment')}: {NOT_HERE}." if more else "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _method(audit: AuditTables) -> str:
    settings = audit.settings
    compared = {reference_of(settings, attribute) for attribute in settings.attributes}
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
_MORE = ("n_pos", "tpr", "fpr", "ppv", "npv", "average_precision", "accuracy")


def in_text(audit: AuditTables, screen: Screen) -> str:
    """Write the verdict, a table of the segments, and the most serious findings."""
    said = [text for text in (reading_of(audit), verdict_of(audit).text) if text]
    parts = [*(textwrap.fill(text, screen.width) for text in said), _table(audit, screen)]
    how = [screen.more_findings] if screen.more_findings else []
    if listed := first_sentences(findings_of(audit.table), _SENTENCES, *how):
        parts.append("\n".join(_item(text, screen.width) for text in listed))
    remarks = [*unknown_remarks(audit), *number_remarks(audit.segments)]
    parts += [textwrap.fill(text, screen.width) for text in remarks]
    return "\n\n".join(parts)


def _item(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="* ", subsequent_indent="  ")


def _table(audit: AuditTables, screen: Screen) -> str:
    verdict = pl.col("verdict")
    said = (verdict == DIFFERENT) & pl.col("direction").is_in(["worse", "either"])
    of_segments = audit.table.filter(pl.col("attribute") != OVERALL)
    outcome = of_segments.group_by(ALL_KEYS).agg(
        pl.when(said.any())
        .then(pl.lit(DIFFERENT))
        .when((verdict == TOO_LITTLE).any())
        .then(pl.lit(TOO_LITTLE))
        .when((verdict == ALIKE).any())
        .then(pl.lit(ALIKE))
        .alias("gaps")
    )
    table = wide_table(audit, parts=VALUES).join(
        outcome, on=list(ALL_KEYS), how="left", nulls_equal=True, maintain_order="left"
    )
    table = without_model(table, audit.settings)
    keys = keys_of(table)
    table = table.with_columns(pl.col(key).fill_null(MISSING) for key in keys)
    short = table.select(
        *keys,
        "n",
        "gaps",
        "auc",
        limits_in_text(table, "auc_low", "auc_high").alias("interval"),
        *(pl.col(name).alias("selected") for name in ("selection_rate",) if name in table.columns),
        *(name for name in _MORE if name in table.columns),
    )
    return fitted_table(table, short, screen, keys, least=4)
