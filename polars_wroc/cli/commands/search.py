"""The command ``search``."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.words import many, verb
from polars_wroc.cli.options import (
    TESTS,
    Attributes,
    Files,
    Rows,
    Selected,
    Threshold,
    Uncertainty,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.source import Source, require_favorable
from polars_wroc.documents.numbers import write_number
from polars_wroc.groups.worst_segments import SEARCHED, worst_segments
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.reasons import NO_VARIANCE

Metric = Annotated[
    str,
    Parameter(
        help="Metric that is compared; rates need decisions, the others probabilities.",
        choices=[*SEARCHED],
        group=TESTS,
    ),
]


@with_arguments_of(worst_segments, "favorable depth min_rows top redundant")
def search(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    attributes: Attributes,
    threshold: Threshold = None,
    selected: Selected = None,
    metric: Metric = "tpr",
    uncertainty: Uncertainty = Uncertainty(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Search for the segments that are significantly worse."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    require_favorable(given["favorable"], threshold=threshold, selected=selected)
    source = Source(files=file, columns=rows, group_texts=attributes, selected=selected)
    given |= {"threshold": threshold, "metric": metric} | uncertainty.arguments
    table = source.compute(worst_segments, **given)
    if rows.label is not None and selected is None:
        source.check_positives(found=metric == "tpr" and table["n"][0] > 0)
    source.check_selected(table["value"][0])
    found = table.filter(pl.col("depth") > 0)
    heading = f"worst segments in {SEARCHED[metric].label}"
    shown = Shown(heading, found, [*AUDIT_KEYS], _say_how_many(table, found, metric))
    report = Report(
        source,
        table,
        [shown],
        lambda: [wroc.gap_chart(table, metric=metric)] if found.height else [],
    )
    show_report(report, output, targets)


def _say_how_many(table: pl.DataFrame, found: pl.DataFrame, metric: str) -> str:
    """Say how many segments were examined, and how many are significantly worse."""
    overall = table.row(0, named=True)
    if overall["reason"] == NO_VARIANCE:
        value = write_number(overall["value"], "g")
        return f"The {metric} of all rows is {value}: nothing can be compared."
    if not overall["n_examined"]:
        return (
            "Exploration: no segment was examined, since none has enough rows: lower --min-rows, "
            "or cut numbers into ranges such as age:30,45."
        )
    n_worse = overall["n_worse"]
    verdict = (
        f"Exploration: of {many(overall['n_examined'], 'segment')} "
        f"{f'{n_worse:,}' if n_worse else 'none'} {verb(max(n_worse, 1), 'is', 'are')} "
        "significantly worse"
    )
    if found.height < n_worse:
        verdict += f"; {found.height:,} of them {verb(found.height, 'is', 'are')} shown"
    return f"{verdict}."
