"""Random numbers of replicates, and replicates in batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import polars as pl

from polars_wroc.plans.collect import collect


def seeds(seed: int) -> Iterator[int]:
    """Draw a seed for each replicate, without end."""
    draws = random.Random(seed)  # noqa: S311  (nothing to keep secret)
    while True:
        yield draws.getrandbits(63)


def in_batches(tables: Sequence[pl.LazyFrame], at_once: int) -> pl.LazyFrame:
    """Compute tables that share their source, a few at a time, and put them together."""
    # The engine works on all tables of a plan at the same time, and keeps the rows of each.
    batches = [tables[i : i + at_once] for i in range(0, len(tables), at_once)]
    return pl.concat([collect(pl.concat(batch)) for batch in batches]).lazy()
