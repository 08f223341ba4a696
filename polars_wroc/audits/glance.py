"""The one table of an audit: all groups at a glance, with a dot plot in each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from polars_wroc.audits.amounts import write_margin, write_percent
from polars_wroc.audits.answer import SELECTION_RATE, SHOWN
from polars_wroc.audits.findings import add_tones
from polars_wroc.audits.say import AUC
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.words import Words, capitalised, label_group
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.blocks import Cell, Column, Dots, Row, Sign, Table, Tone
from polars_wroc.documents.numbers import DASH, write_number, write_size
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import IMPACT_RATIO
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR

# A row of the table of an audit, and the rows of a group by their metrics.
Compared: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = Mapping[str, Compared]
# A group of an attribute, by a score.
_Place: TypeAlias = tuple[str, str | None, str | None]

# Columns beside the dot plot, those that have a number.
METRICS = (IMPACT_RATIO, "tpr", "fpr", "ppv", AUC, CALIBRATION_ERROR)
_TECHNICAL = {
    SELECTION_RATE: "selection rate",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision",
    AUC: "AUC",
    CALIBRATION_ERROR: "score minus outcome",
}
# Groups of an attribute that are all shown; of more only those that differ, and one row for others.
_MOST = 15
# Room at both ends of a dot plot, in percent; the least that it spans, and labels of its axis.
_EDGE, _LEAST_SPAN, _TICKS = 2.5, 0.2, 6
# Down and up: filled where a group is worse off, hollow where better, thin where neither.
_ARROWS = {"worse": "▼▲", "better": "▽△", "either": "↓↑"}
_ALIKE, _DIFFERS = "≈", "◆"


@dataclass(frozen=True)
class Scale:
    """Where a number is in a dot plot."""

    low: float
    high: float
    ticks: Sequence[float]

    def place(self, value: float) -> float:
        """Return the place of a number in percent."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * share, 1)


def make_scale(rows: Sequence[Compared], min_rows: int) -> Scale:
    """Span the values, and the limits of groups that have enough rows, but at least 20 points."""
    large = [row for row in rows if row["n"] >= min_rows] or rows
    numbers = [row[name] for row in rows for name in ("value", "reference_value")]
    numbers += [row[name] for row in large for name in ("value_low", "value_high")]
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    # At least this wide, so that small differences look small.
    room = max(0.06 * (high - low), (_LEAST_SPAN - (high - low)) / 2)
    low, high = max(0.0, low - room), min(1.0, high + room)
    return Scale(low, high, _choose_ticks(low, high))


def _choose_ticks(low: float, high: float) -> list[float]:
    """Choose about so many round numbers between two."""
    raw = (high - low) / _TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def lay_out_groups(audit: AuditTables, words: Words) -> Table:
    """Lay out all groups of an audit."""
    glance = _read_audit(audit, words)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    rows = glance.everyone()
    for attribute in attributes:
        if attribute != OVERALL:
            rows += glance.attribute(attribute)
    title = "All groups at a glance"
    return Table(glance.columns(), rows, title, legend=glance.legend(rows), style="glance")


def _read_audit(audit: AuditTables, words: Words) -> _Glance:
    """Choose the metrics of the table, and look up its numbers."""
    table = add_tones(audit.table, audit.settings)
    known = set(table.filter(pl.col("value").is_not_null())["metric"])
    headline = SELECTION_RATE if SELECTION_RATE in known or AUC not in known else AUC
    metrics = [name for name in METRICS if name in known and name != headline]
    numbers: dict[_Place, dict[str, Compared]] = {}
    for row in table.iter_rows(named=True):
        place = (row["attribute"], row["segment"], row[MODEL])
        numbers.setdefault(place, {})[row["metric"]] = row
    drawn = [
        rows[headline]
        for rows in numbers.values()
        if headline in rows and rows[headline]["value"] is not None
    ]
    models = audit.segments[MODEL].unique(maintain_order=True).to_list()
    scale = make_scale(drawn, audit.settings.min_rows)
    return _Glance(audit, words, headline, metrics, numbers, models, scale)


