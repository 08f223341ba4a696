"""Progress of long work: a line on the terminal, which is removed when the work ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Timer
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

# Seconds before the line appears.
_PATIENCE = 1.0


class Progress:
    """Counts finished tasks, and shows the count if they take long and stderr is a terminal.

    Parameters
    ----------
    total, things
        The number of tasks, and the noun for them.
    describe
        Instead, for work that cannot be counted: a function that returns a description of it.
    """

    # The open ones, the outermost first, which draws the line for all.
    _open: ClassVar[list[Progress]] = []

    def __init__(
        self, total: int = 0, things: str = "", describe: Callable[[], str] | None = None
    ) -> None:
        self._total, self._things, self._describe = total, things, describe
        self._done = 0.0
        self._started = time.monotonic()
        self._live: Live | None = None
        self._timer = Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Start counting."""
        if not self._open and _is_terminal():
            self._timer.start()
        self._open.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the line."""
        self._open.remove(self)
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._live is not None:
            self._live.stop()

    def advance(self, done: float = 1) -> None:
        """Count more finished tasks."""
        self._done += done

    def __str__(self) -> str:
        """Return what is being done, or how much of it is done."""
        if self._describe is not None:
            return self._describe()
        return f"{self._done:,.0f} of {self._total:,} {self._things}"

    def _show(self) -> None:
        # Imported only for a long wait on a terminal.
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._live = Live(
            get_renderable=self._line,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=2,
        )
        self._live.start(refresh=True)

    def _line(self) -> Text:
        from rich.text import Text  # noqa: PLC0415

        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        parts = [*map(str, self._open), f"{minutes}:{seconds:02}"]
        return Text(", ".join(parts), overflow="crop", no_wrap=True)


def _is_terminal() -> bool:
    """Return whether standard error is a terminal; it may be closed or missing."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
