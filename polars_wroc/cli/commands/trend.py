"""The command ``trend``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import OF_COMPARISONS, judged
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli.options import (
    GROUPS,
    OUTPUT,
    Conditions,
    Files,
    Groups,
    Rows,
    Selected,
    Threshold,
    Uncertainty,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import SEPARATOR, keys_of_rows, name_place
from polars_wroc.cli.source import Source
from polars_wroc.groups import trend as groups
from polars_wroc.groups.comparisons import COMPARABLE, SHIFTS
from polars_wroc.stats.families import DIFFERENT, INCONCLUSIVE

Over = Annotated[
    str, Parameter(help="Column of the time of a row: dates, times or numbers.", group=GROUPS)
]
Metric = Annotated[
    str | None,
    Parameter(help="Metric that is printed and drawn; default all, in charts auc.", group=OUTPUT),
]


@with_arguments_of(groups.trend, "every metrics margin min_rows adjust")
def trend(
    file: Files,
    /,
    *,
    over: Over,
    rows: Rows = Rows(),
    attributes: Groups = (),
    threshold: Threshold = None,
    selected: Selected = None,
    metric: Metric = None,
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Compare the metrics of each period with those of all earlier periods."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    of = replace(
        OF_COMPARISONS,
        what="the trend",
        metrics=[*COMPARABLE, *SHIFTS],
        schema={"period": pl.String} | OF_COMPARISONS.schema,
    )
    gates = conditions.read(of)
    source = Source(files=file, columns=rows, group_texts=attributes, selected=selected, over=over)
    if source.counts is None and not (rows.score or selected):
        msg = "--score or --selected must be given"
        raise ValueError(msg)
    given |= {} if rows.label is not None or source.counts is not None else {"label": None}
    given["over"] = source.read_period(over, given.get("every"))
    table = source.compute(groups.trend, threshold=threshold, **given, **uncertainty.arguments)
    source.check_selected(table["n"].sum())
    of_metric = table if metric is None else table.filter(metric=metric)
    keys = ["period", *keys_of_rows(table), *(["metric"] if metric is None else [])]
    shown = Shown(f"metrics over {over}", of_metric, keys, _say_changes(of_metric, keys))
    metrics = table["metric"].unique(maintain_order=True).to_list()
    drawn = metric or ("auc" if "auc" in metrics else metrics[0])
    report = Report(source, table, [shown], lambda: [wroc.time_chart(table, metric=drawn)])
    judgement = judged(gates, table.with_columns(pl.col("period").cast(pl.String)))
    show_report(report, output, targets, judgement, strict=conditions.fail_unjudged)


def _say_changes(table: pl.DataFrame, keys: list[str]) -> str:
    """Say which periods differ from all before them."""
    compared = table.drop_nulls("verdict")
    if compared.is_empty():
        return "Nothing could be compared."
    found = compared.filter(verdict=DIFFERENT)
    unclear = compared.filter(verdict=INCONCLUSIVE).height
    rest = f" {many(unclear, 'comparison')} inconclusive." if unclear else ""
    if found.is_empty():
        return f"No period is shown to differ from those before it.{rest}"
    names = [name_place(row, keys) for row in found.iter_rows(named=True)]
    return f"Different from all periods before: {first_few(names, SEPARATOR)}.{rest}"
