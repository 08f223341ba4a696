"""The command ``new-york``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits import new_york_result
from polars_wroc.cli.bundles import Dialect
from polars_wroc.cli.options import (
    INPUT,
    Attributes,
    ColumnName,
    FileNames,
    RowColumns,
    Selected,
    UnknownCategories,
    Weights,
    with_arguments_of,
)
from polars_wroc.cli.output import Output, measure_screen, write_targets
from polars_wroc.cli.report import run_of
from polars_wroc.cli.source import Source
from polars_wroc.cli.terminal import print_note, print_text
from polars_wroc.documents.text_writer import write_text
from polars_wroc.files.csv_dialect import FileFormat
from polars_wroc.inputs.spellings import say_near_equal

ScoreOption = Annotated[
    ColumnName,
    Parameter(help="Column of the tool's score: selected are those above the median.", group=INPUT),
]
FrequencyOption = Annotated[
    ColumnName,
    Parameter(help="Column of weights that count rows: how many a row is.", group=INPUT),
]


@with_arguments_of(
    wroc.new_york_summary,
    "source distribution_date audit_date min_share justification title",
    justification="Why small categories are left out; the rule asks the auditor for it.",
    min_share="Categories with smaller shares are left out of the ratios; 0: none.",
)
def new_york(
    file: FileNames,
    /,
    *,
    dialect: Dialect = FileFormat(),
    attributes: Attributes,
    selected: Selected = None,
    score: ScoreOption = None,
    frequency: FrequencyOption = None,
    unknown: UnknownCategories = (),
    output: Output = Output(),
    **given: Any,
) -> None:
    """Print or write the summary of a bias audit for New York City."""
    output.check(new_york_result.NEW_YORK_SUFFIXES, file)
    weights = Weights(frequency=frequency)
    columns = RowColumns(score=[score] if score else [], weights=weights)
    rows = Source(
        files=file, dialect=dialect, columns=columns, group_texts=attributes, selected=selected
    )
    rows.refuse_counts("new-york")
    with rows.at_work():
        unknown_values = rows.read_unknown(unknown)
        summary = rows.plan(wroc.new_york_summary, unknown=unknown_values, **given)
    rows.check_selected(summary.table["n_selected"].sum())
    # It is published with the numbers.
    decisions = " ".join(rows.describe_chosen_values())
    spellings = [
        text
        for name, values in summary.table.group_by("attribute").agg("segment").rows()
        for text in say_near_equal(name, [each for each in values if each is not None])
    ]
    hints = [*summary.hints, *spellings]
    summary = replace(summary, decisions=decisions, hints=hints, run=run_of(rows))
    if output.targets:
        write_targets(output.targets, lambda _: summary.save)
    else:
        blocks = new_york_result.lay_out_new_york(summary)
        print_text(f"{write_text(blocks, measure_screen().terminal)}\n")
    for hint in summary.hints:
        print_note(hint.replace("`unknown`", "--unknown"))
