"""Where and how tables are computed: the engine, the memory, a cluster, and progress."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast, get_args

import polars as pl

BUDGET = "POLARS_OOC_MEMORY_BUDGET_MB"
# Up to this many rows Polars never hung.
MOST_ROWS = 30_000_000


class SpillWarning(UserWarning):
    """Warning that a query may hang when Polars spills to disk."""


def budget_is_set() -> bool:
    """Whether Polars has a memory budget and may spill to disk."""
    return bool(os.environ.get(BUDGET))


def warn_of_spilling() -> None:
    """Warn, if a budget is set, that a plan with windows may hang."""
    if budget_is_set():
        text = (
            f"{BUDGET} is set: beyond {MOST_ROWS:,} rows this query may hang while Polars "
            "spills to disk; `Config(memory=)` and `bins=` need no spilling"
        )
        warnings.warn(text, SpillWarning, stacklevel=3)


@contextlib.contextmanager
def without_spilling() -> Iterator[None]:
    """Suppress the warning where so many rows are never in one query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpillWarning)
        yield


Engine: TypeAlias = Literal["auto", "polars", "compiled"]
# When the compiled engine computes: where a plan is built, or where it is collected.
When: TypeAlias = Literal["at once", "at collect"]

Schema: TypeAlias = Mapping[str, pl.DataType]

VARIABLE = "POLARS_WROC_ENGINE"
MEMORY, CLUSTER_ADDRESS = "POLARS_WROC_MEMORY", "POLARS_WROC_DASK"
_PACKAGE = __name__.partition(".")[0]
_INSTALL = "pip install 'polars-wroc[fast]'"

# `Config` blocks that are open, in the order in which they began.
_open: dict[object, Config] = {}


class Config(ContextDecorator):
    """Choose the engine that computes tables, the memory that they may take, and a cluster.

    Parameters
    ----------
    engine
        ``"auto"``: the compiled engine if it is installed and a DataFrame is estimated to take less
        time with it, its start included: from some two million rows on, which count once for each
        replicate or permutation, and in `subgroup_auc`, `cross_auc` and `abroca_test` once for each
        group; and always once it is loaded in the process. Otherwise Polars.
        ``"polars"``: always Polars. ``"compiled"``: always the compiled engine, which needs the
        extra ``fast``.
    memory
        How much memory the exact `summary` or `audit` of a LazyFrame may take, such as ``"4GB"``
        or ``"500MB"``; ``"60%"`` of what the process may use; or ``"none"``, as much as it takes.
        What would take more is computed in ranges of scores, one after another, which each read
        the rows again. So that is also what each range takes, besides some 0.3 GB for Python and
        its libraries.
    client
        A `distributed.Client`, whose workers read the tables of a list, or the ranges of scores, in
        a task each; without ``memory`` these take 2 GB.

    Raises
    ------
    TypeError, ValueError
        For another engine, for what is no amount of memory, or for another client.
    ModuleNotFoundError
        For ``"compiled"`` without the extra.

    Notes
    -----
    The choices hold within the block, in all threads. None keeps what an enclosing block says. In
    no block the environment variables ``POLARS_WROC_ENGINE``, ``POLARS_WROC_MEMORY`` and
    ``POLARS_WROC_DASK`` choose, the last by the address of a scheduler, and without them
    ``"auto"``, no cluster, and as memory ``"60%"`` for `audit` and the command line, ``"none"`` for
    `summary`. A limit of the container is what a process may use, and without one all memory of
    the machine.

    What `summary` and `audit` compute in ranges are the same numbers but for rounding; calibration
    slopes beyond 28 are null. Other functions take the memory that they need. The first pass counts
    the rows in bins of scores, whose counts say where ranges begin and what weighs above and below
    each. Rows with few distinct scores need no other. A task is given a range and the tables that
    have scores in it, and returns sums. If a worker dies, its task runs again on another. The rows
    that all tasks found are compared with those that were counted, and a source that has changed
    raises. A DataFrame, which is in memory already, is never divided; nor are rows with a
    ``design``, recorded decisions or ``bins``. The plan of a `summary` that may be divided counts
    the rows once it is collected. Like one of the compiled engine it does not stream, and needs
    cloudpickle to be serialised.

    The compiled engine computes the quantile bins of `calibration_curve` and `calibration_summary`;
    `auc_decomposition`, `cross_auc` and `subgroup_auc`. For `abroca_test` the rows count once for
    each permutation. With ``"compiled"`` these tables of a LazyFrame use it
    too, once they are collected; their plans do not stream, and need cloudpickle to be serialised.
    With ``"auto"`` that is so for `cross_auc`, `subgroup_auc` and `abroca_test` where the extra is
    installed: they hold their rows in memory, and then choose as for a DataFrame.

    The engine makes no difference to `summary`, `threshold_metrics`, `group_gaps`, `trend`,
    `impact_ratios`, `fairness`, `compare`, `release_check`, `bootstrap`, `roc_point`, `cost_curve`,
    `decision_curve`, `dominated_models`, `score_distribution` and `audit`, which compute on arrays.
    Polars computes all other tables, expressions, and whatever is made of counts. Both engines
    compute the same numbers but for rounding.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> with wroc.Config(engine="polars"):
    ...     wroc.roc_curve(df, "y", "s")["tpr"].max()
    1.0
    """

    def __init__(
        self, *, engine: Engine | None = None, memory: str | None = None, client: Any = None
    ) -> None:
        self.engine = None if engine is None else _checked("engine", engine)
        self.memory = None if memory is None else _bytes("memory", memory)
        self.client = None if client is None else _checked_client(client)
        self._blocks: list[object] = []

    def __enter__(self) -> Self:
        """Use the choices until the end of the block."""
        block = object()
        self._blocks.append(block)
        _open[block] = self
        return self

    def __exit__(self, *error: object) -> None:
        """Use what was used before."""
        del _open[self._blocks.pop()]


