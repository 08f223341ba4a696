"""The command ``validate``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import find_table_scope
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import DECISIONS, Files
from polars_wroc.cli.output import TABLES
from polars_wroc.cli.report import Report, Shown

Probabilities = Annotated[
    list[float] | None,
    Parameter(
        name="--threshold",
        help="Threshold probability of a net benefit; repeatable.",
        group=DECISIONS,
    ),
]


def validate(
    file: Files, /, *, options: ByGroups = ByGroups(), thresholds: Probabilities = None
) -> None:
    """Measure discrimination, calibration, overall error and net benefit."""
    source = options.read(file, suffixes=(*TABLES, ".html"))
    given: dict[str, Any] = {} if thresholds is None else {"thresholds": thresholds}
    if source.counts is None:
        # The smooth curve needs an extra.
        given["smooth"] = find_spec("skmisc") is not None
    plan = source.plan(wroc.validate, **given, **options.limits)
    keys = sentences.list_before(plan.collect_schema(), "value")
    gates = options.read_conditions(find_table_scope(plan.collect_schema(), keys))
    (table,) = source.compute_all(plan)
    source.check_positives(found=bool(table["value"].count()))
    groups = sentences.list_before(table.schema, "measure")
    shown = Shown(f"validation{sentences.name_groups(groups)}", table, keys)
    options.show(Report(source, table, [shown]), gates)
