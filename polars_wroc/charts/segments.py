"""Charts of the segments of one attribute, from the tables of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.charts.roc import roc_chart
from polars_wroc.charts.threshold import threshold_chart
from polars_wroc.rows import OVERALL

if TYPE_CHECKING:
    from polars_wroc.charts.common import Chart


def segments_chart(curves: pl.DataFrame, segments: pl.DataFrame, attribute: str) -> Chart:
    """Draw the ROC curve of each segment with its AUC."""
    summary = _of_attribute(segments, attribute)
    return roc_chart(_of_attribute(curves, attribute), facet=_facet(attribute), summary=summary)


def segments_threshold_chart(curves: pl.DataFrame, segments: pl.DataFrame, attribute: str) -> Chart:
    """Draw the ROC curve of each segment with a slider, which starts where decisions are made."""
    shown = _of_attribute(curves, attribute)
    start = segments["threshold"][0] if "threshold" in segments.columns else None
    drawn = shown["threshold"].filter(shown["threshold"].is_finite())
    if start is not None and not drawn.min() <= start <= drawn.max():
        start = None
    return threshold_chart(shown, facet=_facet(attribute), threshold=start)


def _of_attribute(table: pl.DataFrame, attribute: str) -> pl.DataFrame:
    """Take the rows of one attribute, with its segments under its name."""
    rows = table.filter(attribute=attribute).drop("attribute")
    return rows.drop("segment") if attribute == OVERALL else rows.rename({"segment": attribute})


def _facet(attribute: str) -> str | None:
    return None if attribute == OVERALL else attribute
