"""Tables of commands as they are printed: a verdict, columns that fit, and how rows are named."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.change_pages import title_changes
from polars_wroc.audits.change_sentences import write_changes
from polars_wroc.audits.provenance import list_provenance, write_foot
from polars_wroc.audits.tables import Run, audited_files, saved_audits
from polars_wroc.audits.words import capitalised, first_few, many, verb
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.blocks import Block, Line, Lines, Table, Text
from polars_wroc.documents.numbers import POINTS, metric_label, write_number
from polars_wroc.documents.phrases import write_list
from polars_wroc.documents.screen import Screen
from polars_wroc.documents.table_layout import lay_out
from polars_wroc.documents.text_writer import write_text
from polars_wroc.documents.workbook import write_workbook
from polars_wroc.files import outputs
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import (
    GAP_METRICS,
    REPEATS,
    is_finding,
)
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, UNKNOWN_CATEGORY
from polars_wroc.inputs.reasons import EVERYBODY, NO_VARIANCE, NOBODY
from polars_wroc.looks import ConfidenceLevel, as_number
from polars_wroc.metrics.compare import PAIR
from polars_wroc.ranking.curve import CELLS
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

# Most rows of a page, unless more are asked for.
_MOST_ROWS = 1_000
_SEPARATOR = "; "
# The AUC of a score that tells nothing.
_CHANCE = 0.5


def of_pairs(table: pl.DataFrame, keys: Sequence[str], level: ConfidenceLevel) -> str:
    """Say which pairs of scores have different AUCs."""
    significant = (pl.col("p_adjusted") <= 1 - as_number(level)).fill_null(value=False)
    tested = table.drop_nulls("p_adjusted").height
    found = table.filter(significant).sort(pl.col("gap").abs(), descending=True)
    if found.is_empty():
        return f"No score is shown to have a higher AUC than another ({many(tested, 'test')})."
    groups = [key for key in keys if key not in PAIR]
    start = "{}: " if groups else "{}"
    rows = found.iter_rows(named=True)
    names = [start.format(place(row, groups)) + _order(row) for row in rows]
    are = "differs" if found.height == 1 else "differ"
    counts = f"{found.height:,} of {many(tested, 'pair')} of AUCs {are}"
    return f"{counts}: {first_few(names, _SEPARATOR)}."


def of_gaps(
    table: pl.DataFrame, keys: Sequence[str], metric: str | None, reference: str, margin: float
) -> str:
    """Say which groups differ from their reference, in a metric or in any."""
    of_metric = table if metric is None else table.filter(metric=metric)
    found = of_metric.filter(verdict=DIFFERENT).sort(pl.col("gap").abs(), descending=True)
    names = [
        f"{place(row, keys)} ({POINTS.write(row['gap'])})" for row in found.iter_rows(named=True)
    ]
    what = f"from {reference}{_in(metric)}"
    thing = "comparison" if metric is None else "group"
    first = f"No group is shown to differ {what}."
    if of_metric["verdict"].count() == 0:
        first = "Nothing could be compared."
    if names:
        first = f"Different {what}, in points: {first_few(names, _SEPARATOR)}."
    alike, unclear = (of_metric.filter(verdict=v).height for v in (EQUIVALENT, INCONCLUSIVE))
    counts = [
        *([f"equivalent within {100 * margin:g} points: {many(alike, thing)}"] if alike else []),
        *([f"inconclusive: {many(unclear, thing)}"] if unclear else []),
    ]
    rest = f" {'; '.join(counts)}." if counts else ""
    counted = rest[:1] + rest[1:2].upper() + rest[2:]
    tests = _count_tests(table, of_metric)
    return same_decision(of_metric) + backwards(table, keys) + first + counted + tests


def backwards(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say first where a score ranks backwards: with an AUC significantly below that of chance."""
    names = ("auc", "auc_low", "auc_high")
    if "metric" in table.columns:
        table, names = table.filter(metric="auc"), ("value", "value_low", "value_high")
    places = []
    for row in table.filter(pl.col(names[2]) < _CHANCE).iter_rows(named=True):
        value, low, high = (f"{row[name]:.2f}" for name in names)
        group = f"{place(row, keys)}: " if keys else ""
        places.append(f"{group}AUC {value} ({low} to {high})")
    if not places:
        return ""
    where = f" in {first_few(places, _SEPARATOR)}" if keys else f": {places[0]}"
    return f"The score ranks backwards{where}. "


