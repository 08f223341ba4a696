"""Compile functions of arrays and numbers, and run them on several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

U = np.uint64
ZERO, ONE, TWO = U(0), U(1), U(2)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only; to a compiled kernel a writable array is of another type."""
    values.flags.writeable = False
    return values


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function on its first call, and keep the machine code on disk if possible."""
    # "numpy": a division by zero is not an error, and needs no test.
    try:
        compiled = njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written.
        compiled = njit(nogil=True, error_model="numpy")(function)
    return cast("FunctionT", compiled)


def inlined(function: FunctionT) -> FunctionT:
    """Compile a function into the kernels of the same file that call it."""
    return cast("FunctionT", njit(inline="always", error_model="numpy")(function))


T = TypeVar("T")

# Tasks for each thread: the threads finish together although tasks differ in size.
_TASKS_PER_THREAD = 8
# A larger task would delay the answer to Ctrl-C, which waits for the tasks that have begun.
_MOST_ROWS = 4_000_000


def thread_count() -> int:
    """Return the number of threads."""
    return pl.thread_pool_size()


def shares(size: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``size`` things, which have so many rows altogether, into shares for `run`."""
    parts = max(_TASKS_PER_THREAD * thread_count(), -(-rows // _MOST_ROWS))
    cuts = [size * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def run(
    task: Callable[..., T],
    calls: Sequence[tuple[int, ...]],
    done: Callable[[], object] = lambda: None,
) -> list[T]:
    """Call a kernel with each of these arguments; return the results in their order.

    ``done`` is called after each of them, in the thread that waits.
    """
    if len(calls) == 1:
        return [task(*calls[0])]
    futures: list[Future[T]] = []
    try:
        for call in calls:
            futures.append(_pool().submit(task, *call))  # noqa: PERF401  (kept on an error)
    except RuntimeError:
        # Python is about to end, and starts no more tasks.
        return [future.result() for future in futures] + [task(*c) for c in calls[len(futures) :]]
    results = []
    try:
        for future in futures:
            results.append(future.result())
            done()
    finally:
        # Nothing, unless a task failed or Ctrl-C was pressed.
        for future in futures:
            future.cancel()
    return results


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="polars_wroc")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_pool.cache_clear)
