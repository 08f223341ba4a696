"""The commands that measure rows or counts, run with parsed options."""

from __future__ import annotations

import argparse
from dataclasses import replace

import polars as pl

from polars_wroc.audits.audit_gates import read_gate
from polars_wroc.audits.gates import judged
from polars_wroc.audits.result import SUFFIXES, Audit
from polars_wroc.audits.run import audited_files
from polars_wroc.cli import arguments, sources
from polars_wroc.cli.parser import UsageError
from polars_wroc.cli.results import (
    check_output,
    present,
    print_json,
    say,
    say_written,
    show_table,
)
from polars_wroc.files import outputs
from polars_wroc.inputs.columns import check_positives
from polars_wroc.plans.collect import collect, collect_all
from polars_wroc.plans.engine import at_once

_THRESHOLD = (
    "threshold",
    "criterion",
    "cost_fn",
    "cost_fp",
    "prevalence",
    "max_fpr",
    "min_tpr",
    "max_selection_rate",
)
_COMPARED = (
    "intersections",
    "min_rows",
    "adjust",
    "margin",
    "favourable",
    "title",
    "note",
    "min_cell",
)


def run_audit(options: argparse.Namespace) -> None:
    """Audit segments; raise if a gate fails."""
    check_output(options, SUFFIXES)
    if not options.by:
        msg = "audit needs at least one --by"
        raise UsageError(msg)
    threshold = {name: getattr(options, name) for name in _THRESHOLD}
    decides = any(value is not None for value in (*threshold.values(), options.selected))
    gates = [read_gate(text, decides=decides) for text in options.fail_if]
    compared = {name: getattr(options, name) for name in _COMPARED}
    compared["reference"] = arguments.reference_of(options, "rest")
    audit = sources.functions_of(options)("audit")
    with at_once(sources.known_rows(options)):
        result = audit(by=options.by, **threshold, **compared, **arguments.uncertainty_of(options))
    if options.selected is not None:
        arguments.check_selected(options, result.segments["n_selected"].sum())
    shown = (options.output or "").lower().endswith(("-", ".json", ".md"))
    files = audited_files(options.files, contents=shown)
    run = replace(result.run, command=options.command_line, files=files)
    judgement = judged(gates, result)
    result = replace(result, run=run, gates=judgement.gates)
    present(judgement, lambda: _show(result, options))


def run_auc(options: argparse.Namespace) -> None:
    """Print or write the summary of each group."""
    check_output(options, outputs.TABLE_SUFFIXES)
    summary = sources.functions_of(options)("summary")
    with at_once(sources.known_rows(options)):
        table = collect(summary(by=options.by or None, **arguments.uncertainty_of(options)))
    check_positives(options.pos_label, found=bool(table["n_pos"].sum()))
    show_table(table, options, lambda: _in_markdown(table))


def run_curve(options: argparse.Namespace) -> None:
    """Write ROC curves as a table or a chart."""
    suffix = check_output(options, (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES))
    by = {"by": options.by or None}
    level = {"level": options.level, "weight_type": options.weight_type}
    design = arguments.design_of(options)
    if design and (options.band or suffix in outputs.TABLE_SUFFIXES):
        option = next(iter(design)).replace("_", "-")
        msg = f"--{option} applies to the AUCs in a chart, not to a table or a --band"
        raise UsageError(msg)
    functions = sources.functions_of(options)
    curves = functions("roc_curve")(**by, **level, max_points=options.max_points, band=options.band)
    if suffix in outputs.TABLE_SUFFIXES:
        table = collect(curves)
        check_positives(options.pos_label, found=bool((table["tp"] + table["fn"]).sum()))
        outputs.save_table(table, options.output)
        say_written(options)
        return
    # Only a chart should cost the import of Altair.
    from polars_wroc.charts import roc_chart, save_chart  # noqa: PLC0415

    summary = functions("summary")
    table, aucs = collect_all([curves, summary(**by, **arguments.uncertainty_of(options))])
    check_positives(options.pos_label, found=bool(aucs["n_pos"].sum()))
    facet = options.by[0] if options.by else None
    save_chart(roc_chart(table, facet=facet, summary=aucs), options.output)
    say_written(options)


def run_counts(options: argparse.Namespace) -> None:
    """Write the counts of rows by score."""
    check_output(options, outputs.TABLE_SUFFIXES)
    _write_counts(sources.counted(options), options)


def run_merge(options: argparse.Namespace) -> None:
    """Write the sum of the counts in all files."""
    check_output(options, outputs.TABLE_SUFFIXES)
    _write_counts(sources.merged(options).table(), options)


def _write_counts(counts: pl.LazyFrame, options: argparse.Namespace) -> None:
    if options.output == "-":
        print_json(collect(counts), options)
    else:
        outputs.sink_table(counts, options.output)
        say_written(options)


def _show(result: Audit, options: argparse.Namespace) -> None:
    if options.output == "-":
        say(result.to_json(), options, json=True)
        return
    if options.output:
        result.save(options.output)
    say(f"{result}\n", options)
    if options.output:
        say_written(options)


def _in_markdown(table: pl.DataFrame) -> str:
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="MARKDOWN",
        float_precision=4,
    ):
        return str(table)
