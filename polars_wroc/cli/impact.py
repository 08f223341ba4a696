"""The command `impact`: impact ratios of the decisions in files."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

import polars as pl

from polars_wroc.audits.gates import judged
from polars_wroc.audits.impact_gates import read_impact_gate
from polars_wroc.audits.text_table import limits_in_text, text_table
from polars_wroc.cli import arguments, sources
from polars_wroc.cli.parser import UsageError
from polars_wroc.cli.results import check_output, present, show_table
from polars_wroc.files import outputs
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL
from polars_wroc.namespaces.counts import Counts
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import at_once
from polars_wroc.plans.spill_guard import MOST_ROWS, budget_is_set

_NAMED = ("threshold", "favourable", "min_share", "intersections", "exact", "adjust")
# Words of the table that are shorter on a terminal.
_SHORT = {"share": "small share", "by the estimate": "by estimate"}


def run_impact(options: argparse.Namespace) -> None:
    """Print or write impact ratios; raise if a gate fails."""
    check_output(options, outputs.TABLE_SUFFIXES)
    _check(options)
    gates = [read_impact_gate(text) for text in options.fail_if]
    reference = _reference(options)
    rows = sources.known_rows(options)
    if options.threshold == "median" and budget_is_set() and rows > MOST_ROWS:
        sources.refuse_spilling(rows, "give a number as --threshold")
    given: dict[str, Any] = {name: getattr(options, name) for name in _NAMED}
    given |= arguments.uncertainty_of(options) | {"by": options.by, "reference": reference}
    with at_once(rows):
        table = collect(_ratios(options, given))
    arguments.check_selected(options, table["n_selected"].sum())
    present(judged(gates, table), lambda: show_table(table, options, lambda: _in_text(table)))


def _ratios(options: argparse.Namespace, given: dict[str, Any]) -> pl.LazyFrame:
    """Compare the categories of rows, or of counts by score."""
    if options.counts:
        counts = sources.merged(options)
        given["unknown"] = arguments.unknown_of(options, counts.groups)
        ratios: pl.LazyFrame = Counts(counts, eager=False).impact_ratios(**given)
        return ratios
    frame = sources.watched(options.files, options.progress)
    given["unknown"] = arguments.unknown_of(options, frame)
    return impact_ratios(frame, **given, **arguments.decisions_of(options, frame))


def _check(options: argparse.Namespace) -> None:
    """Check that there are attributes, and decisions in one way."""
    if not options.by:
        msg = "impact needs at least one --by"
        raise UsageError(msg)
    ways = ("selected", "score", "threshold")
    given = [f"--{name}" for name in ways if getattr(options, name) is not None]
    if options.counts and given != ["--threshold"]:
        msg = "impact needs --threshold with --counts"
        raise UsageError(msg)
    if not options.counts and given not in (["--selected"], ["--score", "--threshold"]):
        found = " and ".join(given) or "none of them"
        msg = f"impact needs --selected, or --score and --threshold; found {found}"
        raise UsageError(msg)


def _reference(options: argparse.Namespace) -> str | dict[str, str]:
    reference = arguments.reference_of(options, "highest")
    if isinstance(reference, str) and reference != "highest" and len(options.by) > 1:
        msg = (
            "--reference must be highest or such as sex=m where there are several attributes; "
            f"found {reference}"
        )
        raise UsageError(msg)
    return reference


def _in_text(table: pl.DataFrame) -> str:
    keys = [*AUDIT_KEYS, *([MODEL] if MODEL in table.columns else [])]
    judgement = pl.coalesce("excluded", "below_four_fifths").replace(_SHORT)
    shown = table.select(
        *(pl.col(key).fill_null("(unknown)") for key in keys),
        "n",
        pl.col("selection_rate").alias("rate"),
        pl.col("impact_ratio").alias("ratio"),
        limits_in_text(table, "impact_ratio_joint_low", "impact_ratio_joint_high").alias(
            "joint limits"
        ),
        judgement.alias("below 4/5"),
    )
    return text_table(shown, shutil.get_terminal_size().columns, keys)
