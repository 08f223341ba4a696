"""The command ``size``."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from polars_wroc.audits.audit_changes import read_audit
from polars_wroc.cli.options import INPUT, with_arguments_of
from polars_wroc.cli.output import TABLES, TableOutput
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.sentences import list_keys
from polars_wroc.cli.source import Audits, Files
from polars_wroc.files.scan import scan_files
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.groups.rows_needed import rows_needed

SizedFile = Annotated[
    str | None,
    Parameter(
        name="FILE",
        help="The JSON of an audit, or a table of gaps or of a release; without it there is one "
        "row from assumptions.",
        group=INPUT,
    ),
]


@with_arguments_of(
    rows_needed,
    "metric value prevalence share ratio half_width gap equivalent_within no_worse_by changed"
    " power level tests deff",
    metric="The AUC, a rate such as tpr, or oe_ratio; of a table all by default.",
    value="The expected value, in a comparison that of the reference.",
    prevalence="The share of positives.",
    share="The segment's share of all rows.",
    ratio="Rows of the reference for each of the segment.",
    changed="Share of rows whose decision changes, with --no-worse-by.",
    level="Confidence level; an audit has its own.",
    tests="Number of tests that share the error; by default as in the table.",
)
def size(file: SizedFile = None, /, *, output: TableOutput = TableOutput(), **given: Any) -> None:
    """Count the rows that a target needs, from assumptions or a table."""
    files = [] if file is None else [file]
    output.check(TABLES, files)
    table: pl.DataFrame | pl.LazyFrame | None = None
    if file is not None and file.endswith(".json"):
        saved = read_audit("FILE", file)
        table, given["level"] = saved.table, saved.settings.level
    elif file is not None:
        read = scan_files(files)
        types = {name: COMPARISON_SCHEMA.get(name) for name in read.collect_schema()}
        # Text files do not know the types of empty columns.
        table = read.cast({name: dtype for name, dtype in types.items() if dtype}, strict=False)
    needed = rows_needed(table, **given)
    # Without a table there is one row, which has no name.
    keys = [] if file is None else list_keys(needed)
    heading = f"rows needed for {needed['target'][0]} {needed['goal'][0]:g}"
    # The goal is in the heading, and was asked for.
    shown = Shown(heading, needed, keys, short=needed.drop("target", "goal"))
    source = Audits(files=files) if file is None or file.endswith(".json") else Files(files=files)
    show_report(Report(source, needed, [shown]), output)
