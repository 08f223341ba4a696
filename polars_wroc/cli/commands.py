"""The commands that measure rows or counts, run with parsed options."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.audits.audit_gates import read_gate
from polars_wroc.audits.gates import judged
from polars_wroc.audits.result import SUFFIXES, Audit
from polars_wroc.audits.run import audited_files
from polars_wroc.audits.terminal import SEGMENTS, in_text
from polars_wroc.cli import arguments, sources
from polars_wroc.cli.curve_kinds import CURVES
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.layouts import aucs_in_text
from polars_wroc.cli.results import (
    check_output,
    is_chart,
    present,
    print_json,
    say,
    say_written,
    show_table,
    write_table,
)
from polars_wroc.cli.screen import screen_of
from polars_wroc.cli.usage import UsageError
from polars_wroc.files import outputs
from polars_wroc.inputs.columns import check_positives
from polars_wroc.plans.collect import collect, collect_all
from polars_wroc.plans.engine import at_once
from polars_wroc.thresholds.rules import RULE_ARGUMENTS

_THRESHOLD = ("threshold", *RULE_ARGUMENTS)
_COMPARED = (
    "intersections",
    "min_rows",
    "adjust",
    "margin",
    "favorable",
    "min_cell",
)


def run_audit(options: argparse.Namespace) -> None:
    """Audit segments; raise if a gate fails."""
    check_output(options, SUFFIXES, printed=True)
    threshold = {name: getattr(options, name) for name in _THRESHOLD}
    decides = any(value is not None for value in (*threshold.values(), options.selected))
    arguments.check_favorable(options, (*_THRESHOLD, "selected"))
    ratios = options.favorable != "neither"
    gates = [read_gate(text, decides=decides, ratios=ratios) for text in options.fail_if]
    compared = {name: getattr(options, name) for name in _COMPARED}
    compared["reference"] = arguments.reference_of(options, "rest")
    compared["text"] = arguments.text_of(options)
    audit = sources.source_of(options).function("audit")
    with at_once(sources.known_rows(options)):
        result = audit(**threshold, **compared, **arguments.uncertainty_of(options))
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
    check_output(options, TABLE_OR_CHART)
    summary = sources.source_of(options).function("summary")
    with at_once(sources.known_rows(options)):
        table = collect(summary(**arguments.uncertainty_of(options)))
    check_positives(options.pos_label, found=bool(table["n_pos"].sum()))
    show_table("auc", table, options, partial(aucs_in_text, table), level=options.level)


def run_curve(options: argparse.Namespace) -> None:
    """Write curves as a table or a chart."""
    check_output(options, TABLE_OR_CHART)
    _check_kind(options)
    function, names, drawn_from_roc = CURVES[options.kind]
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    # The source has the bins of scores.
    chosen = {name: value for name, value in given.items() if name != "bins"}
    source = sources.source_of(options)
    if drawn_from_roc and is_chart(options):
        curves = source.function("roc_curve")()
    else:
        curves = source.function(function)(**chosen)
    known = chosen | {"facet": next(iter(source.groups), None)}
    if options.kind != "roc" or not is_chart(options):
        table = collect(curves)
        check_positives(options.pos_label, found=_has_positives(table))
        write_table(options.kind, table, options, **known)
        return
    summary = source.function("summary")(**arguments.uncertainty_of(options))
    table, aucs = collect_all([curves, summary])
    check_positives(options.pos_label, found=bool(aucs["n_pos"].sum()))
    write_table("roc", table, options, **known | {"summary": aucs, "level": options.level})


def _check_kind(options: argparse.Namespace) -> None:
    """Check that the options are those of the kind of curve."""
    own = CURVES[options.kind].options
    for kind, row in CURVES.items():
        for name in row.options:
            # The level and the meaning of weights have a value by default.
            if name not in (*own, "level", "weight_type") and getattr(options, name) is not None:
                msg = f"{options.flags[name]} applies to --kind {kind}; found {options.kind}"
                raise UsageError(msg)
    design = [*arguments.design_of(options)]
    if design and (options.kind != "roc" or options.band or not is_chart(options)):
        flag = options.flags[design[0]]
        msg = f"{flag} applies to the AUCs in a ROC chart, not to a table, a --band or other kinds"
        raise UsageError(msg)


def _has_positives(curves: pl.DataFrame) -> bool:
    known = pl.col("prevalence") if "prevalence" in curves.columns else pl.col("tp") + pl.col("fn")
    return bool(curves.select(known.sum()).item())


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
    text = in_text(result, result.findings, screen_of(options, SEGMENTS))
    say(f"{text}\n", options)
    if options.output:
        say_written(options)
