"""Random numbers for replicates, and replicates in batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import polars as pl

from polars_wroc.plans.collect import collect
from polars_wroc.plans.progress import Progress


def seeds(seed: int) -> Iterator[int]:
    """Yield seeds for replicates, without end."""
    draws = random.Random(seed)  # noqa: S311  (nothing to keep secret)
    while True:
        yield draws.getrandbits(63)


def in_batches(tables: Sequence[pl.LazyFrame], at_once: int, things: str) -> pl.LazyFrame:
    """Collect tables that share their source, ``at_once`` at a time, and concatenate them.

    On a terminal a line says how many tables of ``things`` are done.
    """
    # The engine computes all tables of a plan at the same time, and holds the rows of each.
    batches = [tables[i : i + at_once] for i in range(0, len(tables), at_once)]
    collected = []
    with Progress(len(tables), things) as progress:
        for batch in batches:
            collected.append(collect(pl.concat(batch)))
            progress.advance(len(batch))
    return pl.concat(collected).lazy()
