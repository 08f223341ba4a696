"""Writing of files, completely or not at all."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import hashlib
import io
import json
import math
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
from polars import selectors

from polars_wroc.checks import check_text, reject, reject_type
from polars_wroc.files.sources import first_line, reads

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


# The first characters of formulas, as listed by OWASP; numbers are no formulas.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  (of full width)
_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"
_QUOTE = "'"


def not_run(table: pl.DataFrame) -> pl.DataFrame:
    """Put a quote before texts and column names that a spreadsheet would run."""
    texts = selectors.string() | selectors.categorical() | selectors.enum()
    shown = table.with_columns(_quoted(texts.cast(pl.String)))
    return shown.rename(_headers(table.columns))


def _headers(names: list[str]) -> dict[str, str]:
    """Quote the names of columns, and keep them unique."""
    quoted = pl.DataFrame({"name": names}, {"name": pl.String}).select(_quoted(pl.col("name")))
    headers: dict[str, str] = {}
    for name, header in zip(names, quoted["name"], strict=True):
        taken = {*headers.values(), *names} - {name}
        headers[name] = header
        while headers[name] in taken:
            headers[name] = _QUOTE + headers[name]
    return headers


def _quoted(text: pl.Expr) -> pl.Expr:
    runs = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    return pl.when(runs).then(_QUOTE + text).otherwise(text).name.keep()


TABLE_SUFFIXES = (".parquet", ".csv", ".json")
WORKBOOK = ".xlsx"
CHART_SUFFIXES = (".html", ".png", ".svg")

# Files that are being written, under temporary names.
_partial: set[Path] = set()
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)


def write(
    path: str | Path,
    save: Callable[[Path], object],
    suffix: str | None = None,
    deliver: Callable[[Path], object] | None = None,
) -> None:
    """Let ``save`` write a temporary file in the same folder, then move it to the target.

    What is written may depend on the ``suffix``, which is that of the target by default. The whole
    file may be delivered in another way than by moving it.
    """
    target = Path(path).resolve()
    remove_abandoned(target.parent)
    try:
        with temporary(target.parent, target.suffix if suffix is None else suffix) as part:
            _partial.add(part)
            try:
                save(part)
                if deliver is None:
                    part.replace(target)
                else:
                    deliver(part)
            finally:
                part.unlink(missing_ok=True)
                _partial.discard(part)
    except (OSError, pl.exceptions.PolarsError) as error:
        if _code(error) not in _NO_ROOM:
            raise
        msg = f"`path` must be a file that can be written; found {str(path)!r}: {first_line(error)}"
        raise OSError(msg) from error


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


def save_text(text: str, path: str | Path) -> None:
    """Write a text."""
    write(path, lambda part: part.write_text(text, encoding="utf-8"))


def save_table(table: pl.DataFrame, path: str | Path) -> None:
    """Write a table to .parquet, .json or, with texts quoted against formulas, .csv."""
    suffix = check_target(path, TABLE_SUFFIXES)
    savers: dict[str, Callable[[Path], object]] = {
        # Not written by Polars, which does not say that the disk is full.
        ".parquet": lambda part: part.write_bytes(_parquet_of(table)),
        ".csv": lambda part: not_run(table).write_csv(part),
        # For the same reason.
        ".json": lambda part: part.write_text(f"{write_table_as_json(table)}\n", encoding="utf-8"),
    }
    write(path, savers[suffix])


def save_chart(chart: Any, path: str | Path) -> None:
    """Write an Altair chart: .html, which needs no network, .svg, or .png of twice its pixels."""
    suffix = check_target(path, CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    is_html = suffix == ".html"
    write(path, lambda part: chart.save(str(part), inline=is_html, scale_factor=2))


def _parquet_of(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def write_table_as_json(table: pl.DataFrame) -> str:
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


def check_target(
    path: str | Path,
    allowed: Sequence[str],
    sources: Sequence[str] = (),
    suffix: str | None = None,
) -> str:
    """Return the suffix of an output file, or the one given, if it can be written here."""
    if not isinstance(path, str | os.PathLike):
        reject_type("path", "be the name of a file", path)
    check_text("path", os.fspath(path))
    suffix = suffix or Path(path).suffix.lower()
    if suffix not in allowed:
        reject("path", f"end in one of {', '.join(allowed)}", repr(str(path)))
    target = _resolved(Path(path))
    if target.is_dir():
        reject("path", "be a file", f"the folder {str(path)!r}")
    if target.exists() and not target.is_file():
        reject("path", "be a file", f"{str(path)!r}, which is a device or a pipe")
    if any(reads(source, target) for source in sources):
        reject("path", "not be a file that is read", repr(str(path)))
    return suffix


def _resolved(path: Path) -> Path:
    """Follow links to the file that is written, in a folder that can be written."""
    _check_name(path)
    if _leads_to_itself(path):
        reject("path", "be a file", f"a link that leads to itself, {str(path)!r}")
    target = path.resolve()
    _check_name(target)
    _check_name(target.with_name(new_name(target.suffix)))
    for folder in (path.parent, target.parent):
        if not folder.is_dir():
            reject("path", "be in a folder that exists", f"no {str(folder)!r}")
        if not os.access(folder, os.W_OK):
            reject("path", "be in a folder that can be written", repr(str(folder)))
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
