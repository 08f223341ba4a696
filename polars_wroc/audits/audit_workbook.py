"""An audit as a workbook: its findings and settings, and a sheet for each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from polars_wroc.audits.cautions import write_cautions
from polars_wroc.audits.context import write_deck, write_title
from polars_wroc.audits.provenance import list_provenance
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.toned_audit import TonedAudit
from polars_wroc.documents.table_layout import write_value
from polars_wroc.documents.workbook import write_workbook

_SHEETS = {
    "table": "a row per group, score and metric: value, comparison, limits and verdict",
    "segments": "a row per group: its rows, threshold and confusion matrix",
    "curves": "the ROC curves of the groups",
    "distributions": "the distribution of the scores of each group",
    "missing": "rows without a label, score, weight or attribute",
}
# Facts of an audit besides its arguments.
_NO_SETTINGS = ("labeled", "polars_wroc")


def save_audit_workbook(audit: AuditTables, verdict: str, path: str | Path) -> None:
    """Write the nonempty tables of an audit, after a sheet that describes them."""
    tables = {name: getattr(audit, name) for name in _SHEETS}
    sheets = {name: table for name, table in tables.items() if table.height}
    toned = TonedAudit.read(audit)
    facts: list[tuple[str, object]] = [
        ("Audited", write_deck(toned)),
        ("Answer", verdict),
        *(("Pipeline check", gate.sentence) for gate in audit.gates if gate.sentence),
        *(("Limit", text) for text in write_cautions(audit, toned.words)),
        *list_provenance(audit.run),
        *((f"Sheet {name}", _SHEETS[name]) for name in sheets),
        *_list_settings(audit),
    ]
    write_workbook(write_title(audit.settings), facts, sheets, path, audit.run.date)


def _list_settings(audit: AuditTables) -> Iterator[tuple[str, object]]:
    """Return the arguments of the audit that were given or have a default."""
    for name, value in audit.settings.as_dict().items():
        if value is None or value == [] or name in _NO_SETTINGS:
            continue
        heading = f"Setting: {name}"
        if isinstance(value, Mapping):
            given = [f"{key}: {write_value(one)}" for key, one in value.items() if one is not None]
            if given:
                yield heading, "; ".join(given)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield heading, value
        else:
            yield heading, write_value(value)
