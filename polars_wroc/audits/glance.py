"""The one table of an audit: all groups at a glance, with a dot plot in each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import polars as pl

from polars_wroc.audits.amounts import write_margin, write_percent
from polars_wroc.audits.say import AUC, SELECTION_RATE, ComparedRow
from polars_wroc.audits.tables import name_of
from polars_wroc.audits.toned_audit import NOTABLE, Keys, TonedAudit, find_segment_keys
from polars_wroc.audits.words import Words, name_attribute
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.blocks import Cell, Column, Dots, Row, RowKind, Sign, Table, Tone
from polars_wroc.documents.numbers import DASH, write_number, write_size
from polars_wroc.documents.phrases import capitalise
from polars_wroc.groups.comparisons import IMPACT_RATIO, METRICS
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.names import show_name
from polars_wroc.stats.families import DIFFERENT

# The comparisons of a group by their metrics.
_Metrics: TypeAlias = Mapping[str, ComparedRow]

# The metrics that may have a column beside the dot plot.
GLANCE_METRICS = (IMPACT_RATIO, "tpr", "fpr", "ppv", AUC, CALIBRATION_ERROR)
# If an attribute has more groups, only those that differ are shown, and one row for the others.
_MOST = 15
# The margin at both ends of a dot plot, in percent; its least range, and the number of ticks.
_EDGE, _LEAST_SPAN, _TICKS = 2.5, 0.2, 6
# Down and up: filled if a group is worse off, hollow if better, thin if neither.
_ARROWS = {"worse": "▼▲", "better": "▽△", "either": "↓↑"}
_ALIKE, _DIFFERS = "≈", "◆"


@dataclass(frozen=True)
class NumberScale:
    """The scale of a dot plot."""

    low: float
    high: float
    ticks: Sequence[float]

    def place(self, value: float) -> float:
        """Return the place of a number in percent."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * share, 1)


def make_number_scale(rows: Sequence[ComparedRow], min_rows: int) -> NumberScale:
    """Return a scale for values, and for limits of groups with enough rows; 20 points or more."""
    large = [row for row in rows if row["n"] >= min_rows] or rows
    numbers = [row[name] for row in rows for name in ("value", "reference_value")]
    numbers += [row[name] for row in large for name in ("value_low", "value_high")]
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    # A minimum width, so that small differences look small.
    room = max(0.06 * (high - low), (_LEAST_SPAN - (high - low)) / 2)
    low, high = max(0.0, low - room), min(1.0, high + room)
    return NumberScale(low, high, _choose_ticks(low, high))


def _choose_ticks(low: float, high: float) -> list[float]:
    """Return about a given number of round numbers between two."""
    raw = (high - low) / _TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def lay_out_groups(toned: TonedAudit) -> Table:
    """Return the table of all groups of an audit."""
    return _Glance(toned).lay_out()


