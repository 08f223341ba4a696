"""Random numbers for replicates, and replicates in batches."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.inputs.columns import CLUSTER
from polars_wroc.plans.collect import collect
from polars_wroc.plans.progress import Progress

Multiplier: TypeAlias = Literal["poisson", "gamma"]

# Replicates that are in memory at the same time.
REPLICATES_AT_ONCE = 16
# A Poisson variable of mean 1 is larger less than once in 10**12 draws.
_LARGEST_POISSON = 14


def seeds(seed: int) -> Iterator[int]:
    """Yield seeds for replicates, without end."""
    draws = random.Random(seed)  # noqa: S311  (nothing to keep secret)
    while True:
        yield draws.getrandbits(63)


def random_multiplier(kind: Multiplier, seed: int) -> pl.Expr:
    """Turn the hash of a row's identity into a random variable of mean 1."""
    share = pl.col(CLUSTER).hash(seed).cast(pl.Float64) / 2.0**64
    if kind == "gamma":
        return -(share.clip(lower_bound=2.0**-64)).log()
    return pl.sum_horizontal((share > limit).cast(pl.Int8) for limit in poisson())


def poisson() -> list[float]:
    """Return the distribution function of the Poisson distribution of mean 1."""
    return list(accumulate(math.exp(-1) / math.factorial(k) for k in range(_LARGEST_POISSON)))


def in_batches(
    tables: Sequence[pl.LazyFrame], at_once: int, things: str, *, reproducible: bool = False
) -> pl.LazyFrame:
    """Collect tables that share their source, ``at_once`` at a time, and concatenate them.

    On a terminal a line says how many tables of ``things`` are done. See `collect` for
    ``reproducible``.
    """
    # The engine computes all tables of a plan at the same time, and holds the rows of each.
    batches = [tables[i : i + at_once] for i in range(0, len(tables), at_once)]
    collected = []
    with Progress(len(tables), things) as progress:
        for batch in batches:
            collected.append(collect(pl.concat(batch), reproducible=reproducible))
            progress.advance(len(batch))
    return pl.concat(collected).lazy()
