"""The charts of the tables that commands write."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from polars_wroc.files import outputs


class ChartKind(NamedTuple):
    """A function of `polars_wroc.charts`, and the arguments of it that the command knows."""

    function: str
    arguments: tuple[str, ...] = ()


# Suffixes of files that tables of these kinds are written to, as tables or charts.
TABLE_OR_CHART = (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES)
# The charts of kinds of tables.
_CHARTS = {
    "auc": ChartKind("auc_chart", ("level",)),
    "gaps": ChartKind("gap_chart", ("metric", "level")),
    "compare": ChartKind("gap_chart", ("level",)),
    "impact": ChartKind("fairness_chart", ("level",)),
    "diff": ChartKind("change_chart", ("metric", "measure", "level")),
    "roc": ChartKind("roc_chart", ("facet", "summary", "level")),
    "pr": ChartKind("pr_chart", ("facet",)),
    "det": ChartKind("det_chart", ("facet",)),
    "gain": ChartKind("gain_chart", ("facet",)),
    "decision": ChartKind("decision_chart", ("facet", "level")),
    "calibration": ChartKind("calibration_chart", ("facet", "level")),
    "cost": ChartKind("cost_chart", ("facet", "cost_fn", "cost_fp", "prevalence")),
    "thresholds": ChartKind("threshold_chart", ("facet", "threshold")),
}


def draw(kind: str, table: pl.DataFrame, path: str, **known: Any) -> None:
    """Write the chart of a table to a file, with what is ``known`` of the function's arguments."""
    # Only a chart should cost the import of Altair.
    from polars_wroc import charts  # noqa: PLC0415

    function, names = _CHARTS[kind]
    given = {name: known[name] for name in names if known.get(name) is not None}
    charts.save_chart(getattr(charts, function)(table, **given), path)
