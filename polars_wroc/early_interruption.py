"""End the command silently if it is interrupted while it still imports.

Imported before everything else, and without effect where a program uses the library.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)


def _is_the_command() -> bool:
    """Whether this process is ``polars-wroc`` or ``python -m polars_wroc``."""
    if not sys.argv or sys.argv[0] != "-m":
        # Not with pathlib, which takes longer to import than everything before it.
        name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119
        return name.removesuffix(".exe") == "polars-wroc"
    # Some module is run with -m, not necessarily this one.
    module = sys.orig_argv[len(sys.orig_argv) - len(sys.argv)]
    return module in ("polars_wroc", "-mpolars_wroc")


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if _is_the_command():
    for _name in ("SIGINT", "SIGTERM", "SIGHUP"):
        _number = getattr(signal, _name, None)
        # Signals that are ignored, as in a background job, remain ignored.
        if _number is not None and signal.getsignal(_number) in _DEFAULTS:
            signal.signal(_number, _end)
