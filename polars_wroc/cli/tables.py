"""The commands `compare`, `gaps`, `thresholds` and `calibrate`: tables and their charts."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, get_args

import polars as pl

from polars_wroc.audits.comparison_gates import read_comparison_gate
from polars_wroc.audits.gates import judged
from polars_wroc.audits.references import ReferenceKind
from polars_wroc.charts.labels import GapMetric
from polars_wroc.cli import arguments, sources
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.cli.layouts import (
    calibration_in_text,
    decisions_in_text,
    gaps_in_text,
    pairs_in_text,
)
from polars_wroc.cli.results import check_output, is_chart, present, show_table
from polars_wroc.cli.usage import UsageError
from polars_wroc.inputs import values
from polars_wroc.inputs.columns import check_positives
from polars_wroc.plans.collect import collect, collect_all
from polars_wroc.plans.engine import at_once
from polars_wroc.thresholds.rules import RULE_ARGUMENTS

_IN_WORDS: dict[str, str] = {
    "rest": "the rest",
    "rest_pooled": "the rest",
    "overall": "all rows",
    "overall_pooled": "all rows",
    "best": "the best group",
}


def run_compare(options: argparse.Namespace) -> None:
    """Test the differences between the AUCs of scores."""
    check_output(options, TABLE_OR_CHART)
    gates = [read_comparison_gate(text) for text in options.fail_if]
    source = sources.source_of(options)
    compare = source.function("compare")
    chosen = {"method": options.method, "adjust": options.adjust}
    with at_once(sources.known_rows(options)):
        table = collect(compare(**chosen, **arguments.uncertainty_of(options)))
    check_positives(options.pos_label, found=_has_positives(table["auc_a"], source))
    text = partial(pairs_in_text, table, options.level)
    show = partial(show_table, "compare", table, options, text, level=options.level)
    present(judged(gates, table), show)


def run_gaps(options: argparse.Namespace) -> None:
    """Test the gaps between groups and their reference."""
    check_output(options, TABLE_OR_CHART)
    metric: GapMetric = options.metric or "auc"
    if options.metric and options.output and not is_chart(options):
        msg = f"--metric applies to what is printed and to charts; {options.output} has all metrics"
        raise UsageError(msg)
    if metric != "auc" and options.threshold is None and options.selected is None:
        msg = f"--metric {metric} needs --threshold or --selected; found none of them"
        raise UsageError(msg)
    source = sources.source_of(options)
    named = ("threshold", "within", "margin", "min_rows", "adjust")
    chosen = {name: getattr(options, name) for name in named}
    chosen["reference"] = _reference(options, source.groups)
    with at_once(sources.known_rows(options)):
        gaps = source.function("group_gaps")
        table = collect(gaps(**chosen, **arguments.uncertainty_of(options)))
    check_positives(options.pos_label, found=bool(table["n_pos"].sum()))
    if options.selected is not None:
        arguments.check_selected(options, table["selection_rate"].sum())
    text = partial(gaps_in_text, table, metric, _in_words(options.reference), options.margin)
    show_table("gaps", table, options, text, metric=metric, level=options.level)


def run_thresholds(options: argparse.Namespace) -> None:
    """Measure decisions at thresholds, or at one that a rule chooses."""
    check_output(options, TABLE_OR_CHART)
    source = sources.source_of(options)
    with at_once(sources.known_rows(options)):
        table = collect(_decisions(options, source))
    check_positives(options.pos_label, found=_has_positives(table["tpr"], source))
    if not is_chart(options):
        show_table("thresholds", table, options, partial(decisions_in_text, table))
        return
    # The chart has a slider along the curve.
    curves = collect(source.function("roc_curve")())
    text = partial(decisions_in_text, table)
    known = {"facet": next(iter(source.groups), None), "threshold": _start(table, curves)}
    show_table("thresholds", curves, options, text, **known)


def run_calibrate(options: argparse.Namespace) -> None:
    """Compare scores with the observed rates."""
    check_output(options, TABLE_OR_CHART)
    source = sources.source_of(options)
    bins = {"bins": options.curve_bins, "strategy": options.strategy}
    curve = source.function("calibration_curve")(**bins, level=options.level)
    if options.output:
        table = collect(curve)
        known = table.select((pl.col("observed_rate") > 0).any()).item()
        check_positives(options.pos_label, found=bool(known))
        known = {"facet": next(iter(source.groups), None), "level": options.level}
        show_table("calibration", table, options, str, **known)
        return
    level = {"level": options.level, "weight_type": options.weight_type}
    slope = source.function("calibration_slope")(**level)
    table, slopes = collect_all([curve, slope])
    check_positives(options.pos_label, found=bool(slopes["n_pos"].sum()))
    show_table("calibration", table, options, partial(calibration_in_text, table, slopes))


def _has_positives(known: pl.Series, source: sources.Source) -> bool:
    """Whether there are positives, without which nothing is ``known``."""
    return bool(known.count()) or bool(collect(source.function("summary")())["n_pos"].sum())


def _decisions(options: argparse.Namespace, source: sources.Source) -> pl.LazyFrame:
    """Plan the rates at given thresholds, or at those that a rule chooses."""
    rule = {name: value for name in RULE_ARGUMENTS if (value := getattr(options, name)) is not None}
    level: dict[str, Any] = {"level": options.level, "weight_type": options.weight_type}
    table: pl.LazyFrame
    if options.thresholds is None:
        if not rule:
            msg = "thresholds needs --threshold, or a rule such as --criterion youden; found none"
            raise UsageError(msg)
        table = source.function("operating_points")(**rule, **level, common=options.common)
        return table
    prevalence = rule.pop("prevalence", None)
    if rule or options.common:
        flag = options.flags[next(iter(rule), "common")]
        msg = f"--threshold must not come with a rule that chooses one; found {flag}"
        raise UsageError(msg)
    metrics = source.function("threshold_metrics")
    table = metrics(thresholds=options.thresholds, prevalence=prevalence, **level)
    return table


def _start(table: pl.DataFrame, curves: pl.DataFrame) -> float | None:
    """Return the threshold at which the slider of a chart begins, if it is one and on it."""
    drawn = pl.col("threshold").filter(pl.col("threshold").is_finite())
    low, high = curves.select(drawn.min(), drawn.max().alias("high")).row(0)
    chosen = table["threshold"].drop_nulls().unique().to_list()
    inside = len(chosen) == 1 and low is not None and low <= chosen[0] <= high
    return chosen[0] if inside else None


def _in_words(references: list[str]) -> str:
    """Name the reference as in the middle of a sentence."""
    return " and ".join(_IN_WORDS.get(text, text) for text in references or ["rest"])


def _reference(options: argparse.Namespace, groups: dict[str, pl.DataType]) -> object:
    """Read --reference: one kind, or a group by the values of its columns."""
    given, kinds = options.reference or ["rest"], get_args(ReferenceKind)
    if given[0] in kinds and len(given) == 1:
        return given[0]
    if len(groups) == 1 and len(given) == 1 and "=" not in given[0]:
        given = [f"{next(iter(groups))}={given[0]}"]
    named = arguments.reference_of(argparse.Namespace(reference=given), "rest")
    if isinstance(named, str) or named.keys() != groups.keys():
        whole = " and ".join(f"{name}=VALUE" for name in groups)
        found = " and ".join(given)
        msg = f"--reference must be one of {', '.join(kinds)}, or {whole}; found {found}"
        raise UsageError(msg)
    read = {name: values.from_text(named[name], dtype) for name, dtype in groups.items()}
    for name, value in read.items():
        if value is None:
            found = f"{named[name]!r} for type {groups[name]}"
            msg = f"--reference must have a value of {name!r}; found {found}"
            raise ValueError(msg)
    group = tuple(read.values())
    # A group may have the name of a kind.
    return group[0] if len(group) == 1 and group[0] not in kinds else group
