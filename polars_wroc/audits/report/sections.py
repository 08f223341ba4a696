"""The sections of a page, with the segments that they draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.audits.closer_look import sentences_on
from polars_wroc.audits.findings import by_severity
from polars_wroc.audits.report.figures import (
    SELECTION_RATE,
    Figure,
    aucs_of,
    calibration_figures,
    curves_figure,
    gap_figures,
    score_figures,
    values_figure,
)
from polars_wroc.audits.report.tables import Found, Table, found_on, tables_of
from polars_wroc.audits.sentences import margin_in_points
from polars_wroc.audits.tables import (
    AuditSettings,
    AuditTables,
    restricted,
    rows_with,
)
from polars_wroc.audits.verdicts import counts_of_verdicts
from polars_wroc.audits.words import NOT_HERE, listed, many, verb
from polars_wroc.charts.options import MOST_COLORS
from polars_wroc.groups.comparisons import GAP_METRICS, IMPACT_RATIO, PLACE, is_finding
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.registry import ROC_AUC

# Most segments of an attribute in its tables and its charts of gaps, and most curves of a panel.
TABLE_SEGMENTS, OVERLAID = 50, 5


def with_segments(audit: AuditTables, most: int, serious: pl.DataFrame) -> AuditTables:
    """Keep so many segments of each attribute, those with the most serious findings."""
    found = serious.select(AUDIT_KEYS)
    # Some have no findings.
    others = audit.segments.select(AUDIT_KEYS)
    named = pl.concat([found, others]).unique(maintain_order=True)
    return restricted(audit, named.group_by("attribute", maintain_order=True).head(most))


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
    kept = pl.DataFrame({"segment": chosen}, {"segment": pl.String})
    return Curves(rows_with(segments, kept), reasons)


def _candidates(
    segments: pl.DataFrame, settings: AuditSettings, attribute: str, serious: pl.DataFrame
) -> list[tuple[str, Iterable[str | None]]]:
    """List the segments whose curves should be drawn, the most important first, and why."""
    score = segments.unique(AUDIT_KEYS, keep="first", maintain_order=True)
    ranked = score.drop_nulls("auc").sort("auc", maintain_order=True)
    large = ranked.filter(~pl.col("small"))
    candidates = list[tuple[str, Iterable[str | None]]]()
    if attribute in settings.reference.named:
        candidates.append(("the reference", [settings.reference.named[attribute]]))
    different = serious.filter(is_finding(), attribute=attribute)["segment"]
    most_serious = different.unique(maintain_order=True)
    candidates.append(("the segments with the most serious findings", most_serious))
    known, of_those = ranked, ""
    if 0 < large.height < ranked.height:
        known, of_those = large, f" of those with at least {settings.min_rows} rows of each class"
    candidates.append((f"the segment with the least AUC{of_those}", known["segment"][:1]))
    candidates.append((f"the segment with the greatest AUC{of_those}", known["segment"][-1:]))
    return candidates


def with_models(audit: AuditTables) -> AuditTables:
    """Keep as many scores as a chart has colours."""
    kept = audit.segments.select(MODEL).unique(maintain_order=True).head(MOST_COLORS)
    return restricted(audit, kept)


# Most rows of the charts of all segments: of that on the first screen, and of others.
_FIRST_ROWS, _FEW_ROWS = 24, 60
# Most findings that a section repeats.
_FINDINGS = 3


@dataclass(frozen=True)
class Section:
    """The part of the page about an attribute; ``left_out`` describes what is not shown."""

    attribute: str
    outcomes: str
    found: list[Found]
    tables: list[Table]
    # The chart of the most serious finding first.
    gaps: list[Figure]
    calibration: list[Figure]
    curves: list[Figure]
    left_out: list[str]
    # What gaps consist of, and where along the scores segments are off.
    closer: list[str]

    @property
    def title(self) -> str:
        """The heading of the section."""
        return "All rows" if self.attribute == OVERALL else f"By {self.attribute}"

    @property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the page."""
        return [*self.gaps, *self.calibration, *self.curves]


@dataclass(frozen=True)
class Sections:
    """The charts of all segments, and the parts.

    The ``headline`` is of the metric of the most serious finding, the others of AUCs.
    """

    headline: Figure
    aucs: list[Figure]
    parts: list[Section]

    @property
    def figures(self) -> list[Figure]:
        """All charts."""
        return [self.headline, *self.aucs, *(one for part in self.parts for one in part.figures)]


