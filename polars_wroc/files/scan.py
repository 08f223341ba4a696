"""Files of rows as one LazyFrame, in common formats and dialects."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Literal

import polars as pl

from polars_wroc.checks import shorten_text
from polars_wroc.files.column_types import OpenTable, choose_key_type, read_key, scan_columns
from polars_wroc.files.csv_dialect import ANY_FORMAT, FileFormat
from polars_wroc.files.csv_files import describe_long_row, find_invalid_line, open_csv
from polars_wroc.files.sources import (
    STANDARD_INPUT,
    Format,
    as_pattern,
    describe_difference,
    each_file,
    find_keys,
    format_of,
    has_other_keys,
    is_address,
    name_sources,
    read_standard_input,
    require_rows,
    unreadable,
)
from polars_wroc.queries import CheckError

# Rows from which the types of NDJSON are inferred.
_ROWS = 1000
# The engines of Polars that read workbooks, the fastest first, by the module that each needs.
_ENGINES: dict[Literal["calamine", "openpyxl"], str] = {
    "calamine": "fastexcel",
    "openpyxl": "openpyxl",
}


def scan_files(
    files: Sequence[str],
    file_format: FileFormat = ANY_FORMAT,
    *,
    text: Collection[str] = (),
    numbers: Collection[str] = (),
    dates: Collection[str] = (),
    tell: Callable[[str], None] | None = None,
) -> pl.LazyFrame:
    """Scan files, globs, folders, web or cloud addresses of one format as one frame.

    Parameters
    ----------
    files
        Names, globs, folders or addresses; ``-`` is the standard input.
    file_format
        How CSV files are written; whatever is not given is recognised.
    text
        Columns of groups, labels and decisions: they stay text if their numbers would lose
        something, for example the zeros of 007. Here and below, names that the files do not have
        are ignored.
    numbers
        Columns that must be numbers: scores and weights.
    dates
        Columns that must be dates or times: the ones that are divided into periods.
    tell
        Called with a sentence on CSV files that are not plain, for example "read data.csv as
        semicolon-separated, decimal comma, Windows-1252".

    Raises
    ------
    ValueError
        One sentence that names the file, for everything that is wrong with it.
    """
    each = each_file(files)
    kind = format_of(files)
    if kind != "csv" and file_format != ANY_FORMAT:
        options = "--separator, --decimal-comma, --encoding, --quote and --null"
        msg = f"{options} apply to CSV files only; {name_sources(files[:1])} is none"
        raise ValueError(msg)

    def open_files(some: Sequence[str], *, first: bool = True) -> OpenTable:
        if kind != "csv":
            return _open_typed(some, kind)
        asked = {*text, *numbers, *dates}
        told = tell if first else None
        return open_csv(some, file_format, asked=asked, numbers=numbers, tell=told)

    try:
        keys = find_keys(files)
        types = {name: choose_key_type(values, name in text) for name, values in keys.items()}
        if not keys:
            table = open_files(each)
        elif kind in ("parquet", "ipc") and not has_other_keys(each, keys):
            table = _open_typed(each, kind, hive_partitioning=True, hive_schema=types)
        else:
            table = _open_by_keys(each, keys, types, open_files)
        frame = scan_columns(table, {*text} - {*keys}, numbers, dates)
        # CSV files were looked at; other formats say what their columns are without a row.
        if kind == "ndjson":
            require_rows(frame, files)
    except (OSError, pl.exceptions.PolarsError) as error:
        # The engine's message may hold credentials.
        raise ValueError(describe_reading_error(error, files, file_format)) from None
    return frame


def _open_typed(files: Sequence[str], kind: Format, **options: Any) -> OpenTable:
    """Open files of a format with data types."""
    scanners: dict[Format, Callable[..., pl.LazyFrame]] = {
        # Files may have columns that the first one does not have.
        "parquet": partial(pl.scan_parquet, extra_columns="ignore"),
        "ipc": pl.scan_ipc,
        "ndjson": partial(pl.scan_ndjson, infer_schema_length=_ROWS),
        "xlsx": _read_workbooks,
    }
    scanner = partial(scanners[kind], **options)
    inputs: Any = [as_pattern(file, scanner) for file in files]
    if STANDARD_INPUT in files:
        inputs = BytesIO(read_standard_input())
    elif len(files) == 1 and is_address(files[0]):
        # A folder, whose keys Polars finds.
        inputs = inputs[0]
    is_inferred = kind == "ndjson"

    def scan(types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        return scanner(inputs, schema_overrides=types) if is_inferred else scanner(inputs)

    return OpenTable(
        name=name_sources(files),
        schema=scan({}).collect_schema(),
        scan=scan,
        is_inferred=is_inferred,
    )


def _read_workbooks(files: Sequence[str] | BytesIO) -> pl.LazyFrame:
    """Read the first sheets of workbooks."""
    engine = next((name for name, module in _ENGINES.items() if find_spec(module)), None)
    if engine is None:
        msg = "reading .xlsx files needs fastexcel: pip install fastexcel"
        raise ValueError(msg)
    sources = files if isinstance(files, Sequence) else [files]
    try:
        sheets = [pl.read_excel(file, engine=engine, infer_schema_length=None) for file in sources]
    except (OSError, pl.exceptions.PolarsError):
        raise
    except Exception as error:
        # Each engine has errors of its own.
        names = ["standard input"] if isinstance(files, BytesIO) else files
        raise ValueError(unreadable(names, error)) from error
    return pl.concat(sheets, how="vertical_relaxed").lazy()


def _open_by_keys(
    files: Sequence[str],
    keys: Mapping[str, Sequence[str | None]],
    key_types: Mapping[str, pl.DataType],
    open_files: Callable[..., OpenTable],
) -> OpenTable:
    """Open the files of each folder such as day=1 by themselves, and add the values of the keys."""
    folders: dict[tuple[str | None, ...], list[str]] = {}
    for file, *values in zip(files, *keys.values(), strict=True):
        folders.setdefault(tuple(values), []).append(file)
    tables = [open_files(some, first=number == 0) for number, some in enumerate(folders.values())]
    own = {name: dtype for name, dtype in tables[0].schema.items() if name not in keys}
    for table in tables[1:]:
        _require_columns(table, own, tables[0].name)

    def scan(types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        own_types = {name: types.get(name, dtype) for name, dtype in own.items()}
        parts = [
            table.scan(own_types)
            .select([*own])
            .with_columns(
                read_key(value, types.get(key, key_types[key])).alias(key)
                for key, value in zip(keys, values, strict=True)
            )
            for table, values in zip(tables, folders, strict=True)
        ]
        return pl.concat(parts)

    def find_place(column: str, text: str) -> str | None:
        places = (table.find_place(column, text) for table in tables)
        return next((place for place in places if place is not None), None)

    schema = {**own, **key_types}
    return replace(
        tables[0], name=name_sources(files), schema=schema, scan=scan, find_place=find_place
    )


def _require_columns(table: OpenTable, columns: Collection[str], first: str) -> None:
    """Check that files have the columns of the first ones."""
    if any(name not in table.schema for name in columns):
        difference = describe_difference(columns, table.schema)
        msg = f"{table.name} has other columns than {first}: {difference}"
        raise ValueError(msg)


# The message of Polars about a text that does not have the type of its column.
_UNREADABLE_TEXT = re.compile(
    r"could not parse `(.*?)` as dtype `(\w+)` at column '(.*?)'", re.DOTALL
)


def describe_reading_error(
    error: Exception, files: Sequence[str], file_format: FileFormat = ANY_FORMAT
) -> str:
    """Write one sentence for an error of Polars that a query of scanned files raised.

    It names the file and the line, for example of a value that is no number far down in a file.
    """
    if isinstance(error, CheckError):
        return str(error)
    try:
        return _explain(str(error), files, file_format) or unreadable(files, error)
    except ValueError as other:
        # A file that is gone, for example.
        return str(other)
    except (OSError, pl.exceptions.PolarsError):
        return _describe_unreadable(files) or unreadable(files, error)


def _describe_unreadable(files: Sequence[str]) -> str | None:
    """Name the first file that cannot be opened; None if that is not known."""
    kind = format_of(files)
    for file in each_file(files) if kind != "csv" else ():
        try:
            _ = _open_typed([file], kind).schema
        except (OSError, pl.exceptions.PolarsError) as error:
            return unreadable([file], error)
    return None


def _explain(said: str, files: Sequence[str], file_format: FileFormat) -> str | None:
    """Explain what Polars says about files; None if there is nothing to add."""
    each, kind = each_file(files), format_of(files)
    if kind == "csv" and "more fields than defined" in said:
        return describe_long_row(each, file_format)
    found = _UNREADABLE_TEXT.search(said)
    if kind == "csv" and found:
        text, dtype, column = found.groups()
        place = open_csv(each, file_format).find_place(column, text.strip('"'))
        wanted = "text" if dtype == "str" else "a number"
        return (
            f"column {column!r} must be {wanted} in all rows, as in the first ones; "
            f"{place or name_sources(files)} has {shorten_text(text)!r}"
        )
    if "invalid utf" in said:
        place = find_invalid_line(each) or name_sources(files)
        return f"{place} is not in UTF-8; give the encoding, for example --encoding windows-1252"
    return _find_other_schema(each, kind) if len(each) > 1 else None


def _find_other_schema(files: Sequence[str], kind: Format) -> str | None:
    """Describe the first file with other columns, or other types, than the first one."""
    if kind == "csv":
        return None
    first = _open_typed(files[:1], kind).schema
    for file in files[1:]:
        schema = _open_typed([file], kind).schema
        others = f"{name_sources([file])} has other columns than {name_sources(files[:1])}"
        if difference := describe_difference(first, schema):
            return f"{others}: {difference}"
        for name, dtype in first.items():
            if schema[name] != dtype:
                return f"{others}: {name!r} is {schema[name]} in place of {dtype}"
    return None
