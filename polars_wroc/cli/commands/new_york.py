"""The command ``new-york``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter

from polars_wroc.audits import new_york as audits
from polars_wroc.audits import new_york_result
from polars_wroc.cli.options import (
    INPUT,
    Attributes,
    Files,
    Scores,
    Selected,
    Unknown,
    with_arguments_of,
)
from polars_wroc.cli.output import Output, run_of, write_targets
from polars_wroc.cli.source import Source
from polars_wroc.cli.terminal import measure_screen, print_note, print_text
from polars_wroc.documents.text_writer import write_text
from polars_wroc.inputs.spellings import say_near_equal

Score = Annotated[
    str | None,
    Parameter(help="Column of the tool's score: selected are those above the median.", group=INPUT),
]
Frequency = Annotated[
    str | None,
    Parameter(help="Column of weights that count rows: how many a row is.", group=INPUT),
]


@with_arguments_of(
    audits.new_york_summary,
    "source distribution_date audit_date min_share justification title",
    min_share="Categories with smaller shares are left out of the ratios; 0: none.",
)
def new_york(
    file: Files,
    /,
    *,
    attributes: Attributes,
    selected: Selected = None,
    score: Score = None,
    frequency: Frequency = None,
    unknown: Unknown = (),
    output: Output = Output(),
    **given: Any,
) -> None:
    """Print or write the summary of a bias audit for New York City."""
    targets = output.find_targets(new_york_result.SUFFIXES, file)
    columns = Scores(score=[score] if score else [], frequency=frequency)
    rows = Source(files=file, columns=columns, group_texts=attributes, selected=selected)
    rows.refuse_counts("new-york")
    with rows.progress:
        summary = rows.plan(audits.new_york_summary, unknown=rows.read_unknown(unknown), **given)
    rows.check_selected(summary.table["n_selected"].sum())
    # It is published with the numbers.
    decisions = " ".join(rows.describe_chosen_values())
    spellings = [
        text
        for name, values in summary.table.group_by("attribute").agg("segment").rows()
        for text in say_near_equal(name, [each for each in values if each is not None])
    ]
    summary = replace(
        summary, decisions=decisions, hints=[*summary.hints, *spellings], run=run_of(rows)
    )
    if targets:
        write_targets(targets, lambda _: summary.save)
    else:
        screen = measure_screen()
        blocks = new_york_result.lay_out_new_york(summary)
        print_text(f"{write_text(blocks, screen.terminal)}\n")
    for hint in summary.hints:
        print_note(hint)
