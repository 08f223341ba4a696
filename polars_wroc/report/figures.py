"""The charts of the report: what is drawn, how it is described, and how it is put into the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.audit_result import Audit
from polars_wroc.charts import auc_chart, gap_chart, segments_chart, segments_threshold_chart
from polars_wroc.charts.common import COLOURS, GREY, INK, PALE
from polars_wroc.findings import NAMES, REFERENCES
from polars_wroc.rows import MODEL, OVERALL

# Colours of a chart that follow the page, which may be dark.
_INKS = {
    INK: "var(--ink)",
    COLOURS[-1]: "var(--ink)",
    GREY: "var(--soft)",
    PALE: "var(--soft)",
    "white": "var(--page)",
}
# Columns that decide what is shown; the others are drawn or written with fewer digits.
_EXACT = ("threshold", "__from")
_DIGITS = 7


@dataclass(frozen=True)
class Figure:
    """A chart with its place in the page, its caption, and what it says to who cannot see it."""

    name: str
    spec: dict[str, Any]
    caption: str


def auc_figure(audit: Audit) -> Figure:
    """Draw the AUCs of all segments."""
    level = audit.settings["level"]
    chart = auc_chart(audit.segments, level=level)
    return Figure(
        "chart-auc",
        _spec(chart, "AUC of everybody and of each segment. The same numbers are in the tables."),
        f"The AUC of each segment with its {100 * level:g}% interval, and the number of its rows. "
        "The dashed line is everybody's AUC.",
    )


def gap_figures(audit: Audit, attribute: str, place: int) -> list[Figure]:
    """Draw the gaps of an attribute's segments: in AUC, then in each rate."""
    gaps = audit.gaps.filter(attribute=attribute)
    if gaps.is_empty():
        return []
    reference = REFERENCES[audit.settings["reference"]]
    return [
        Figure(
            f"gap-{place}" if rate == "auc" else f"gap-{place}-{rate}",
            _spec(
                gap_chart(gaps, metric=rate, level=audit.settings["level"]),
                f"Gap in {name} of each segment by {attribute} to {reference}. "
                "The same numbers are in the table of gaps.",
            ),
            f"How much higher or lower the {name} of each segment is than that of {reference}; the "
            "line is no gap. A filled point on a thick line is more than chance.",
        )
        for rate, name in NAMES.items()
        if f"{rate}_gap" in gaps.columns
    ]


def curves_figure(audit: Audit, attribute: str, place: int) -> Figure:
    """Draw the ROC curves of an attribute's segments."""
    chart = segments_chart(audit.curves, audit.segments, attribute)
    return Figure(
        f"chart-{place}",
        _spec(chart, f"ROC curves{_by(attribute)}. Their AUCs are in the table of AUCs."),
        "ROC curves: the share of positives found against the share of negatives flagged, as the "
        "threshold falls. The thin straight line is a score that knows nothing. Point at a curve "
        "for thresholds and counts.",
    )


def slider_figures(audit: Audit, attribute: str, place: int, caption: str) -> list[Figure]:
    """Draw the ROC curves of each score with a slider of its own: scores share no scale."""
    weighted = audit.settings["weight"] is not None
    named = MODEL in audit.segments.columns
    models = audit.segments[MODEL].unique(maintain_order=True).to_list() if named else [None]
    figures = []
    for number, model in enumerate(models, 1):
        segments, curves = (
            table if model is None else table.filter(pl.col(MODEL) == model)
            for table in (audit.segments, audit.curves)
        )
        chart = segments_threshold_chart(curves, segments, attribute, weighted=weighted)
        if chart is not None:
            score = "" if model is None else f" of {model}"
            figures.append(
                Figure(
                    f"slider-{place}" if model is None else f"slider-{place}-{number}",
                    _spec(
                        chart, f"ROC curves{score}{_by(attribute)}, with a slider of thresholds."
                    ),
                    f"{'' if model is None else f'Score {model}. '}{caption}",
                )
            )
    return figures


def _by(attribute: str) -> str:
    return " of everybody" if attribute == OVERALL else f" of the segments by {attribute}"


def _spec(chart: Any, description: str) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    data = {name: _packed(rows) for name, rows in spec.pop("datasets", {}).items()}
    # The page reads its own colours; a spec names the version of its grammar, which is no address.
    spec = _mapped(spec, lambda value: _INKS.get(value, value))
    spec.pop("$schema", None)
    return spec | {"description": description, "datasets": data}


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(part, change) for name, part in value.items()}
    if isinstance(value, list):
        return [_mapped(part, change) for part in value]
    return change(value) if isinstance(value, str) else value


def _packed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, where what is repeated stands once."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if name not in _EXACT:
            values = [_rounded(value) for value in values]
        different = list(dict.fromkeys((type(value), value) for value in values))
        same = seen.setdefault(repr(values), name)
        if len(different) == 1:
            columns[name] = {"all": values[0]}
        elif same != name:
            columns[name] = {"same": same}
        elif all(value is None or isinstance(value, str) for value in values):
            texts = [value for _, value in different]
            place = {text: number for number, text in enumerate(texts)}
            columns[name] = {"texts": texts, "at": [place[value] for value in values]}
        else:
            columns[name] = {"each": values}
    return {"rows": len(rows), "columns": columns}


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short