@dataclass(frozen=True)
class _Glance:
    """The numbers of an audit, and their layout."""

    toned: TonedAudit

    @property
    def words(self) -> Words:
        """The words of the audit."""
        return self.toned.words

    @cached_property
    def models(self) -> Sequence[str | None]:
        """The scores, each with a row for each group."""
        return self.toned.audit.segments[MODEL].unique(maintain_order=True).to_list()

    @cached_property
    def metrics(self) -> Sequence[str]:
        """The metrics with a column: the selection rate first, or else the AUC."""
        known = {*self.toned.table.filter(pl.col("value").is_not_null())["metric"]}
        headline = SELECTION_RATE if SELECTION_RATE in known or AUC not in known else AUC
        return [headline, *(name for name in GLANCE_METRICS if name in known - {headline})]

    @property
    def headline(self) -> str:
        """The metric of the dot plot."""
        return self.metrics[0]

    @cached_property
    def numbers(self) -> Mapping[Keys, _Metrics]:
        """The comparisons of each group and score, by metric."""
        numbers: dict[Keys, dict[str, ComparedRow]] = {}
        for row in self.toned.table.filter(pl.col("metric").is_in(self.metrics)).to_dicts():
            numbers.setdefault(find_segment_keys(row), {})[row["metric"]] = row
        return numbers

    @cached_property
    def scale(self) -> NumberScale:
        """The scale of the dot plots."""
        drawn = [rows[self.headline] for rows in self.numbers.values() if self.headline in rows]
        known = [row for row in drawn if row["value"] is not None]
        return make_number_scale(known, self.toned.audit.settings.min_rows)

    def lay_out(self) -> Table:
        """Return the table: everyone, then the groups of each attribute."""
        segments = self.toned.audit.segments
        n = segments.filter(attribute=OVERALL)["n"][0]
        everyone = capitalise(self.words.everyone)
        rows = self._write_rows(everyone, n, self._write_cells(OVERALL, OVERALL), "all")
        for attribute in segments["attribute"].unique(maintain_order=True):
            if attribute != OVERALL:
                rows += self._write_attribute(attribute)
        legend, title = self._explain_signs(rows), "All groups at a glance"
        return Table(self._head_columns(), rows, title, legend=legend, style="glance")

    # Headings.

    def _head_columns(self) -> list[Column]:
        form = ".2f" if self.headline == AUC else ".0%"
        axis = [(self.scale.place(tick), f"{tick:{form}}") for tick in self.scale.ticks]
        score = [Column("Score", style="left", essential=True)] if len(self.models) > 1 else []
        return [
            Column("Group", essential=True),
            Column(capitalise(self.words.rows), style="n"),
            *score,
            Column("", style="plot", axis=axis),
            *map(self._head_metric, self.metrics),
        ]

    def _head_metric(self, metric: str) -> Column:
        """Return the heading of a metric: plain words, and its technical name."""
        words, essential = self.words, metric == self.headline
        if metric == IMPACT_RATIO:
            # The ratio of rates of the good decision, which is not the headline's if selection is
            # bad.
            which = f" ({words.good})" if words.good != words.selected else ""
            return Column(f"Impact ratio{which}", f"to the highest share {words.good}")
        note, heading, over = METRICS[metric].label, capitalise(words.heading(metric)), ""
        if metric == AUC:
            heading = "Ranking"
        elif metric == CALIBRATION_ERROR:
            note = "points, score minus outcome"
        elif metric == SELECTION_RATE and words.good != words.selected:
            # Being selected sounds good, which it is not here.
            note = "share of all"
        elif metric in ("tpr", "fpr"):
            heading = words.among("positive" if metric == "tpr" else "negative")
            over = capitalise(f"{words.selected} among")
        return Column(heading, note, over=over, essential=essential)

    # Rows.

    def _write_attribute(self, attribute: str) -> list[Row]:
        """Return the rows of an attribute: all groups, or the different ones and one for others."""
        segments = self.toned.audit.segments.filter(attribute=attribute)
        counts = dict(segments.select("segment", "n").rows())
        groups = self._sort(attribute, [*counts])
        shown = groups
        if len(groups) > _MOST:
            shown = [name for name in groups if self._differs(attribute, name)][:_MOST]
        rows = [Row(name_attribute(attribute), kind="group")]
        for name in shown:
            cells = self._write_cells(attribute, name)
            rows += self._write_rows(show_name(name_of(name)), counts[name], cells)
        if others := [name for name in groups if name not in shown]:
            different = sum(self._differs(attribute, name) for name in others)
            found = f"{different:,} of them different" if different else "inconclusive or alike"
            more = f"{len(others):,} {'others' if shown else 'groups'}, {found}"
            n = sum(counts[name] for name in others)
            rows += self._write_rows(more, n, self._sum_up(attribute, others), "more")
        return rows

    def _sort(self, attribute: str, names: Sequence[str | None]) -> list[str | None]:
        """Return groups in the order of ranges or numbers, others with the worst off first."""
        known = [name for name in names if name is not None]
        is_ordered = attribute in self.toned.audit.ordered or _have_digits(known)
        if is_ordered and len(known) <= _MOST:
            return [*known, *(name for name in names if name is None)]
        sign = -1 if self.words.favorable == "rejected" else 1

        def rank(name: str | None) -> tuple[bool, float]:
            row = self._find_group(attribute, name, self.models[0]).get(self.headline)
            value = None if row is None else row["value"]
            return name is None, sign * (value or 0.0)

        return sorted(names, key=rank)

    def _find_group(self, attribute: str, name: str | None, model: str | None) -> _Metrics:
        return self.numbers.get((attribute, name, model), {})

    def _differs(self, attribute: str, name: str | None) -> bool:
        """Return whether one of the columns shows that a group differs."""
        return any(
            row["tone"] in NOTABLE
            for model in self.models
            for row in self._find_group(attribute, name, model).values()
        )

    def _write_rows(
        self, name: str, n: int, cells: Sequence[Sequence[Cell]], kind: RowKind = ""
    ) -> list[Row]:
        """Return a row for each score; only the first has the name and the number of rows."""
        if len(self.models) == 1:
            return [Row(name, [Cell(f"{n:,}"), *cells[0]], kind)]
        rows = []
        for place, model in enumerate(self.models):
            again = place > 0
            first = [Cell("" if again else f"{n:,}"), Cell(str(model))]
            rows.append(Row("" if again else name, [*first, *cells[place]], kind, again))
        return rows

    def _write_cells(self, attribute: str, name: str | None) -> list[list[Cell]]:
        """Return the dot plot and the numbers of a group, for each score."""
        cells = []
        for model in self.models:
            rows = self._find_group(attribute, name, model)
            dots = self._draw(rows.get(self.headline), self._find_four_fifths(attribute, model))
            numbers = [
                Cell("") if self._is_said(metric, model) else _write_cell(rows.get(metric))
                for metric in self.metrics
            ]
            is_drawn = not self._is_said(self.headline, model)
            cells.append([Cell(dots=dots) if is_drawn else Cell(""), *numbers])
        return cells

    def _is_said(self, metric: str, model: str | None) -> bool:
        """Return whether the first score's row already has the number, of shared decisions."""
        return model != self.models[0] and not self.words.names_score(metric)

    def _sum_up(self, attribute: str, names: Sequence[str | None]) -> list[list[Cell]]:
        """Return the dots and the ranges of numbers of several groups, for each score."""
        cells = []
        for model in self.models:
            groups = [self._find_group(attribute, name, model) for name in names]
            known = [self._list_large(groups, metric) for metric in self.metrics]
            dots = Dots([self.scale.place(row["value"]) for row in known[0]], self._ticks)
            cells.append([Cell(dots=dots), *map(_write_span, known)])
        return cells

    def _list_large(self, groups: Sequence[_Metrics], metric: str) -> list[ComparedRow]:
        """Return the values of a metric that are based on enough rows."""
        least = self.toned.audit.settings.min_rows
        rows = [group[metric] for group in groups if metric in group]
        return [row for row in rows if row["value"] is not None and row["n"] >= least]

    # Dot plots.

    @property
    def _ticks(self) -> list[float]:
        return [self.scale.place(tick) for tick in self.scale.ticks]

    def _find_four_fifths(self, attribute: str, model: str | None) -> float | None:
        """Return four fifths of the highest rate of the good decision, on the scale."""
        if self.headline != SELECTION_RATE:
            return None
        rates = list[float]()
        for (name, _, score), rows in self.numbers.items():
            has_ratio = IMPACT_RATIO in rows and rows[IMPACT_RATIO]["ratio"] is not None
            rate = rows[SELECTION_RATE]["value"] if SELECTION_RATE in rows else None
            if (name, score) == (attribute, model) and has_ratio and rate is not None:
                rates.append(rate)
        if not rates:
            return None
        if self.words.favorable == "rejected":
            return 1 - FOUR_FIFTHS * (1 - min(rates))
        return FOUR_FIFTHS * max(rates)

    def _draw(self, row: ComparedRow | None, four_fifths: float | None) -> Dots:
        """Return the dot plot of a group with its interval and its reference."""
        scale = self.scale
        fifths = None
        if four_fifths is not None and scale.low <= four_fifths <= scale.high:
            fifths = scale.place(four_fifths)
        if row is None or row["value"] is None:
            return Dots([], self._ticks, fifths=fifths)
        limits = other = None
        if row["value_low"] is not None and row["value_high"] is not None:
            limits = scale.place(row["value_low"]), scale.place(row["value_high"])
        if row["reference_value"] is not None:
            other = scale.place(row["reference_value"])
        tone: Tone = row["tone"] if row["tone"] in NOTABLE else ""
        return Dots([scale.place(row["value"])], self._ticks, limits, other, fifths, tone)

    # The legend.

    def _explain_signs(self, rows: Sequence[Row]) -> list[Sign]:
        """Return the explanation of the signs in the table."""
        words, cells = self.words, [cell for row in rows for cell in row.cells]
        others = "the reference" if words.named else words.others
        signs = [
            Sign(f"group, with {100 * words.confidence:.4g}% interval", part="dot"),
            Sign(others, part="other"),
        ]
        if any(cell.dots is not None and cell.dots.fifths is not None for cell in cells):
            signs.append(Sign(self._explain_fifths(), part="fifths"))
        # The first sign with a size explains it.
        meanings: dict[Tone, tuple[str, str]] = {
            "worse": (f"worse than {others}", self._explain_ratios()),
            "better": ("better", ""),
            "either": ("different", ", neither better nor worse"),
            "alike": (self._explain_alike(), ""),
        }
        by_points = " by n points"
        for tone, (meaning, more) in meanings.items():
            changes = [cell.change for cell in cells if cell.tone == tone]
            if not changes:
                continue
            example, size = _join_signs(changes), ""
            if "n" in example:
                size, by_points = by_points, ""
            signs.append(Sign(f"{meaning}{size}{more}", Cell("", example, tone)))
        return [*signs, Sign(f"plain: {self._explain_plain()}")]

    def _explain_fifths(self) -> str:
        """Return the words for the line at four fifths."""
        fifths = f"four fifths of the highest share {self.words.good}"
        is_bad = self.words.good != self.words.selected
        return f"beyond it, fewer than {fifths}" if is_bad else fifths

    def _explain_plain(self) -> str:
        """Return the explanation of cells without a sign."""
        is_small = any(
            metric in self.metrics and row["verdict"] == DIFFERENT and not row["tone"]
            for rows in self.numbers.values()
            for metric, row in rows.items()
        )
        return "inconclusive, or a small difference" if is_small else "inconclusive"

    def _explain_ratios(self) -> str:
        """Return the explanation of marked impact ratios, if some are."""
        rows = (row.get(IMPACT_RATIO, {}) for row in self.numbers.values())
        is_marked = any(row.get("tone") == "worse" for row in rows)
        return ", or below four fifths" if is_marked else ""

    def _explain_alike(self) -> str:
        """Return the explanation of comparisons without a difference that matters."""
        alike = {
            metric
            for rows in self.numbers.values()
            for metric, row in rows.items()
            if row["tone"] == "alike" and row["attribute"] != OVERALL
        }
        meanings = [f"within {write_margin(self.words.margin)}"] if alike - {IMPACT_RATIO} else []
        if IMPACT_RATIO in alike:
            meanings.append("at least four fifths")
        return f"shown to be {' or '.join(meanings)}"


