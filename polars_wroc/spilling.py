"""The folder that Polars spills to when memory is short: one that is known, so that it can go."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

# Polars keeps the data of each process in a folder of its number in there, and removes those of
# processes that are dead; its own it leaves.
_VARIABLE = "POLARS_OOC_SPILL_DIR"
# On disk, where /tmp may be in memory.
_LASTING = Path("/var/tmp")  # noqa: S108  (whose folder it is gets checked)
_ATTEMPTS = 100


def name_spill_folder() -> None:
    """Tell Polars where to spill, unless the user did or nothing safe is there."""
    if os.environ.get(_VARIABLE):
        return
    folder = _folder()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == _user():
            os.environ[_VARIABLE] = str(folder)


def remove_spilled() -> None:
    """Remove what this process spilled, also while Polars goes on; the last one out the folder."""
    folder = Path(os.environ.get(_VARIABLE) or _folder())
    own = folder / str(os.getpid())
    for _ in range(_ATTEMPTS):
        if not own.exists():
            break
        shutil.rmtree(own, ignore_errors=True)
    if folder == _folder():
        with contextlib.suppress(OSError):
            folder.rmdir()


def _folder() -> Path:
    lasting = _LASTING if _LASTING.is_dir() and not os.environ.get("TMPDIR") else None
    return (lasting or Path(tempfile.gettempdir())) / f"polars-wroc-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
