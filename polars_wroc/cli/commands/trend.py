"""The command ``trend``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import COMPARISON_SCOPE
from polars_wroc.cli import sentences, values
from polars_wroc.cli.bundles import TableOptions
from polars_wroc.cli.options import (
    GROUPS,
    OUTPUT,
    Attributes,
    Conditions,
    FileNames,
    Selected,
    ThresholdOption,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.source import Source
from polars_wroc.documents.phrases import first_few, many
from polars_wroc.groups.categories import is_period
from polars_wroc.groups.comparisons import COMPARABLE, SHIFTS
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL
from polars_wroc.stats.families import DIFFERENT, INCONCLUSIVE

Over = Annotated[
    str,
    Parameter(
        metavar="COLUMN", help="Column of the time of a row: dates, times or numbers.", group=GROUPS
    ),
]
TrendMetric = Annotated[
    str | None,
    Parameter(
        help="Metric that is printed and drawn; default all, in charts auc.",
        choices=[*COMPARABLE, *SHIFTS],
        group=OUTPUT,
    ),
]
_OF_TREND = replace(
    COMPARISON_SCOPE,
    what="the trend",
    metrics=[*COMPARABLE, *SHIFTS],
    schema={"period": pl.String, **COMPARISON_SCOPE.schema, "critical": pl.Float64},
)


@with_arguments_of(wroc.trend, "every metrics margin min_rows adjust")
def trend(
    file: FileNames,
    /,
    *,
    over: Over,
    options: TableOptions = TableOptions(),
    attributes: Attributes = (),
    threshold: ThresholdOption = None,
    selected: Selected = None,
    metric: TrendMetric = None,
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Compare the metrics of each period with those of all earlier periods."""
    gates = conditions.read(_OF_TREND)
    options.output.check(TABLES_AND_CHARTS, file)
    source = Source(
        files=file,
        dialect=options.dialect,
        columns=options.rows,
        group_texts=attributes,
        selected=selected,
        over=over,
        design=options.uncertainty.design,
    )
    column, _, length = over.rpartition(":")
    if is_period(length) and over not in source.frame.collect_schema():
        msg = (
            f"--over must name a column; found {over!r}: give the length of periods as "
            f"--over {column} --every {length}"
        )
        raise ValueError(msg)
    source.require(*(("score",) if selected is None else ()))
    given |= {"threshold": threshold} | options.limits
    table = source.compute(wroc.trend, over=over, **given)
    source.check_selected(table["n"].sum())
    period, every = pl.col("period"), given["every"]
    if every is not None:
        period = values.name_periods(period, every)
    first = [*AUDIT_KEYS, MODEL, "metric"]
    named = table.select(*first, period.alias("period"), pl.exclude(*first, "period"))
    of_metric = named if metric is None else named.filter(metric=metric)
    keys = ["period", *sentences.list_keys(table), *(["metric"] if metric is None else [])]
    shown = Shown(f"metrics over {over}", of_metric, keys, _say_changes(of_metric, keys))
    metrics = table["metric"].unique(maintain_order=True).to_list()
    drawn = metric or ("auc" if "auc" in metrics else metrics[0])
    report = Report(
        source,
        table,
        [shown],
        lambda: [wroc.time_chart(table, metric=drawn)],
        numbers=named,
        row_keys=["period", *AUDIT_KEYS, MODEL],
    )
    judged = named.with_columns(pl.col("period").cast(pl.String))
    show_report(report, options.output, conditions.judge(gates, judged))


def _say_changes(table: pl.DataFrame, keys: list[str]) -> str:
    """Return which periods differ from all earlier periods."""
    compared = table.drop_nulls("verdict")
    if compared.is_empty():
        return "Nothing could be compared."
    found = compared.filter(verdict=DIFFERENT)
    unclear = compared.filter(verdict=INCONCLUSIVE).height
    rest = f" {many(unclear, 'comparison')} inconclusive." if unclear else ""
    if found.is_empty():
        return f"No period is shown to differ from those before it.{rest}"
    names = [sentences.name_place(row, keys) for row in found.iter_rows(named=True)]
    return f"Different from all periods before: {first_few(names, sentences.SEPARATOR)}.{rest}"
