"""One line on a terminal that says how many rows are read, while they are."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Sequence
from typing import TextIO

import polars as pl

# Seconds: what takes less is not worth a word, and how often the line is drawn.
_PATIENCE, _INTERVAL = 0.5, 0.1
_CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Counts the rows of the frames that it watches, and draws until it is stopped."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._started = time.monotonic()
        self._rows = 0
        self._frames: list[pl.LazyFrame | None] = []
        self._counted: tuple[int, int | None] = (0, None)
        self._shown = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._draw_on, daemon=True).start()

    def watch(self, frame: pl.LazyFrame, *, known: bool) -> pl.LazyFrame:
        """Count the rows of a frame as they pass; known is how many, if its files say it."""
        self._frames.append(frame if known else None)
        # A filter that is taken through would leave rows uncounted.
        return frame.map_batches(
            self._tick,
            predicate_pushdown=False,
            slice_pushdown=False,
            validate_output_schema=False,
            streamable=True,
        )

    def stop(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._shown and not self._stopped.is_set():
                self._write(_CLEAR_LINE)
            self._stopped.set()

    def _tick(self, batch: pl.DataFrame) -> pl.DataFrame:
        with self._lock:
            self._rows += batch.height
        return batch

    def _draw_on(self) -> None:
        wait = _PATIENCE
        while not self._stopped.wait(wait):
            text = sentence(self._rows, self._total(), time.monotonic() - self._started)
            columns = shutil.get_terminal_size().columns
            with self._lock:
                if not self._stopped.is_set():
                    self._write(_CLEAR_LINE + text[: columns - 1])
                    self._shown = True
            wait = _INTERVAL

    def _total(self) -> int | None:
        frames = tuple(self._frames)
        if len(frames) != self._counted[0]:
            self._counted = len(frames), _total_of(frames)
        return self._counted[1]

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._terminal.write(text)
            self._terminal.flush()


def sentence(rows: int, total: int | None, seconds: float) -> str:
    """Say how many rows are read, once more where that is not the first time."""
    minutes, rest = divmod(int(seconds), 60)
    elapsed = f"{minutes}:{rest:02}"
    if not total:
        return f"read {rows:,} rows, {elapsed}"
    times, read = divmod(rows, total)
    if rows and not read:
        return f"read all {total:,} rows, computing, {elapsed}"
    again = " again" if times else ""
    return f"read {read:,} of {total:,} rows{again}, {read / total:.0%}, {elapsed}"


def _total_of(frames: Sequence[pl.LazyFrame | None]) -> int | None:
    known = [frame for frame in frames if frame is not None]
    if len(known) < len(frames):
        return None
    try:
        counts = pl.collect_all([frame.select(pl.len()) for frame in known])
    except (OSError, pl.exceptions.PolarsError):
        # Of a file that cannot be read another sentence speaks.
        return None
    return sum(int(count.item()) for count in counts)
