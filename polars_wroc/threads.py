"""Calls in as many threads as Polars has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import polars as pl

ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")

# Found at import, since Polars says 1 while its streaming engine runs a function.
_THREADS = pl.thread_pool_size()


def map_in_threads(
    task: Callable[[ValueT], ResultT], values: Sequence[ValueT], *, fewest: int = 4
) -> list[ResultT]:
    """Return the results of a task on each value; it must be long and release the GIL.

    With fewer values than ``fewest``, starting threads takes longer than they save.
    """
    # No pool of threads can be started after the main thread has ended.
    if len(values) < fewest or not threading.main_thread().is_alive():
        return [task(value) for value in values]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(task, values))
