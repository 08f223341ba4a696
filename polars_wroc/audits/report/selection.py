"""What of a large audit is shown: the segments with the most serious findings, few scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_wroc.audits.matrix import by_severity
from polars_wroc.audits.segment_keys import rows_with
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.audits.tables import AuditTables
from polars_wroc.charts.curve_layers import thinned
from polars_wroc.charts.style import COLOURS
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL

# Most segments of an attribute in its tables and its charts of gaps, and most curves of a panel.
TABLE_SEGMENTS, OVERLAID = 50, 5
# Points of all curves of a page, and limits for one curve.
_POINTS, _MOST, _FEWEST = 5_000, 200, 20


def with_segments(audit: AuditTables, most: int, findings: pl.DataFrame) -> AuditTables:
    """Keep so many segments of each attribute, those with the most serious findings."""
    found = by_severity(findings).select(AUDIT_KEYS)
    # Some have no findings.
    others = audit.segments.select(AUDIT_KEYS)
    named = pl.concat([found, others]).unique(maintain_order=True)
    return _of(audit, named.group_by("attribute", maintain_order=True).head(most))


@dataclass(frozen=True)
class Curves:
    """The segments of an attribute whose curves are drawn, and why, if they are not all."""

    segments: pl.DataFrame
    reasons: dict[str, list[str | None]]


def curves_of(audit: AuditTables, attribute: str, findings: pl.DataFrame) -> Curves:
    """Choose the segments whose curves fit into one panel, which of many has that of all rows too.

    They are all of a few; of more the reference, if it is one, those with the most serious
    findings, then those with the least and the greatest AUC of the first score, of segments with
    enough rows if any has.
    """
    table = audit.segments.filter(attribute=attribute)
    segments = table.select(AUDIT_KEYS).unique(maintain_order=True)
    if segments.height <= OVERLAID:
        return Curves(segments, {})
    reasons, chosen = dict[str, list[str | None]](), list[str | None]()
    drawn = set(table.drop_nulls("auc")["segment"])
    for reason, names in _candidates(table, audit.parameters, attribute, findings):
        room = OVERLAID - 1 - len(chosen)
        if new := [name for name in names if name in drawn.difference(chosen)][:room]:
            chosen += new
            reasons[reason] = new
    kept = pl.Series(chosen, dtype=pl.String)
    return Curves(
        segments.filter(pl.col("segment").is_in(kept.implode(), nulls_equal=True)), reasons
    )


def _candidates(
    segments: pl.DataFrame, settings: AuditSettings, attribute: str, findings: pl.DataFrame
) -> Iterator[tuple[str, list[str | None]]]:
    """List the segments whose curves should be drawn, the most important first, and why."""
    score = segments.partition_by(MODEL, maintain_order=True)[0] if MODEL in segments else segments
    ranked = score.drop_nulls("auc").sort("auc", maintain_order=True)
    large = ranked.filter(~pl.col("small"))
    if attribute in settings.reference.named:
        yield "the reference", [settings.reference.named[attribute]]
    different = findings.filter(attribute=attribute, verdict="different")
    serious = by_severity(different)["segment"].unique(maintain_order=True)
    yield "the segments with the most serious findings", serious.to_list()
    known, of_those = ranked, ""
    if 0 < large.height < ranked.height:
        known, of_those = large, f" of those with at least {settings.min_rows} rows of each class"
    yield f"the segment with the least AUC{of_those}", known["segment"][:1].to_list()
    yield f"the segment with the greatest AUC{of_those}", known["segment"][-1:].to_list()


def with_curves(audit: AuditTables, curves: Iterable[Curves]) -> AuditTables:
    """Keep the segments whose curves are drawn."""
    return _of(audit, pl.concat([one.segments for one in curves]))


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
