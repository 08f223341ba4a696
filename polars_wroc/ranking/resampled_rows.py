"""Sums over the replicates of a bootstrap, on rows that the compiled engine sorted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels import threads
from polars_wroc.kernels.reweighing import reweighed
from polars_wroc.kernels.sorting import Array
from polars_wroc.kernels.walks import rates_of_partitions
from polars_wroc.plans.engine import When, run
from polars_wroc.plans.progress import Progress
from polars_wroc.ranking.compiled_rows import CompiledRows, compile_rows
from polars_wroc.ranking.walk_sums import RATE_SUMS, REPLICATE


def resampled_sums(
    rows: Rows, when: When, seeds: Sequence[int], limits: Sequence[float] | None
) -> pl.LazyFrame:
    """Sum the rows of each group in each replicate: its keys, `REPLICATE` and `RATE_SUMS`.

    Replicate 0 are the rows themselves. In the others weights are multiplied by what `reweighed`
    makes of the hash of a row's cluster and the ``limits``.
    """
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, REPLICATE: pl.Int64(), **dict.fromkeys(RATE_SUMS, pl.Float64())}
    known = None if limits is None else np.array(limits)

    def table() -> pl.DataFrame:
        return _resample(compile_rows(rows, rows.keys, clusters=True), seeds, known).cast(types)

    return run(when, table, schema)


def _resample(compiled: CompiledRows, seeds: Sequence[int], limits: Array | None) -> pl.DataFrame:
    numbers = compiled.numbers()
    sums = np.empty((1 + len(seeds), len(numbers), len(RATE_SUMS)))
    # Before the threads start, since it uses them too.
    own_weights = compiled.class_weights

    def replicate(number: int) -> None:
        rows, blocks, weights = compiled.sorted_rows, compiled.blocks, own_weights
        if number:
            hashes = compiled.hashes_of_clusters(seeds[number - 1])
            rows, weights = reweighed(rows, blocks, hashes, limits)
        rates = rates_of_partitions(rows, blocks, weights)
        sums[number] = compiled.of_numbers(rates, numbers)

    with Progress(len(sums), "replicates") as progress:
        threads.run(replicate, [(number,) for number in range(len(sums))], progress.advance)
    keys = compiled.partitions.key_values(np.tile(numbers, len(sums)))
    replicates = pl.Series(REPLICATE, np.repeat(np.arange(len(sums)), len(numbers)))
    columns = dict(zip(RATE_SUMS, sums.reshape(-1, len(RATE_SUMS)).T, strict=True))
    return pl.DataFrame([*keys, replicates, *pl.DataFrame(columns)])
