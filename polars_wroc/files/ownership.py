"""Temporary files and folders that can be told from those of a process that was killed.

Each has a name that nothing else has, and a lock that its process holds for as long as it lives:
the system takes the lock back however the process ends. What has such a name and the same owner
is removed if nobody holds it. Another computer on a shared folder may not see the lock, so what
was made under another start of the system has to be untouched for a month besides.

Where the system has no such locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

if sys.platform != "win32":
    import fcntl


_NAME = re.compile(r"\.polars-wroc-([0-9a-f]{12})-[0-9a-f]{32}(\.\w+)?")
# One for all containers of a system: they see the same locks.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MONTH = 30 * 24 * 3600
_ATTEMPTS = 100


def new_name(suffix: str) -> str:
    """Make a name that nothing else has, as long as all others."""
    return f".polars-wroc-{_boot()}-{uuid4().hex}{suffix}"


@contextmanager
def temporary(parent: Path, suffix: str = "", *, folder: bool = False) -> Iterator[Path]:
    """Make an empty file or folder that is held meanwhile; to remove it is up to the caller."""
    for _ in range(_ATTEMPTS):
        path = parent / new_name(suffix)
        if folder:
            path.mkdir(mode=0o700)
        else:
            path.touch(exist_ok=False)
        with _held(path, or_free=True) as mine:
            # Before it was held, another process may have taken it for abandoned.
            if mine:
                yield path
                return
    msg = f"`path` must be in a folder that can be written; found {str(parent)!r}"
    raise OSError(msg)


def remove_abandoned(parent: Path) -> None:
    """Remove what dead processes of this user left in a folder; nothing where locks are unknown."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name:
                with contextlib.suppress(OSError):
                    _remove_unless_held(Path(entry.path), same_boot=name[1] == _boot())


def _remove_unless_held(path: Path, *, same_boot: bool) -> None:
    found = path.lstat()
    is_folder = stat.S_ISDIR(found.st_mode)
    if not (is_folder or stat.S_ISREG(found.st_mode)) or found.st_uid != os.getuid():
        return
    if not same_boot and time.time() - found.st_mtime < _MONTH:
        return
    with _held(path, or_free=False) as mine:
        if mine and is_folder:
            shutil.rmtree(path)
        elif mine:
            path.unlink()


@contextmanager
def _held(path: Path, *, or_free: bool) -> Iterator[bool]:
    """Hold a path, if no other process does and it is still there.

    Where locks are unknown it counts as held if that is said to be enough.
    """
    if sys.platform == "win32":
        yield or_free
        return
    try:
        number = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _lock(number, or_free=or_free) and _is(path, number)
    finally:
        os.close(number)


def _lock(number: int, *, or_free: bool) -> bool:
    assert sys.platform != "win32"
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system that cannot lock: whoever looks for what is abandoned cannot either.
        return or_free
    return True


def _is(path: Path, number: int) -> bool:
    """Whether a path still names the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(number))
    except FileNotFoundError:
        return False


@cache
def _boot() -> str:
    """Name this start of the system, or where that cannot be known this computer."""
    try:
        start = _BOOT.read_text()
    except OSError:
        start = platform.node()
    return hashlib.sha256(start.encode()).hexdigest()[:12]
