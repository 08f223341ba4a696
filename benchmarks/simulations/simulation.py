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
from polars_wroc.groups.metric_gaps import GapMethod
from tables import SIGNIFICANCE, Measure, share

from polars_wroc.groups.fairness import fairness_of
from polars_wroc.groups.gaps import GapTests, Verdicts, measure_gaps
from polars_wroc.groups.references import REPEATED
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_interval import IntervalOptions
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.queries import collect, in_columns
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.search import common_threshold, confusion_at

Method: TypeAlias = Literal["score", "logit-t", "wald"]

LEVEL = 1 - SIGNIFICANCE
ROWS_AT_ONCE = 2_000_000
REPLICATE, SEGMENT = "replicate", "segment"
_P_VALUE, _P_ADJUSTED = "_gap_p_value", "_gap_p_adjusted"


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
    ways = {
        method: IntervalOptions(LEVEL, method, "probability").for_rows(rows) for method in methods
    }
    sums = collect(sum_groups(rows, ways[methods[0]])).lazy()
    columns = ["auc", "se", "ci_low", "ci_high"]
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
    limit = None if threshold is None else common_threshold(rows, threshold)
    tests = GapTests(LEVEL, "probability", "none", 0, method)
    table = collect(measure_gaps(rows, reference, limit, tests))
    p_values = [name for name in table.columns if name.endswith(_P_VALUE)]
    table = with_holm(table, p_values)
    metrics = [name.removesuffix(_P_VALUE) for name in p_values]
    # Of this number depends what a test can see, which is part of a verdict.
    verdicts = Verdicts(metrics, pl.col("tests"), LEVEL, MARGIN, designed=False)
    table = collect(in_columns(table.lazy(), verdicts.steps))
    return table.select(pl.exclude("^__.*$"), repeated=REPEATED)


def with_holm(table: pl.DataFrame, p_values: Sequence[str]) -> pl.DataFrame:
    """Adjust the p-values of each replicate by Holm's method, and count its tests."""
    keys = [REPLICATE, SEGMENT]
    long = table.filter(~pl.col(REPEATED)).unpivot(on=p_values, index=keys, value_name="p")
    held = (
        long.drop_nulls("p")
        .sort(REPLICATE, "p")
        .with_columns(
            tests=pl.len().over(REPLICATE).cast(pl.Int64),
            rank=pl.int_range(pl.len()).over(REPLICATE),
        )
    )
    held = held.with_columns(p=(pl.col("tests") - pl.col("rank")) * pl.col("p"))
    held = held.with_columns(pl.col("p").cum_max().over(REPLICATE).clip(upper_bound=1.0))
    tests = held.group_by(REPLICATE).agg(pl.col("tests").first())
    wide = held.with_columns(pl.col("variable").str.replace(_P_VALUE, _P_ADJUSTED, literal=True))
    wide = wide.pivot("variable", index=keys, values="p")
    names = [name.replace(_P_VALUE, _P_ADJUSTED) for name in p_values]
    missing = [pl.lit(None, pl.Float64).alias(name) for name in names if name not in wide.columns]
    wide = wide.with_columns(missing).select(*keys, *names)
    table = table.drop(names).join(wide, on=keys, how="left")
    table = table.join(tests, on=REPLICATE, how="left").with_columns(pl.col("tests").fill_null(1))
    # Of two segments each is the other's reference: one test, shown twice.
    adjusted = pl.col(names)
    return table.with_columns(
        pl.when(REPEATED).then(adjusted.max().over(REPLICATE)).otherwise(adjusted)
    )


def family_error(found: pl.DataFrame, metrics: str = "auc") -> Measure:
    """Share of replicates where a p-value, adjusted for these tests, is at most 0.05.

    ``metrics`` is a pattern of their names. Holm's method finds something where Bonferroni's does.
    """
    tested = found.filter(~pl.col("repeated"))
    p_values = pl.concat_list(pl.col(f"^({metrics}){_P_VALUE}$")).list.explode()
    p_values = p_values.drop_nulls()
    smallest = tested.group_by("chunk", REPLICATE).agg(p=p_values.min() * p_values.len())
    return share(smallest["p"] <= SIGNIFICANCE)


def largest_gaps(frame: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """`fairness` of the segments within each replicate, without ABROCA."""
    rows = _segments(frame)
    metrics = ThresholdMetrics(LEVEL, "probability")
    rates = in_columns(confusion_at(rows, common_threshold(rows, threshold)), metrics.steps)
    interval = IntervalOptions(LEVEL, "score", "probability").for_rows(rows)
    aucs = summary_of(sum_groups(rows, interval), interval)
    table = fairness_of(rows, rates.sort(rows.keys), aucs.sort(rows.keys), interval, 0)
    return collect(table)


def _segments(frame: pl.DataFrame) -> Rows:
    """Rows by segment and replicate; like models, replicates are never compared."""
    keys = [SEGMENT, REPLICATE]
    read = read_rows(frame, "label", "score", "weight", keys, None)
    return Rows(read.frame.rename(read.names), keys, [REPLICATE])
