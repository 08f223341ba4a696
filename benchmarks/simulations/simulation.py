"""Run the library on many replicates at once.

Everything here comes from the library; only what a table's worth of tests is adjusted for is done
within replicates (`with_holm`), because the library adjusts for all tests of a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from designs import Setting
from tables import SIGNIFICANCE, Measure, share

from polars_wroc.groups.categories import (
    Categories,
    CategoryReference,
    read_attributes,
    read_category_reference,
)
from polars_wroc.groups.comparison_tests import GapMethod, GapTests, with_verdicts
from polars_wroc.groups.fairness_rows import fairness_rows
from polars_wroc.groups.gaps import GroupGaps
from polars_wroc.groups.impact_ratios import ImpactRatios
from polars_wroc.groups.references import KINDS, REPEATED
from polars_wroc.inputs.decisions import unknown_keys
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.formulas import in_columns
from polars_wroc.plans.queries import collect
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.search import common_threshold, confusion_at

Method: TypeAlias = Literal["score", "logit-t", "wald"]

LEVEL = 1 - SIGNIFICANCE
ROWS_AT_ONCE = 2_000_000
REPLICATE, SEGMENT = "replicate", "segment"


@dataclass(frozen=True)
class Simulation:
    """How many replicates to draw, and from which generator."""

    replicates: int
    random: np.random.Generator

    def run(
        self, setting: Setting, estimate: Callable[[pl.DataFrame], pl.DataFrame]
    ) -> pl.DataFrame:
        """Estimate all replicates of a setting, as many at once as memory allows."""
        print(setting, file=sys.stderr, flush=True)
        return pl.concat(
            estimate(setting.draw(self.random, replicates)).with_columns(chunk=pl.lit(chunk))
            for chunk, replicates in enumerate(self._chunks(setting))
        )

    def fewer(self, times: int) -> Simulation:
        """Return a simulation of a part of the replicates, for what takes long."""
        return Simulation(max(self.replicates // times, 2), self.random)

    def _chunks(self, setting: Setting) -> Iterator[int]:
        chunk = max(1, ROWS_AT_ONCE // setting.rows)
        for start in range(0, self.replicates, chunk):
            yield min(chunk, self.replicates - start)


def intervals(frame: pl.DataFrame, methods: Sequence[Method]) -> pl.DataFrame:
    """Intervals of the AUC of each replicate by several methods, from the same sums."""
    rows = read_rows(frame, "label", "score", "weight", REPLICATE, None)
    ways = {method: Interval(LEVEL, method).for_rows(rows) for method in methods}
    sums = collect(sum_groups(rows, ways[methods[0]])).lazy()
    columns = ["auc", "auc_se", "auc_low", "auc_high"]
    tables = {way: collect(summary_of(sums, each).select(columns)) for way, each in ways.items()}
    return pl.concat(table.with_columns(way=pl.lit(way)) for way, table in tables.items())


def gaps(
    frame: pl.DataFrame,
    reference: object,
    method: GapMethod = "score",
    threshold: float | None = None,
) -> pl.DataFrame:
    """`group_gaps` of the segments within each replicate, with verdicts."""
    rows = _segments(frame)
    divisions = read_attributes(rows, intersections=False)
    schema = rows.frame.collect_schema()
    named = read_category_reference(reference, KINDS, divisions, schema)
    limit = None if threshold is None else common_threshold(rows, threshold)
    tests = GapTests(LEVEL, "none", 0, method)
    gaps = GroupGaps(rows, divisions, named, limit, tests, at_once=True)
    table = with_holm(collect(gaps.table()))
    tests = tests._replace(picked=named.kind == "best")
    return with_verdicts(table, [REPLICATE], tests)


def with_holm(table: pl.DataFrame) -> pl.DataFrame:
    """Adjust the p-values of each replicate by Holm's method, and count its tests."""
    # Of two segments each is the other's reference: one test, shown twice.
    p = pl.when(~pl.col(REPEATED)).then("p_value")
    number = p.count().over(REPLICATE).cast(pl.Int64)
    larger = number - p.rank("ordinal").over(REPLICATE).cast(pl.Int64) + 1
    steps = table.with_columns(number=number.clip(lower_bound=1), p_adjusted=larger * p)
    steps = steps.sort(REPLICATE, p, nulls_last=True)
    adjusted = pl.col("p_adjusted")
    held = pl.when(adjusted.is_not_null()).then(adjusted.cum_max().over(REPLICATE))
    steps = steps.with_columns(p_adjusted=held.clip(upper_bound=1.0))
    of_both = adjusted.max().over(REPLICATE, "metric")
    return steps.with_columns(p_adjusted=pl.when(REPEATED).then(of_both).otherwise(adjusted))


def family_error(found: pl.DataFrame, metrics: str = "auc") -> Measure:
    """Share of replicates where a p-value, adjusted for these tests, is at most 0.05.

    ``metrics`` is a pattern of their names. Holm's method finds something where Bonferroni's does.
    """
    tested = found.filter(~pl.col(REPEATED), pl.col("metric").str.contains(f"^({metrics})$"))
    p_values = pl.col("p_value").drop_nulls()
    smallest = tested.group_by("chunk", REPLICATE).agg(p=p_values.min() * p_values.len())
    return share(smallest["p"] <= SIGNIFICANCE)


def largest_gaps(frame: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """`fairness` of the segments within each replicate, without ABROCA."""
    rows = _segments(frame)
    metrics = ThresholdMetrics(LEVEL)
    rates = in_columns(confusion_at(rows, common_threshold(rows, threshold)), metrics.steps)
    interval = Interval(LEVEL, "score").for_rows(rows)
    aucs = summary_of(sum_groups(rows, interval), interval)
    tables = rates.sort(rows.keys), aucs.sort(rows.keys)
    return collect(fairness_rows(rows, *tables, interval, 0, at_once=True))


def highest(frame: pl.DataFrame) -> pl.DataFrame:
    """`impact_ratios` of the segments within each replicate, with p-values as they are.

    Rows with a score of 0.5 or more are selected.
    """
    rows = _segments(frame)
    divisions = read_attributes(rows, intersections=False)
    unknown, named = unknown_keys("exclude", rows), CategoryReference("highest", {})
    categories = Categories(divisions, [REPLICATE], unknown, named, 0.0)
    ratios = ImpactRatios(categories, "selected", LEVEL, "mid-p", "none", designed=False)
    cells = confusion_at(rows, common_threshold(rows, 0.5))
    return collect(ratios.table(cells, None, None))


def _segments(frame: pl.DataFrame) -> Rows:
    """Rows by segment and replicate; like models, replicates are never compared."""
    keys = [SEGMENT, REPLICATE]
    frame = frame.with_columns(pl.col(SEGMENT).cast(pl.String))
    read = read_rows(frame, "label", "score", "weight", keys, None)
    return Rows(read.frame.rename(read.names), keys, [REPLICATE])
