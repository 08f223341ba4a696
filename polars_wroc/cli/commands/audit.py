"""The command ``audit``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars_wroc as wroc
from polars_wroc.audits.gates import find_audit_scope
from polars_wroc.audits.result import AUDIT_SUFFIXES, Audit
from polars_wroc.audits.sections import write_summary
from polars_wroc.cli.bundles import SegmentOptions
from polars_wroc.cli.options import (
    Conditions,
    FileNames,
    Resources,
    UnknownCategories,
    Wording,
    with_arguments_of,
)
from polars_wroc.cli.outcome import command_line
from polars_wroc.cli.output import Output, measure_screen, write_targets
from polars_wroc.cli.report import show_judged
from polars_wroc.cli.source import Source
from polars_wroc.documents.text_writer import write_text
from polars_wroc.files import outputs, prometheus
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL

# Formats that say from which contents of files they were made.
_DESCRIBED = (".json", ".html", ".md", outputs.WORKBOOK)


@with_arguments_of(wroc.audit, "intersections reference favorable min_rows min_cell margin adjust")
def audit(
    file: FileNames,
    /,
    *,
    options: SegmentOptions,
    unknown: UnknownCategories = (),
    conditions: Conditions = Conditions(),
    resources: Resources = Resources(),
    wording: Wording = Wording(),
    output: Output = Output(),
    **given: Any,
) -> None:
    """Audit segments, print a summary and write reports."""
    output.check((*AUDIT_SUFFIXES, prometheus.SUFFIX), file)
    options.require_favorable(given["favorable"])
    source = options.make_source(file)
    _require_columns(source, options)
    labeled = source.counts is not None or options.rows.label is not None
    ratios = given["favorable"] != "neither"
    gates = conditions.read(
        find_audit_scope(
            decides=options.decides,
            ratios=ratios,
            labeled=labeled,
            keeps_unknown=list(unknown) == ["keep"],
        )
    )
    given |= {"threshold": options.threshold, "text": wording.text} | options.limits
    with resources.in_use(), source.at_work():
        result: Audit = source.plan(wroc.audit, unknown=source.read_unknown(unknown), **given)
    source.check_selected(result.segments["n_selected"].sum())
    files = source.describe(contents=any(each.suffix in _DESCRIBED for each in output.targets))
    judgement = conditions.judge(gates, result.table)
    run = replace(result.run, command=command_line.get(), files=files)
    result = replace(result, run=run, gates=judgement.gates)
    show = partial(_show_audit, result, output)
    show_judged(show, judgement, source)


def _require_columns(source: Source, options: SegmentOptions) -> None:
    """Check that a label and a score are named, or decisions alone."""
    rows, recorded = options.rows, options.selected is not None
    alone = recorded or (rows.score and options.threshold is not None)
    if rows.label is None and alone and source.counts is None:
        return
    if recorded and rows.label is not None and not rows.score:
        msg = "--score must be given with --label; to audit decisions alone, leave out --label"
        raise ValueError(msg)
    source.require(
        "label", "score", or_else="decisions alone: --selected, or --score and --threshold"
    )


def _show_audit(result: Audit, output: Output) -> None:
    """Write the reports and print the summary, unless JSON is printed."""

    def choose(suffix: str) -> Callable[[Path], object]:
        if suffix == prometheus.SUFFIX:
            return partial(
                outputs.save_text, prometheus.write_prometheus(result.table, [*AUDIT_KEYS, MODEL])
            )
        return result.save

    text = write_text(write_summary(result), measure_screen().terminal)
    write_targets(output.targets, choose, f"{text}\n")
