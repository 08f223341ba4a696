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
from numpy.typing import NDArray
from tables import SIGNIFICANCE, Measure, share

import polars_wroc as wroc
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count, Rate, equal_rates

Method: TypeAlias = Literal["score", "logit", "delong"]

LEVEL = 1 - SIGNIFICANCE
ROWS_AT_ONCE = 2_000_000
SCORES_AT_ONCE = 25
# Rows with at least this score are predicted positive.
THRESHOLD = 0.5
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


def gaps(
    frame: pl.DataFrame,
    reference: object,
    threshold: float | None = None,
    metrics: Sequence[str] | None = None,
) -> pl.DataFrame:
    """`group_gaps` of all segments within each replicate, with the number of tests."""
    options: dict[str, Any] = {"reference": reference, "threshold": threshold, "metrics": metrics}
    compare = partial(wroc.group_gaps, label="label", adjust="none", min_rows=0, **options)
    table = within_replicates(frame, compare).with_columns(
        # Of two segments each is the other's reference: one test, shown twice.
        pl.col("reason").str.starts_with("repeats").fill_null(value=False).alias(REPEATED)
    )
    tests = pl.when(~pl.col(REPEATED)).then("p_value").count().over(REPLICATE)
    return table.with_columns(number=tests.clip(lower_bound=1))


def rate_tests(frame: pl.DataFrame, reference: str) -> pl.DataFrame:
    """p-values of `group_gaps` for the true positive rate at 0.5, of all replicates at once.

    The reference is the rest or a segment's name. `agreement` compares them with `group_gaps`.
    """
    positives = frame.filter("label")
    shape = (positives[REPLICATE].n_unique(), positives[SEGMENT].n_unique())
    place = (positives[REPLICATE] * shape[1] + positives[SEGMENT]).to_numpy()
    weight = positives["weight"].to_numpy()
    is_event = positives["score"].to_numpy() >= THRESHOLD

    def counts(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        sums = (
            np.bincount(place[rows], weight[rows] ** power, minlength=shape[0] * shape[1])
            for power in (1, 2, 3, 0)
        )
        return np.array([each.reshape(shape) for each in sums])

    sums = np.array([counts(is_event), counts(~is_event)])
    if reference == "rest":
        others = sums.sum(axis=-1, keepdims=True) - sums
        segments = list(range(shape[1]))
    else:
        segments = [each for each in range(shape[1]) if str(each) != reference]
        others = np.broadcast_to(sums[..., [int(reference)]], sums.shape)[..., segments]
        sums = sums[..., segments]
    own, other = (_make_rate(*sides) for sides in (sums, others))
    with np.errstate(invalid="ignore", divide="ignore"):
        test = equal_rates(own, other, Level.of(LEVEL))
    return pl.DataFrame(
        {
            REPLICATE: np.repeat(np.arange(shape[0]), len(segments)),
            SEGMENT: np.tile(segments, shape[0]),
            "p_value": test.p_value,
        }
    ).with_columns(
        pl.col("p_value").fill_nan(None),
        pl.lit("tpr").alias("metric"),
        pl.lit(False).alias(REPEATED),  # noqa: FBT003
    )


def _make_rate(events: NDArray[np.float64], others: NDArray[np.float64]) -> Rate:
    """Return rates, given sums of weights, their squares and cubes, and the numbers of rows."""
    own, rest = (
        Count(weight.ravel(), squares.ravel(), rows.ravel())
        for weight, squares, _, rows in (events, others)
    )
    return Rate(own, rest, (events[2] + others[2]).ravel())


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


def family_error(estimates: pl.DataFrame, metrics: str = "auc") -> Measure:
    """Share of replicates where a p-value, adjusted for these tests, is at most 0.05.

    ``metrics`` is a pattern of their names. Holm's method finds something where Bonferroni's does.
    """
    tested = estimates.filter(~pl.col(REPEATED), pl.col("metric").str.contains(f"^({metrics})$"))
    p_values = pl.col("p_value").drop_nulls()
    smallest = tested.group_by("chunk", REPLICATE).agg(p=p_values.min() * p_values.len())
    return share(smallest["p"] <= SIGNIFICANCE)


def largest_gaps(frame: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """`fairness` of all segments within each replicate."""
    compare = partial(wroc.fairness, label="label", threshold=threshold, min_rows=0)
    return within_replicates(frame, compare)


def highest(frame: pl.DataFrame) -> pl.DataFrame:
    """`impact_ratios` of the segments within each replicate, with p-values as they are.

    Rows with a score of 0.5 or more are selected.
    """
    options: dict[str, Any] = {"favorable": "selected", "min_share": 0.0, "adjust": "none"}
    compare = partial(wroc.impact_ratios, threshold=0.5, **options)
    return within_replicates(frame, compare)


def within_replicates(frame: pl.DataFrame, compare: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of the segments of each replicate, one after another.

    Several replicates share a call: each is a score of its own, which rows of the others lack.
    p-values must not be adjusted, since the library would adjust those of all replicates together.
    """
    named = frame.with_columns(pl.col(SEGMENT).cast(pl.String))
    number = int(named[REPLICATE].max()) + 1  # type: ignore[arg-type]
    tables = []
    for start in range(0, number, SCORES_AT_ONCE):
        replicates = range(start, min(start + SCORES_AT_ONCE, number))
        rows = named.filter(pl.col(REPLICATE).is_between(replicates[0], replicates[-1]))
        own = {f"{each}": pl.when(pl.col(REPLICATE) == each).then("score") for each in replicates}
        table = compare(
            rows.with_columns(**own),
            score=list(own),
            attributes=SEGMENT,
            weight="weight",
            level=LEVEL,
        )
        tables.append(table.with_columns(pl.col("model").cast(pl.Int64).alias(REPLICATE)))
    return pl.concat(tables)
