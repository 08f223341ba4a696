"""The sections of a page, and which segments of a large audit they draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.audits.findings import by_severity, counts_of_verdicts
from polars_wroc.audits.report.figures import (
    Figure,
    auc_figure,
    aucs_of,
    curves_figure,
    gap_figures,
    slider_figures,
)
from polars_wroc.audits.report.tables import Found, Table, found_on, tables_of
from polars_wroc.audits.sentences import size
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables, rows_with
from polars_wroc.audits.words import NOT_HERE, listed, many
from polars_wroc.charts.curve_layers import thinned
from polars_wroc.charts.options import COLOURS
from polars_wroc.groups.comparisons import DIFFERENT
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.ranking.curve_points import AUC_CHANGE
from polars_wroc.stats.proportions import TOLERANCE

# Most segments of an attribute in its tables and its charts of gaps, and most curves of a panel.
TABLE_SEGMENTS, OVERLAID = 50, 5
# Points of all curves of a page, and limits for one curve.
_POINTS, _MOST, _FEWEST = 5_000, 200, 20


def with_segments(audit: AuditTables, most: int, serious: pl.DataFrame) -> AuditTables:
    """Keep so many segments of each attribute, those with the most serious findings."""
    found = serious.select(AUDIT_KEYS)
    # Some have no findings.
    others = audit.segments.select(AUDIT_KEYS)
    named = pl.concat([found, others]).unique(maintain_order=True)
    return _of(audit, named.group_by("attribute", maintain_order=True).head(most))


@dataclass(frozen=True)
class Curves:
    """The segments of an attribute whose curves are drawn, and why, if they are not all."""

    segments: pl.DataFrame
    reasons: dict[str, list[str | None]]


def curves_of(audit: AuditTables, attribute: str, serious: pl.DataFrame) -> Curves:
    """Choose the segments whose curves fit into one panel, which of many has that of all rows too.

    They are all of a few; of more the reference, if it is one, those with the most serious
    findings, then those with the least and the greatest AUC of the first score, of segments with
    enough rows if any has.
    """
    table = aucs_of(audit).filter(attribute=attribute)
    segments = table.select(AUDIT_KEYS).unique(maintain_order=True)
    if segments.height <= OVERLAID:
        return Curves(segments, {})
    reasons, chosen = dict[str, list[str | None]](), list[str | None]()
    drawn = set(table.drop_nulls("auc")["segment"])
    for reason, names in _candidates(table, audit.settings, attribute, serious):
        room = OVERLAID - 1 - len(chosen)
        if new := [name for name in names if name in drawn.difference(chosen)][:room]:
            chosen += new
            reasons[reason] = new
    kept = pl.Series(chosen, dtype=pl.String)
    return Curves(
        segments.filter(pl.col("segment").is_in(kept.implode(), nulls_equal=True)), reasons
    )


def _candidates(
    segments: pl.DataFrame, settings: AuditSettings, attribute: str, serious: pl.DataFrame
) -> Iterator[tuple[str, Iterable[str | None]]]:
    """List the segments whose curves should be drawn, the most important first, and why."""
    score = segments.unique(AUDIT_KEYS, keep="first", maintain_order=True)
    ranked = score.drop_nulls("auc").sort("auc", maintain_order=True)
    large = ranked.filter(~pl.col("small"))
    if attribute in settings.reference.named:
        yield "the reference", [settings.reference.named[attribute]]
    different = serious.filter(attribute=attribute, verdict=DIFFERENT)["segment"]
    yield "the segments with the most serious findings", different.unique(maintain_order=True)
    known, of_those = ranked, ""
    if 0 < large.height < ranked.height:
        known, of_those = large, f" of those with at least {settings.min_rows} rows of each class"
    yield f"the segment with the least AUC{of_those}", known["segment"][:1]
    yield f"the segment with the greatest AUC{of_those}", known["segment"][-1:]


def with_curves(audit: AuditTables, curves: Iterable[Curves]) -> AuditTables:
    """Keep the segments whose curves are drawn."""
    return _of(audit, pl.concat([one.segments for one in curves]))


def with_models(audit: AuditTables) -> AuditTables:
    """Keep as many scores as a chart has colours."""
    kept = audit.segments.select(MODEL).unique(maintain_order=True).head(len(COLOURS))
    return _of(audit, kept)


def with_points(audit: AuditTables) -> tuple[AuditTables, int]:
    """Thin the curves to fit on the page; also return the number of points of each."""
    keys = list(ALL_KEYS)
    curves = max(1, audit.curves.select(keys).n_unique())
    points = max(_FEWEST, min(_MOST, _POINTS // (2 * curves)))
    if points == _MOST:
        return audit, points
    drawn = thinned(audit.curves, keys, points)
    return replace(audit, curves=drawn), points


def _of(audit: AuditTables, kept: pl.DataFrame) -> AuditTables:
    """Keep the rows with these keys in all tables."""
    return replace(
        audit,
        table=rows_with(audit.table, kept),
        segments=rows_with(audit.segments, kept),
        curves=rows_with(audit.curves, kept),
    )


# Most rows of the chart of all AUCs.
_FEW_ROWS = 60
_SAME = " The segments are those of the ROC curves above."
# Most findings that a section repeats.
_FINDINGS = 3


@dataclass(frozen=True)
class Section:
    """The part of the page about an attribute; ``left_out`` describes what is not shown."""

    attribute: str
    outcomes: str
    found: list[Found]
    tables: list[Table]
    gaps: list[Figure]
    curves: Figure
    sliders: list[Figure]
    left_out: list[str]

    @property
    def title(self) -> str:
        """The heading of the section."""
        return "All rows" if self.attribute == OVERALL else f"By {self.attribute}"

    @property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the page."""
        return [*self.gaps, self.curves, *self.sliders]


