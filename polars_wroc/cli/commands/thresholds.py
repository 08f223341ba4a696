"""The command ``thresholds``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import find_table_scope
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import (
    DECISIONS,
    THRESHOLD_HELP,
    Conditions,
    FileNames,
    read_all_by,
    with_arguments_of,
)
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.values import parse_threshold
from polars_wroc.documents.numbers import write_number
from polars_wroc.documents.phrases import first_few
from polars_wroc.ranking.curve import CELLS
from polars_wroc.thresholds.rules import Rule


def _read_thresholds(texts: Sequence[str]) -> Any:
    """Read numbers, or one rule."""
    given = [parse_threshold(text) for text in texts]
    is_number = [isinstance(each, float) for each in given]
    if len(given) > 1 and not all(is_number):
        msg = "--threshold must be numbers or one rule; found a rule and other thresholds"
        raise ValueError(msg)
    return given if all(is_number) else given[0]


ThresholdsOption = Annotated[
    list[Any] | None,
    Parameter(
        name="--threshold",
        help=f"{THRESHOLD_HELP} Numbers may be repeated.",
        converter=read_all_by(_read_thresholds),
        metavar="NUMBER...",
        group=DECISIONS,
    ),
]


@with_arguments_of(wroc.threshold_metrics, "prevalence per_group min_rows metrics")
def thresholds(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    thresholds: ThresholdsOption,
    conditions: Conditions = Conditions(),
    **given: Any,
) -> None:
    """Measure decisions at thresholds, or at one that a rule chooses."""
    by_rule = isinstance(thresholds, Rule)
    if by_rule and given["prevalence"] is not None:
        msg = "--prevalence excludes a rule in --threshold: write least-cost:prevalence=P"
        raise ValueError(msg)
    if given["per_group"] and not by_rule:
        msg = "--per-group must come with a rule in --threshold"
        raise ValueError(msg)
    source = options.read(file)
    plan = source.plan(wroc.threshold_metrics, threshold=thresholds, **given, **options.limits)
    keys = sentences.list_before(plan.collect_schema(), "threshold")
    gates = conditions.read(find_table_scope(plan.collect_schema(), keys))
    (table,) = source.compute_all(plan)
    source.check_positives(found=table.select((pl.col("tp") + pl.col("fn") > 0).any()).item())
    verdict = _say_what_tells_nothing(table, keys)
    shown = Shown(f"rates at thresholds{sentences.name_groups(keys)}", table, keys, verdict)

    def draw() -> list[Any]:
        # The chart has the rates at all thresholds, and a line at the one that was chosen.
        everywhere = source.plan(wroc.threshold_metrics, metrics=given["metrics"]).collect()
        return [wroc.rates_chart(everywhere, threshold=_only_threshold(table))]

    show_report(
        Report(source, table, [shown], draw, row_keys=[*keys, "threshold"]),
        options.output,
        conditions.judge(gates, table),
    )


def _only_threshold(table: pl.DataFrame) -> float | None:
    """Return the finite threshold of the table, if there is only one."""
    chosen = table["threshold"].drop_nulls().unique().to_list()
    return chosen[0] if len(chosen) == 1 and math.isfinite(chosen[0]) else None


def _say_what_tells_nothing(table: pl.DataFrame, keys: Sequence[str]) -> str | None:
    """Return where no threshold is allowed, and where one selects nobody or everybody."""
    said = []
    found = table.filter(pl.col("threshold").is_null())
    if not found.is_empty():
        groups = f" in {sentences.name_places(found, keys)}" if keys else ""
        said.append(f"No threshold can be chosen{groups}: a class that the rule needs is missing.")
    whole = table.group_by("threshold", maintain_order=True).agg(pl.col(CELLS).sum())
    for who, cells in (("nobody", ("tp", "fp")), ("everybody", ("fn", "tn"))):
        known = pl.sum_horizontal(CELLS) > 0
        same = whole.drop_nulls().filter(known, pl.sum_horizontal(cells) == 0)["threshold"]
        if len(same):
            ways = first_few([write_number(value, "g") for value in same], ", ")
            said.append(f"At a threshold of {ways} {who} is selected.")
    return " ".join(said) or None
