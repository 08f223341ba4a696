"""The command ``impact``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.gates import OF_IMPACT, judged
from polars_wroc.audits.hints import (
    all_unknown,
    explain_median,
    say_missing_rows,
    unknown_flags,
    unknown_hint,
)
from polars_wroc.audits.words import first_few, verb
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.cli.options import (
    Attributes,
    Conditions,
    Files,
    Scores,
    Selected,
    Threshold,
    Uncertainty,
    Unknown,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import (
    SEPARATOR,
    attributes_of,
    keys_of_rows,
    name_groups,
    name_place,
    say_same_decision,
)
from polars_wroc.cli.source import Source, require_favorable
from polars_wroc.cli.terminal import print_note
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import IMPACT_RATIO, is_finding, rated_ratios
from polars_wroc.groups.impact_ratios import count_decisions, impact_ratios
from polars_wroc.inputs.columns import UNKNOWN_CATEGORY
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.queries import collect_all


@with_arguments_of(impact_ratios, "reference min_share intersections favorable exact adjust")
def impact(
    file: Files,
    /,
    *,
    rows: Scores = Scores(),
    attributes: Attributes,
    unknown: Unknown = (),
    threshold: Threshold = None,
    selected: Selected = None,
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Print or write impact ratios; raise if a condition holds."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    gates = conditions.read(OF_IMPACT)
    source = Source(files=file, columns=rows, group_texts=attributes, selected=selected)
    _check_decisions(source, rows, threshold)
    require_favorable(given["favorable"], selected=selected, threshold=threshold)
    reference = given["reference"]
    if isinstance(reference, str) and reference != "highest" and len(attributes) > 1:
        msg = (
            "--reference must be highest or such as sex=m where there are several attributes; "
            f"found {reference}"
        )
        raise ValueError(msg)
    given |= {"threshold": threshold, "unknown": source.read_unknown(unknown)}
    plan = source.plan(impact_ratios, **given, **uncertainty.arguments)
    with source.progress:
        table, counts = collect_all([plan, _count_decisions(source, threshold)])
    source.check_selected(counts["selected"].sum())
    ratios = rated_ratios(table)
    notes = _write_notes(ratios, counts, source, threshold, given["unknown"])
    shown = _lay_out(table, ratios, notes)
    # A spreadsheet would have an empty cell.
    category = pl.col("segment").fill_null(UNKNOWN_CATEGORY)
    report = Report(
        source,
        table,
        [shown],
        lambda: [wroc.gap_chart(table, metric=IMPACT_RATIO, show="ratio")],
        in_cells=table.with_columns(category),
    )
    try:
        show_report(report, output, targets, judged(gates, table), strict=conditions.fail_unjudged)
    finally:
        for note in notes if targets else ():
            print_note(note)


def _check_decisions(source: Source, rows: Scores, threshold: object) -> None:
    """Check that decisions are given in one way."""
    ways = {"--selected": source.selected, "--score": rows.score or None, "--threshold": threshold}
    given = [flag for flag, value in ways.items() if value is not None]
    if source.counts is not None:
        source.require()
        if given != ["--threshold"]:
            msg = "impact of counts needs --threshold"
            raise ValueError(msg)
    elif given not in (["--selected"], ["--score", "--threshold"]):
        found = " and ".join(given) or "none of them"
        msg = f"impact needs --selected, or --score and --threshold; found {found}"
        raise ValueError(msg)


def _count_decisions(source: Source, threshold: Any) -> pl.LazyFrame:
    """Return the numbers of decisions, for each score."""
    counts: pl.LazyFrame
    if source.counts is not None:
        counts = count_decisions(source.counts, score="score", threshold=threshold)
    else:
        names = {"score": None, "selected": None} | source.names
        counts = count_decisions(source.frame, **names, threshold=threshold)
    return counts


def _write_notes(
    table: pl.DataFrame, counts: pl.DataFrame, source: Source, threshold: Any, unknown: Any
) -> list[str]:
    """Say what a reader of the ratios should know about the rows and their categories."""
    what = "label, score or weight" if source.counts is not None else "decision"
    if source.names.get("weight") is not None:
        what += " or weight"
    notes = [say_missing_rows(counts, what)]
    if threshold == "median":
        notes.append(explain_median(counts))
    if unknown != "keep":
        given = [] if unknown == "exclude" else unknown
        notes += unknown_hint(table, f"give {unknown_flags(all_unknown(table, given))}")
    groups = table.filter(~pl.col("attribute").str.contains(CROSSED, literal=True))
    for name, values in groups.drop_nulls("segment").group_by("attribute").agg("segment").rows():
        notes += say_near_equal(name, values)
    return [note for note in notes if note]


def _lay_out(table: pl.DataFrame, rated: pl.DataFrame, notes: Sequence[str]) -> Shown:
    """Show the impact ratio of each category, after a verdict and notes.

    The rows of ``rated`` are the ratios with the rates that are in other rows of the table.
    """
    keys = keys_of_rows(table)
    verdict = " ".join([_say_which_are_below(rated, keys), *notes])
    named = rated.with_columns(pl.col(key).fill_null(UNKNOWN_CATEGORY) for key in keys)
    heading = f"impact ratios{name_groups(attributes_of(table))}"
    return Shown(heading, named, keys, verdict, short=table)


def _say_which_are_below(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say which categories are below four fifths."""
    judged_rows = table.drop_nulls("verdict")
    if judged_rows.is_empty():
        return f"{say_same_decision(table)}Nothing could be compared."
    # Crossed groups come after those of one attribute.
    crossed = pl.col("attribute").str.contains(CROSSED, literal=True)
    judged_rows = judged_rows.sort(crossed, "ratio", maintain_order=True)
    below = judged_rows.filter(is_finding())
    unclear = judged_rows.filter(~is_finding(), pl.col("ratio") < FOUR_FIFTHS - TOLERANCE)
    reach = verb(unclear.height, "its interval reaches", "their intervals reach")
    sentences = []
    if below.is_empty():
        sentences.append("No category has its whole interval below four fifths.")
    for start, found in (
        ("The whole interval is below four fifths", below),
        (f"Below four fifths, though {reach} above it", unclear),
    ):
        names = [
            f"{name_place(row, keys)} ({row['ratio']:.2f})" for row in found.iter_rows(named=True)
        ]
        if names:
            sentences.append(f"{start}: {first_few(names, SEPARATOR)}.")
    return " ".join(sentences)
