"""Files in, lazily, and files out, whole or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from glob import glob
from pathlib import Path

import polars as pl

from polars_wroc.options import reject_type
from polars_wroc.ownership import new_name, remove_abandoned, temporary
from polars_wroc.spreadsheets import not_run

# Columns that came later than the first file are no reason to refuse it.
_scan_parquet = partial(pl.scan_parquet, extra_columns="ignore")
_SCANS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": _scan_parquet,
    ".pq": _scan_parquet,
    ".arrow": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".csv": pl.scan_csv,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}
# Without rows these formats have no types either, and they do not say how many rows they have.
_UNTYPED = (".csv", ".ndjson", ".jsonl")

TABLE_SUFFIXES = (".parquet", ".csv", ".json")
CHART_SUFFIXES = (".html", ".png", ".svg")

# What is being written, under names that nobody else looks for.
_partial: set[Path] = set()
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)


def first_line(error: BaseException) -> str:
    """Say in one line what went wrong."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def scan(sources: Sequence[str]) -> pl.LazyFrame:
    """Scan files, globs, folders of Parquet files or cloud addresses of one format as one frame."""
    suffix = check_sources(sources)
    frame = _SCANS[suffix](list(sources))
    try:
        frame.collect_schema()
        empty = suffix in _UNTYPED and frame.head(1).collect().is_empty()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ValueError(unreadable(sources, error)) from error
    if empty:
        msg = f"`files` must hold rows; found none in {', '.join(sources)}"
        raise ValueError(msg)
    return frame


def check_sources(sources: Sequence[str]) -> str:
    """Return the suffix of files that exist, if they are of one format."""
    suffixes = {_suffix(source) for source in sources}
    if len(suffixes) > 1:
        msg = f"`files` must be of one format; found {', '.join(sorted(suffixes))}"
        raise ValueError(msg)
    for source in sources:
        if not _is_address(source) and not _matches(source):
            msg = f"`files` must exist; found no {source!r}"
            raise ValueError(msg)
        if not _is_address(source) and not _files_of(source):
            msg = f"`files` must hold Parquet files where it is a folder; found none in {source!r}"
            raise ValueError(msg)
    (suffix,) = suffixes
    return suffix


def unreadable(sources: Sequence[str], error: Exception) -> str:
    """Say that files cannot be read."""
    return f"`files` must be readable; found {', '.join(sources)}: {first_line(error)}"


def each_file(sources: Sequence[str]) -> list[str]:
    """List the single files of globs and folders; a cloud address is not looked into."""
    return [
        file
        for source in sources
        for file in ([source] if _is_address(source) else _files_of(source))
    ]


def without_password(source: str) -> str:
    """Name a cloud address without the user and the password that may be in it."""
    # Without a colon it is no password: some clouds write the container before an @.
    return re.sub(r"(?<=://)[^/:]*:[^/]*@", "", source)


def say_rows(sources: Sequence[str]) -> bool:
    """Whether files say how many rows they have, so that this need not be counted."""
    return not any(_suffix(source) in _UNTYPED for source in sources)


def write(path: str | Path, save: Callable[[Path], object]) -> None:
    """Let ``save`` write a file beside the target, then put it in the target's place."""
    target = Path(path).resolve()
    remove_abandoned(target.parent)
    try:
        with temporary(target.parent, target.suffix) as part:
            _write_part(part, target, save)
    except (OSError, pl.exceptions.PolarsError) as error:
        if _code(error) not in _NO_ROOM:
            raise
        msg = f"`path` must be a file that can be written; found {str(path)!r}: {first_line(error)}"
        raise OSError(msg) from error


