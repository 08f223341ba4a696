"""The command ``validate``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import find_table_scope
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import DECISIONS, Conditions, FileNames
from polars_wroc.cli.output import TABLES
from polars_wroc.cli.report import Report, Shown, show_report

Probabilities = Annotated[
    list[float] | None,
    Parameter(
        name="--threshold",
        help="Threshold probability of a net benefit; repeatable.",
        group=DECISIONS,
    ),
]


def validate(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    thresholds: Probabilities = None,
    conditions: Conditions = Conditions(),
) -> None:
    """Measure discrimination, calibration, overall error and net benefit."""
    source = options.read(file, suffixes=(*TABLES, ".html"))
    given: dict[str, Any] = {} if thresholds is None else {"thresholds": thresholds}
    if source.counts is None:
        # The smooth curve needs an extra.
        given["smooth"] = find_spec("skmisc") is not None
    plan = source.plan(wroc.validate, **given, **options.limits)
    keys = sentences.list_before(plan.collect_schema(), "value")
    gates = conditions.read(find_table_scope(plan.collect_schema(), keys))
    (table,) = source.compute_all(plan)
    source.check_positives(found=bool(table["value"].count()))
    groups = sentences.list_before(table.schema, "measure")
    shown = Shown(f"validation{sentences.name_groups(groups)}", table, keys)
    show_report(Report(source, table, [shown]), options.output, conditions.judge(gates, table))
