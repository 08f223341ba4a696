"""Writing of files, completely or not at all."""

from __future__ import annotations

import datetime as dt
import errno
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.files.messages import first_line
from polars_wroc.files.ownership import new_name, remove_abandoned, temporary
from polars_wroc.files.sources import reads
from polars_wroc.files.spreadsheets import not_run
from polars_wroc.inputs.arguments import check_text, reject_type

TABLE_SUFFIXES = (".parquet", ".csv", ".json")
CHART_SUFFIXES = (".html", ".png", ".svg")

# Files that are being written, under temporary names.
_partial: set[Path] = set()
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)


def write(path: str | Path, save: Callable[[Path], object]) -> None:
    """Let ``save`` write a temporary file in the same folder, then move it to the target."""
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
    """Remove files that are not completely written."""
    for part in [*_partial]:
        part.unlink(missing_ok=True)


def _code(error: Exception) -> int | None:
    """Return the number of the system's error, which Polars gives in its message."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None


def save_table(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table to .parquet, .json or, with texts quoted against formulas, .csv."""
    suffix = Path(path).suffix.lower()
    savers: dict[str, Callable[[Path], object]] = {
        ".parquet": table.write_parquet,
        ".csv": lambda part: not_run(table).write_csv(part),
        # Not with Polars, which does not raise when the disk is full.
        ".json": lambda part: part.write_text(json_of(table), encoding="utf-8"),
    }
    check_target(path, TABLE_SUFFIXES)
    write(path, savers[suffix])


def json_of(table: pl.DataFrame) -> str:
    """Write the rows of a table as JSON."""
    return json.dumps(rows_in_json(table), allow_nan=False, default=text_of, ensure_ascii=False)


def rows_in_json(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as values for JSON."""
    rows = table.iter_rows(named=True)
    return [{name: in_json(value) for name, value in row.items()} for row in rows]


def as_json(value: Any) -> str:
    """Write values as indented JSON."""
    return json.dumps(value, indent=2, allow_nan=False, default=text_of) + "\n"


def in_json(value: Any) -> Any:
    """Write as text a number that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def text_of(value: Any) -> str:
    """Write as text a value of a type that JSON does not have."""
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def sink_table(plan: pl.LazyFrame, path: str | Path) -> None:
    """Write the result of a plan exactly, without holding it in memory if the format allows."""
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
    check_text("path", os.fspath(path))
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
    if any(reads(source, target) for source in sources):
        msg = f"`path` must not be a file that is read; found {str(path)!r}"
        raise ValueError(msg)
    return suffix


def _resolved(path: Path) -> Path:
    """Follow links to the file that is written, in a folder that can be written."""
    _check_name(path)
    if _leads_to_itself(path):
        msg = f"`path` must be a file; found a link that leads to itself, {str(path)!r}"
        raise ValueError(msg)
    target = path.resolve()
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


def _leads_to_itself(path: Path) -> bool:
    try:
        # From Python 3.13 on such a link is no error, and stays a link.
        return os.path.islink(path.resolve())  # noqa: PTH114  (False for names that are too long)
    except (OSError, RuntimeError):
        return True


def _check_name(path: Path) -> None:
    """Have the file system check a name, since each has its own limits."""
    try:
        path.lstat()
    except ValueError:
        msg = f"`path` must not hold null characters; found {str(path)!r}"
        raise ValueError(msg) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            lengths = [len(os.fsencode(text)) for text in (path.name, path)]
            msg = (
                "`path` must not be longer than the file system allows; "
                f"found a name of {lengths[0]} bytes in a path of {lengths[1]}"
            )
            raise ValueError(msg) from None
