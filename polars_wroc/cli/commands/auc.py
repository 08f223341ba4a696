"""The command ``auc``."""

from __future__ import annotations

from typing import Any

import polars_wroc as wroc
from polars_wroc.audits.gates import judged, of_table
from polars_wroc.cli.options import (
    Approximate,
    By,
    Conditions,
    Files,
    Rows,
    Uncertainty,
    Workers,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import columns_before, name_groups, say_backwards
from polars_wroc.cli.source import Source
from polars_wroc.metrics.summary import summary


@with_arguments_of(summary, "diagnostics")
def auc(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    by: By = None,
    approximate: Approximate = None,
    workers: Workers = Workers(),
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Print or write the summary of each group."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    source = Source(
        files=file, columns=rows, group_texts=by or (), flag="--by", approximate=approximate
    )
    source.require("label", "score")
    with workers.at_work():
        plan = source.plan(summary, **given, **uncertainty.arguments)
        keys = columns_before(plan.collect_schema().names(), "auc")
        gates = conditions.read(of_table(plan.collect_schema(), keys))
        with source.progress:
            table = plan.collect()
    source.check_positives(found=bool(table["n_pos"].sum()))
    shown = Shown(f"AUCs{name_groups(keys)}", table, keys, say_backwards(table, keys) or None)
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table, show="value")])
    show_report(report, output, targets, judged(gates, table), strict=conditions.fail_unjudged)
