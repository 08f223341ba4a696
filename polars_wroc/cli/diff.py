"""The command `diff`: what changed between two audits."""

from __future__ import annotations

import argparse
import shutil

from polars_wroc.audits.audit_changes import changes_between
from polars_wroc.audits.change_gates import read_change_gate
from polars_wroc.audits.changes_in_text import changes_in_text
from polars_wroc.audits.gates import judged
from polars_wroc.cli.parser import UsageError
from polars_wroc.cli.results import check_output, present, say_written, show_table
from polars_wroc.files import outputs


def run_diff(options: argparse.Namespace) -> None:
    """Print or write the changes, or draw those of a metric; raise if a gate fails."""
    suffix = check_output(options, (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES))
    drawn = {name: getattr(options, name) for name in ("metric", "measure")}
    drawn = {name: value for name, value in drawn.items() if value is not None}
    if drawn and suffix not in outputs.CHART_SUFFIXES:
        msg = f"--{next(iter(drawn))} applies to a chart: -o FILE with one of .html, .png, .svg"
        raise UsageError(msg)
    gates = [read_change_gate(text) for text in options.fail_if]
    before, after = options.files
    changes = changes_between(before, after, options.adjust)

    def show() -> None:
        if suffix not in outputs.CHART_SUFFIXES:
            width = shutil.get_terminal_size().columns
            show_table(changes.table, options, lambda: changes_in_text(changes, width))
            return
        # Only a chart should cost the import of Altair.
        from polars_wroc.charts import change_chart, save_chart  # noqa: PLC0415

        chart = change_chart(changes.table, level=changes.level, **drawn)
        save_chart(chart, options.output)
        say_written(options)

    present(judged(gates, changes), show)
