"""The command ``counts``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.bounds import Bins
from polars_wroc.cli.bundles import Dialect
from polars_wroc.cli.options import OUTPUT, By, FileNames, Resources, RowColumns, add_bounds
from polars_wroc.cli.output import Output, write_targets
from polars_wroc.cli.source import Source, merge_files
from polars_wroc.cli.terminal import print_note
from polars_wroc.files import outputs
from polars_wroc.files.csv_dialect import FileFormat

CountBins = Annotated[
    int | None,
    Parameter(
        help=add_bounds("Count in about this many bins of scores instead of by score.", Bins),
        group=OUTPUT,
    ),
]


def counts(
    file: FileNames,
    /,
    *,
    rows: RowColumns = RowColumns(),
    dialect: Dialect = FileFormat(),
    by: By = (),
    bins: CountBins = None,
    resources: Resources = Resources(),
    output: Output = Output(),
) -> None:
    """Write the counts of rows by score, or the sum of the counts in all files."""
    output.check(outputs.TABLE_SUFFIXES, file)
    if not output.targets:
        msg = "-o FILE must be given; -o - prints JSON"
        raise ValueError(msg)
    source = Source(
        files=file, dialect=dialect, columns=rows, group_texts=by, flag="--by", may_be_empty=True
    )
    source.require("score")
    with resources.in_use(), source.at_work():
        if source.counts is None:
            plan = source.plan(wroc.score_counts, bins=bins)
        else:
            plan = merge_files(file, bins).table()
        write_targets(output.targets, lambda _: partial(outputs.sink_table, plan))
    for sentence in source.describe_chosen_values():
        print_note(sentence)
