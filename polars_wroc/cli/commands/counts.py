"""The command ``counts``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter

from polars_wroc.cli.options import OUTPUT, By, Files, Rows, Workers
from polars_wroc.cli.output import Output, write_targets
from polars_wroc.cli.source import Source, merge_files
from polars_wroc.counts.score_counts import score_counts
from polars_wroc.files import outputs

Bins = Annotated[
    int | None,
    Parameter(help="Count in about this many bins of scores instead of by score.", group=OUTPUT),
]


def counts(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    by: By = None,
    bins: Bins = None,
    workers: Workers = Workers(),
    output: Output = Output(),
) -> None:
    """Write the counts of rows by score, or the sum of the counts in all files."""
    targets = output.find_targets(outputs.TABLE_SUFFIXES, file)
    if not targets:
        msg = "-o FILE must be given; -o - prints JSON"
        raise ValueError(msg)
    source = Source(files=file, columns=rows, group_texts=by or (), flag="--by", may_be_empty=True)
    source.require("score")
    with workers.at_work(), source.progress:
        if source.counts is None:
            given = {} if rows.label is not None else {"label": None}
            plan = source.plan(score_counts, bins=bins, **given)
        else:
            plan = merge_files(file, bins).table()
        write_targets(targets, lambda _: partial(outputs.sink_table, plan))
    source.say_values()
