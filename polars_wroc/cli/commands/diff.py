"""The command ``diff``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits import change_pages
from polars_wroc.audits.audit_changes import (
    audit_changes,
    changes_between,
    read_audit,
)
from polars_wroc.audits.change_sentences import write_changes
from polars_wroc.audits.gates import CHANGE_SCOPE
from polars_wroc.audits.page import write_document
from polars_wroc.cli.options import INPUT, OUTPUT, Conditions, FirstRun, with_arguments_of
from polars_wroc.cli.output import TABLES_AND_CHARTS, TableOutput
from polars_wroc.cli.report import Report, Shown, run_of, show_report
from polars_wroc.cli.source import Audits, is_first_run
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import CHANGED_METRICS
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL


def _audit(name: str) -> Parameter:
    return Parameter(
        name=name.upper(),
        help=f"The audit {name}, as JSON: what audit -o x.json writes.",
        group=INPUT,
    )


@with_arguments_of(audit_changes, "adjust different_rows different_settings")
def diff(
    before: Annotated[str, _audit("before")],
    after: Annotated[str, _audit("after")],
    /,
    *,
    first_run_ok: FirstRun = False,
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    metric: Annotated[
        str | None,
        Parameter(
            help="Metric in the chart; default the one that changed most significantly.",
            choices=[*CHANGED_METRICS],
            group=OUTPUT,
        ),
    ] = None,
    show: Annotated[
        Literal["value", "gap"] | None,
        Parameter(
            help="The changes (gap), or the values after, in the chart; default gap for metrics "
            "such as tpr_gap, value for the others.",
            group=OUTPUT,
        ),
    ] = None,
    **given: Any,
) -> None:
    """Print or write the changes, or draw those of a metric; raise if a condition holds."""
    output.check(TABLES_AND_CHARTS, [before, after])
    has_chart = any(target.suffix in outputs.CHART_SUFFIXES for target in output.targets)
    for flag, value in (("--metric", metric), ("--show", show)):
        if value is not None and not has_chart:
            msg = f"{flag} applies to a chart: -o FILE with one of .html, .png, .svg"
            raise ValueError(msg)
    gates = conditions.read(CHANGE_SCOPE)
    if first_run_ok and is_first_run(before, after, partial(read_audit, "after")):
        return
    changes = changes_between(before, after, **given)
    source = Audits(files=[before, after])
    names = Path(before).name, Path(after).name
    title = change_pages.title_changes(names)

    def draw() -> list[Any]:
        drawn = changes.most_changed(metric)[0]
        of_metric = show or change_pages.choose_shown(drawn)
        return [wroc.gap_chart(changes.table, metric=drawn, show=of_metric)]

    def write_page(suffix: str) -> str:
        charts = change_pages.draw_changes(changes, metric, show) if suffix == ".html" else []
        document = change_pages.lay_out_changes(changes, names, run_of(source), charts)
        return write_document(document, title, suffix)

    shown = Shown(title, changes.table, verdict=" ".join(write_changes(changes)))
    report = Report(
        source,
        changes.table,
        [shown],
        draw,
        write_page=write_page,
        write_blocks=partial(change_pages.lay_out_notable_changes, changes),
        # The gap of auc is how much it changed, and auc_gap a metric of its own.
        numbers=changes.table.rename(lambda name: re.sub("^gap", "change", name)),
        row_keys=[*AUDIT_KEYS, MODEL],
    )
    show_report(report, output, conditions.judge(gates, changes.table))
