"""Exit codes, the error of conditions that hold, and the command line that reports quote."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

# Exit codes. 1 is only for a condition that holds, 3 for one that could not be judged.
DONE, CONDITION_HOLDS, BAD_INPUT, NOT_JUDGED = 0, 1, 2, 3

# The command, as it can be given again, which pages end with.
command_line: ContextVar[str] = ContextVar("command_line", default="polars-wroc")


class ConditionError(Exception):
    """A condition of --fail-if holds, or could not be judged."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(code, lines)
        self.code, self.lines = code, lines
