"""The command ``validate``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

from cyclopts import Parameter

from polars_wroc.audits.gates import judged, of_table
from polars_wroc.cli.options import (
    DECISIONS,
    By,
    Conditions,
    Files,
    Rows,
    Uncertainty,
)
from polars_wroc.cli.output import TABLES, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import columns_before, name_groups
from polars_wroc.cli.source import Source
from polars_wroc.curves import validation

Probabilities = Annotated[
    list[float] | None,
    Parameter(
        name="--threshold",
        help="Threshold probability of a net benefit; repeatable.",
        group=DECISIONS,
    ),
]


def validate(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    by: By = None,
    thresholds: Probabilities = None,
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
) -> None:
    """Measure discrimination, calibration, overall error and net benefit."""
    targets = output.find_targets((*TABLES, ".html"), file)
    source = Source(files=file, columns=rows, group_texts=by or (), flag="--by")
    source.require("label", "score")
    given: dict[str, Any] = {} if thresholds is None else {"thresholds": thresholds}
    # The smooth curve needs an extra.
    smooth = source.counts is None and find_spec("skmisc") is not None
    plan = source.plan(validation.validate, smooth=smooth, **given, **uncertainty.arguments)
    keys = [*columns_before(plan.collect_schema().names(), "value")]
    gates = conditions.read(of_table(plan.collect_schema(), keys))
    (table,) = source.compute_all(plan)
    source.check_positives(found=bool(table["value"].count()))
    groups = columns_before(table.columns, "measure")
    shown = Shown(f"validation{name_groups(groups)}", table, keys)
    report = Report(source, table, [shown])
    show_report(report, output, targets, judged(gates, table), strict=conditions.fail_unjudged)
