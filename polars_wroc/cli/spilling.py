"""The folder that Polars spills to when memory is short, named so that it can be removed."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack
from pathlib import Path

from polars_wroc.files.ownership import remove_abandoned, temporary

# Polars makes a folder named after the process number here.
_VARIABLE = "POLARS_OOC_SPILL_DIR"
# On disk; /tmp may be in memory.
_LASTING = Path("/var/tmp")  # noqa: S108  (whose folder it is gets checked)
_ATTEMPTS = 100

# Folders by process number, as a fork must not take its parent's, and what keeps them open.
_own: dict[int, Path] = {}
_held = ExitStack()


def name_spill_folder() -> None:
    """Let Polars spill to a folder of this process, inside the one that the user set, if any."""
    if os.getpid() in _own:
        return
    chosen = os.environ.get(_VARIABLE)
    for _ in range(_ATTEMPTS):
        # Another process may be removing the parent folder.
        with contextlib.suppress(FileNotFoundError):
            _make_own(Path(chosen) if chosen else _folder(), is_ours=not chosen)
            return


def remove_spilled() -> None:
    """Remove what this process spilled, even while Polars runs, and the parent if it is empty."""
    own = _own.get(os.getpid())
    if own is None:
        return
    for _ in range(_ATTEMPTS):
        if not own.exists():
            break
        shutil.rmtree(own, ignore_errors=True)
    if own.parent == _folder():
        with contextlib.suppress(OSError):
            own.parent.rmdir()


def _make_own(parent: Path, *, is_ours: bool) -> None:
    try:
        parent.mkdir(mode=0o700, parents=not is_ours, exist_ok=True)
        status = parent.lstat()
        if is_ours and not (stat.S_ISDIR(status.st_mode) and status.st_uid == _user()):
            return
        remove_abandoned(parent)
        own = _held.enter_context(temporary(parent, folder=True))
    except FileNotFoundError:
        raise
    except OSError:
        # Polars reports what is wrong with the folder if it needs it.
        return
    _own[os.getpid()] = own
    os.environ[_VARIABLE] = str(own)
    atexit.register(remove_spilled)


def _folder() -> Path:
    lasting = _LASTING if _LASTING.is_dir() and not os.environ.get("TMPDIR") else None
    return (lasting or Path(tempfile.gettempdir())) / f"polars-wroc-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
