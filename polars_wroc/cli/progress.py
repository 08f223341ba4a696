"""The progress line on a terminal: how long the work has taken, and on how many rows."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from typing import TextIO

import polars as pl

from polars_wroc.plans.progress import CLEAR_LINE, clock

# Seconds before the line appears, and between its updates.
_PATIENCE, _INTERVAL = 0.5, 0.5


class Progress:
    """Draws the time that has passed until it is stopped, without changing the queries."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._started = time.monotonic()
        self._not_counted: list[pl.LazyFrame | None] = []
        self._rows: int | None = 0
        self._shown = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._draw_on, daemon=True).start()

    def add(self, frame: pl.LazyFrame | None) -> None:
        """Add a frame that is read; None if its files do not store their number of rows."""
        self._not_counted.append(frame)

    def stop(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._shown and not self._stopped.is_set():
                self._write(CLEAR_LINE)
            self._stopped.set()

    def _draw_on(self) -> None:
        wait = _PATIENCE
        while not self._stopped.wait(wait):
            self._count()
            text = sentence(self._rows, time.monotonic() - self._started)
            columns = shutil.get_terminal_size().columns
            with self._lock:
                if not self._stopped.is_set():
                    self._write(CLEAR_LINE + text[: columns - 1])
                    self._shown = True
            wait = _INTERVAL

    def _count(self) -> None:
        while self._not_counted:
            rows = _rows_of(self._not_counted.pop())
            self._rows = None if rows is None or self._rows is None else self._rows + rows

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._terminal.write(text)
            self._terminal.flush()


def sentence(rows: int | None, seconds: float) -> str:
    """Say how long the work has taken, and on how many rows if that is known."""
    work = f"working on {rows:,} rows" if rows else "working"
    return f"{work}, {clock(seconds)}"


def _rows_of(frame: pl.LazyFrame | None) -> int | None:
    if frame is None:
        return None
    try:
        return int(frame.select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        # The query itself reports a file that cannot be read.
        return None