@dataclass(frozen=True)
class _Glance:
    """The numbers of an audit, and how they are shown."""

    audit: AuditTables
    words: Words
    headline: str
    metrics: Sequence[str]
    numbers: Mapping[_Place, Metrics]
    # The scores, each with a row for each group.
    models: Sequence[str | None]
    scale: Scale

    def columns(self) -> list[Column]:
        """Return the headings of the columns."""
        columns = [
            Column("Group", essential=True),
            Column(capitalised(self.words.rows), style="n"),
        ]
        if len(self.models) > 1:
            columns.append(Column("Score", style="left", essential=True))
        form = ".2f" if self.headline == AUC else ".0%"
        axis = [(self.scale.place(tick), f"{tick:{form}}") for tick in self.scale.ticks]
        columns.append(Column("", style="plot", axis=axis))
        columns.append(self._head(self.headline, essential=True))
        return [*columns, *map(self._head, self.metrics)]

    def _head(self, metric: str, *, essential: bool = False) -> Column:
        """Return the heading of a metric: plain words, and its technical name."""
        words = self.words
        if metric == IMPACT_RATIO:
            # The rate of the good decision, which the headline is not if selection is bad.
            note = f"{words.good}, to the highest share"
            return Column("Impact ratio", note, essential=essential)
        note = _TECHNICAL[metric]
        if metric in ("tpr", "fpr"):
            kind = words.among("positive" if metric == "tpr" else "negative")
            return Column(kind, note, over=capitalised(f"{words.selected} among"))
        heading = "Ranking" if metric == AUC else capitalised(words.heading(metric))
        return Column(heading, note, essential=essential)

    def everyone(self) -> list[Row]:
        """Return the first row, of everyone, for each score."""
        overall = self.audit.segments.filter(attribute=OVERALL)
        name = capitalised(self.words.everyone)
        counts = dict(overall.select(MODEL, "n").rows())
        return [
            self._row((OVERALL, OVERALL, model), name, counts[model], is_all=True)
            for model in self.models
        ]

    def attribute(self, attribute: str) -> list[Row]:
        """Return the rows of an attribute: all groups, or those that differ and one for others."""
        of_first = self.audit.segments.filter(
            pl.col(MODEL).eq_missing(pl.lit(self.models[0], pl.String)), attribute=attribute
        )
        counts = dict(of_first.select("segment", "n").rows())
        groups = self._sort(attribute, [*counts])
        shown = groups
        if len(groups) > _MOST:
            shown = [name for name in groups if self._differs(attribute, name)][:_MOST]
        rows = [Row(attribute.replace(CROSSED, " and "), kind="group")]
        for name in shown:
            rows += [
                self._row((attribute, name, model), label_group(name), counts[name])
                for model in self.models
            ]
        others = [name for name in groups if name not in shown]
        if others:
            rows += self._sum_up(attribute, others, sum(counts[name] for name in others))
        return rows

    def _sort(self, attribute: str, names: Sequence[str | None]) -> list[str | None]:
        """Keep the order of ranges and of names with numbers; sort others, the worst off first."""
        known = [name for name in names if name is not None]
        is_ordered = attribute in self.audit.ordered or _have_digits(known)
        if is_ordered and len(known) <= _MOST:
            return [*known, *(name for name in names if name is None)]
        sign = -1 if self.words.favorable == "rejected" else 1

        def rank(name: str | None) -> tuple[bool, float]:
            row = self.numbers.get((attribute, name, self.models[0]), {}).get(self.headline)
            value = None if row is None else row["value"]
            return name is None, sign * (value or 0.0)

        return sorted(names, key=rank)

    def _differs(self, attribute: str, name: str | None) -> bool:
        """Whether one of the columns shows that a group differs."""
        shown = (self.headline, *self.metrics)
        return any(
            metric in shown and row["tone"] in SHOWN
            for model in self.models
            for metric, row in self.numbers.get((attribute, name, model), {}).items()
        )

    def _row(self, place: _Place, name: str, n: int, *, is_all: bool = False) -> Row:
        """Return the row of a group by a score."""
        attribute, _, model = place
        rows = self.numbers.get(place, {})
        again = model != self.models[0]
        cells = [Cell("" if again else f"{n:,}")]
        if len(self.models) > 1:
            cells.append(Cell(str(model)))
        headline = rows.get(self.headline)
        dots = self._draw(headline, self._find_four_fifths(attribute, model))
        cells.append(Cell(dots=dots))
        cells += [_write_cell(rows.get(metric)) for metric in (self.headline, *self.metrics)]
        return Row("" if again else name, cells, "all" if is_all else "", again)

    def _find_four_fifths(self, attribute: str, model: str | None) -> float | None:
        """Return where four fifths of the highest rate of the good decision are."""
        if not self.words.knows_good or self.headline != SELECTION_RATE:
            return None
        best: float | None = None
        for (name, _, score), rows in self.numbers.items():
            if (name, score) != (attribute, model) or IMPACT_RATIO not in rows:
                continue
            rate = rows.get(SELECTION_RATE, {}).get("value")
            if rows[IMPACT_RATIO]["ratio"] is not None and rate is not None:
                good = 1 - rate if self.words.favorable == "rejected" else rate
                best = good if best is None else max(best, good)
        if best is None:
            return None
        return 1 - FOUR_FIFTHS * best if self.words.favorable == "rejected" else FOUR_FIFTHS * best

    def _draw(self, row: Compared | None, four_fifths: float | None) -> Dots:
        """Draw a group with its interval, and what it is compared with."""
        scale = self.scale
        ticks = [scale.place(tick) for tick in scale.ticks]
        fifths = None
        if four_fifths is not None and scale.low <= four_fifths <= scale.high:
            fifths = scale.place(four_fifths)
        if row is None or row["value"] is None:
            return Dots([], ticks, fifths=fifths)
        limits = None
        if row["value_low"] is not None and row["value_high"] is not None:
            limits = scale.place(row["value_low"]), scale.place(row["value_high"])
        other = None
        if row["reference_value"] is not None and row["attribute"] != OVERALL:
            other = scale.place(row["reference_value"])
        tone: Tone = row["tone"] if row["tone"] in SHOWN else ""
        return Dots([scale.place(row["value"])], ticks, limits, other, fifths, tone)

    def _sum_up(self, attribute: str, names: Sequence[str | None], n: int) -> list[Row]:
        """Return one row for the groups that do not differ: their dots, and ranges of numbers."""
        rows = []
        for model in self.models:
            again = model != self.models[0]
            ranges = {
                metric: self._find_large(attribute, names, model, metric)
                for metric in (self.headline, *self.metrics)
            }
            cells = [Cell("" if again else f"{n:,}")]
            if len(self.models) > 1:
                cells.append(Cell(str(model)))
            dots = [self.scale.place(row["value"]) for row in ranges[self.headline]]
            cells.append(Cell(dots=Dots(dots, [self.scale.place(one) for one in self.scale.ticks])))
            cells += [_write_span(found) for found in ranges.values()]
            name = f"{len(names):,} others, none shown to differ"
            rows.append(Row("" if again else name, cells, "more", again))
        return rows

    def _find_large(
        self, attribute: str, names: Sequence[str | None], model: str | None, metric: str
    ) -> list[Compared]:
        """Return the rows of a metric of these groups that rest on enough rows."""
        places = [self.numbers.get((attribute, name, model), {}) for name in names]
        rows = [found[metric] for found in places if metric in found]
        least = self.audit.settings.min_rows
        return [row for row in rows if row["value"] is not None and row["n"] >= least]

    def legend(self, rows: Sequence[Row]) -> list[Sign]:
        """Explain the signs that the table uses."""
        words, cells = self.words, [cell for row in rows for cell in row.cells]
        tones = {cell.tone for cell in cells}
        others = "the reference" if words.named else words.others
        signs = [
            Sign(f"group, with {100 * words.confidence:.4g}% interval", part="dot"),
            Sign(others, part="other"),
        ]
        if any(cell.dots is not None and cell.dots.fifths is not None for cell in cells):
            signs.append(Sign(f"four fifths of the highest share {words.good}", part="fifths"))
        if "worse" in tones:
            sign = Cell("", f"{_find_arrow(cells, 'worse')}n", "worse")
            signs.append(Sign(f"worse than {others}, by n points", sign))
        if "better" in tones:
            sign = Cell("", f"{_find_arrow(cells, 'better')}n", "better")
            signs.append(Sign("better", sign))
        if "either" in tones:
            sign = Cell("", f"{_find_arrow(cells, 'either')}n", "either")
            signs.append(Sign("different, neither better nor worse", sign))
        if "alike" in tones:
            signs.append(Sign(self._explain_alike(), Cell("", _ALIKE, "alike")))
        return [*signs, Sign("plain: no difference that matters is shown")]

    def _explain_alike(self) -> str:
        """Say what is shown of comparisons without a difference that matters."""
        shown = (self.headline, *self.metrics)
        alike = {
            metric
            for rows in self.numbers.values()
            for metric, row in rows.items()
            if metric in shown and row["tone"] == "alike" and row["attribute"] != OVERALL
        }
        meanings = [f"within {write_margin(self.words.margin)}"] if alike - {IMPACT_RATIO} else []
        if IMPACT_RATIO in alike:
            meanings.append("at least four fifths")
        return f"shown to be {' or '.join(meanings)}"


