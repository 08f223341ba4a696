"""What of a large audit is shown: the segments with the most serious findings, few scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.matrix import by_severity
from polars_wroc.audits.segment_keys import rows_with
from polars_wroc.audits.tables import AuditTables
from polars_wroc.charts.curve_layers import thinned
from polars_wroc.charts.style import COLOURS
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL

# Most segments of an attribute in its tables and its charts of gaps, and those whose curves are
# all in one panel.
TABLE_SEGMENTS, OVERLAID = 50, 5
# Points of all curves of a page, and limits for one curve.
_POINTS, _MOST, _FEWEST = 6_000, 200, 20


def with_segments(audit: AuditTables, most: int, findings: pl.DataFrame) -> AuditTables:
    """Keep so many segments of each attribute, those with the most serious findings."""
    found = by_severity(findings).select(AUDIT_KEYS)
    # Some have no findings.
    others = audit.segments.select(AUDIT_KEYS)
    named = pl.concat([found, others]).unique(maintain_order=True)
    return _of(audit, named.group_by("attribute", maintain_order=True).head(most))


def with_curves(audit: AuditTables) -> AuditTables:
    """Keep the segments of each attribute whose curves fit into one panel."""
    of_attributes = audit.segments.partition_by("attribute", maintain_order=True)
    return _of(audit, pl.concat([_with_curves(one, audit) for one in of_attributes]))


def _with_curves(segments: pl.DataFrame, audit: AuditTables) -> pl.DataFrame:
    """Name all of a few segments; of more the worst, the best and the reference, if it is one.

    Worst and best are those by the AUC of the first score, of segments with enough rows if any has.
    """
    names = segments.select(AUDIT_KEYS).unique(maintain_order=True)
    if names.height <= OVERLAID:
        return names
    score = segments.partition_by(MODEL, maintain_order=True)[0] if MODEL in segments else segments
    ranked = score.drop_nulls("auc").sort("auc", maintain_order=True)
    large = ranked.filter(~pl.col("small"))
    known = ranked if large.is_empty() else large
    named = pl.lit(audit.parameters.reference.named.get(names["attribute"][0]), pl.String)
    reference = names.filter(pl.col("segment") == named)
    ends = [known.select(AUDIT_KEYS).head(1), known.select(AUDIT_KEYS).tail(1)]
    return rows_with(names, pl.concat([*ends, reference]))


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
