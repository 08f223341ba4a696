"""The command ``auc``."""

from __future__ import annotations

from typing import Any

import polars_wroc as wroc
from polars_wroc.audits.gates import find_table_scope
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import Approximate, Conditions, FileNames, Resources, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report


@with_arguments_of(wroc.summary, "diagnostics")
def auc(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    approximate: Approximate = None,
    resources: Resources = Resources(),
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Print or write the summary of each group."""
    source = options.read(file, approximate=approximate)
    with resources.in_use(), source.at_work():
        plan = source.plan(wroc.summary, **given, **options.limits)
        keys = sentences.list_before(plan.collect_schema(), "auc")
        gates = conditions.read(find_table_scope(plan.collect_schema(), keys))
        table = plan.collect()
    source.check_positives(found=bool(table["n_pos"].sum()))
    verdict = sentences.say_backwards(table, keys)
    shown = Shown(f"AUCs{sentences.name_groups(keys)}", table, keys, verdict or None)
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table, show="value")])
    show_report(report, options.output, conditions.judge(gates, table))
