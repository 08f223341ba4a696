"""The command `impact`: impact ratios of the decisions in files."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.audits.gates import judged
from polars_wroc.audits.impact_gates import read_impact_gate
from polars_wroc.audits.unknown_hint import seemingly_unknown, unknown_hint
from polars_wroc.cli import arguments, sources, streams, verdicts
from polars_wroc.cli.cut_groups import groups_of
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.layouts import impact_in_text
from polars_wroc.cli.results import check_output, present, show_table
from polars_wroc.cli.usage import UsageError
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL, UNKNOWN_CATEGORY
from polars_wroc.namespaces.counts import Counts
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import at_once
from polars_wroc.plans.spill_guard import MOST_ROWS, budget_is_set

_NAMED = ("threshold", "favorable", "min_share", "intersections", "exact", "adjust")


def run_impact(options: argparse.Namespace) -> None:
    """Print or write impact ratios; raise if a gate fails."""
    check_output(options, TABLE_OR_CHART)
    _check(options)
    gates = [read_impact_gate(text) for text in options.fail_if]
    reference = _reference(options)
    rows = sources.known_rows(options)
    if options.threshold == "median" and budget_is_set() and rows > MOST_ROWS:
        sources.refuse_spilling(rows, "give a number as --threshold")
    given: dict[str, Any] = {name: getattr(options, name) for name in _NAMED}
    given |= arguments.uncertainty_of(options) | {"reference": reference}
    with at_once(rows):
        table = collect(_ratios(options, given))
    arguments.check_selected(options, table["n_selected"].sum())
    keys = [*AUDIT_KEYS, *([MODEL] if MODEL in table.columns else [])]

    notes = _notes(table, options)
    in_text = partial(impact_in_text, table, keys, notes)

    def show() -> None:
        show_table("impact", _written(table, options), options, in_text, level=options.level)
        if options.output:
            for note in notes:
                streams.complain(note)

    present(judged(gates, table), show)


def _ratios(options: argparse.Namespace, given: dict[str, Any]) -> pl.LazyFrame:
    """Compare the categories of rows, or of counts by score."""
    if options.counts:
        counts = sources.merged(options)
        given["unknown"] = arguments.unknown_of(options, counts.groups)
        given["by"] = groups_of(options, counts.groups)
        ratios: pl.LazyFrame = Counts(counts, eager=False).impact_ratios(**given)
        return ratios
    frame = sources.watched(options.files, options.progress)
    given["unknown"] = arguments.unknown_of(options, frame)
    return impact_ratios(frame, **given, **arguments.decisions_of(options, frame))


def _written(table: pl.DataFrame, options: argparse.Namespace) -> pl.DataFrame:
    """Name the unknown category where it would be an empty cell."""
    if not (options.output or "").lower().endswith(".csv"):
        return table
    return table.with_columns(pl.col(AUDIT_KEYS[1]).fill_null(UNKNOWN_CATEGORY))


def _notes(table: pl.DataFrame, options: argparse.Namespace) -> list[str]:
    """Say what a reader of the ratios should know about the rows and their categories."""
    what = "label, score or weight" if options.counts else "decision"
    if options.weight:
        what += " or weight"
    notes = [verdicts.of_missing(table, what)]
    if options.threshold == "median":
        notes.append(verdicts.of_median(table))
    if options.unknown != ["keep"]:
        given = {category: None for _, category in seemingly_unknown(table)}
        flags = " ".join(f"--unknown {shlex.quote(category)}" for category in given)
        notes += unknown_hint(table, f"give {flags}")
    return [note for note in notes if note]


def _check(options: argparse.Namespace) -> None:
    """Check that decisions are given in one way."""
    ways = ("selected", "score", "threshold")
    given = [f"--{name}" for name in ways if getattr(options, name) is not None]
    if options.counts and given != ["--threshold"]:
        msg = "impact needs --threshold with --counts"
        raise UsageError(msg)
    if not options.counts and given not in (["--selected"], ["--score", "--threshold"]):
        found = " and ".join(given) or "none of them"
        msg = f"impact needs --selected, or --score and --threshold; found {found}"
        raise UsageError(msg)
    arguments.check_favorable(options, ("selected", "threshold"))


def _reference(options: argparse.Namespace) -> str | dict[str, str]:
    reference = arguments.reference_of(options, "highest")
    if isinstance(reference, str) and reference != "highest" and len(options.by) > 1:
        msg = (
            "--reference must be highest or such as sex=m where there are several attributes; "
            f"found {reference}"
        )
        raise UsageError(msg)
    return reference