def sections_of(audit: AuditTables, findings: pl.DataFrame) -> Sections:
    """Choose the segments that tables and charts show, and lay them out."""
    serious = by_severity(audit)
    tabled = with_segments(audit, TABLE_SEGMENTS, serious)
    charted = with_models(tabled)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    headline, first = _headline(findings, audit.settings)
    single = restricted(charted, charted.segments.filter(first).select(AUDIT_KEYS))
    shown, fewer = (
        with_segments(each, max(most // (len(attributes) * _scores(charted)), 2), serious)
        for each, most in ((charted, _FEW_ROWS), (single, _FIRST_ROWS))
    )
    aucs = ROC_AUC.column
    if audit.settings.labeled:
        curves = _roc_curves(audit, attributes, serious)
    else:
        of_scores = with_segments(charted, OVERLAID, serious)
        curves = {
            one: score_figures(of_scores, of_scores.distributions, one, place)
            for place, one in enumerate(attributes, 1)
        }
    of_aucs = audit.settings.labeled and headline != aucs
    parts = [
        Section(
            attribute,
            _outcomes(audit, findings, attribute),
            found_on(audit, attribute)[:_FINDINGS],
            tables_of(audit, tabled, attribute),
            gap_figures(charted, attribute, place, serious),
            calibration_figures(audit, attribute, place, serious),
            curves[attribute],
            _left_out(audit, tabled, attribute),
            sentences_on(audit, attribute),
        )
        for place, attribute in enumerate(attributes, 1)
    ]
    return Sections(
        values_figure(fewer, audit, headline),
        [values_figure(shown, audit, aucs)] if of_aucs else [],
        parts,
    )


def _headline(findings: pl.DataFrame, settings: AuditSettings) -> tuple[str, pl.Expr]:
    """Return the metric of the most serious difference between segments, and whose it is drawn.

    One of calibration comes last, as in the verdict.
    """
    of_gaps = pl.col("metric").is_in([*GAP_METRICS, IMPACT_RATIO])
    known = (of_gaps | (pl.col("metric") == CALIBRATION_ERROR)) & (pl.col("attribute") != OVERALL)
    different = findings.filter(known, is_finding()).sort(~of_gaps, "rank").head(1)
    metrics, crossed = different["metric"].to_list(), different["attribute"].to_list()
    metric = SELECTION_RATE if settings.decides else ROC_AUC.column
    if metrics and metrics[0] != IMPACT_RATIO:
        metric = metrics[0]
    drawn = pl.col("attribute").is_in([OVERALL, *settings.attributes, *crossed])
    # Crossed segments alone are those that were asked for.
    return metric, pl.lit(value=True) if settings.intersections == "only" else drawn


def _roc_curves(
    audit: AuditTables, attributes: Sequence[str], serious: pl.DataFrame
) -> dict[str, list[Figure]]:
    """Draw the ROC curves of each attribute."""
    models = _in_order(with_models(audit), serious)
    chosen = {attribute: curves_of(models, attribute, serious) for attribute in attributes}
    drawn = restricted(models, pl.concat([one.segments for one in chosen.values()]))
    return {
        attribute: [curves_figure(drawn, attribute, place, one.reasons)]
        for place, (attribute, one) in enumerate(chosen.items(), 1)
    }


def _in_order(audit: AuditTables, serious: pl.DataFrame) -> AuditTables:
    """Sort segments by their findings: colours follow these, not the alphabet."""
    place = serious.select(AUDIT_KEYS).unique(maintain_order=True).with_row_index(PLACE)

    def sort(table: pl.DataFrame) -> pl.DataFrame:
        placed = table.join(place, on=AUDIT_KEYS, how="left", nulls_equal=True)
        return placed.sort("attribute", PLACE, nulls_last=True, maintain_order=True).drop(PLACE)

    return replace(audit, curves=sort(audit.curves))


def _scores(audit: AuditTables) -> int:
    return audit.segments[MODEL].n_unique()


def _outcomes(audit: AuditTables, findings: pl.DataFrame, attribute: str) -> str:
    """Count the verdicts on an attribute."""
    counts = counts_of_verdicts(findings.filter(attribute=attribute)).values()
    different, alike, little = counts
    if not any(counts):
        return ""
    parts = [f"{different:,} {verb(different, 'is', 'are')} different"]
    parts = parts if different else ["none is different"]
    if alike:
        margin = margin_in_points(audit.settings.margin)
        parts.append(f"{alike:,} equivalent within {margin} points")
    if little:
        parts.append(f"{little:,} {verb(little, 'is', 'are')} inconclusive")
    return f"Of {many(sum(counts), 'comparison')} {listed(parts)}."


def _left_out(audit: AuditTables, tabled: AuditTables, attribute: str) -> list[str]:
    """Describe what of a large audit is not on the page."""
    sentences = []
    segments, shown = (
        each.segments.filter(attribute=attribute)["segment"].n_unique() for each in (audit, tabled)
    )
    if shown < segments:
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