def _write_part(part: Path, target: Path, save: Callable[[Path], object]) -> None:
    _partial.add(part)
    try:
        save(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
        _partial.discard(part)


def discard_partial() -> None:
    """Remove what is not written to its end."""
    for part in [*_partial]:
        part.unlink(missing_ok=True)


def _code(error: Exception) -> int | None:
    """Return the number of the system's error, which Polars tells in words."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None


def save_table(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table as its suffix says: .parquet, .csv for people, too, or .json."""
    suffix = Path(path).suffix.lower()
    savers: dict[str, Callable[[Path], object]] = {
        ".parquet": table.write_parquet,
        ".csv": lambda part: not_run(table).write_csv(part),
        # Where a disk is full, Polars says nothing of it.
        ".json": lambda part: part.write_text(table.write_json(), encoding="utf-8"),
    }
    check_target(path, TABLE_SUFFIXES)
    write(path, savers[suffix])


def sink_table(plan: pl.LazyFrame, path: str | Path) -> None:
    """Write the result of a plan, exactly, without holding it where that can be."""
    sinks: dict[str, Callable[[Path], object]] = {
        ".parquet": plan.sink_parquet,
        ".csv": plan.sink_csv,
    }
    sink = sinks.get(check_target(path, TABLE_SUFFIXES))
    if sink is None:
        save_table(plan.collect(), path)
    else:
        write(path, sink)


def check_target(path: str | Path, allowed: Sequence[str], sources: Sequence[str] = ()) -> str:
    """Return the suffix of an output file, if it is one that can be written here."""
    if not isinstance(path, str | os.PathLike):
        reject_type("path", "be the name of a file", path)
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        msg = f"`path` must end in one of {', '.join(allowed)}; found {str(path)!r}"
        raise ValueError(msg)
    target = _resolved(Path(path))
    if target.is_dir():
        msg = f"`path` must be a file; found the folder {str(path)!r}"
        raise ValueError(msg)
    if target.exists() and not target.is_file():
        msg = f"`path` must be a file; found {str(path)!r}, which is a device or a pipe"
        raise ValueError(msg)
    if any(_reads(source, target) for source in sources):
        msg = f"`path` must not be a file that is read; found {str(path)!r}"
        raise ValueError(msg)
    return suffix


def _resolved(path: Path) -> Path:
    """Follow links to the file that is written, in a folder that can be written."""
    _check_name(path)
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        msg = f"`path` must be a file; found a link that leads to itself, {str(path)!r}"
        raise ValueError(msg) from None
    _check_name(target)
    _check_name(target.with_name(new_name(target.suffix)))
    for folder in (path.parent, target.parent):
        if not folder.is_dir():
            msg = f"`path` must be in a folder that exists; found no {str(folder)!r}"
            raise ValueError(msg)
        if not os.access(folder, os.W_OK):
            msg = f"`path` must be in a folder that can be written; found {str(folder)!r}"
            raise ValueError(msg)
    return target


def _check_name(path: Path) -> None:
    """Let the file system say whether it takes such a name: each has its own limit."""
    try:
        # Polars takes folders in UTF-8 only.
        str(path.parent).encode()
        path.lstat()
    except ValueError:
        msg = f"`path` must be in UTF-8, without null characters; found {str(path)!r}"
        raise ValueError(msg) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            lengths = [len(os.fsencode(text)) for text in (path.name, path)]
            msg = (
                "`path` must not be longer than the file system allows; "
                f"found a name of {lengths[0]} bytes in a path of {lengths[1]}"
            )
            raise ValueError(msg) from None


def _reads(source: str, target: Path) -> bool:
    """Whether a source, which may be a folder or a pattern, holds the target."""
    named = Path(source).resolve()
    matches = (Path(match).resolve() for match in _matches(source))
    return target == named or (named.is_dir() and named in target.parents) or target in matches


def _files_of(source: str) -> list[str]:
    folder = Path(source)
    if not folder.is_dir():
        return _matches(source) or [source]
    return sorted(str(path) for path in folder.rglob("[!.]*.parquet"))


def _matches(source: str) -> list[str]:
    """Find the files that a name or a pattern stands for."""
    if Path(source).exists():
        return [source]
    return sorted(glob(source, recursive=True))  # noqa: PTH207  (patterns with folders in front)


def _is_address(source: str) -> bool:
    return "://" in source


def _suffix(source: str) -> str:
    if not _is_address(source) and Path(source).is_dir():
        return ".parquet"
    suffix = Path(source).suffix.lower()
    if suffix not in _SCANS:
        msg = f"`files` must end in one of {', '.join(_SCANS)}; found {source!r}"
        raise ValueError(msg)
    return suffix
