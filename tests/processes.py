"""What tests that start processes share."""

from __future__ import annotations

import os
import sys

# Nothing else of the environment: PYTHONUNBUFFERED alone hides what a full disk does to a buffer.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
COMMAND = [sys.executable, "-m", "polars_wroc"]


def of_groups(command: str, *names: str) -> list[str]:
    """Name the groups of a command by its own option."""
    flag = "--attribute" if command in ("audit", "impact", "gaps", "search") else "--by"
    return [word for name in names for word in (flag, name)]
