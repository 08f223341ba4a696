"""The command `diff`: what changed between two audits."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from polars_wroc.audits.audit_changes import Changes, changes_between
from polars_wroc.audits.change_gates import read_change_gate
from polars_wroc.audits.changes_in_text import changes_in_text
from polars_wroc.audits.gates import judged
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.results import check_output, is_chart, present, say_written, show_table
from polars_wroc.cli.usage import UsageError
from polars_wroc.files import outputs


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
    changes = changes_between(before, after, options.adjust, different_rows=options.different_rows)
    present(judged(gates, changes), partial(_show, changes, options))


def _show(changes: Changes, options: argparse.Namespace) -> None:
    """Print or write the changes: as a table, a chart or a page."""
    if (options.output or "").lower().endswith(".html"):
        from polars_wroc.audits.report.changes import render_changes  # noqa: PLC0415

        before, after = (Path(name).name for name in options.files)
        page = render_changes(changes, (before, after), options.metric, options.measure)
        outputs.write(options.output, lambda part: part.write_text(page, encoding="utf-8"))
        say_written(options)
        return
    metric, measure = changes.most_changed(options.metric, options.measure)[0]
    text = partial(changes_in_text, changes)
    drawn = {"level": changes.level, "metric": metric, "measure": measure}
    show_table("diff", changes.table, options, text, **drawn)
