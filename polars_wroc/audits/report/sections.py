"""The sections of a page: the chart of all AUCs, and a part for each attribute."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.audits.phrases import NOT_HERE, listed, many
from polars_wroc.audits.report.figures import (
    Figure,
    auc_figure,
    curves_figure,
    gap_figures,
    slider_figures,
)
from polars_wroc.audits.report.found import Found, found_on
from polars_wroc.audits.report.selection import (
    TABLE_SEGMENTS,
    curves_of,
    with_curves,
    with_models,
    with_points,
    with_segments,
)
from polars_wroc.audits.report.tables import Table, tables_of
from polars_wroc.audits.sentences import size
from polars_wroc.audits.tables import AuditTables
from polars_wroc.inputs.names import MODEL, OVERALL
from polars_wroc.ranking.thinning import AUC_CHANGE
from polars_wroc.stats.proportions import TOLERANCE

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
    tabled = with_segments(audit, TABLE_SEGMENTS, findings)
    charted = with_models(tabled)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    models = with_models(audit)
    curves = {attribute: curves_of(models, attribute, findings) for attribute in attributes}
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
                found_on(findings, attribute, audit.parameters)[:_FINDINGS],
                tables_of(audit, tabled, attribute),
                gap_figures(charted, attribute, place),
                curves_figure(drawn, attribute, place, reasons),
                slider_figures(drawn, attribute, place, slider + _SAME * bool(reasons)),
                _left_out(audit, tabled, attribute),
            )
        )
    overview = auc_figure(with_segments(charted, few, findings), whole=audit)
    return Sections(overview, parts, points, moved)


def _scores(audit: AuditTables) -> int:
    return audit.segments[MODEL].n_unique() if MODEL in audit.segments.columns else 1


def _segments(audit: AuditTables, attribute: str) -> int:
    return audit.segments.filter(attribute=attribute)["segment"].n_unique()


def _outcomes(audit: AuditTables, findings: pl.DataFrame, attribute: str) -> str:
    """Count the verdicts on an attribute."""
    counted = findings.filter(~pl.col("mirror"), attribute=attribute)
    different, alike, little = (
        counted.filter(verdict=verdict).height
        for verdict in ("different", "alike", "too little data")
    )
    total = different + alike + little
    if not total:
        return ""
    parts = [f"{different:,} {'is' if different == 1 else 'are'} different"]
    parts = parts if different else ["none is different"]
    if alike:
        parts.append(f"{alike:,} alike within {size(audit.parameters.margin)} points")
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
    if MODEL in audit.segments.columns:
        models = _scores(audit)
        if (shown := _scores(with_models(audit))) < models:
            sentences.append(
                f"The charts show the first {shown} of {models} scores, as a chart has no more "
                "colours; the tables have all."
            )
    return sentences if attribute != OVERALL else sentences[-1:]
