"""The command, run as a script, held up at a point that its first argument names.

That is once it has written a file next to its target; or it is not held up at all. What a test
does meanwhile does not depend on how fast anything is.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from polars_wroc.cli import main


def wait(*_: object) -> NoReturn:
    """Say on standard output that the point is reached, and stay there."""
    sys.stdout.write("here\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


def hold_up(point: str) -> None:
    """Replace a part of the package by one that waits there."""
    if point == "written":
        setattr(Path, "replace", wait)  # noqa: B010  (what has another type)


if __name__ == "__main__":
    # A shell may have a job in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hold_up(sys.argv[1])
    del sys.argv[1]
    sys.exit(main())
