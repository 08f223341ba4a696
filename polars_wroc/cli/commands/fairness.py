"""The command ``fairness``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.audits.gates import OF_COMPARISONS, judged
from polars_wroc.audits.tables import name_of
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli.options import (
    Attributes,
    Conditions,
    Files,
    Rows,
    Selected,
    Threshold,
    Uncertainty,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import SEPARATOR, attributes_of, name_groups
from polars_wroc.cli.source import Source
from polars_wroc.groups import fairness as groups
from polars_wroc.groups.comparisons import FAIRNESS
from polars_wroc.inputs.columns import AUDIT_KEYS


@with_arguments_of(groups.fairness, "intersections min_rows")
def fairness(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    attributes: Attributes,
    threshold: Threshold = None,
    selected: Selected = None,
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Measure how different the most different groups of each attribute are."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    gates = conditions.read(replace(OF_COMPARISONS, what="the table", metrics=[*FAIRNESS]))
    source = Source(files=file, columns=rows, group_texts=attributes, selected=selected)
    if threshold is None and selected is None:
        msg = "--threshold or --selected must be given"
        raise ValueError(msg)
    # Without a label there are the metrics of selection rates alone.
    source.require(*(("score",) if selected is None else ()))
    given |= {} if rows.label is not None or source.counts is not None else {"label": None}
    table = source.compute(groups.fairness, threshold=threshold, **given, **uncertainty.arguments)
    source.check_selected(table["n"].sum())
    heading = f"fairness metrics{name_groups(attributes_of(table))}"
    shown = Shown(heading, table, [AUDIT_KEYS[0], "metric"], _say_findings(table))
    first = table["metric"][0]
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table, metric=first)])
    show_report(report, output, targets, judged(gates, table), strict=conditions.fail_unjudged)


def _say_findings(table: pl.DataFrame) -> str:
    """Say which groups differ beyond chance; the limits hold for all groups together."""
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
    return f"Shown to differ in {found.height} of {many(compared, 'metric')}: " + (
        f"{first_few(names, SEPARATOR)}."
    )
