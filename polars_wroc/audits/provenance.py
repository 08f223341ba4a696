"""The origin of a result: date, version, files and command."""

from __future__ import annotations

from collections.abc import Iterator

from polars_wroc.audits.tables import AuditedFile, Run
from polars_wroc.documents.blocks import Block, TextBlock
from polars_wroc.documents.phrases import many

# Printed above the line for a signature.
SIGNATURE = "Reviewed by, date and signature:"


def write_foot(run: Run, caution: str = "", signature: str = SIGNATURE) -> Iterator[Block]:
    """Yield the end of a document: a caution beside the date, and room for a signature."""
    made = f"Made {run.date.day} {run.date:%B %Y} with {_name_versions(run)}."
    yield TextBlock(f"{made} {caution}".strip(), style="foot")
    if run.files:
        files = "; ".join(map(_describe_file, run.reported_files))
        yield TextBlock(f"Data: {files}.", style="foot")
    if run.command:
        yield TextBlock(f"Command: {run.command}", style="foot command")
    yield TextBlock(signature, style="sign")


def list_provenance(run: Run) -> list[tuple[str, object]]:
    """Return the same facts by name, for a workbook."""
    facts: list[tuple[str, object]] = [("Date (UTC)", run.date), ("Made with", _name_versions(run))]
    for file in run.reported_files:
        facts += [("File", file.name), ("Rows", file.rows), ("SHA-256", file.sha256)]
    facts.append(("Command", run.command))
    return [(name, value) for name, value in facts if value is not None]


def _name_versions(run: Run) -> str:
    return f"polars-wroc {run.versions['polars-wroc']} and Polars {run.versions['polars']}"


def _describe_file(file: AuditedFile) -> str:
    """Return a file with its rows and the hash of its content, as text."""
    parts = [file.name]
    if file.rows is not None:
        parts.append(many(file.rows, "row"))
    if file.sha256 is not None:
        parts.append(f"SHA-256 {file.sha256}")
    return ", ".join(parts)
