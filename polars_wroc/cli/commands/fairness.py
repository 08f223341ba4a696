"""The command ``fairness``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.audits.gates import COMPARISON_SCOPE
from polars_wroc.audits.tables import name_of
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByAttributes
from polars_wroc.cli.options import Conditions, FileNames, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.documents.phrases import first_few, many
from polars_wroc.groups.comparisons import FAIRNESS
from polars_wroc.inputs.columns import AUDIT_KEYS


@with_arguments_of(wroc.fairness, "intersections min_rows")
def fairness(
    file: FileNames,
    /,
    *,
    options: ByAttributes,
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Measure how different the most different groups of each attribute are."""
    gates = conditions.read(replace(COMPARISON_SCOPE, what="the table", metrics=[*FAIRNESS]))
    if not options.decides:
        msg = "--threshold or --selected must be given"
        raise ValueError(msg)
    # Without a label there are the metrics of selection rates alone.
    source = options.read(file, *(("score",) if options.selected is None else ()))
    given |= {"threshold": options.threshold} | options.limits
    table = source.compute(wroc.fairness, **given)
    source.check_selected(table["n"].sum())
    heading = f"fairness metrics{sentences.name_groups(sentences.list_attributes(table))}"
    shown = Shown(heading, table, [AUDIT_KEYS[0], "metric"], _say_findings(table))
    first = table["metric"][0]
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table, metric=first)])
    show_report(report, options.output, conditions.judge(gates, table))


def _say_findings(table: pl.DataFrame) -> str:
    """Return which groups differ beyond chance; limits hold for all groups together."""
    found = table.filter((pl.col("gap_low") > 0) | (pl.col("ratio_high") < 1))
    compared = table.filter(pl.coalesce("gap_low", "ratio_high").is_not_null()).height
    if not compared:
        return "Nothing could be compared."
    if found.is_empty():
        return f"No groups are shown to differ ({many(compared, 'metric')})."
    names = [
        f"{FAIRNESS[row['metric']].label} by {row['attribute']} "
        f"({name_of(row['segment'])} and {row['reference']})"
        for row in found.iter_rows(named=True)
    ]
    where = first_few(names, sentences.SEPARATOR)
    return f"Shown to differ in {found.height} of {many(compared, 'metric')}: {where}."
