"""Temporary files and folders, and removal of those that a killed process left.

Each has a unique name and a lock that its process holds while it runs; the system releases the
lock however the process ends. A file or folder with such a name and the same owner is removed if
no process holds it. Another computer on a shared folder may not see the lock, so files from
another computer or an earlier start of the system must also be unchanged for a month.

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
# The same in all containers of a system, which see the same locks.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MONTH = 30 * 24 * 3600
_ATTEMPTS = 100


def new_name(suffix: str) -> str:
    """Make a unique name; all have the same length."""
    return f".polars-wroc-{_boot()}-{uuid4().hex}{suffix}"


@contextmanager
def temporary(parent: Path, suffix: str = "", *, folder: bool = False) -> Iterator[Path]:
    """Make an empty file or folder and hold its lock; the caller removes it."""
    for _ in range(_ATTEMPTS):
        path = parent / new_name(suffix)
        if folder:
            path.mkdir(mode=0o700)
        else:
            path.touch(exist_ok=False)
        with _held(path, or_free=True) as mine:
            # Before it was locked, another process may have removed it as abandoned.
            if mine:
                yield path
                return
    msg = f"`path` must be in a folder that can be written; found {str(parent)!r}"
    raise OSError(msg)


def remove_abandoned(parent: Path) -> None:
    """Remove what dead processes of this user left in a folder; nothing without file locks."""
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
    """Lock a path, if no other process does and it still exists; yield whether it is locked.

    Without file locks it yields ``or_free``.
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
        # A file system without locks, on which nothing is removed as abandoned either.
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
    """Name this start of the system, or this computer if that is unknown."""
    try:
        start = _BOOT.read_text()
    except OSError:
        start = platform.node()
    return hashlib.sha256(start.encode()).hexdigest()[:12]