@dataclass(frozen=True)
class Sections:
    """The chart of all AUCs, the parts, and how many points their curves are drawn through."""

    overview: Figure
    parts: list[Section]
    points: int
    moved: float


def sections_of(audit: AuditTables, findings: pl.DataFrame) -> Sections:
    """Choose the segments that tables and charts show, and lay them out."""
    serious = by_severity(audit)
    tabled = with_segments(audit, TABLE_SEGMENTS, serious)
    charted = with_models(tabled)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    models = with_models(audit)
    curves = {attribute: curves_of(models, attribute, serious) for attribute in attributes}
    drawn, points = with_points(with_curves(models, curves.values()))
    moved = max(drawn.curves[AUC_CHANGE].abs().drop_nulls().to_list(), default=0.0)
    slider = _slider_caption(points, moved=moved > TOLERANCE)
    few = max(_FEW_ROWS // (len(attributes) * _scores(charted)), 2)
    parts = []
    for place, attribute in enumerate(attributes, 1):
        reasons = curves[attribute].reasons
        parts.append(
            Section(
                attribute,
                _outcomes(audit, findings, attribute),
                found_on(audit, attribute)[:_FINDINGS],
                tables_of(audit, tabled, attribute),
                gap_figures(charted, attribute, place),
                curves_figure(drawn, attribute, place, reasons),
                slider_figures(drawn, attribute, place, slider + _SAME * bool(reasons)),
                _left_out(audit, tabled, attribute),
            )
        )
    overview = auc_figure(with_segments(charted, few, serious), whole=audit)
    return Sections(overview, parts, points, moved)


def _scores(audit: AuditTables) -> int:
    return audit.segments[MODEL].n_unique()


def _segments(audit: AuditTables, attribute: str) -> int:
    return audit.segments.filter(attribute=attribute)["segment"].n_unique()


def _outcomes(audit: AuditTables, findings: pl.DataFrame, attribute: str) -> str:
    """Count the verdicts on an attribute."""
    counts = counts_of_verdicts(findings.filter(attribute=attribute))
    different, alike, little = counts.values()
    total = different + alike + little
    if not total:
        return ""
    parts = [f"{different:,} {'is' if different == 1 else 'are'} different"]
    parts = parts if different else ["none is different"]
    if alike:
        parts.append(f"{alike:,} alike within {size(audit.settings.margin)} points")
    if little:
        parts.append(f"{little:,} {'has' if little == 1 else 'have'} too little data")
    return f"Of {many(total, 'comparison')} {listed(parts)}."


def _slider_caption(points: int, *, moved: bool) -> str:
    thinned = (
        f" On a curve of more than {points} points they are those of the next higher "
        "threshold that is drawn; the tables use all rows."
    )
    return (
        "Move the slider: the points and the numbers are those of the rows whose score is at least "
        f"the threshold.{thinned if moved else ''}"
    )


def _left_out(audit: AuditTables, tabled: AuditTables, attribute: str) -> list[str]:
    """Describe what of a large audit is not on the page."""
    sentences = []
    segments = _segments(audit, attribute)
    if (shown := _segments(tabled, attribute)) < segments:
        sentences.append(
            f"The tables show {shown} of {segments:,} segments, those with the most serious "
            f"findings. The others are {NOT_HERE}."
        )
    models = _scores(audit)
    if (shown := _scores(with_models(audit))) < models:
        sentences.append(
            f"The charts show the first {shown} of {models} scores, as a chart has no more "
            "colours; the tables have all."
        )
    return sentences if attribute != OVERALL else sentences[-1:]
