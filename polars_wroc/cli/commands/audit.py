"""The command ``audit``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from polars_wroc.audits import audit as audits
from polars_wroc.audits.gates import judged, of_audit
from polars_wroc.audits.result import SUFFIXES, Audit
from polars_wroc.audits.sections import write_summary
from polars_wroc.cli.options import (
    Attributes,
    Conditions,
    Files,
    Rows,
    Selected,
    Threshold,
    Uncertainty,
    Unknown,
    Wording,
    Workers,
    with_arguments_of,
)
from polars_wroc.cli.output import (
    Output,
    Target,
    command_line,
    show_judged,
    write_targets,
)
from polars_wroc.cli.source import Source, require_favorable
from polars_wroc.cli.terminal import measure_screen
from polars_wroc.documents.text_writer import write_text
from polars_wroc.files import outputs, prometheus


@with_arguments_of(
    audits.audit, "intersections reference favorable min_rows min_cell margin adjust"
)
def audit(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    attributes: Attributes,
    unknown: Unknown = (),
    threshold: Threshold = None,
    selected: Selected = None,
    workers: Workers = Workers(),
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    wording: Wording = Wording(),
    output: Output = Output(),
    **given: Any,
) -> None:
    """Audit segments, print a summary and write reports."""
    targets = output.find_targets((*SUFFIXES, prometheus.SUFFIX), file)
    require_favorable(given["favorable"], threshold=threshold, selected=selected)
    source = Source(files=file, columns=rows, group_texts=attributes, selected=selected)
    _require_columns(source, rows, threshold, selected)
    labeled = source.counts is not None or rows.label is not None
    decides, ratios = source.decides(threshold), given["favorable"] != "neither"
    gates = conditions.read(of_audit(decides=decides, ratios=ratios, labeled=labeled))
    with workers.at_work(), source.progress:
        result: Audit = source.plan(
            audits.audit,
            threshold=threshold,
            unknown=source.read_unknown(unknown),
            text=wording.text,
            **given,
            **uncertainty.arguments,
        )
    source.check_selected(result.segments["n_selected"].sum())
    files = source.describe(contents=any(target.suffix in _DESCRIBED for target in targets))
    run = replace(result.run, command=command_line.get(), files=files)
    judgement = judged(gates, result.table)
    result = replace(result, run=run, gates=judgement.gates)
    show = partial(_show_audit, result, targets)
    show_judged(show, judgement, source, strict=conditions.fail_unjudged)


# Formats that say from which contents of files they were made.
_DESCRIBED = (".json", ".html", ".md", outputs.WORKBOOK)


def _require_columns(source: Source, rows: Rows, threshold: Any, selected: str | None) -> None:
    """Check that a label and a score are named, or decisions alone."""
    alone = rows.label is None and (selected or (rows.score and threshold is not None))
    if source.counts is not None or not alone:
        if selected and rows.label is not None and not rows.score:
            msg = "--score must be given with --label; to audit decisions alone, leave out --label"
            raise ValueError(msg)
        source.require(
            "label", "score", or_else="decisions alone: --selected, or --score and --threshold"
        )


def _show_audit(result: Audit, targets: list[Target]) -> None:
    """Write the reports and print the summary."""

    def choose(suffix: str) -> Callable[[Path], object]:
        if suffix == prometheus.SUFFIX:
            return partial(outputs.save_text, prometheus.write_numbers(result.table))
        return result.save

    screen = measure_screen()
    write_targets(targets, choose, f"{write_text(write_summary(result), screen.terminal)}\n")
