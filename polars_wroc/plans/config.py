"""Where and how tables are computed: the engine, progress, and a guard for memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache
from importlib import import_module
from typing import Literal, Self, TypeAlias, cast, get_args

import polars as pl

BUDGET = "POLARS_OOC_MEMORY_BUDGET_MB"
# Up to this many rows Polars never hung.
MOST_ROWS = 30_000_000
_BYTES_IN_MB = 2**20
# Memory of a row while a range of scores is summarised, and the fewest rows worth a range.
_BYTES_OF_ROW, _LEAST_ROWS_IN_MEMORY = 256, 100_000


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
            "spills to disk; `summary_in_ranges` and `bins=` need no spilling"
        )
        warnings.warn(text, SpillWarning, stacklevel=3)


def rows_within_budget(most: int) -> int:
    """Return how many rows fit into the budget: 100,000 or more, but not more than ``most``."""
    given = os.environ.get(BUDGET, "")
    rows = int(given) * _BYTES_IN_MB // _BYTES_OF_ROW if given.isdigit() else most
    return min(max(rows, _LEAST_ROWS_IN_MEMORY), most)


Engine: TypeAlias = Literal["auto", "polars", "compiled"]
# When the compiled engine computes: where a plan is built, or where it is collected.
When: TypeAlias = Literal["at once", "at collect"]

Schema: TypeAlias = Mapping[str, pl.DataType]

VARIABLE = "POLARS_WROC_ENGINE"
_INSTALL = "pip install 'polars-wroc[fast]'"
# With fewer rows a plan takes less time than the start of the compiled engine.
_LEAST_ROWS = 2_000_000

# Engines of the `Config` blocks that are open, in the order in which they began.
_chosen: dict[object, Engine] = {}


class Config(ContextDecorator):
    """Choose the engine that computes tables from sorted rows.

    Parameters
    ----------
    engine
        ``"auto"``: the compiled engine if it is installed and a DataFrame has two million rows
        or more, which count once for each replicate or permutation; otherwise Polars.
        ``"polars"``: always Polars. ``"compiled"``: always the compiled engine, which needs the
        extra ``fast``.

    Raises
    ------
    ValueError
        For another engine.
    ModuleNotFoundError
        For ``"compiled"`` without the extra.

    Notes
    -----
    The choice holds within the block, in all threads. Outside of a block the environment variable
    ``POLARS_WROC_ENGINE`` chooses, and without it ``"auto"``.

    The compiled engine computes `audit`, of a LazyFrame too; `summary`, `compare`, `group_gaps`,
    `partial_auc_summary` and the quantile bins of `calibration_curve` and `calibration_summary`;
    the curves of `confusion_curve`, `roc_curve`, `pr_curve`, `cost_curve`, `roc_point`,
    `threshold_metrics`, `decision_curve`, `operating_points`, `dominated_models` and
    `equalized_thresholds`; `auc_decomposition`; and the AUCs and areas between curves in
    `fairness`, `cross_auc` and `subgroup_auc`; all of clusters too, but for `compare` with another
    ``method`` than ``"delong"``. Of `bootstrap`, `bootstrap_replicates` and `abroca_test` the rows
    count once for each replicate; it draws the same replicates, of ``"roc_auc"``, ``"gini"``,
    ``"ks"`` and ``"average_precision"``.
    Polars computes the rest of these, all other tables, expressions, and whatever is made of counts
    or of ``bins``. With ``"compiled"`` these tables of a LazyFrame use the compiled engine too,
    once they are collected; their plans do not stream, and need cloudpickle to be serialised.

    Both engines compute the same numbers but for rounding. In `audit`, `summary`, `compare`,
    `group_gaps` and the points of curves the compiled one gives the same bits for the same rows in
    the same order, whatever the number of threads.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> with wroc.Config(engine="polars"):
    ...     wroc.summary(df, "y", "s")["auc"].item()
    0.75
    """

    def __init__(self, *, engine: Engine) -> None:
        self._engine = _checked("engine", engine)
        self._blocks: list[object] = []

    def __enter__(self) -> Self:
        """Use the engine until the end of the block."""
        block = object()
        self._blocks.append(block)
        _chosen[block] = self._engine
        return self

    def __exit__(self, *error: object) -> None:
        """Use the engine that was used before."""
        del _chosen[self._blocks.pop()]


def compiled_when(frame: pl.DataFrame | pl.LazyFrame, replicates: int = 1) -> When | None:
    """Say when the compiled engine computes the tables of a frame; None if plans do.

    Rows count once for each replicate.
    """
    if isinstance(frame, pl.LazyFrame):
        return "at collect" if _engine() == "compiled" else None
    return "at once" if is_compiled(frame.height * replicates) else None


def is_compiled(rows: int) -> bool:
    """Whether the compiled engine computes what is computed at once from so many rows."""
    engine = _engine()
    return engine == "compiled" or (engine == "auto" and rows >= _LEAST_ROWS and _is_installed())


def at_once(rows: int) -> AbstractContextManager[object]:
    """Let the compiled engine compute tables of so many rows that come from files."""
    # The budget first, since the other may have to import numba.
    many = not budget_is_set() and is_compiled(rows)
    return Config(engine="compiled") if many else nullcontext()


def run(when: When, table: Callable[[], pl.DataFrame], schema: Schema) -> pl.LazyFrame:
    """Compute a table at once, or leave it to the plan, which then needs its schema."""
    return table().lazy() if when == "at once" else pl.defer(table, schema=schema)


def _engine() -> Engine:
    """Return the engine of the innermost block, or of the environment."""
    for engine in reversed(_chosen.values()):
        return engine
    return _checked(VARIABLE, os.environ.get(VARIABLE) or "auto")


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


# Seconds before the line appears, and between its updates.
_PATIENCE, _INTERVAL = 3.0, 0.5
CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Counts what is done, and shows the count if that takes long and stderr is a terminal."""

    def __init__(self, total: int, things: str) -> None:
        self._total, self._things = total, things
        self._done = 0.0
        self._started = time.monotonic()
        self._next = self._started + _PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        """Start to count."""
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the line."""
        if self._shown:
            _write(CLEAR_LINE)

    def advance(self, done: float = 1) -> None:
        """Count some more."""
        self._done += done
        now = time.monotonic()
        if now < self._next or not _on_terminal():
            return
        text = f"{self._done:,.0f} of {self._total:,} {self._things}, {clock(now - self._started)}"
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
