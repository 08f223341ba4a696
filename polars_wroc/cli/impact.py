"""The command `impact`: impact ratios of the decisions in files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.audits.gates import judged
from polars_wroc.audits.impact_gates import read_impact_gate
from polars_wroc.cli import arguments, sources
from polars_wroc.cli.cut_groups import groups_of
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.layouts import impact_in_text
from polars_wroc.cli.results import check_output, present, show_table
from polars_wroc.cli.usage import UsageError
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL
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

    in_text = partial(impact_in_text, table, keys, of_median=options.threshold == "median")

    def show() -> None:
        show_table("impact", table, options, in_text, level=options.level)

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
    arguments.check_favorable(options, ways)


def _reference(options: argparse.Namespace) -> str | dict[str, str]:
    reference = arguments.reference_of(options, "highest")
    if isinstance(reference, str) and reference != "highest" and len(options.by) > 1:
        msg = (
            "--reference must be highest or such as sex=m where there are several attributes; "
            f"found {reference}"
        )
        raise UsageError(msg)
    return reference
