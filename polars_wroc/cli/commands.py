"""The commands `audit`, `auc`, `curve`, `counts` and `merge`, run with parsed options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.gates import Gate, read_gate
from polars_wroc.audits.result import SUFFIXES, Audit
from polars_wroc.audits.run import audited_files
from polars_wroc.audits.tables import JudgedGate
from polars_wroc.cli import sources, streams
from polars_wroc.cli.parser import UsageError
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


class GateError(Exception):
    """An audit met a condition of --fail-if."""


def run_audit(options: argparse.Namespace) -> None:
    """Audit segments; raise if a gate fails."""
    _check_output(options, SUFFIXES)
    if not options.by:
        msg = "audit needs at least one --by"
        raise UsageError(msg)
    threshold = {name: getattr(options, name) for name in _THRESHOLD}
    decides = any(value is not None for value in threshold.values())
    gates = [read_gate(text, decides=decides) for text in options.fail_if]
    compared = {name: getattr(options, name) for name in _COMPARED}
    compared["reference"] = _reference(options.reference)
    audit = sources.functions_of(options)("audit")
    with at_once(sources.known_rows(options)):
        result = audit(by=options.by, **threshold, **compared, **_uncertainty(options))
    run = replace(result.run, command=options.command_line, files=audited_files(options.files))
    judged, unknown = _judged(result, gates)
    result = replace(result, run=run, gates=judged)
    problem = _problem(judged, unknown)
    try:
        _show(result, options)
    except (Exception, pl.exceptions.PanicException) as error:
        # The exit code of a failed gate takes precedence over that of failed output.
        if problem:
            raise problem from error
        raise
    finally:
        for gate in judged:
            if gate.not_judged:
                streams.complain(f"{gate.condition} is not judged in {'; '.join(gate.not_judged)}")
    if problem:
        raise problem


def _judged(result: Audit, gates: Sequence[Gate]) -> tuple[list[JudgedGate], list[str]]:
    """Judge gates; return also what is wrong with those that cannot be judged."""
    judged, unknown = list[JudgedGate](), list[str]()
    for gate in gates:
        try:
            judged.append(gate.judge(result))
        except ValueError as error:
            unknown.append(str(error))
    return judged, unknown


def _problem(judged: Sequence[JudgedGate], unknown: Sequence[str]) -> Exception | None:
    """Return the error of gates that are met or cannot be judged."""
    failures = [f"{gate.condition}: {place}" for gate in judged for place in gate.where]
    text = "; ".join([*failures, *unknown])
    if failures:
        return GateError(text)
    return ValueError(text) if unknown else None


def run_auc(options: argparse.Namespace) -> None:
    """Print or write the summary of each group."""
    _check_output(options, outputs.TABLE_SUFFIXES)
    summary = sources.functions_of(options)("summary")
    with at_once(sources.known_rows(options)):
        table = collect(summary(by=options.by or None, **_uncertainty(options)))
    check_positives(options.pos_label, found=bool(table["n_pos"].sum()))
    if options.output == "-":
        _print_json(table, options)
    elif options.output:
        outputs.save_table(table, options.output)
        _say_written(options)
    else:
        _print(table, options)


def run_curve(options: argparse.Namespace) -> None:
    """Write ROC curves as a table or a chart."""
    suffix = _check_output(options, (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES))
    by = {"by": options.by or None}
    level = {"level": options.level, "weight_type": options.weight_type}
    design = sources.design_of(options)
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
        _say_written(options)
        return
    # Only a chart should cost the import of Altair.
    from polars_wroc.charts import roc_chart, save_chart  # noqa: PLC0415

    summary = functions("summary")
    table, aucs = collect_all([curves, summary(**by, **_uncertainty(options))])
    check_positives(options.pos_label, found=bool(aucs["n_pos"].sum()))
    facet = options.by[0] if options.by else None
    save_chart(roc_chart(table, facet=facet, summary=aucs), options.output)
    _say_written(options)


def run_counts(options: argparse.Namespace) -> None:
    """Write the counts of rows by score."""
    _check_output(options, outputs.TABLE_SUFFIXES)
    _write_counts(sources.counted(options), options)


def run_merge(options: argparse.Namespace) -> None:
    """Write the sum of the counts in all files."""
    _check_output(options, outputs.TABLE_SUFFIXES)
    _write_counts(sources.merged(options).table(), options)


def _write_counts(counts: pl.LazyFrame, options: argparse.Namespace) -> None:
    if options.output == "-":
        _print_json(collect(counts), options)
    else:
        outputs.sink_table(counts, options.output)
        _say_written(options)


def _reference(given: Sequence[str]) -> str | dict[str, str]:
    """Read --reference: one kind, or segments by their attributes."""
    kinds = [text for text in given if "=" not in text]
    if kinds and len(given) > 1:
        msg = f"--reference must be one kind, or only such as sex=m; found {' and '.join(given)}"
        raise UsageError(msg)
    if kinds or not given:
        return kinds[0] if kinds else "rest"
    named = [text.partition("=")[::2] for text in given]
    if len(dict(named)) < len(named):
        msg = f"--reference must name one segment per attribute; found {' and '.join(given)}"
        raise UsageError(msg)
    return dict(named)


def _show(result: Audit, options: argparse.Namespace) -> None:
    if options.output == "-":
        _say(result.to_json(), options, json=True)
        return
    if options.output:
        result.save(options.output)
    _say(f"{result}\n", options)
    if options.output:
        _say_written(options)


def _check_output(options: argparse.Namespace, allowed: Sequence[str]) -> str | None:
    if options.output in (None, "-"):
        return None
    return outputs.check_target(options.output, allowed, options.files)


def _uncertainty(options: argparse.Namespace) -> dict[str, Any]:
    design = sources.design_of(options)
    return {"level": options.level, "weight_type": options.weight_type, **design}


def _say_written(options: argparse.Namespace) -> None:
    _say(f"wrote {options.output}\n", options)


def _print_json(table: pl.DataFrame, options: argparse.Namespace) -> None:
    _say(outputs.json_of(table) + "\n", options, json=True)


def _print(table: pl.DataFrame, options: argparse.Namespace) -> None:
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="MARKDOWN",
        float_precision=4,
    ):
        _say(f"{table}\n", options)


def _say(text: str, options: argparse.Namespace, *, json: bool = False) -> None:
    """Print on standard output, after removing the progress line."""
    if options.progress:
        options.progress.stop()
    streams.say(text, json=json)
