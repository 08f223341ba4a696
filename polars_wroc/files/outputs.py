"""Writing of files, completely or not at all."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import io
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
from polars import selectors

from polars_wroc.checks import check_text, reject, reject_type
from polars_wroc.files.sources import first_line, name_sources, reads

# The first characters of formulas, as listed by OWASP; numbers are no formulas.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  (of full width)
_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"
_QUOTE = "'"


def not_run(table: pl.DataFrame) -> pl.DataFrame:
    """Put a quote before texts and column names that a spreadsheet would run."""
    texts = selectors.string() | selectors.categorical() | selectors.enum()
    shown = table.with_columns(_quote_text(texts.cast(pl.String)))
    return shown.rename(_headers(table.columns))


def _headers(names: list[str]) -> dict[str, str]:
    """Quote the names of columns, and keep them unique."""
    quoted = pl.DataFrame({"name": names}, {"name": pl.String}).select(_quote_text(pl.col("name")))
    headers: dict[str, str] = {}
    for name, header in zip(names, quoted["name"], strict=True):
        taken = {*headers.values(), *names} - {name}
        headers[name] = header
        while headers[name] in taken:
            headers[name] = _QUOTE + headers[name]
    return headers


def _quote_text(text: pl.Expr) -> pl.Expr:
    runs = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    return pl.when(runs).then(_QUOTE + text).otherwise(text).name.keep()


# Files with an object of JSON in each line.
LINE_SUFFIXES = (".ndjson", ".jsonl")
TABLE_SUFFIXES = (".parquet", ".csv", ".json", *LINE_SUFFIXES)
WORKBOOK = ".xlsx"
CHART_SUFFIXES = (".html", ".png", ".svg")

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)


def write(
    path: str | Path,
    save: Callable[[Path], object],
    suffix: str | None = None,
    deliver: Callable[[Path], object] | None = None,
) -> None:
    """Let ``save`` write a hidden file beside the target, then move it there.

    What is written may depend on the ``suffix``, which is that of the target by default. The whole
    file may be delivered in another way than by moving it.
    """
    target = Path(path).resolve()
    part = _name_part(target, suffix)
    try:
        save(part)
        if deliver is None:
            part.replace(target)
        else:
            deliver(part)
    except (OSError, pl.exceptions.PolarsError) as error:
        code = _code(error)
        if code is None or code not in _NO_ROOM:
            raise
        raise OSError(_unwritable(path, os.strerror(code))) from error
    finally:
        part.unlink(missing_ok=True)


def _name_part(target: Path, suffix: str | None = None) -> Path:
    """Name a hidden file beside the target, whose name no other process has."""
    return target.with_name(f".polars-wroc-{uuid4().hex}{suffix or target.suffix}")


def _unwritable(path: str | Path, why: str | Exception) -> str:
    """Return the message that a file cannot be written, with the words of the system if it says."""
    if isinstance(why, Exception):
        why = getattr(why, "strerror", None) or first_line(why)
    return f"cannot write {name_sources([str(path)])}: {why}"


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
    """Write a table in the format of its suffix; in .csv texts are quoted against formulas."""
    suffix = check_target(path, TABLE_SUFFIXES)
    savers: dict[str, Callable[[Path], object]] = {
        # Not written by Polars, which does not say that the disk is full.
        ".parquet": lambda part: part.write_bytes(_parquet_of(table)),
        ".csv": lambda part: not_run(table).write_csv(part),
        # For the same reason.
        ".json": lambda part: part.write_text(f"{write_table_as_json(table)}\n", encoding="utf-8"),
        **dict.fromkeys(
            LINE_SUFFIXES, lambda part: part.write_text(write_json_lines(table), encoding="utf-8")
        ),
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
    return _dump(rows_in_json(table))


def write_json_lines(table: pl.DataFrame) -> str:
    """Write each row of a table as an object of JSON in a line of its own."""
    return "".join(f"{_dump(row)}\n" for row in rows_in_json(table))


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, default=text_of, ensure_ascii=False)


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
    target = _resolve(Path(path))
    if any(reads(source, target) for source in sources):
        reject("path", "not be a file that is read", repr(str(path)))
    return suffix


def _resolve(path: Path) -> Path:
    """Follow links to the file that is written, and check that it can be."""
    try:
        target = path.resolve()
        # Each file system has its own limits for names.
        for each in (path, target, _name_part(target)):
            with contextlib.suppress(FileNotFoundError):
                each.stat()
        obstacle: str | Exception | None = _find_obstacle(path, target)
    # A link that leads to itself is a RuntimeError before Python 3.13, and a null character in the
    # name is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        obstacle = error
    if obstacle is not None:
        raise ValueError(_unwritable(path, obstacle))
    return target


def _find_obstacle(path: Path, target: Path) -> str | None:
    """Return why a file cannot be written; None if it can."""
    for folder in (path.parent, target.parent):
        if not folder.is_dir():
            return f"there is no folder {name_sources([str(folder)])}"
        if not os.access(folder, os.W_OK):
            return f"folder {name_sources([str(folder)])} is not writable"
    if target.is_dir():
        return "it is a folder"
    if target.exists() and not target.is_file():
        return "it is a device or a pipe"
    return None
