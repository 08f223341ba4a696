"""The command ``compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_wroc as wroc
from polars_wroc.audits.gates import PAIR_SCOPE, tabulate_pairs
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import Conditions, FileNames, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.documents.phrases import first_few, many
from polars_wroc.looks import ConfidenceLevel, as_number
from polars_wroc.metrics.compare import PAIR


@with_arguments_of(
    wroc.compare,
    "method adjust",
    method="delong: DeLong's test as published; without it the test also holds where the scores "
    "rank only few rows differently.",
)
def compare(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Test the differences between the AUCs of scores."""
    gates = conditions.read(PAIR_SCOPE)
    source = options.read(file)
    source.refuse_counts("compare")
    table = source.compute(wroc.compare, **given, **options.limits)
    source.check_positives(found=bool(table["value"].count()))
    keys = sentences.list_before(table.schema, "metric")
    verdict = _say_which_differ(table, keys, options.uncertainty.confidence)
    shown = Shown(f"differences between AUCs{sentences.name_groups(keys)}", table, keys, verdict)
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table)])
    show_report(report, options.output, conditions.judge(gates, tabulate_pairs(table)))


def _say_which_differ(table: pl.DataFrame, keys: Sequence[str], level: ConfidenceLevel) -> str:
    """Return which pairs of scores have different AUCs."""
    significant = (pl.col("p_adjusted") <= 1 - as_number(level)).fill_null(value=False)
    tested = table.drop_nulls("p_adjusted").height
    found = table.filter(significant).sort(pl.col("gap").abs(), descending=True)
    if found.is_empty():
        return f"No score is shown to have a higher AUC than another ({many(tested, 'test')})."
    groups = [key for key in keys if key not in PAIR]
    names = [
        f"{sentences.name_place(row, groups)}: {_order(row)}" if groups else _order(row)
        for row in found.iter_rows(named=True)
    ]
    are = "differs" if found.height == 1 else "differ"
    counts = f"{found.height:,} of {many(tested, 'pair')} of AUCs {are}"
    return f"{counts}: {first_few(names, sentences.SEPARATOR)}."


def _order(row: dict[str, Any]) -> str:
    """Name two scores, the one with the higher AUC first."""
    higher, lower = row["model"], row["reference"]
    if row["gap"] < 0:
        higher, lower = lower, higher
    return f"{higher} is above {lower} by {abs(row['gap']):.3f}"