def _chosen(name: str, variable: str, read: Callable[[str, str], Any]) -> Any:
    """Return the choice of the innermost block that makes one, or of the environment, or None."""
    for block in reversed(_open.values()):
        if (choice := getattr(block, name)) is not None:
            return choice
    given = os.environ.get(variable)
    return read(variable, given) if given else None


# Seconds for a row of a plan, at least, and of the compiled engine; and those until the latter has
# loaded its functions into a process, and has compiled them where no earlier process did.
_PLANNED, _WALKED = 0.4e-6, 0.05e-6
_LOADING, _COMPILING = 0.7, 4.0


def compiled_when(frame: pl.DataFrame | pl.LazyFrame, times: int = 1) -> When | None:
    """Say when the compiled engine computes the tables of a frame; None if plans do.

    Rows count once for each replicate, and for each group that they are compared with.
    """
    if isinstance(frame, pl.LazyFrame):
        return "at collect" if _engine() == "compiled" else None
    return "at once" if is_compiled(frame.height * times) else None


def depends_on_rows() -> bool:
    """Whether the number of rows says which engine computes."""
    return _engine() == "auto" and _is_installed()


def is_compiled(rows: int) -> bool:
    """Whether the compiled engine computes what is computed at once from so many rows."""
    engine = _engine()
    if engine != "auto":
        return engine == "compiled"
    return rows * (_PLANNED - _WALKED) >= _start() and _is_installed()


def _start() -> float:
    """Return the seconds until the compiled engine computes: none once it is loaded."""
    if f"{_PACKAGE}.kernels.compiling" in sys.modules:
        return 0.0
    return _LOADING if _is_kept_on_disk() else _LOADING + _COMPILING


