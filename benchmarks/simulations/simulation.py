"""Run the library on many replicates at once.

Everything here comes from the library; only what a table's worth of tests is adjusted for is done
within replicates (`with_holm`), because the library adjusts for all tests of a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from designs import Setting
from tables import SIGNIFICANCE, Measure, share

import polars_wroc as wroc

Method: TypeAlias = Literal["score", "logit", "delong"]

LEVEL = 1 - SIGNIFICANCE
ROWS_AT_ONCE = 2_000_000
REPLICATE, SEGMENT = "replicate", "segment"
# Marks a test that another one is the same as.
REPEATED = "repeated"


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
    """Intervals of the AUC of each replicate by several methods."""
    summary = partial(wroc.summary, frame, "label", "score", weight="weight", by=REPLICATE)
    tables = {method: summary(level=LEVEL, method=method) for method in methods}
    return pl.concat(
        table.select("auc", "auc_se", "auc_low", "auc_high", way=pl.lit(method))
        for method, table in tables.items()
    )


def gaps(frame: pl.DataFrame, reference: object, threshold: float | None = None) -> pl.DataFrame:
    """`group_gaps` of the segments within each replicate, with the number of tests."""
    compare = partial(
        wroc.group_gaps, label="label", score="score", reference=reference, threshold=threshold
    )
    table = within_replicates(frame, compare).with_columns(
        # Of two segments each is the other's reference: one test, shown twice.
        pl.col("reason").str.starts_with("repeats").fill_null(value=False).alias(REPEATED)
    )
    tests = pl.when(~pl.col(REPEATED)).then("p_value").count().over(REPLICATE)
    return table.with_columns(number=tests.clip(lower_bound=1))


def with_holm(table: pl.DataFrame) -> pl.DataFrame:
    """Adjust the p-values of each replicate by Holm's method, and count its tests."""
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
    """`fairness` of the segments within each replicate."""
    compare = partial(wroc.fairness, label="label", score="score", threshold=threshold)
    return within_replicates(frame, compare)


def highest(frame: pl.DataFrame) -> pl.DataFrame:
    """`impact_ratios` of the segments within each replicate, with p-values as they are.

    Rows with a score of 0.5 or more are selected.
    """
    options: dict[str, Any] = {"favorable": "selected", "min_share": 0.0, "adjust": "none"}
    compare = partial(wroc.impact_ratios, score="score", threshold=0.5, **options)
    return within_replicates(frame, compare)


def within_replicates(frame: pl.DataFrame, compare: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of the segments of each replicate, one after another."""
    named = frame.with_columns(pl.col(SEGMENT).cast(pl.String))
    tables = []
    for (replicate,), rows in named.group_by(REPLICATE, maintain_order=True):
        table = compare(rows, attributes=SEGMENT, weight="weight", level=LEVEL)
        tables.append(table.with_columns(pl.lit(replicate).alias(REPLICATE)))
    return pl.concat(tables)
