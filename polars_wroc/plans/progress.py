"""A line on a terminal that says how far a long computation is."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from types import TracebackType
from typing import Self

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
