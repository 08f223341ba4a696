"""Files in, lazily, and files out, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import glob
from pathlib import Path
from uuid import uuid4

import polars as pl

_SCANS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": pl.scan_parquet,
    ".pq": pl.scan_parquet,
    ".arrow": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".csv": pl.scan_csv,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}
# Without rows these formats have no types either.
_UNTYPED = (".csv", ".ndjson", ".jsonl")

TABLE_SUFFIXES = (".parquet", ".csv", ".json")
CHART_SUFFIXES = (".html", ".png", ".svg")


def first_line(error: Exception) -> str:
    """Say in one line what went wrong."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def scan(sources: Sequence[str]) -> pl.LazyFrame:
    """Scan files, globs, folders of Parquet files or cloud addresses of one format as one frame."""
    suffixes = {_suffix(source) for source in sources}
    if len(suffixes) > 1:
        msg = f"`files` must be of one format; found {', '.join(sorted(suffixes))}"
        raise ValueError(msg)
    for source in sources:
        local = "://" not in source
        if local and not Path(source).exists() and not glob(source, recursive=True):  # noqa: PTH207
            msg = f"`files` must exist; found no {source!r}"
            raise ValueError(msg)
    (suffix,) = suffixes
    frame = _SCANS[suffix](list(sources))
    try:
        frame.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"`files` must be readable; found {', '.join(sources)}: {first_line(error)}"
        raise ValueError(msg) from error
    if suffix in _UNTYPED and frame.head(1).collect().is_empty():
        msg = f"`files` must hold rows; found none in {', '.join(sources)}"
        raise ValueError(msg)
    return frame


def files_of(source: str) -> list[str]:
    """Name each file of a glob, or else the source itself."""
    return sorted(glob(source, recursive=True)) or [source]  # noqa: PTH207


def write(path: str | Path, save: Callable[[Path], object]) -> None:
    """Let ``save`` write a file beside the target, then put it in the target's place."""
    target = Path(path).resolve()
    partial = target.with_name(f".{target.stem}.{uuid4().hex}{target.suffix}")
    try:
        save(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def save_table(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table as its suffix says: .parquet, .csv or .json."""
    suffix = Path(path).suffix.lower()
    savers: dict[str, Callable[[Path], object]] = {
        ".parquet": table.write_parquet,
        ".csv": table.write_csv,
        ".json": table.write_json,
    }
    check_target(path, TABLE_SUFFIXES)
    write(path, savers[suffix])


def check_target(path: str | Path, allowed: Sequence[str], sources: Sequence[str] = ()) -> str:
    """Return the suffix of an output file, if it is one that can be written here."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in allowed:
        msg = f"`path` must end in one of {', '.join(allowed)}; found {str(path)!r}"
        raise ValueError(msg)
    if not target.parent.is_dir():
        msg = f"`path` must be in a folder that exists; found no {str(target.parent)!r}"
        raise ValueError(msg)
    if target.is_dir():
        msg = f"`path` must be a file; found the folder {str(path)!r}"
        raise ValueError(msg)
    if any(_reads(source, target.resolve()) for source in sources):
        msg = f"`path` must not be a file that is read; found {str(path)!r}"
        raise ValueError(msg)
    return suffix


def _reads(source: str, target: Path) -> bool:
    """Whether a source, which may be a folder or a pattern, holds the target."""
    named = Path(source).resolve()
    matches = (Path(match).resolve() for match in glob(source, recursive=True))  # noqa: PTH207
    return target == named or (named.is_dir() and named in target.parents) or target in matches


def _suffix(source: str) -> str:
    if "://" not in source and Path(source).is_dir():
        return ".parquet"
    suffix = Path(source).suffix.lower()
    if suffix not in _SCANS:
        msg = f"`files` must end in one of {', '.join(_SCANS)}; found {source!r}"
        raise ValueError(msg)
    return suffix