def same_decision(table: pl.DataFrame) -> str:
    """Say that nobody, or everybody, is selected, which leaves nothing to compare."""
    found = table.filter(pl.col("reason").is_in([NOBODY, EVERYBODY]))["reason"].unique().sort()
    return "".join(f"{capitalised(why)}: decisions cannot be compared. " for why in found)


def _count_tests(table: pl.DataFrame, shown: pl.DataFrame) -> str:
    """Say for how many tests the verdicts are adjusted, if they are, and how many are shown."""
    if table["p_value"].equals(table["p_adjusted"]):
        return ""
    # Of two groups that are compared with each other one test counts.
    is_counted = ~pl.col("reason").str.starts_with(REPEATS).fill_null(value=False)
    number, n_shown = (one.filter(is_counted)["p_value"].count() for one in (table, shown))
    if number == n_shown:
        return f" Verdicts are adjusted for {many(number, 'test')}, intervals are not."
    are = verb(n_shown, "is", "are")
    return (
        f" Verdicts are adjusted for all {many(number, 'test')} of this command, of which "
        f"{n_shown:,} {are} shown; intervals are not adjusted."
    )


def of_decisions(table: pl.DataFrame, keys: Sequence[str]) -> str | None:
    """Say where a rule can choose no threshold, and where one selects nobody or everybody."""
    sentences = []
    found = table.filter(pl.col("threshold").is_null())
    if not found.is_empty():
        groups = f" in {_places(found, keys)}" if keys else ""
        sentences.append(
            f"No threshold can be chosen{groups}: a class that the rule needs is missing."
        )
    whole = table.group_by("threshold", maintain_order=True).agg(pl.col(CELLS).sum())
    for who, cells in (("nobody", ("tp", "fp")), ("everybody", ("fn", "tn"))):
        known = pl.sum_horizontal(CELLS) > 0
        same = whole.drop_nulls().filter(known, pl.sum_horizontal(cells) == 0)["threshold"]
        if len(same):
            ways = first_few([write_number(value, "g") for value in same], ", ")
            sentences.append(f"At a threshold of {ways} {who} is selected.")
    return " ".join(sentences) or None


def of_calibration(slopes: pl.DataFrame, keys: Sequence[str], clip: float | None = None) -> str:
    """Say which scores are too high or too low, and of which the slope is not 1."""
    low, high = pl.col("calibration_slope_low"), pl.col("calibration_slope_high")
    said = {
        "Scores rank backwards (slope below 0)": high < 0,
        "Scores are too high on average": pl.col("oe_ratio_high") < 1,
        "Scores are too low on average": pl.col("oe_ratio_low") > 1,
        "High scores are too high and low ones too low (slope below 1)": high.is_between(0, 1)
        & (high < 1),
        "Scores are too close to the middle (slope above 1)": low > 1,
    }
    sentences = []
    for text, condition in said.items():
        found = slopes.filter(condition)
        if not found.is_empty():
            listed = f": {_places(found, keys)}" if keys else ""
            sentences.append(f"{text}{listed}.")
    unknown = slopes.filter(low.is_null())
    if not sentences:
        alone = "O:E (observed to expected positives) is not shown to differ from 1."
        both = "Neither O:E (observed to expected positives) nor a slope is shown to differ from 1."
        sentences.append(alone if unknown.height == slopes.height else both)
    elif keys:
        sentences.append("Limits are not adjusted for the number of groups.")
    return " ".join([*sentences, *_of_slopes_left_open(slopes, unknown, keys, clip)])


