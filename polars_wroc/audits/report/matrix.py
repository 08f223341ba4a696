"""The matrix of findings: which segment differs on what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.findings import by_severity
from polars_wroc.audits.formats import number_of
from polars_wroc.audits.report.figures import PREDICTED, SELECTION_RATE
from polars_wroc.audits.report.tables import Outcome, outcome_of
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    segment_in_words,
)
from polars_wroc.audits.words import DASH, NOT_HERE, Words, capitalised, many, points
from polars_wroc.documents.blocks import TONE_SIGNS
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import (
    FINDINGS,
    GAP_METRICS,
    IMPACT_RATIO,
    REPEATS,
    THE_REFERENCE,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.inputs.reasons import FEW
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE

SYMBOLS: dict[str, str] = {
    **{str(tone): sign for tone, sign in TONE_SIGNS.items()},
    "alike": "\N{ALMOST EQUAL TO}",
    "little": "?",
    "none": "",
}
# Metrics without a column, named only where they differ.
_FURTHER = {"ppv": GAP_METRICS["ppv"].label, "npv": "npv", SLOPE: "slope"}
# Gaps of more than so many margins have the same colour.
_DARKEST = 4


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
    # The other one of two segments, which has no row, if each is compared with the other.
    against: str | None = None

    @property
    def name(self) -> str:
        """The segment, and the other one if there are two."""
        against = "" if self.against is None else f" against {name_of(self.against)}"
        return f"{name_of(self.segment)}{against}"

    @property
    def attribute_shown(self) -> str:
        """The attribute, unless the name of the segment has it."""
        doubled = segment_in_words(self.attribute, self.segment) == name_of(self.segment)
        return "" if doubled else self.attribute

    @property
    def parts(self) -> list[str]:
        """The values of crossed attributes, if the name tells them apart."""
        parts = name_of(self.segment).split(", ")
        return parts if len(parts) == len(self.attribute.split(CROSSED)) > 1 else []


@dataclass(frozen=True)
class Matrix:
    """The segments of single attributes and those of crossed ones, each the most serious first."""

    columns: list[Column]
    single: list[MatrixRow]
    crossed: list[MatrixRow]

    @property
    def rows(self) -> list[MatrixRow]:
        """All rows."""
        return [*self.single, *self.crossed]

    @property
    def differs(self) -> bool:
        """Whether something differs."""
        return any(row.differs for row in self.rows)

    @property
    def marks(self) -> set[str]:
        """The outcomes that occur, and whether there are few rows and undefined numbers."""
        cells = [cell for row in self.rows for cell in row.cells if cell is not None]
        further = [cell for row in self.rows for _, cell in row.further]
        few = {"few" for cell in cells if cell.reason.startswith(FEW)}
        undefined = {"undefined" for cell in cells if cell.number == DASH}
        return {cell.outcome for cell in [*cells, *further]} | few | undefined

    @property
    def has_further(self) -> bool:
        """Whether a metric without a column differs somewhere."""
        return any(row.further for row in self.rows)


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
    # Impact ratios also have a row for unknown combinations, which are no segment.
    known = {keys: each for keys, each in segments.items() if keys in counts}
    others = _others_of_two(known)
    laid_out = [
        _row(keys, counts[keys], each.to_dicts(), columns, others.get(keys))
        for keys, each in known.items()
        if keys not in {(one[0], other, one[2]) for one, other in others.items()}
    ]
    # Several scores of a segment are below each other.
    first = {row[:2]: place for place, row in reversed([*enumerate(known)])}
    models = [*dict.fromkeys(audit.segments[MODEL])]
    laid_out.sort(key=lambda row: (first[row.attribute, row.segment], models.index(row.model)))
    return Matrix(
        columns,
        [row for row in laid_out if row.attribute in settings.attributes],
        [row for row in laid_out if row.attribute not in settings.attributes],
    )


def _others_of_two(segments: Mapping[tuple[Any, ...], pl.DataFrame]) -> dict[Any, str]:
    """Name the other one of two segments that are compared with each other, for one of the two.

    The one that an impact ratio refers to has no row.
    """
    others, chosen = dict[Any, str](), dict[str, str | None]()
    pairs = dict[Any, list[tuple[Any, ...]]]()
    for keys in segments:
        pairs.setdefault((keys[0], keys[2]), []).append(keys)
    for pair in pairs.values():
        found = pl.concat([segments[one] for one in pair])
        repeats = found.filter(pl.col("reason").str.starts_with(REPEATS))
        if len(pair) == 2 and not repeats.is_empty():  # noqa: PLR2004
            referred = found.filter(metric=IMPACT_RATIO, reason=THE_REFERENCE)["segment"]
            kept, other = pair[::-1] if pair[0][1] in referred else pair
            # The same one for all scores.
            first = chosen.setdefault(kept[0], kept[1])
            kept, other = (kept, other) if kept[1] == first else (other, kept)
            others[kept] = other[1]
    return others


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
        Column(SELECTION_RATE, f"{selected} of all", "rate"),
        Column(IMPACT_RATIO, "Impact ratio", "4/5"),
        Column("tpr", f"{selected} of those actually {words.positive}", "tpr"),
        Column("fpr", f"{selected} of those actually {words.negative}", "fpr"),
        Column("auc", "Ranking", "AUC"),
        Column(CALIBRATION_ERROR, PREDICTED, "outcome"),
    ]


def _in_margins(margin: float) -> pl.Expr:
    """Measure a finding in margins, an impact ratio by its distance from 1."""
    from_one = (1 - pl.col("ratio")).abs()
    distance = pl.when(metric=IMPACT_RATIO).then(from_one).otherwise(pl.col("gap").abs())
    return distance / margin


def _row(
    keys: tuple[Any, ...],
    n: int,
    findings: list[dict[str, Any]],
    columns: list[Column],
    against: str | None,
) -> MatrixRow:
    of_metric = {finding["metric"]: finding for finding in findings}
    cells = [_cell(of_metric.get(column.metric)) for column in columns]
    further = [
        (name, _with_number(finding))
        for metric, name in _FURTHER.items()
        if (finding := of_metric.get(metric)) and finding["verdict"] in FINDINGS
    ]
    differs = any(finding["verdict"] in FINDINGS for finding in findings)
    attribute, segment, model = keys
    return MatrixRow(attribute, segment, model, n, cells, further, differs, against)


def _cell(finding: Mapping[str, Any] | None) -> MatrixCell | None:
    if finding is None:
        return None
    number, reason = finding["number"], finding["reason"] or ""
    if finding["verdict"] is None:
        text = "reference" if reason == THE_REFERENCE else DASH
        return MatrixCell(text, "none", 0, number, reason=reason)
    if reason.startswith(FEW):
        return MatrixCell(_few_in_short(reason, finding["n"]), "little", 0, number, reason=reason)
    return _with_number(finding)


def _few_in_short(reason: str, n: int) -> str:
    """Write how many rows there are if these are the ones that are too few: see `few_rows`."""
    least = int(reason.removeprefix(FEW).split()[0])
    return f"n={n:,}" if n < least else "few"


def _with_number(finding: Mapping[str, Any]) -> MatrixCell:
    size, different = finding["size"], finding["verdict"] in FINDINGS
    level = min(math.ceil(size), _DARKEST) if size is not None and math.isfinite(size) else _DARKEST
    colour = max(level, 1) if different else 0
    number = number_of(finding)
    if finding["metric"] == CALIBRATION_ERROR:
        # The column is named for the value, which is no gap.
        number = points(finding["value"])
    return MatrixCell(number, outcome_of(finding), colour, finding["number"])


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

    @property
    def crossed(self) -> list[str]:
        """The attributes, if all rows are of the same crossed ones and each name has its parts."""
        rows = [*self.rows, *self.folded]
        (first, *others) = {row.attribute if row.parts else "" for row in rows}
        return first.split(CROSSED) if first and not others else []


def blocks_of(matrix: Matrix) -> list[Block]:
    """Fold all but the first rows."""
    blocks = []
    order = ", the most serious first" if matrix.differs else ""
    for heading, rows in (
        (f"Segments{order}", matrix.single),
        (f"Crossed segments{order}", matrix.crossed),
    ):
        more = len(rows) - _MOST_ROWS
        left_out = f"{many(more, 'more segment')} with less serious findings: {NOT_HERE}."
        summary, told = summed_up(rows[_OPEN:]), left_out if more > 0 else ""
        blocks.append(Block(heading, rows[:_OPEN], rows[_OPEN:_MOST_ROWS], summary, told))
    return [block for block in blocks if block.rows]


def shown_in(blocks: list[Block], findings: pl.DataFrame) -> pl.DataFrame:
    """Name the segments that have a row, and all rows together."""
    rows = [
        (row.attribute, segment, row.model)
        for block in blocks
        for row in (*block.rows, *block.folded)
        for segment in {row.segment, row.against or row.segment}
    ]
    named = pl.DataFrame(rows, schema=dict.fromkeys(ALL_KEYS, pl.String), orient="row")
    return pl.concat([findings.filter(attribute=OVERALL).select(ALL_KEYS).unique(), named])
