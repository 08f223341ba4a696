"""Calls by threads, as many as Polars has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import polars as pl

ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")

# Fewer calls are not worth the start of threads.
_FEWEST_CALLS = 4


def map_in_threads(task: Callable[[ValueT], ResultT], values: Sequence[ValueT]) -> list[ResultT]:
    """Return what a task makes of each value; the task must be long, and free the interpreter."""
    if len(values) < _FEWEST_CALLS:
        return [task(value) for value in values]
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        return list(pool.map(task, values))