def _have_digits(names: Sequence[str]) -> bool:
    return any(any(letter.isdigit() for letter in name) for name in names)


def _write_cell(row: Compared | None) -> Cell:
    if row is None or row["value"] is None:
        return Cell(DASH)
    text, tone = _write_number(row), row["tone"]
    if tone == "alike":
        # Of all rows nothing is compared in this table.
        return Cell(text) if row["attribute"] == OVERALL else Cell(text, _ALIKE, "alike")
    return Cell(text, _write_change(row), tone) if tone else Cell(text)


def _write_number(row: Compared) -> str:
    """Write the number of a metric."""
    if row["metric"] in (IMPACT_RATIO, AUC):
        return f"{row['value']:.2f}"
    if row["metric"] == CALIBRATION_ERROR:
        return write_number(100 * row["value"], "+.0f")
    return write_percent(row["value"])


def _write_change(row: Compared) -> str:
    """Write the gap of a comparison that differs: ``▼24``."""
    if row["metric"] == CALIBRATION_ERROR:
        return _DIFFERS
    arrows = _ARROWS[row["tone"]]
    if row["metric"] == IMPACT_RATIO:
        return arrows[0]
    arrow = arrows[1] if row["gap"] > 0 else arrows[0]
    size = f"{abs(row['gap']):.2f}" if row["metric"] == AUC else write_size(row["gap"])
    return f"{arrow}{size}"


def _write_span(rows: Sequence[Compared]) -> Cell:
    """Write the range of the numbers of several groups."""
    if not rows:
        return Cell(DASH)
    least = min(rows, key=lambda row: row["value"])
    most = max(rows, key=lambda row: row["value"])
    first, last = _write_number(least), _write_number(most)
    if first == last:
        return Cell(first)
    if least["metric"] == CALIBRATION_ERROR:
        return Cell(f"{first} to {last}")
    return Cell(f"{first.removesuffix('%')}{DASH}{last}")


def _find_arrow(cells: Sequence[Cell], tone: Tone) -> str:
    """Return the arrow of the first change that is shown in a tone."""
    changes = [cell.change for cell in cells if cell.tone == tone and cell.change]
    return changes[0][0] if changes else ""
