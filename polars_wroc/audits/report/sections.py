"""The parts of a page: the matrix of findings, and sections with the segments that they draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.findings import by_severity, counts_of_verdicts
from polars_wroc.audits.report.figures import (
    Figure,
    auc_figure,
    aucs_of,
    curves_figure,
    funnel_figures,
    gap_figures,
    rates_figure,
    score_figures,
    slider_figures,
)
from polars_wroc.audits.report.tables import Found, Outcome, Table, found_on, outcome_of, tables_of
from polars_wroc.audits.sentences import decimals_of, size
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables, restricted, rows_with
from polars_wroc.audits.words import DASH, NOT_HERE, Words, capitalised, listed, many, verb
from polars_wroc.charts.curve_layers import thinned
from polars_wroc.charts.options import COLOURS, MINUS
from polars_wroc.curves.calibration_summary import IN_THE_LARGE, SLOPE
from polars_wroc.groups.comparisons import DIFFERENT, FEW, GAP_METRICS, IMPACT_RATIO, THE_REFERENCE
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


def with_models(audit: AuditTables) -> AuditTables:
    """Keep as many scores as a chart has colours."""
    kept = audit.segments.select(MODEL).unique(maintain_order=True).head(len(COLOURS))
    return restricted(audit, kept)


def with_points(audit: AuditTables) -> tuple[AuditTables, int]:
    """Thin the curves to fit on the page; also return the number of points of each."""
    keys = list(ALL_KEYS)
    curves = max(1, audit.curves.select(keys).n_unique())
    points = max(_FEWEST, min(_MOST, _POINTS // (2 * curves)))
    if points == _MOST:
        return audit, points
    drawn = thinned(audit.curves, keys, most=points)
    return replace(audit, curves=drawn), points


# Most rows of the chart of all segments.
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
    curves: list[Figure]
    sliders: list[Figure]
    left_out: list[str]

    @property
    def title(self) -> str:
        """The heading of the section."""
        return "All rows" if self.attribute == OVERALL else f"By {self.attribute}"

    @property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the page."""
        return [*self.gaps, *self.curves, *self.sliders]


@dataclass(frozen=True)
class Sections:
    """The chart of all segments, the parts, and how many points their curves are drawn through."""

    overview: Figure
    parts: list[Section]
    points: int
    # By how much that changes an AUC at most; None if it changes none.
    moved: float | None


class Drawn(NamedTuple):
    """The curves of each attribute, with sliders, and how many points they are drawn through."""

    curves: dict[str, list[Figure]]
    sliders: dict[str, list[Figure]]
    points: int = 0
    # By how much that changes an AUC at most; None if it changes none.
    moved: float | None = None


