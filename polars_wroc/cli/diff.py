"""The command `diff`: what changed between two audits."""

from __future__ import annotations

import argparse
from functools import partial

from polars_wroc.audits.audit_changes import changes_between
from polars_wroc.audits.change_gates import read_change_gate
from polars_wroc.audits.changes_in_text import changes_in_text
from polars_wroc.audits.gates import judged
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.results import check_output, is_chart, present, show_table
from polars_wroc.cli.usage import UsageError


def run_diff(options: argparse.Namespace) -> None:
    """Print or write the changes, or draw those of a metric; raise if a gate fails."""
    check_output(options, TABLE_OR_CHART)
    drawn = {name: getattr(options, name) for name in ("metric", "measure")}
    given = [name for name, value in drawn.items() if value is not None]
    if given and not is_chart(options):
        msg = f"--{given[0]} applies to a chart: -o FILE with one of .html, .png, .svg"
        raise UsageError(msg)
    gates = [read_change_gate(text) for text in options.fail_if]
    before, after = options.files
    changes = changes_between(before, after, options.adjust)

    def show() -> None:
        text = partial(changes_in_text, changes)
        show_table("diff", changes.table, options, text, level=changes.level, **drawn)

    present(judged(gates, changes), show)
