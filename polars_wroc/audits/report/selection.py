"""What of a large audit is shown: segments with significant gaps, the largest, few scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.charts import largest_segments
from polars_wroc.audits.segment_keys import rows_with
from polars_wroc.audits.tables import AuditTables
from polars_wroc.charts.curve_layers import thinned
from polars_wroc.charts.style import COLOURS
from polars_wroc.inputs.names import MODEL
from polars_wroc.stats.multiple_tests import is_significant

# Most segments of an attribute in its tables, and in its panels of curves.
TABLE_SEGMENTS, PANEL_SEGMENTS = 50, 9
# Points of all curves of a page, and limits for one curve.
_POINTS, _MOST, _FEWEST = 6_000, 200, 20


def with_segments(audit: AuditTables, most: int) -> AuditTables:
    """Keep so many segments of each attribute: those with significant gaps, then the largest."""
    significant = [
        is_significant(pl.col(name), audit.parameters.level)
        for name in audit.gaps.columns
        if name.endswith("_p_adjusted")
    ]
    first = audit.gaps.filter(pl.any_horizontal(significant)) if significant else audit.gaps.clear()
    kept = largest_segments(audit.segments, most, first)
    return _of(audit, kept)


def with_models(audit: AuditTables) -> AuditTables:
    """Keep as many scores as a chart has colours."""
    if MODEL not in audit.segments.columns:
        return audit
    kept = audit.segments.select(MODEL).unique(maintain_order=True).head(len(COLOURS))
    return _of(audit, kept)


def with_points(audit: AuditTables) -> tuple[AuditTables, int]:
    """Thin the curves to fit on the page; also return the number of points of each."""
    keys = audit.curves.columns[: audit.curves.columns.index("threshold")]
    curves = max(1, audit.curves.select(keys).n_unique())
    points = max(_FEWEST, min(_MOST, _POINTS // (2 * curves)))
    if points == _MOST:
        return audit, points
    drawn = thinned(audit.curves, keys, points)
    return replace(audit, curves=drawn), points


def _of(audit: AuditTables, kept: pl.DataFrame) -> AuditTables:
    """Keep the rows with these keys in all tables."""
    tables: dict[str, Any] = {
        name: rows_with(table, kept)
        for name in ("segments", "curves", "gaps", "calibration", "impact")
        if (table := getattr(audit, name)) is not None and set(kept.columns) <= set(table.columns)
    }
    return replace(audit, **tables)