def sections_of(audit: AuditTables, findings: pl.DataFrame) -> Sections:
    """Choose the segments that tables and charts show, and lay them out."""
    serious = by_severity(audit)
    tabled = with_segments(audit, TABLE_SEGMENTS, serious)
    charted = with_models(tabled)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    few = max(_FEW_ROWS // (len(attributes) * _scores(charted)), 2)
    shown = with_segments(charted, few, serious)
    if audit.settings.labeled:
        overview, drawn = auc_figure(shown, audit), _roc_curves(audit, attributes, serious)
    else:
        of_scores = with_segments(charted, OVERLAID, serious)
        curves = {one: score_figures(of_scores, one, n) for n, one in enumerate(attributes, 1)}
        overview, drawn = rates_figure(shown, audit), Drawn(curves, {})
    parts = [
        Section(
            attribute,
            _outcomes(audit, findings, attribute),
            found_on(audit, attribute)[:_FINDINGS],
            tables_of(audit, tabled, attribute),
            gap_figures(charted, attribute, place),
            [*funnel_figures(with_models(audit), attribute, place), *drawn.curves[attribute]],
            drawn.sliders.get(attribute, []),
            _left_out(audit, tabled, attribute),
        )
        for place, attribute in enumerate(attributes, 1)
    ]
    return Sections(overview, parts, drawn.points, drawn.moved)


def _roc_curves(audit: AuditTables, attributes: Sequence[str], serious: pl.DataFrame) -> Drawn:
    """Draw the ROC curves of each attribute, and those with a slider."""
    models = with_models(audit)
    curves = {attribute: curves_of(models, attribute, serious) for attribute in attributes}
    chosen = pl.concat([one.segments for one in curves.values()])
    drawn, points = with_points(restricted(models, chosen))
    moved = max(drawn.curves[AUC_CHANGE].abs().drop_nulls().to_list(), default=0.0)
    caption = _slider_caption(points, moved=moved > TOLERANCE)
    figures, sliders = dict[str, list[Figure]](), dict[str, list[Figure]]()
    for place, (attribute, chosen_for) in enumerate(curves.items(), 1):
        reasons = chosen_for.reasons
        figures[attribute] = [curves_figure(drawn, attribute, place, reasons)]
        told = caption + _SAME * bool(reasons)
        sliders[attribute] = slider_figures(drawn, attribute, place, told)
    return Drawn(figures, sliders, points, moved if moved > TOLERANCE else None)


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
        parts.append(f"{alike:,} alike within {size(audit.settings.margin)} points")
    if little:
        parts.append(f"{little:,} {verb(little, 'has', 'have')} too little data")
    return f"Of {many(sum(counts), 'comparison')} {listed(parts)}."


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


SYMBOLS: dict[Outcome, str] = {
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "better": "\N{WHITE UP-POINTING TRIANGLE}",
    "either": "\N{BLACK DIAMOND}",
    "alike": "\N{ALMOST EQUAL TO}",
    "little": "?",
    "none": "",
}
# Metrics without a column, named only where they differ.
_FURTHER = {"ppv": GAP_METRICS["ppv"].label, "npv": "npv", SLOPE: "slope"}
# Gaps of more than so many margins have the same colour.
_DARKEST = 4
# Of two segments, one is better off because the other is worse off, which is marked once.
_REPEATED = "the other side of the same comparison"


class Column(NamedTuple):
    """A metric in plain words, and its short name."""

    metric: str
    heading: str
    short: str


@dataclass(frozen=True)
class MatrixCell:
    """A finding: its number, what it says, its size in margins from 1 to 4, and its rank.

    The ``rank`` is that of the finding with the sentence: of two segments that are compared with
    each other, that of the first.
    """

    number: str
    outcome: Outcome
    size: int
    rank: int
    # Why there is no outcome.
    reason: str = ""

    @property
    def symbol(self) -> str:
        """A sign, so that a colour is never alone."""
        return SYMBOLS[self.outcome]


@dataclass(frozen=True)
class MatrixRow:
    """A segment with its cells, in the order of the columns; None where nothing is known."""

    attribute: str
    segment: str | None
    model: str
    n: int
    cells: list[MatrixCell | None]
    # Further metrics that differ.
    further: list[tuple[str, MatrixCell]]
    differs: bool


@dataclass(frozen=True)
class Matrix:
    """The segments of single attributes and those of crossed ones, each the most serious first."""

    columns: list[Column]
    single: list[MatrixRow]
    crossed: list[MatrixRow]

    @property
    def has_further(self) -> bool:
        """Whether a metric without a column differs somewhere."""
        return any(row.further for row in (*self.single, *self.crossed))


def matrix_of(audit: AuditTables) -> Matrix:
    """Lay out the comparisons of all segments."""
    settings = audit.settings
    # All rows together are no segment.
    rows = by_severity(audit).filter(pl.col("attribute") != OVERALL)
    present = set(rows["metric"].unique())
    columns = [column for column in _columns(settings) if column.metric in present]
    counts = {row[:3]: row[3] for row in audit.segments.select(*ALL_KEYS, "n").rows()}
    segments = rows.with_columns(size=_in_margins(settings.margin)).partition_by(
        ALL_KEYS, as_dict=True, maintain_order=True
    )
    laid_out = [
        _row(keys, counts[keys], of_segment.to_dicts(), columns)
        for keys, of_segment in segments.items()
        # Impact ratios also have a row for unknown combinations, which are no segment.
        if keys in counts
    ]
    return Matrix(
        columns,
        [row for row in laid_out if row.attribute in settings.attributes],
        [row for row in laid_out if row.attribute not in settings.attributes],
    )


def summed_up(rows: Iterable[MatrixRow]) -> str:
    """Say how many more rows there are, and how many of them differ."""
    listed = [*rows]
    differ = sum(row.differs for row in listed)
    said = f"{differ:,} of them different" if differ else "none different"
    return f"{many(len(listed), 'more segment')}, {said}"


def _columns(settings: AuditSettings) -> list[Column]:
    words = Words.of(settings)
    selected = capitalised(words.selected)
    return [
        Column("selection_rate", f"{selected} of all", "rate"),
        Column(IMPACT_RATIO, "Impact ratio", "4/5"),
        Column("tpr", f"{selected} of those actually {words.positive}", "tpr"),
        Column("fpr", f"{selected} of those actually {words.negative}", "fpr"),
        Column("auc", "Ranking", "AUC"),
        Column(IN_THE_LARGE, "Predicted minus observed", "outcome"),
    ]


def _in_margins(margin: float) -> pl.Expr:
    """Measure a finding in margins, an impact ratio by its distance from 1."""
    from_one = (1 - pl.col("ratio")).abs()
    distance = pl.when(metric=IMPACT_RATIO).then(from_one).otherwise(pl.col("gap").abs())
    return distance / margin


def _row(
    keys: tuple[Any, ...], n: int, findings: list[dict[str, Any]], columns: list[Column]
) -> MatrixRow:
    of_metric = {finding["metric"]: finding for finding in findings}
    cells = [_cell(of_metric.get(column.metric)) for column in columns]
    further = [
        (name, _with_number(finding))
        for metric, name in _FURTHER.items()
        if (finding := of_metric.get(metric)) and finding["verdict"] == DIFFERENT
    ]
    differs = any(finding["verdict"] == DIFFERENT for finding in findings)
    attribute, segment, model = keys
    return MatrixRow(attribute, segment, model, n, cells, further, differs)


def _cell(finding: Mapping[str, Any] | None) -> MatrixCell | None:
    if finding is None:
        return None
    number, reason = finding["number"], finding["reason"] or ""
    if finding["verdict"] is None:
        text = "reference" if reason == THE_REFERENCE else DASH
        return MatrixCell(text, "none", 0, number, reason=reason)
    better = finding["verdict"] == DIFFERENT and finding["direction"] == "better"
    if finding["rank"] is None and better:
        return MatrixCell(_number(finding), "none", 0, number, reason=_REPEATED)
    if reason.startswith(FEW):
        return MatrixCell(f"({finding['n']:,})", "little", 0, number, reason=reason)
    return _with_number(finding)


def _with_number(finding: Mapping[str, Any]) -> MatrixCell:
    size, different = finding["size"], finding["verdict"] == DIFFERENT
    level = min(math.ceil(size), _DARKEST) if size is not None and math.isfinite(size) else _DARKEST
    colour = max(level, 1) if different else 0
    return MatrixCell(_number(finding), outcome_of(finding), colour, finding["number"])


def _number(finding: Mapping[str, Any]) -> str:
    """Write a ratio or a slope as it is, and other gaps in points."""
    if finding["metric"] == IMPACT_RATIO:
        return f"{finding['ratio']:.2f}"
    gap = finding["gap"]
    if gap is None:
        return DASH
    if finding["metric"] == SLOPE:
        return f"{finding['value']:.2f}"
    # Adding 0 removes the sign of zero.
    points = round(100 * gap, decimals_of(gap)) + 0.0
    sign = "+" if points > 0 else ""
    return f"{sign}{points:.{decimals_of(gap)}f}".replace("-", MINUS)


# Most rows in the open, and most rows of a block.
_OPEN, _MOST_ROWS = 20, 60


@dataclass(frozen=True)
class Block:
    """Rows of the matrix, those that are folded, and sentences about those and others."""

    heading: str
    rows: list[MatrixRow]
    folded: list[MatrixRow]
    summary: str
    left_out: str


def blocks_of(matrix: Matrix) -> list[Block]:
    """Fold all but the first rows."""
    blocks = []
    for heading, rows in (("Segments", matrix.single), ("Crossed segments", matrix.crossed)):
        more = len(rows) - _MOST_ROWS
        left_out = f"{many(more, 'more segment')} with less serious findings: {NOT_HERE}."
        summary, told = summed_up(rows[_OPEN:]), left_out if more > 0 else ""
        blocks.append(Block(heading, rows[:_OPEN], rows[_OPEN:_MOST_ROWS], summary, told))
    return [block for block in blocks if block.rows]


def shown_in(blocks: list[Block], findings: pl.DataFrame) -> pl.DataFrame:
    """Name the segments that have a row, and all rows together."""
    rows = [
        (row.attribute, row.segment, row.model)
        for block in blocks
        for row in (*block.rows, *block.folded)
    ]
    named = pl.DataFrame(rows, schema=dict.fromkeys(ALL_KEYS, pl.String), orient="row")
    return pl.concat([findings.filter(attribute=OVERALL).select(ALL_KEYS).unique(), named])
