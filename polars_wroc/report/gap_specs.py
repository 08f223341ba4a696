"""The charts of one attribute's gaps, of which only the first is drawn anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.charts.gaps import Drawing, draw, drawing_of
from polars_wroc.metric_names import GapMetric

# Where a spec has names that come from the rows.
_NAMES = ("domain", "sort")


def gap_specs(
    gaps: pl.DataFrame, metrics: Sequence[GapMetric], level: float
) -> dict[GapMetric, dict[str, Any]]:
    """Give the spec of `gap_chart` for each metric of one attribute of an audit."""
    drawings = {metric: drawing_of(gaps, metric, None, None, level) for metric in metrics}
    first, *others = metrics
    spec: dict[str, Any] = draw(drawings[first]).to_dict(validate=False)
    return {first: spec} | {
        other: _redrawn(spec, drawings[first], drawings[other]) for other in others
    }


def _redrawn(spec: dict[str, Any], first: Drawing, other: Drawing) -> dict[str, Any]:
    """Say of another gap what the spec says of the first: Altair takes far longer to."""
    texts = dict(zip(first.texts, other.texts, strict=True))

    def said(part: Any, name: str | None = None) -> Any:
        if name in _NAMES:
            return other.shown.domain if part == first.shown.domain else part
        if isinstance(part, list):
            return [said(one) for one in part]
        if isinstance(part, dict):
            return {name: said(one, name) for name, one in part.items()}
        return texts.get(part, part) if isinstance(part, str) else part

    (name,) = spec["datasets"]
    rows = other.table.select(other.columns).to_dicts()
    return {**said(spec | {"datasets": {}}), "datasets": {name: rows}}
