"""Files out, whole or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import polars as pl

from polars_wroc.messages import first_line
from polars_wroc.options import check_text, reject_type
from polars_wroc.sources import reads

TABLE_SUFFIXES = (".parquet", ".csv", ".json")
CHART_SUFFIXES = (".html", ".png", ".svg")

# What is being written, under names that nobody else looks for.
_partial: set[Path] = set()
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)


def write(path: str | Path, save: Callable[[Path], object]) -> None:
    """Let ``save`` write a file beside the target, then put it in the target's place."""
    target = Path(path).resolve()
    part = target.with_name(f".{target.stem}.{uuid4().hex}{target.suffix}")
    _partial.add(part)
    try:
        save(part)
        part.replace(target)
    except (OSError, pl.exceptions.PolarsError) as error:
        if _code(error) not in _NO_ROOM:
            raise
        msg = f"`path` must be a file that can be written; found {str(path)!r}: {first_line(error)}"
        raise OSError(msg) from error
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
    """Write a table as its suffix says: .parquet, .csv or .json."""
    suffix = Path(path).suffix.lower()
    savers: dict[str, Callable[[Path], object]] = {
        ".parquet": table.write_parquet,
        ".csv": table.write_csv,
        # Where a disk is full, Polars says nothing of it.
        ".json": lambda part: part.write_text(table.write_json(), encoding="utf-8"),
    }
    check_target(path, TABLE_SUFFIXES)
    write(path, savers[suffix])


def sink_table(plan: pl.LazyFrame, path: str | Path) -> None:
    """Write the result of a plan as `save_table` does, without holding it where that can be."""
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
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in allowed:
        msg = f"`path` must end in one of {', '.join(allowed)}; found {str(path)!r}"
        raise ValueError(msg)
    if not target.parent.is_dir():
        msg = f"`path` must be in a folder that exists; found no {str(target.parent)!r}"
        raise ValueError(msg)
    if not os.access(target.parent, os.W_OK):
        msg = f"`path` must be in a folder that can be written; found {str(target.parent)!r}"
        raise ValueError(msg)
    if target.is_dir():
        msg = f"`path` must be a file; found the folder {str(path)!r}"
        raise ValueError(msg)
    if any(reads(source, target.resolve()) for source in sources):
        msg = f"`path` must not be a file that is read; found {str(path)!r}"
        raise ValueError(msg)
    return suffix
