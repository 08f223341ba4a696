"""An audit as values for JSON: the tables, the findings and how they came about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.verdict import verdict_of
from polars_wroc.audits.words import reading_of
from polars_wroc.files import outputs
from polars_wroc.inputs.names import OVERALL

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
