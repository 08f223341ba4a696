"""The memory and the cluster with which tables are computed."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

MEMORY, CLUSTER_ADDRESS = "POLARS_WROC_MEMORY", "POLARS_WROC_DASK"


class Config(ContextDecorator):
    """Memory limit, and a cluster, for the calls inside a ``with`` block.

    Use it for more rows than fit in memory: `summary` and `audit` are then computed in ranges of
    scores, one after another, with the same results up to rounding; other functions take the memory
    that they need.

    Parameters
    ----------
    memory
        Memory for the exact `summary` or `audit` of a LazyFrame, and for each of its ranges:
        ``"4GB"``, ``"500MB"``, ``"60%"`` of what the process may use, or ``"none"`` for no limit.
        Python and its libraries take about 0.3 GB more.
    client
        A `distributed.Client`. Each table of a list, and each range of scores, is a task for its
        workers. Without ``memory``, each task may take 2 GB.

    Raises
    ------
    TypeError, ValueError
        For anything that is not an amount of memory or such a client.

    Notes
    -----
    The settings apply to calls in the thread or asynchronous task of the block; None keeps the
    setting of an enclosing block. Outside any block the environment variables
    ``POLARS_WROC_MEMORY`` and ``POLARS_WROC_DASK`` (the address of a scheduler) apply. The default
    is no cluster, and ``"60%"`` for `audit` and the command line but ``"none"`` for `summary`. A
    DataFrame is never divided, nor are rows with a ``design``, recorded decisions or ``bins``. [How
    ranges are made](../explanation/statistics.md#config).

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> with wroc.Config(memory="2GB"):
    ...     wroc.summary(df.lazy(), "y", "s").collect()["auc"].item()
    0.75
    """

    def __init__(self, *, memory: str | None = None, client: Any = None) -> None:
        self.memory = None if memory is None else _bytes("memory", memory)
        self.client = None if client is None else _check_client(client)

    def __enter__(self) -> Self:
        """Use the settings until the end of the block."""
        _open_blocks.set((*_open_blocks.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        """Restore the previous settings."""
        _open_blocks.set(_open_blocks.get()[:-1])


# `Config` blocks that are open in this context, the innermost last.
_open_blocks: ContextVar[tuple[Config, ...]] = ContextVar("_open_blocks", default=())


def _read_choice(name: str, variable: str, read: Callable[[str, str], Any]) -> Any:
    """Return the setting of the innermost block that has one, of the environment, or None."""
    for block in reversed(_open_blocks.get()):
        if (choice := getattr(block, name)) is not None:
            return choice
    given = os.environ.get(variable)
    return read(variable, given) if given else None


ItemT = TypeVar("ItemT")
OutputT = TypeVar("OutputT")

_ON_WORKERS = "2GB"
# The number of results of workers that are joined together.
_JOINED = 4


class Division(NamedTuple):
    """The memory that rows may take before they are divided, and the client that gets them."""

    memory: float
    client: Any = None

    def is_needed(self, rows: int, bytes_of_row: int) -> bool:
        """Return whether a number of rows does not fit into the memory."""
        return rows * bytes_of_row > self.memory

    @property
    def has_workers(self) -> bool:
        """Whether there is a client, whose workers share the tasks."""
        return self.client is not None

    def rows_of_range(self, rows: int, bytes_of_row: int) -> int:
        """Return the number of rows in a range, of which each fits into the memory.

        With workers, ranges are so many that all their threads get equally many, but at most twice
        as many as the memory needs, since each range reads the rows again.
        """
        most = max(int(self.memory // bytes_of_row), 1)
        if not self.has_workers:
            return most
        needed = max(math.ceil(rows / most), 1)
        threads: int = max(sum(self.client.ncores().values()), 1)
        ranges = min(math.ceil(needed / threads) * threads, 2 * needed)
        return max(math.ceil(rows / ranges), 1)

    def map(self, task: Callable[[ItemT], OutputT], items: Sequence[ItemT]) -> Iterator[OutputT]:
        """Yield the results of a task for each item, computed here or by the workers."""
        if not self.has_workers:
            yield from map(task, items)
            return
        # Not pure, since the same plan may give other rows the next time.
        futures = self.client.map(task, items, pure=False)
        while futures:
            # Gathered one by one, since the results may not all fit into this process.
            yield self.client.gather(futures.pop(0))

    def reduce(
        self,
        task: Callable[[ItemT], OutputT],
        items: Sequence[ItemT],
        join: Callable[[Sequence[OutputT]], OutputT],
    ) -> OutputT:
        """Return the results of a task for each item, joined in order, a few at a time.

        Workers join their results as they get them, so that this process gets a single one.
        """
        if not self.has_workers:
            return reduce(lambda one, other: join([one, other]), map(task, items))
        results = self.client.map(task, items, pure=False)
        while len(results) > 1:
            groups = [results[i : i + _JOINED] for i in range(0, len(results), _JOINED)]
            # Joined before the next items are begun, since the results may not all fit into memory.
            results = [self.client.submit(join, each, pure=False, priority=1) for each in groups]
        return self.client.gather(results[0])  # type: ignore[no-any-return]


def division(default: str = "none") -> Division | None:
    """Return the division of rows that do not fit into memory; None if they are not divided."""
    client = _read_choice("client", CLUSTER_ADDRESS, _connect_once)
    memory = _read_choice("memory", MEMORY, _bytes)
    if memory is None:
        memory = _bytes("memory", default if client is None else _ON_WORKERS)
    return None if memory == math.inf else Division(memory, client)


def connect(name: str, address: str) -> Any:
    """Return a client of the scheduler at an address, which came from ``name``."""
    try:
        return import_module("distributed").Client(address)
    except ImportError as error:
        msg = f"`{name}` needs Dask: pip install distributed"
        raise ModuleNotFoundError(msg, name="distributed") from error
    except (OSError, ValueError) as error:
        rule = "be the address of a running scheduler, for example 'tcp://host:8786'"
        msg = f"`{name}` must {rule}; found {address!r}: {error}"
        raise ValueError(msg) from error


_connect_once = cache(connect)


def _check_client(client: Any) -> Any:
    methods = [getattr(client, name, None) for name in ("map", "submit", "gather", "ncores")]
    if not all(map(callable, methods)) or getattr(client, "asynchronous", False):
        rule = "be a synchronous distributed.Client, for example Client('tcp://host:8786')"
        msg = f"`client` must {rule}; found {type(client).__name__}"
        raise TypeError(msg)
    return client


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMGT]?)B|%)", re.IGNORECASE)
_THOUSANDS = " KMGT"


def _bytes(name: str, given: str) -> float:
    """Return an amount of memory in bytes, which may be infinite."""
    if given == "none":
        return math.inf
    found = _AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if found is None or float(found[1]) == 0:
        msg = f"`{name}` must be an amount like '4GB', '500MB' or '60%', or 'none'; found {given!r}"
        raise (ValueError if isinstance(given, str) else TypeError)(msg)
    if found[2] is None:
        return float(found[1]) / 100 * usable_memory()
    return float(found[1]) * 1000.0 ** _THOUSANDS.index(found[2].upper() or " ")


def usable_memory() -> float:
    """Return the bytes that the process may use, in its container or on the machine."""
    limits = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers in ("", "memory"):
                own = Path("/sys/fs/cgroup", controllers, place.lstrip("/"))
                limits += map(_limit_of, (own, *own.parents))
    return min(limits)


def _limit_of(group: Path) -> float:
    """Return the limit of a control group, of either version; infinite if it has none."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return int((group / name).read_text(encoding="ascii"))
    return math.inf