def _have_digits(names: Sequence[str]) -> bool:
    return any(any(letter.isdigit() for letter in name) for name in names)


def _write_cell(row: ComparedRow | None) -> Cell:
    if row is None or row["value"] is None:
        return Cell(DASH)
    text, tone = _write_number(row), row["tone"]
    if tone == "alike":
        # All rows are not compared in this table.
        return Cell(text) if row["attribute"] == OVERALL else Cell(text, _ALIKE, "alike")
    return Cell(text, _write_change(row), tone) if tone else Cell(text)


def _write_number(row: ComparedRow) -> str:
    """Return the number of a metric as text."""
    if row["metric"] in (IMPACT_RATIO, AUC):
        return f"{row['value']:.2f}"
    if row["metric"] == CALIBRATION_ERROR:
        return write_number(100 * row["value"], "+.0f")
    return write_percent(row["value"])


def _write_change(row: ComparedRow) -> str:
    """Return the gap of a comparison that differs: ``▼24``."""
    if row["metric"] == CALIBRATION_ERROR:
        return _DIFFERS
    arrows = _ARROWS[row["tone"]]
    if row["metric"] == IMPACT_RATIO:
        return arrows[0]
    arrow = arrows[1] if row["gap"] > 0 else arrows[0]
    size = f"{abs(row['gap']):.2f}" if row["metric"] == AUC else write_size(row["gap"])
    return f"{arrow}{size}"


def _write_span(rows: Sequence[ComparedRow]) -> Cell:
    """Return the range of the numbers of several groups as text."""
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


def _join_signs(changes: Sequence[str]) -> str:
    """Return the first arrow, with ``n`` for a size if any has one, and other signs."""
    arrows = [change for change in changes if change != _DIFFERS]
    sized = [f"{change[0]}n" for change in arrows if len(change) > 1]
    signs = [*sized, *arrows][:1]
    return " ".join([*signs, _DIFFERS] if len(arrows) < len(changes) else signs)