def _is_kept_on_disk() -> bool:
    """Whether numba has kept functions where it looks for them first, and next."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(__file__).parents[1] / "kernels"
    kept = Path(given).glob(f"{folder.name}_*/*.nbi") if given else folder.glob("*/*.nbi")
    return any(kept)


def at_once(rows: int) -> AbstractContextManager[object]:
    """Let the compiled engine compute tables of so many rows that come from files."""
    # The budget first, since the other may have to import numba.
    many = not budget_is_set() and is_compiled(rows)
    return Config(engine="compiled") if many else nullcontext()


def run(
    when: When, table: Callable[[], pl.DataFrame], schema: Schema | Callable[[], Schema]
) -> pl.LazyFrame:
    """Compute a table at once, or leave it to the plan, which then needs its schema."""
    if when == "at once":
        return table().lazy()
    return pl.defer(table, schema=schema() if callable(schema) else schema)


def _engine() -> Engine:
    return cast("Engine", _chosen("engine", VARIABLE, _checked) or "auto")


def _checked(name: str, engine: str) -> Engine:
    if engine not in get_args(Engine):
        names = ", ".join(repr(known) for known in get_args(Engine))
        msg = f"`{name}` must be one of {names}; found {engine!r}"
        raise ValueError(msg)
    if engine == "compiled" and not _is_installed():
        msg = f"`{name}` 'compiled' needs numba; install it with {_INSTALL}"
        raise ModuleNotFoundError(msg, name="numba")
    return cast("Engine", engine)


@cache
def _is_installed() -> bool:
    """Whether numba can be imported: it may be there, but not for this version of NumPy."""
    try:
        import_module("numba")
    except Exception:  # noqa: BLE001  (without it plans compute all results)
        return False
    return True


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_ON_WORKERS = "2GB"


class Division(NamedTuple):
    """The memory that rows may take before they are divided, and the client that measures them."""

    memory: float
    client: Any = None

    def exceeded(self, rows: int, bytes_of_row: int) -> bool:
        """Whether so many rows are to be divided."""
        return rows * bytes_of_row > self.memory or (budget_is_set() and rows > MOST_ROWS)

    def rows_within(self, bytes_of_row: int) -> int:
        """About how many rows fit into the memory, one at least."""
        return max(int(self.memory // bytes_of_row), 1)

    def map(self, task: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[ResultT]:
        """Return what a task makes of each item, here one after another or by the workers."""
        if self.client is None:
            yield from map(task, items)
            return
        # The same plan may give other rows the next time.
        futures = self.client.map(task, items, pure=False)
        while futures:
            # One by one, since all of them may not fit into this process.
            yield self.client.gather(futures.pop(0))


def division(default: str = "none") -> Division | None:
    """Return how more rows than fit into memory are divided; None if they are not."""
    client = _chosen("client", CLUSTER_ADDRESS, _connected)
    memory = _chosen("memory", MEMORY, _bytes)
    if memory is None:
        memory = _bytes("memory", default if client is None else _ON_WORKERS)
    return None if memory == math.inf else Division(memory, client)


def connect(name: str, address: str) -> Any:
    """Connect to the scheduler of a cluster; ``name`` is what gave the address."""
    try:
        return import_module("distributed").Client(address)
    except ImportError as error:
        msg = f"`{name}` needs Dask: pip install distributed"
        raise ModuleNotFoundError(msg, name="distributed") from error
    except (OSError, ValueError) as error:
        rule = "be the address of a scheduler that answers, such as 'tcp://host:8786'"
        msg = f"`{name}` must {rule}; found {address!r}: {error}"
        raise ValueError(msg) from error


_connected = cache(connect)


def _checked_client(client: Any) -> Any:
    methods = [getattr(client, name, None) for name in ("map", "gather")]
    if not all(map(callable, methods)) or getattr(client, "asynchronous", False):
        rule = "be a distributed.Client that is not asynchronous, such as Client('tcp://host:8786')"
        msg = f"`client` must {rule}; found {type(client).__name__}"
        raise TypeError(msg)
    return client


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMGT]?)B|%)", re.IGNORECASE)
_THOUSANDS = " KMGT"


def _bytes(name: str, given: str) -> float:
    """Read an amount of memory, which may be infinite."""
    if given == "none":
        return math.inf
    found = _AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if found is None or float(found[1]) == 0:
        msg = f"`{name}` must be such as '4GB', '500MB' or '60%', or 'none'; found {given!r}"
        raise (ValueError if isinstance(given, str) else TypeError)(msg)
    if found[2] is None:
        return float(found[1]) / 100 * usable_memory()
    return float(found[1]) * 1000.0 ** _THOUSANDS.index(found[2].upper() or " ")


def in_words(size: float) -> str:
    """Write an amount of memory as `Config` reads it."""
    # Three digits, without an exponent.
    rounded = float(f"{size:.3g}")
    power = min(int(math.log10(max(rounded, 1.0)) // 3), len(_THOUSANDS) - 1)
    return f"{rounded / 1000.0**power:g} {_THOUSANDS[power].strip()}B"


@cache
def usable_memory() -> float:
    """Return the bytes that the process may use: of its container, else of the machine."""
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


# Seconds before the line appears, and between its updates.
_PATIENCE, _INTERVAL = 3.0, 0.5
CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Counts what is done, and shows the count if that takes long and stderr is a terminal."""

    # The command draws a line of its own, which says what the last of these counts.
    drawn = True
    counting: ClassVar[list[Progress]] = []

    def __init__(self, total: int, things: str) -> None:
        self._total, self._things = total, things
        self._done = 0.0
        self._started = time.monotonic()
        self._next = self._started + _PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        """Start to count."""
        self.counting.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the line."""
        self.counting.remove(self)
        if self._shown:
            _write(CLEAR_LINE)

    def __str__(self) -> str:
        """Say how many are done."""
        return f"{self._done:,.0f} of {self._total:,} {self._things}"

    def advance(self, done: float = 1) -> None:
        """Count some more."""
        self._done += done
        now = time.monotonic()
        if now < self._next or not self.drawn or not _on_terminal():
            return
        text = f"{self}, {clock(now - self._started)}"
        _write(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
        self._shown, self._next = True, now + _INTERVAL


def clock(seconds: float) -> str:
    """Write a time in minutes and seconds."""
    minutes, left = divmod(int(seconds), 60)
    return f"{minutes}:{left:02}"


def _on_terminal() -> bool:
    # There may be no stderr, as in a window without a console; or it is closed.
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
