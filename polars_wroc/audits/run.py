"""When, with what and on which files an audit was made."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.files import sources
from polars_wroc.files.messages import without_credentials
from polars_wroc.plans.collect import collect

_PACKAGES = ("polars-wroc", "polars")


def now() -> dt.datetime:
    """Return the time in UTC, in whole seconds; the variable `SOURCE_DATE_EPOCH` sets it."""
    name = "SOURCE_DATE_EPOCH"
    if not (given := os.environ.get(name)):
        return dt.datetime.now(dt.UTC).replace(microsecond=0)
    try:
        return dt.datetime.fromtimestamp(int(given), dt.UTC)
    except (ValueError, OverflowError, OSError) as error:
        msg = f"{name} must be a number of seconds since 1970; found {given!r}"
        raise ValueError(msg) from error


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


@dataclass(frozen=True)
class AuditedFile:
    """A file that was read: of a local one its size and content; its rows where it says them."""

    name: str
    bytes: int | None = None
    sha256: str | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Run:
    """The run of an audit; the command line knows its command and files."""

    date: dt.datetime = field(default_factory=now)
    command: str | None = None
    files: Sequence[AuditedFile] = ()
    versions: dict[str, str] = field(default_factory=_versions)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as values for JSON."""
        files = [asdict(file) for file in self.files]
        return {
            "date": self.date.isoformat(),
            "command": self.command,
            "versions": self.versions,
            "files": files,
        }


def audited_files(names: Sequence[str], *, contents: bool) -> list[AuditedFile]:
    """Describe the files that were read, without their folders.

    Their ``contents`` are read once more, for what only some outputs show.
    """
    files = sources.each_file(names)
    return [_described(file, contents=contents) for file in files]


def _described(file: str, *, contents: bool) -> AuditedFile:
    if sources.is_address(file):
        return AuditedFile(without_credentials(file))
    path = Path(file)
    if not contents:
        return AuditedFile(path.name)
    rows = None
    if sources.store_row_counts([file]):
        rows = int(collect(sources.scan([file]).select(pl.len())).item())
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return AuditedFile(path.name, path.stat().st_size, digest, rows)
