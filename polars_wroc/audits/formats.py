"""An audit as values for JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.answer import count_verdicts
from polars_wroc.audits.cautions import write_cautions
from polars_wroc.audits.findings import findings_of
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.words import Words
from polars_wroc.files import outputs
from polars_wroc.inputs.columns import OVERALL

SCHEMA, SCHEMA_VERSION = "polars-wroc/audit", "2.1"


def json_of(audit: AuditTables, *, reading: str, verdict: str) -> dict[str, Any]:
    """Return the audit as dictionaries and lists, with both texts; None is undefined."""
    settings = audit.settings
    overall = audit.segments.filter(attribute=OVERALL)
    used, missing = overall.select("n", "n_missing").row(0)
    run = replace(audit.run, files=audit.run.reported_files).as_dict() | {
        "rows_read": used + missing,
        "rows_used": used,
        "exclusions": outputs.rows_in_json(audit.missing),
    }
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "reading": reading,
        "verdict": {"text": verdict, "counts": count_verdicts(findings_of(audit.table))},
        "settings": {name: outputs.in_json(value) for name, value in settings.as_dict().items()},
        "run": run,
        "remarks": write_cautions(audit, Words.of(settings)),
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