def _of_slopes_left_open(
    slopes: pl.DataFrame, unknown: pl.DataFrame, keys: Sequence[str], clip: float | None
) -> list[str]:
    """Say which slopes are unknown, and how many rows are in no slope."""
    sentences = []
    if not unknown.is_empty():
        listed = f" for {_places(unknown, keys)}" if keys else ""
        sentences.append(
            f"The slope is unknown{listed}: it needs scores between 0 and 1 of both classes, which "
            "overlap."
        )
    extreme, impossible = slopes.select(pl.col("n_extreme", "n_impossible").sum()).row(0)
    if extreme:
        rows = many(extreme, "row")
        if clip is None:
            sentences.append(f"Slopes are without {rows} with a score of 0 or 1.")
        else:
            taken = f"{clip:g} or {1 - clip:g}"
            sentences.append(f"Slopes take {rows} with a score of 0 or 1 as {taken}.")
    if impossible:
        sentences.append(
            f"{many(impossible, 'row')} came out against a score of 0 or 1, which no slope can "
            "mend."
        )
    return sentences


def of_ranges(test: pl.DataFrame, level: ConfidenceLevel) -> str:
    """Say in which ranges scores are off by more than chance."""
    keys = _before(test, "from_score")
    found = [
        f"{place(row, keys) or 'scores'} from {row['from_score']:.2f} to {row['to_score']:.2f} "
        f"({100 * abs(row['mean_calibration_error']):.0f} points {row['direction']})"
        for row in test.filter(pl.col("p_adjusted") <= 1 - as_number(level)).iter_rows(named=True)
    ]
    sentences = [f"Without bins, off most and by more than chance: {', '.join(found)}."]
    if not found:
        sentences = ["No range of scores is shown to be off."]
    if untested := [
        f"{place(row, keys) or 'the scores'} ({row['reason']})"
        for row in test.drop_nulls("reason").iter_rows(named=True)
    ]:
        sentences.append(f"Not tested: {first_few(untested, _SEPARATOR)}.")
    return " ".join(sentences)


