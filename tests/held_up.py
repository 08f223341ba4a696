"""The command, run as a script, held up once it has written a file next to its target.

What a test does meanwhile does not depend on how fast anything is.
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


if __name__ == "__main__":
    # A shell may have a job in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setattr(Path, "replace", wait)  # noqa: B010  (what has another type)
    sys.exit(main())
