"""The command ``compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.audits.gates import OF_PAIRS, judged, judged_pairs
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli.options import By, Conditions, Files, Rows, Uncertainty, with_arguments_of
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import SEPARATOR, columns_before, name_groups, name_place
from polars_wroc.cli.source import Source
from polars_wroc.looks import ConfidenceLevel, as_number
from polars_wroc.metrics import compare as metrics
from polars_wroc.metrics.compare import PAIR


@with_arguments_of(metrics.compare, "method adjust")
def compare(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    by: By = None,
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Test the differences between the AUCs of scores."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    gates = conditions.read(OF_PAIRS)
    source = Source(files=file, columns=rows, group_texts=by or (), flag="--by")
    source.require("label", "score")
    source.refuse_counts("compare")
    table = source.compute(metrics.compare, **given, **uncertainty.arguments)
    source.check_positives(found=bool(table["value"].count()))
    keys = columns_before(table.columns, "metric")
    verdict = _say_which_differ(table, keys, uncertainty.confidence)
    shown = Shown(f"differences between AUCs{name_groups(keys)}", table, keys, verdict)
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table)])
    judgement = judged(gates, judged_pairs(table))
    show_report(report, output, targets, judgement, strict=conditions.fail_unjudged)


def _say_which_differ(table: pl.DataFrame, keys: Sequence[str], level: ConfidenceLevel) -> str:
    """Say which pairs of scores have different AUCs."""
    significant = (pl.col("p_adjusted") <= 1 - as_number(level)).fill_null(value=False)
    tested = table.drop_nulls("p_adjusted").height
    found = table.filter(significant).sort(pl.col("gap").abs(), descending=True)
    if found.is_empty():
        return f"No score is shown to have a higher AUC than another ({many(tested, 'test')})."
    groups = [key for key in keys if key not in PAIR]
    names = [
        f"{name_place(row, groups)}: {_order(row)}" if groups else _order(row)
        for row in found.iter_rows(named=True)
    ]
    are = "differs" if found.height == 1 else "differ"
    counts = f"{found.height:,} of {many(tested, 'pair')} of AUCs {are}"
    return f"{counts}: {first_few(names, SEPARATOR)}."


def _order(row: dict[str, Any]) -> str:
    """Name two scores, the one with the higher AUC first."""
    higher, lower = row["model"], row["reference"]
    if row["gap"] < 0:
        higher, lower = lower, higher
    return f"{higher} is above {lower} by {abs(row['gap']):.3f}"
