"""The command ``gaps``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import COMPARISON_SCOPE
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByAttributes
from polars_wroc.cli.options import TESTS, Conditions, FileNames, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.documents.numbers import POINTS
from polars_wroc.documents.phrases import first_few, many, verb
from polars_wroc.groups.comparisons import GAP_METRICS, REPEATS
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

_IN_WORDS = {"rest": "the rest", "overall": "all rows", "best": "the best group"}
_LEFT_OUT = "Rows without a label count in selection rates alone, the others not at all."
GapMetric = Annotated[
    str | None,
    Parameter(
        help="Metric that is printed and drawn, rates with decisions only; default auc in charts, "
        "all in the table.",
        choices=[*GAP_METRICS],
        group=TESTS,
    ),
]


@with_arguments_of(wroc.group_gaps, "reference within intersections margin min_rows adjust")
def gaps(
    file: FileNames,
    /,
    *,
    options: ByAttributes,
    metric: GapMetric = None,
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Test the gaps between groups and their reference."""
    targets = options.output.targets
    if metric is not None and targets and not any(each.is_read for each in targets):
        msg = (
            f"--metric applies to what is printed and to charts; {targets[0].name} has all metrics"
        )
        raise ValueError(msg)
    if metric not in (None, "auc") and not options.decides:
        msg = f"--metric {metric} needs --threshold or --selected; found none of them"
        raise ValueError(msg)
    metrics = [*GAP_METRICS] if options.decides else ["auc"]
    gates = conditions.read(replace(COMPARISON_SCOPE, what="the table", metrics=metrics))
    source = options.read(file, "label", "score")
    given |= {"threshold": options.threshold} | options.limits
    plan = source.plan(wroc.group_gaps, **given)
    (table,) = source.compute_all(plan, **({} if source.counts else {"left_out": _LEFT_OUT}))
    source.check_positives(found=bool(table.filter(metric="auc")["value"].count()))
    source.check_selected(table.filter(metric="selection_rate")["value"].sum())
    shown = _lay_out(table, metric, _name_reference(given["reference"]), given["margin"])
    report = Report(source, table, [shown], lambda: [wroc.gap_chart(table, metric=metric or "auc")])
    show_report(report, options.output, conditions.judge(gates, table))


def _name_reference(reference: str | dict[str, str]) -> str:
    """Name what groups are compared with."""
    if isinstance(reference, str):
        return _IN_WORDS.get(reference, reference)
    return " and ".join(f"{attribute}={segment}" for attribute, segment in reference.items())


def _lay_out(table: pl.DataFrame, metric: str | None, reference: str, margin: float) -> Shown:
    """Show the gaps of a metric, or of all, those that are different first."""
    keys, metrics = sentences.list_keys(table), table["metric"].unique().to_list()
    if metric is None and len(metrics) == 1:
        metric = metrics[0]
    if metric is not None:
        of_metric = table.filter(metric=metric)
    else:
        keys = [*keys, "metric"]
        order = pl.col("verdict").ne_missing(DIFFERENT), -pl.col("gap").abs()
        of_metric = table.sort(order, nulls_last=True, maintain_order=True)
    what = f"from {reference}{_in(metric)}"
    verdict = (
        sentences.say_same_decision(of_metric)
        + sentences.say_backwards(table, keys)
        + _say_which_differ(
            of_metric, keys, what, margin, "comparison" if metric is None else "group"
        )
        + _count_tests(table, of_metric)
    )
    heading = (
        f"gaps{_in(metric)} to {reference}{sentences.name_groups(sentences.list_attributes(table))}"
    )
    return Shown(heading, of_metric, keys, verdict)


def _in(metric: str | None) -> str:
    return "" if metric is None else f" in {GAP_METRICS[metric].label}"


def _say_which_differ(
    table: pl.DataFrame, keys: Sequence[str], what: str, margin: float, thing: str
) -> str:
    """Return which groups differ from their reference, and the numbers of other verdicts."""
    if table["verdict"].count() == 0:
        return "Nothing could be compared."
    found = table.filter(verdict=DIFFERENT).sort(pl.col("gap").abs(), descending=True)
    names = [
        f"{sentences.name_place(row, keys)} ({POINTS.write(row['gap'])})"
        for row in found.iter_rows(named=True)
    ]
    said = [f"No group is shown to differ {what}."]
    if names:
        said = [f"Different {what}, in points: {first_few(names, sentences.SEPARATOR)}."]
    alike, unclear = (table.filter(verdict=each).height for each in (EQUIVALENT, INCONCLUSIVE))
    counts = []
    if alike:
        counts.append(f"equivalent within {100 * margin:g} points: {many(alike, thing)}")
    if unclear:
        counts.append(f"inconclusive: {many(unclear, thing)}")
    if counts:
        counted = "; ".join(counts)
        said.append(f"{counted[0].upper()}{counted[1:]}.")
    return " ".join(said)


def _count_tests(table: pl.DataFrame, shown: pl.DataFrame) -> str:
    """Return the number of tests that verdicts are adjusted for, and how many are shown."""
    if table["p_value"].equals(table["p_adjusted"]):
        return ""
    # Two groups that are compared with each other have a single test.
    is_counted = ~pl.col("reason").str.starts_with(REPEATS).fill_null(value=False)
    number, n_shown = (one.filter(is_counted)["p_value"].count() for one in (table, shown))
    if number == n_shown:
        return f" Verdicts are adjusted for {many(number, 'test')}, intervals are not."
    are = verb(n_shown, "is", "are")
    return (
        f" Verdicts are adjusted for all {many(number, 'test')} of this command, of which "
        f"{n_shown:,} {are} shown; intervals are not adjusted."
    )
