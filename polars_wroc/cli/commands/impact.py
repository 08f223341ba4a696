"""The command ``impact``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits import hints
from polars_wroc.audits.gates import IMPACT_SCOPE
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import UnlabeledByAttributes
from polars_wroc.cli.options import Conditions, FileNames, UnknownCategories, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.source import Source
from polars_wroc.cli.terminal import print_note
from polars_wroc.documents.phrases import first_few, verb
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import IMPACT_RATIO, is_finding, select_rated_ratios
from polars_wroc.groups.impact_ratios import count_decisions
from polars_wroc.inputs.columns import UNKNOWN_CATEGORY
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.queries import collect_all


@with_arguments_of(wroc.impact_ratios, "reference min_share intersections favorable exact adjust")
def impact(
    file: FileNames,
    /,
    *,
    options: UnlabeledByAttributes,
    unknown: UnknownCategories = (),
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Print or write impact ratios; raise if a condition holds."""
    gates = conditions.read(IMPACT_SCOPE)
    source = options.read(file)
    _check_decisions(source, options)
    options.require_favorable(given["favorable"])
    reference = given["reference"]
    if isinstance(reference, str) and reference != "highest" and len(options.attributes) > 1:
        msg = (
            "--reference must be highest, or a segment such as sex=m where there are several "
            f"attributes; found {reference}"
        )
        raise ValueError(msg)
    given |= {"threshold": options.threshold, "unknown": source.read_unknown(unknown)}
    plan = source.plan(wroc.impact_ratios, **given, **options.limits)
    with source.at_work():
        table, counts = collect_all([plan, _count_decisions(source, options.threshold)])
    source.check_selected(counts["selected"].sum())
    ratios = select_rated_ratios(table)
    notes = _write_notes(ratios, counts, source, options.threshold, given["unknown"])
    report = Report(
        source,
        table,
        [_lay_out(table, ratios, notes)],
        lambda: [wroc.gap_chart(table, metric=IMPACT_RATIO, show="ratio")],
        # A spreadsheet would have an empty cell.
        in_cells=table.with_columns(pl.col("segment").fill_null(UNKNOWN_CATEGORY)),
    )
    try:
        show_report(report, options.output, conditions.judge(gates, table))
    finally:
        for note in notes if options.output.output else ():
            print_note(note)


def _check_decisions(source: Source, options: UnlabeledByAttributes) -> None:
    """Check that decisions are given in one way, and no label, which plays no part."""
    for flag, value in (("--label", options.rows.label), ("--pos-label", options.rows.pos_label)):
        if value is not None:
            msg = f"impact is about how often people are selected, and takes no {flag}"
            raise ValueError(msg)
    score = options.rows.score or None
    ways = {"selected": options.selected, "score": score, "threshold": options.threshold}
    given = [f"--{name}" for name, value in ways.items() if value is not None]
    if source.counts is not None and given != ["--threshold"]:
        msg = "impact of counts needs --threshold"
        raise ValueError(msg)
    if source.counts is None and given not in (["--selected"], ["--score", "--threshold"]):
        found = " and ".join(given) or "none of them"
        msg = f"impact needs --selected, or --score and --threshold; found {found}"
        raise ValueError(msg)


def _count_decisions(source: Source, threshold: Any) -> pl.LazyFrame:
    """Return the numbers of decisions, for each score."""
    names = {"score": "score", "selected": None, "weight": None}
    frame: Any = source.counts
    if source.counts is None:
        frame, names = source.frame, {"score": None, "selected": None} | source.arguments
    counts: pl.LazyFrame = count_decisions(frame, **names, threshold=threshold)
    return counts


def _write_notes(
    table: pl.DataFrame, counts: pl.DataFrame, source: Source, threshold: Any, unknown: Any
) -> list[str]:
    """Return notes on the rows and their categories, for readers of the ratios."""
    what = "label, score or weight" if source.counts is not None else "decision"
    if source.arguments.get("weight") is not None:
        what += " or weight"
    notes = [hints.say_missing_rows(counts, what)]
    if threshold == "median":
        notes.append(hints.explain_median(counts))
    if unknown != "keep":
        given = [] if unknown == "exclude" else unknown
        flags = hints.write_unknown_flags(hints.list_unknown(table, given))
        notes += hints.hint_unknown(table, f"give {flags}")
    groups = table.filter(~pl.col("attribute").str.contains(CROSSED, literal=True))
    for name, values in groups.drop_nulls("segment").group_by("attribute").agg("segment").rows():
        notes += say_near_equal(name, values)
    return [note for note in notes if note]


def _lay_out(table: pl.DataFrame, rated: pl.DataFrame, notes: Sequence[str]) -> Shown:
    """Show the impact ratio of each category, after a verdict and notes.

    The rows of ``rated`` are the ratios with the rates that are in other rows of the table.
    """
    keys = sentences.list_keys(table)
    verdict = " ".join([_say_which_are_below(rated, keys), *notes])
    named = rated.with_columns(pl.col(key).fill_null(UNKNOWN_CATEGORY) for key in keys)
    heading = f"impact ratios{sentences.name_groups(sentences.list_attributes(table))}"
    return Shown(heading, named, keys, verdict, short=table)


def _say_which_are_below(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Return which categories are below four fifths."""
    judged_rows = table.drop_nulls("verdict")
    if judged_rows.is_empty():
        return f"{sentences.say_same_decision(table)}Nothing could be compared."
    # Crossed groups come after those of one attribute.
    crossed = pl.col("attribute").str.contains(CROSSED, literal=True)
    judged_rows = judged_rows.sort(crossed, "ratio", maintain_order=True)
    below = judged_rows.filter(is_finding())
    unclear = judged_rows.filter(~is_finding(), pl.col("ratio") < FOUR_FIFTHS - TOLERANCE)
    reach = verb(unclear.height, "its interval reaches", "their intervals reach")
    said = []
    if below.is_empty():
        said.append("No category has its whole interval below four fifths.")
    for start, found in (
        ("The whole interval is below four fifths", below),
        (f"Below four fifths, though {reach} above it", unclear),
    ):
        names = [
            f"{sentences.name_place(row, keys)} ({row['ratio']:.2f})"
            for row in found.iter_rows(named=True)
        ]
        if names:
            said.append(f"{start}: {first_few(names, sentences.SEPARATOR)}.")
    return " ".join(said)
