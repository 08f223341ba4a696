"""The audit: every segment of every attribute, beside everybody, in one result."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc import files
from polars_wroc.cells import METRIC_COLUMNS, ThresholdMetrics
from polars_wroc.curves import AUC_CHANGE, BAND_COLUMNS, ROC_COLUMNS, trace
from polars_wroc.inference import Interval, Method
from polars_wroc.inputs import IntoColumn
from polars_wroc.reading import read_rows
from polars_wroc.rows import OVERALL, IntoColumns, Rows, collect_all
from polars_wroc.rules import Criterion, Rule, threshold_or_rule
from polars_wroc.staged import in_columns
from polars_wroc.summary import SUMMARY_COLUMNS, summarise
from polars_wroc.threshold_search import cells_at, common_threshold
from polars_wroc.variance import WeightType

if TYPE_CHECKING:
    import altair as alt

SUFFIXES = (".html", ".json", ".parquet", ".csv")
_CURVE_POINTS = 200
_TAKEN = (
    OVERALL,
    "attribute",
    "segment",
    *SUMMARY_COLUMNS,
    *METRIC_COLUMNS,
    *ROC_COLUMNS,
    *BAND_COLUMNS,
    AUC_CHANGE,
)


@dataclass(frozen=True, repr=False, eq=False)
class Audit:
    """What `audit` found.

    Attributes
    ----------
    segments
        One row per attribute and segment (and model), everybody first: ``attribute,
        segment`` and the columns of `summary`; with a threshold also those of
        `threshold_metrics` there, with intervals.
    curves
        The ROC curve of each of them, thinned to at most 200 points, with ``auc_change``.
    settings
        What was asked for.
    """

    segments: pl.DataFrame
    curves: pl.DataFrame
    settings: dict[str, Any]

    def __repr__(self) -> str:
        return f"Audit of {self.settings['score']} by {self.settings['by']}\n{self.segments}"

    def _repr_html_(self) -> str:
        return self.segments._repr_html_()

    def chart(self, attribute: str | None = None) -> alt.LayerChart | alt.FacetChart:
        """Draw the ROC curves of one attribute's segments; None draws everybody's."""
        # Only a chart should cost the import of Altair.
        from polars_wroc.charts import segments_chart  # noqa: PLC0415

        if attribute is not None and attribute not in self.settings["by"]:
            msg = f"`attribute` must be one of {self.settings['by']}; found {attribute!r}"
            raise ValueError(msg)
        return segments_chart(self.curves, self.segments, attribute or OVERALL)

    def save(self, path: str | Path) -> None:
        """Write the audit as its suffix says.

        ``.html`` is one file that opens without a network, with tables and charts;
        ``.json`` holds the settings and the segments; ``.parquet`` and ``.csv`` the segments.
        The file is written whole or not at all.
        """
        suffix = files.check_target(path, SUFFIXES)
        if suffix == ".html":
            from polars_wroc.report import render  # noqa: PLC0415

            page = render(self.segments, self.curves, self.settings)
            files.write(path, lambda part: part.write_text(page, encoding="utf-8"))
        elif suffix == ".json":
            text = self.to_json()
            files.write(path, lambda part: part.write_text(text, encoding="utf-8"))
        else:
            files.save_table(self.segments, path)

    def to_json(self) -> str:
        """Settings and segments as JSON; a threshold that selects nobody is ``"Infinity"``."""
        segments = [
            {name: _in_json(value) for name, value in row.items()}
            for row in self.segments.iter_rows(named=True)
        ]
        settings = {name: _in_json(value) for name, value in self.settings.items()}
        result = {"settings": settings, "segments": segments}
        return json.dumps(result, indent=2, allow_nan=False, default=str) + "\n"


def audit(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    threshold: float | None = None,
    criterion: Criterion | None = None,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    max_selection_rate: float | None = None,
    level: float = 0.95,
    method: Method = "logit-t",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
) -> Audit:
    """Measure a score for everybody and for each segment of each attribute.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a lazy one is collected.
    label, score, weight, pos_label, level, method, weight_type, cluster
        As for `summary`.
    by
        The attributes: one or several columns or expressions. Each is audited by itself; a
        null is a segment of its own.
    threshold
        Where to measure decisions: rows that score at least so much are predicted positive.
    criterion, cost_fn, cost_fp, prevalence, max_fpr, min_tpr, max_selection_rate
        Instead of a threshold, the rule that chooses one for each score on all rows, and the
        population that the metrics are for: see `operating_point`.

    Returns
    -------
    Audit
        The tables, a chart and ``save``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> wroc.audit(df, "y", "s", by="sex").segments.select("attribute", "segment", "n", "auc")
    shape: (3, 4)
    ┌───────────┬─────────┬─────┬──────┐
    │ attribute ┆ segment ┆ n   ┆ auc  │
    │ ---       ┆ ---     ┆ --- ┆ ---  │
    │ str       ┆ str     ┆ i64 ┆ f64  │
    ╞═══════════╪═════════╪═════╪══════╡
    │ overall   ┆ overall ┆ 4   ┆ 0.75 │
    │ sex       ┆ f       ┆ 2   ┆ 1.0  │
    │ sex       ┆ m       ┆ 2   ┆ 1.0  │
    └───────────┴─────────┴─────┴──────┘
    """
    rule = {
        "criterion": criterion,
        "cost_fn": cost_fn,
        "cost_fp": cost_fp,
        "prevalence": prevalence,
        "max_fpr": max_fpr,
        "min_tpr": min_tpr,
        "max_selection_rate": max_selection_rate,
    }
    rule = {name: value for name, value in rule.items() if value is not None}
    choice = threshold_or_rule(threshold, **rule)
    interval = Interval(level, method, weight_type, clustered=cluster is not None)
    metrics = ThresholdMetrics(level, weight_type, prevalence)
    rows = read_rows(
        frame, label, score, weight, by, pos_label, result_columns=_TAKEN, cluster=cluster
    )
    stacked = rows.stack_keys()
    plans = [
        summarise(stacked, interval),
        trace(stacked, max_points=_CURVE_POINTS),
        *_values(rows),
    ]
    if choice is not None:
        plans.append(_at_threshold(rows, stacked, choice, metrics))
    segments, curves, *values = collect_all(plans)
    if choice is not None:
        segments = segments.join(values.pop(), on=stacked.keys, how="left", nulls_equal=True)
    places = pl.concat(values).with_row_index("place")
    segments, curves = _in_place(segments, places), _in_place(curves, places)
    if segments.is_empty():
        msg = "`frame` must have rows to audit; found none"
        raise ValueError(msg)
    settings = {
        "label": _shown(label),
        "pos_label": pos_label,
        "score": _listed(score),
        "weight": None if weight is None else _shown(weight),
        "by": [key for key in rows.keys if key not in rows.ordered],
        "threshold": threshold,
        "rule": rule or None,
        "cluster": None if cluster is None else _shown(cluster),
        "level": level,
        "polars_wroc": version("polars-wroc"),
    }
    return Audit(segments, curves, settings)


def _at_threshold(
    rows: Rows, stacked: Rows, choice: float | Rule, metrics: ThresholdMetrics
) -> pl.LazyFrame:
    """Measure every segment at the one threshold of its model."""
    cells = cells_at(stacked, common_threshold(rows, choice))
    table = in_columns(cells, metrics.steps).select(*stacked.keys, *metrics.columns)
    return stacked.arrange(table)


def _values(rows: Rows) -> list[pl.LazyFrame]:
    """List the segments of each attribute in the order of their values, not of their names."""
    attributes = [key for key in rows.keys if key not in rows.ordered]
    overall = pl.LazyFrame({"attribute": [OVERALL], "segment": [OVERALL]})
    return [
        overall,
        *(
            rows.frame.select(key)
            .unique()
            .sort(key)
            .select(attribute=pl.lit(key), segment=pl.col(key).cast(pl.String))
            for key in attributes
        ),
    ]


def _in_place(table: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    keys = ["attribute", "segment"]
    placed = table.join(places, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return placed.sort("place", maintain_order=True).drop("place")


def _in_json(value: Any) -> Any:
    """Write as text what JSON has no number for."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _listed(columns: IntoColumns) -> list[str]:
    several = [columns] if isinstance(columns, str | pl.Expr) else columns
    return [_shown(column) for column in several]


def _shown(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )
