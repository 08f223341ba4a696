"""An audit as text that fits a terminal: the verdict, the segments and the first findings."""

from __future__ import annotations

import textwrap

import polars as pl

from polars_wroc.audits.findings import first_sentences
from polars_wroc.audits.phrases import many
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.text_table import limits_in_text, text_table
from polars_wroc.audits.verdict import verdict_of
from polars_wroc.inputs.names import MISSING

# Most segments, and most sentences.
_SEGMENTS, _SENTENCES = 20, 8


def in_text(audit: AuditTables, findings: pl.DataFrame, width: int) -> str:
    """Write the verdict, a table of the segments, and the most serious findings."""
    verdict = verdict_of(findings, audit.parameters)
    parts = [textwrap.fill(verdict.text, width), _table(audit, findings, width)]
    if listed := first_sentences(findings, _SENTENCES):
        parts.append("\n".join(_item(text, width) for text in listed))
    return "\n\n".join(parts)


def _item(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="* ", subsequent_indent="  ")


def _table(audit: AuditTables, findings: pl.DataFrame, width: int) -> str:
    keys = segment_keys(findings)
    said = pl.col("side").filter(pl.col("verdict") == "different").is_in(["worse", "either"])
    outcome = findings.group_by(keys).agg(
        pl.when(said.any())
        .then(pl.lit("different"))
        .when((pl.col("verdict") == "too little data").any())
        .then(pl.lit("too little data"))
        .when((pl.col("verdict") == "alike").any())
        .then(pl.lit("alike"))
        .alias("verdict")
    )
    table = audit.segments.join(outcome, on=keys, how="left", nulls_equal=True)
    listed = table.head(_SEGMENTS)
    shown = listed.select(
        *(pl.col(key).fill_null(MISSING) for key in keys),
        "n",
        "auc",
        limits_in_text(listed, "ci_low", "ci_high").alias("interval"),
        "verdict",
    )
    text = text_table(shown, width, keys)
    more = table.height - shown.height
    return f"{text}\n{many(more, 'more segment')}" if more else text
