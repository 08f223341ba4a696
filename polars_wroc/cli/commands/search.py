"""The command ``search``."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.cli.bundles import ByAttributes
from polars_wroc.cli.options import TESTS, FileNames, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.documents.numbers import write_number
from polars_wroc.documents.phrases import many, verb
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.reasons import NO_VARIANCE

SearchMetric = Annotated[
    str,
    Parameter(
        help="Metric that is compared; rates need decisions, the others probabilities.",
        choices=[*SEARCHED],
        group=TESTS,
    ),
]


@with_arguments_of(
    wroc.worst_segments,
    "favorable depth min_rows top redundant",
    favorable="Which decision is good for a person; required if there are decisions.",
)
def search(
    file: FileNames, /, *, options: ByAttributes, metric: SearchMetric = "tpr", **given: Any
) -> None:
    """Search for the segments that are significantly worse."""
    options.require_favorable(given["favorable"])
    required = () if options.selected is not None else ("label", "score")
    source = options.read(
        file, *(required if options.rows.label is None and metric != "selection_rate" else ())
    )
    given |= {"threshold": options.threshold, "metric": metric} | options.limits
    table = source.compute(wroc.worst_segments, **given)
    if options.rows.label is not None and options.selected is None:
        source.check_positives(found=metric == "tpr" and table["n"][0] > 0)
    source.check_selected(table["value"][0])
    found = table.filter(pl.col("depth") > 0)
    heading = f"worst segments in {SEARCHED[metric].label}"
    shown = Shown(heading, found, [*AUDIT_KEYS], _say_how_many(table, found, metric))

    def draw() -> list[Any]:
        return [wroc.gap_chart(table, metric=metric)] if found.height else []

    show_report(Report(source, table, [shown], draw), options.output)


def _say_how_many(table: pl.DataFrame, found: pl.DataFrame, metric: str) -> str:
    """Return how many segments were examined, and how many are significantly worse."""
    overall = table.row(0, named=True)
    if overall["reason"] == NO_VARIANCE:
        value = write_number(overall["value"], "g")
        return f"The {metric} of all rows is {value}: nothing can be compared."
    if not overall["n_examined"]:
        return (
            "Exploration: no segment was examined, since none has enough rows: lower --min-rows, "
            "or cut numbers into ranges such as age:30,45."
        )
    n_worse = overall["n_worse"]
    verdict = (
        f"Exploration: of {many(overall['n_examined'], 'segment')} "
        f"{f'{n_worse:,}' if n_worse else 'none'} {verb(max(n_worse, 1), 'is', 'are')} "
        "significantly worse"
    )
    if found.height < n_worse:
        verdict += f"; {found.height:,} of them {verb(found.height, 'is', 'are')} shown"
    return f"{verdict}."
