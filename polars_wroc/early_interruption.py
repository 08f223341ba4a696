"""End the command silently if it is interrupted while it still imports.

Imported before everything else, and without effect where a program uses the library.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_COMMANDS = ("polars-wroc", "polars-wroc.exe")
_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


# Not with pathlib, which takes longer to import than everything before it.
_script = os.path.basename("".join(sys.argv[:1]))  # noqa: PTH119
if _script in _COMMANDS or sys.orig_argv[1:3] == ["-m", "polars_wroc"]:
    for _name in ("SIGINT", "SIGTERM", "SIGHUP"):
        _number = getattr(signal, _name, None)
        # Signals that are ignored, as in a background job, remain ignored.
        if _number is not None and signal.getsignal(_number) in _DEFAULTS:
            signal.signal(_number, _end)
