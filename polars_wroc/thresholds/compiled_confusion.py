"""Confusion matrices at thresholds, of rows that the compiled engine sorted."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.plans.queries import collect, join_on_keys
from polars_wroc.ranking.compiled_rows import CompiledRows
from polars_wroc.ranking.curve import CELLS, SQUARES, cell
from polars_wroc.ranking.placements import DECIDED_SUMS, DECISIONS, MISSING_ROWS, decided_sum
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.thresholds.search import (
    ROWS_MISSING,
    ROWS_REJECTED,
    ROWS_SELECTED,
    THRESHOLD,
    is_selected,
)


def walked_confusion_at(rows: CompiledRows, thresholds: pl.LazyFrame) -> pl.LazyFrame:
    """Return what `confusion_at` does, for each partition and code."""
    partitions = rows.partition_keys
    keys = [key for key in partitions.columns if key in thresholds.collect_schema()]
    of_partition = collect(join_on_keys(partitions.lazy(), thresholds, keys))
    first_rejected = []
    for number, threshold in enumerate(of_partition.iter_slices(1)):

        def selects(score: pl.Series, given: pl.DataFrame = threshold) -> bool:
            both = given.with_columns(score.alias(SCORE))
            return bool(both.select(is_selected().fill_null(value=False)).item())

        first_rejected.append(rows.first_rejected(number, selects))
    sums = rows.decided_sums(first_rejected)
    groups = [key for key in sums.columns if key not in (MISSING_ROWS, *DECIDED_SUMS)]
    joined = join_on_keys(sums.lazy(), of_partition.lazy(), partitions.columns)
    kinds = [(decision, side) for decision in DECISIONS for side in CLASSES]
    weights, squares = (
        [pl.col(decided_sum(decision, f"{name}_{side}")) for decision, side in kinds]
        for name in ("weight", "squares")
    )
    cells = dict(zip(CELLS, weights, strict=True))
    values = {POSITIVES: cells["tp"] + cells["fn"], NEGATIVES: cells["fp"] + cells["tn"]}
    values |= {name: cell(weight) for name, weight in cells.items()}
    values |= dict(zip(SQUARES, squares, strict=True))
    for name, decision in zip((ROWS_SELECTED, ROWS_REJECTED), DECISIONS, strict=True):
        counts = [pl.col(decided_sum(decision, f"rows_{side}")) for side in CLASSES]
        values[name] = pl.sum_horizontal(counts).cast(pl.Int64)
    known = pl.when(pl.col(THRESHOLD).is_not_null())
    return joined.select(
        *groups,
        pl.col(THRESHOLD).alias("threshold"),
        *(known.then(value).alias(name) for name, value in values.items()),
        pl.col(MISSING_ROWS).alias(ROWS_MISSING),
    )