def of_impact(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say which categories are below four fifths."""
    judged = table.drop_nulls("verdict")
    if judged.is_empty():
        return f"{same_decision(table)}Nothing could be compared."
    # Crossed groups come after those of one attribute.
    crossed = pl.col("attribute").str.contains(CROSSED, literal=True)
    judged = judged.sort(crossed, "ratio", maintain_order=True)
    unclear = judged.filter(~is_finding(), pl.col("ratio") < FOUR_FIFTHS - TOLERANCE)
    reach = verb(unclear.height, "its interval reaches", "their intervals reach")
    sentences = []
    for start, found in (
        ("The whole interval is below four fifths", judged.filter(is_finding())),
        (f"Below four fifths, though {reach} above it", unclear),
    ):
        names = [f"{place(row, keys)} ({row['ratio']:.2f})" for row in found.iter_rows(named=True)]
        if names:
            sentences.append(f"{start}: {first_few(names, _SEPARATOR)}.")
    if not judged.select(is_finding().any()).item():
        sentences.insert(0, "No category has its whole interval below four fifths.")
    return " ".join(sentences)


def _order(row: dict[str, Any]) -> str:
    """Name two scores, the one with the higher AUC first."""
    higher, lower = row["model"], row["reference"]
    if row["gap"] < 0:
        higher, lower = lower, higher
    return f"{higher} is above {lower} by {abs(row['gap']):.3f}"


def place(row: dict[str, Any], keys: Sequence[str]) -> str:
    """Name a group and, if it is a key, the metric: sex f, or race a selection rate."""
    parts = []
    for key in keys:
        name = MISSING if row[key] is None else str(row[key])
        parts.append(metric_label(name) if key == "metric" else name)
    return " ".join(parts)


def _places(found: pl.DataFrame, keys: Sequence[str]) -> str:
    """Name the first few groups."""
    return first_few([place(row, keys) for row in found.iter_rows(named=True)], _SEPARATOR)


@dataclass(frozen=True)
class Shown:
    """A table for readers, with its heading and a verdict above it.

    Its columns can be ``asked`` for, after the ``keys``, unless it is the first of two tables. What
    is ``short`` is laid out for readers if they are not; nothing for a page that has a chart alone.
    """

    heading: str
    table: pl.DataFrame
    keys: Sequence[str] = ()
    verdict: str | None = None
    asked: bool = True
    short: pl.DataFrame | None = None

    def write_blocks(self, screen: Screen) -> list[Block]:
        """Return the verdict, and the table with the columns that fit or are asked for."""
        shown = screen if self.asked else replace(screen, columns=None, more_columns=None)
        if not self.verdict:
            return [self.lay_out(shown)]
        # A head without rows says nothing more.
        return [Text(self.verdict), *([self.lay_out(shown)] if self.table.height else [])]

    def lay_out(self, screen: Screen) -> Table:
        """Lay out the table for readers, or the columns that are asked for."""
        if screen.columns is not None and self.asked:
            return screen.lay_out_asked(_name_missing(self.table, self.keys), self.keys)
        table = self.table if self.short is None else self.short
        note = screen.count_left_out(self.table if self.asked else table)
        return lay_out(table, rows=screen.rows, note=note)

    def section(self, screen: Screen, *, titled: bool) -> Table:
        """Lay out the table for a page."""
        return replace(self.lay_out(screen), title=capitalised(self.heading) if titled else "")


def _name_missing(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Name groups that are null."""
    return table.with_columns(pl.col(key).cast(pl.String).fill_null(MISSING) for key in keys)


_ELSEWHERE = "--rows all shows them, and files such as .csv and .xlsx have them"


def write_shown_tables(shown: Sequence[Shown], screen: Screen) -> str:
    """Write tables for a terminal."""
    blocks = [block for each in shown for block in each.write_blocks(screen)]
    return write_text(blocks, screen.terminal)


def title_of(shown: Sequence[Shown]) -> str:
    """Name what tables show."""
    return capitalised(" and ".join(each.heading for each in shown))


def lay_out_page(
    shown: Sequence[Shown], options: argparse.Namespace, charts: Sequence[Block] = ()
) -> list[Block]:
    """Lay out tables and charts as a document, after verdicts, with how they were made."""
    rows, columns = getattr(options, "rows", None), getattr(options, "columns", None)
    most = None if rows == "all" else rows or _MOST_ROWS
    screen = Screen(0, most, columns, more_rows=_ELSEWHERE)
    tables = [each for each in shown if each.table.width and each.table.height]
    sections = [each.section(screen, titled=len(tables) > 1) for each in tables]
    title = title_of(shown)
    return [
        Text(title, 1),
        *(Text(each.verdict, style="answer") for each in shown if each.verdict),
        *_lay_out_gates(options),
        # A table without a title is the only one.
        *(replace(table, label=table.title or title) for table in sections),
        *charts,
        *write_foot(run_of(options)),
    ]


def save_workbook(
    table: pl.DataFrame, shown: Sequence[Shown], options: argparse.Namespace, path: Path
) -> None:
    """Write a table as a workbook, after the verdicts and how it was made."""
    run = run_of(options)
    facts: list[tuple[str, object]] = [
        *(("Answer", each.verdict) for each in shown if each.verdict),
        *(("Pipeline check", line) for line in getattr(options, "gate_lines", ())),
        *list_provenance(run),
    ]
    write_workbook(title_of(shown), facts, {"table": table}, path, run.date)


def _lay_out_gates(options: argparse.Namespace) -> list[Block]:
    """List the conditions of a pipeline that failed, then those that could not be judged."""
    lines = [
        Line(line, "failed" if line.startswith("FAILED") else "unjudged")
        for line in getattr(options, "gate_lines", ())
    ]
    lines.sort(key=lambda line: line.tone != "failed")
    return [Lines(lines, style="checks")] if lines else []


def run_of(options: argparse.Namespace) -> Run:
    """Return by which command and from which files a result is made."""
    are_audits = options.command == "diff" or all(name.endswith(".json") for name in options.files)
    if are_audits:
        files = saved_audits(options.files)
    else:
        files = audited_files(options.files, contents=True)
    return Run(command=options.command_line, files=files)


def aucs_shown(table: pl.DataFrame) -> list[Shown]:
    """Show the AUC of each group."""
    keys = _before(table, "auc")
    return [Shown(f"AUCs{_by(keys)}", table, keys, backwards(table, keys) or None)]


def pairs_shown(table: pl.DataFrame, level: ConfidenceLevel) -> list[Shown]:
    """Show which AUCs of pairs of scores differ."""
    keys = _before(table, "metric")
    heading, verdict = f"differences between AUCs{_by(keys)}", of_pairs(table, keys, level)
    return [Shown(heading, table, keys, verdict)]


def gaps_shown(
    table: pl.DataFrame, metric: str | None, reference: str, margin: float
) -> list[Shown]:
    """Show the gaps of a metric, or of all, those that are different first."""
    keys, metrics = keys_of_rows(table), table["metric"].unique().to_list()
    if metric is None and len(metrics) == 1:
        metric = metrics[0]
    if metric is None:
        keys = [*keys, "metric"]
        order = pl.col("verdict").ne_missing(DIFFERENT), -pl.col("gap").abs()
        of_metric = table.sort(order, nulls_last=True, maintain_order=True)
    else:
        of_metric = table.filter(metric=metric)
    verdict = of_gaps(table, keys, metric, reference, margin)
    heading = f"gaps{_in(metric)} to {reference}{_by(attributes_of(table))}"
    return [Shown(heading, of_metric, keys, verdict)]


def changes_shown(changes: Changes, names: tuple[str, str]) -> list[Shown]:
    """Show what changed between the audits of these names."""
    return [Shown(title_changes(names), changes.table, verdict=" ".join(write_changes(changes)))]


def search_shown(table: pl.DataFrame, metric: str) -> list[Shown]:
    """Show the segments that are significantly worse, after how many were examined."""
    found = table.filter(pl.col("depth") > 0)
    n_worse = table["n_worse"][0]
    verdict = (
        f"Exploration: of {many(table['n_examined'][0], 'segment')} "
        f"{f'{n_worse:,}' if n_worse else 'none'} {verb(max(n_worse, 1), 'is', 'are')} "
        "significantly worse"
    )
    if found.height < n_worse:
        verdict += f"; {found.height:,} of them {verb(found.height, 'is', 'are')} shown"
    verdict += "."
    overall = table.row(0, named=True)
    if overall["reason"] == NO_VARIANCE:
        verdict = (
            f"The {metric} of all rows is {write_number(overall['value'], 'g')}: nothing can be "
            "compared."
        )
    elif not overall["n_examined"]:
        verdict = (
            "Exploration: no segment was examined, since none has enough rows: lower --min-rows, "
            "or cut numbers into ranges such as age:30,45."
        )
    heading = f"worst segments in {SEARCHED[metric].label}"
    return [Shown(heading, found, [*AUDIT_KEYS], verdict)]


def decisions_shown(table: pl.DataFrame) -> list[Shown]:
    """Show the rates at thresholds."""
    keys = _before(table, "threshold")
    heading, verdict = f"rates at thresholds{_by(keys)}", of_decisions(table, keys)
    return [Shown(heading, table, keys, verdict)]


def calibration_shown(
    curve: pl.DataFrame,
    slopes: pl.DataFrame,
    ranges: str,
    *,
    binned: bool,
    clip: float | None = None,
) -> list[Shown]:
    """Show the calibration of each group, what is known of ranges, then curves if ``binned``."""
    keys = _before(slopes, "mean_calibration_error")
    verdict = f"{of_calibration(slopes, keys, clip)} {ranges}"
    # The columns that are asked for are those of the curve.
    first = Shown("calibration slopes", slopes, keys, verdict, asked=False)
    second = Shown(f"calibration curve{_by(keys)}", curve, [*keys, "bin"])
    return [first, *([second] if binned else [])]


def impact_shown(table: pl.DataFrame, rated: pl.DataFrame, notes: Sequence[str]) -> list[Shown]:
    """Show the impact ratio of each category, after a verdict and notes.

    The rows of ``rated`` are the ratios with the rates that are in other rows of the table.
    """
    keys = keys_of_rows(table)
    verdict = " ".join([of_impact(rated, keys), *notes])
    named = rated.with_columns(pl.col(key).fill_null(UNKNOWN_CATEGORY) for key in keys)
    heading = f"impact ratios{_by(attributes_of(table))}"
    return [Shown(heading, named, keys, verdict, short=table)]


def curve_shown(
    table: pl.DataFrame, options: argparse.Namespace, groups: Sequence[str]
) -> list[Shown]:
    """Show the points of curves; below their chart none."""
    kind: str = options.kind
    name = kind.upper() if kind in ("roc", "pr", "det") else kind
    points = table.select([]) if options.suffix in outputs.CHART_SUFFIXES else table
    return [Shown(f"{name} curve{_by(groups)}", points)]


def size_shown(needed: pl.DataFrame, *, named: bool) -> list[Shown]:
    """Show how many rows are needed, in segments that are ``named`` or from assumptions."""
    keys = keys_of_rows(needed) if named else []
    heading = f"rows needed for {needed['target'][0]} {needed['goal'][0]:g}"
    # The goal is in the heading, and was asked for.
    short = needed.drop("target", "goal")
    return [Shown(heading, needed, keys, short=short)]


# The size of a drawing in characters, and what its curves are drawn with.
_WIDE, _HIGH, _LETTERS = 61, 19, "abcdefghijklmnopqrstuvwxyz"


def drawn_roc(curves: pl.DataFrame) -> str:
    """Draw ROC curves with characters, those of the first 26 groups, and the diagonal."""
    keys, known = _before(curves, "threshold"), curves.drop_nulls(["fpr", "tpr"])
    groups = known.partition_by(keys, as_dict=True, maintain_order=True) if keys else {(): known}
    shown = [*zip(_LETTERS if keys else "*", groups, groups.values(), strict=False)]
    # Rates never fall along a curve, so that their sum is how far one has come.
    way = np.linspace(0, 2, 8 * _WIDE)
    lines = [(".", way / 2, way / 2)]
    for letter, _, curve in shown:
        fpr, tpr = curve.select(pl.col("fpr", "tpr").sort()).to_numpy().T
        lines.append((letter, *(np.interp(way, fpr + tpr, rate) for rate in (fpr, tpr))))
    canvas = np.full((_HIGH, _WIDE), " ")
    for letter, fpr, tpr in lines:
        across, down = np.rint(fpr * (_WIDE - 1)), np.rint((1 - tpr) * (_HIGH - 1))
        canvas[down.astype(int), across.astype(int)] = letter
    margins = ["1", *" " * (_HIGH - 2), "0"]
    rows = [f"{one} |{''.join(row)}".rstrip() for one, row in zip(margins, canvas, strict=True)]
    named = [f"{a} {place(dict(zip(keys, group, strict=True)), keys)}" for a, group, _ in shown]
    names = f"{first_few(named, _SEPARATOR, len(_LETTERS))}\n" if keys else ""
    return "\n".join([f"{names}tpr", *rows, f"  +{'-' * _WIDE}", f"   0{'fpr':^{_WIDE - 2}}1"])


def keys_of_rows(table: pl.DataFrame) -> list[str]:
    """List the keys of comparisons, with the score if there are several."""
    return [*AUDIT_KEYS, *([MODEL] if table[MODEL].n_unique() > 1 else [])]


def attributes_of(table: pl.DataFrame) -> list[str]:
    """List the attributes of comparisons."""
    return table[AUDIT_KEYS[0]].unique(maintain_order=True).to_list()


def _by(keys: Sequence[str]) -> str:
    """Name what tells groups apart, but for scores."""
    groups = [key for key in keys if key not in (MODEL, *PAIR)]
    return f" by {write_list(groups)}" if groups else ""


def _in(metric: str | None) -> str:
    return "" if metric is None else f" in {GAP_METRICS[metric].label}"


def _before(table: pl.DataFrame, first: str) -> list[str]:
    """List the groups, which come before the columns of the table."""
    return table.columns[: table.columns.index(first)]
