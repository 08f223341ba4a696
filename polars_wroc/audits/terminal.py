"""An audit as text that fits a terminal: the verdict, the segments and the first findings."""

from __future__ import annotations

import textwrap

import polars as pl

from polars_wroc.audits.findings import first_sentences
from polars_wroc.audits.fitted_table import Screen, fitted_table
from polars_wroc.audits.not_audited import unknown_remarks
from polars_wroc.audits.remarks import number_remarks
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.text_table import limits_in_text
from polars_wroc.audits.verdict import verdict_of
from polars_wroc.audits.words import reading_of
from polars_wroc.inputs.names import MISSING, OVERALL

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
