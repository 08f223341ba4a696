"""CSV files in any dialect, scanned as one frame of checked rows."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from polars_wroc.checks import shorten_text
from polars_wroc.files.column_types import OpenTable
from polars_wroc.files.csv_dialect import (
    MISSING_TEXTS,
    UTF_8,
    CsvDialect,
    FileFormat,
    decode,
    read_start,
    recognise_dialect,
    recognise_encoding,
)
from polars_wroc.files.sources import (
    GZIP,
    STANDARD_INPUT,
    ZSTD,
    as_pattern,
    describe_difference,
    is_address,
    is_pattern,
    local_name,
    name_sources,
    read_standard_input,
)
from polars_wroc.queries import CheckError

# The first bytes of files, from which their encodings are recognised: of all together, and at
# least of each.
_MOST_BYTES, _LEAST_BYTES = 2**22, 2**16
# Rows from which the types of columns are inferred, and lines from which Polars tells a dialect.
_ROWS = 1000
_INFERRED_FILES = 10
# The most files that are looked at as a whole.
_SMALL_FILES = 100
_NUMBER = re.compile(r"[+-]?\d*[.,]?\d+")
# The column of what stands behind the last column of the header.
_BEYOND = "__beyond_the_header"


@dataclass(frozen=True)
class _CsvFiles:
    """CSV files of one dialect, which may differ in their encodings."""

    files: Sequence[str]
    encodings: Sequence[str]
    dialect: CsvDialect
    # The inputs of Polars: names, or decoded contents.
    inputs: list[str] | list[bytes]
    # The first rows of the first file, with the header.
    start: Sequence[Sequence[str]]

    @property
    def is_small(self) -> bool:
        """Whether all rows can be looked at before they are read."""
        if STANDARD_INPUT in self.files:
            return True
        if len(self.files) > _SMALL_FILES or any(is_address(file) for file in self.files):
            return False
        return sum(Path(local_name(file)).stat().st_size for file in self.files) <= _MOST_BYTES

    def list_first_texts(self, columns: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the texts of columns in the first rows."""
        texts = zip_longest(*self.start[1:], fillvalue="")
        return dict(zip(columns, texts, strict=False))

    def scan(self, number: int | None = None, **options: Any) -> pl.LazyFrame:
        """Scan all files, or one of them, with Polars."""
        inputs = self.inputs if number is None else self.inputs[number : number + 1]
        return pl.scan_csv(inputs, **self.dialect.options, **options)

    def has_rows(self, number: int) -> bool:
        """Whether there is a row in one of the files."""
        first = self.scan(number, infer_schema=False, n_rows=1)
        return first.select(pl.first()).collect().height > 0

    def find_line(self, is_wanted: Callable[[list[str], list[str]], bool]) -> str | None:
        """Name the first line, and its file, whose header and fields are wanted.

        Files that Python cannot read are left out.
        """
        for file, encoding in zip(self.files, self.encodings, strict=True):
            if not _is_readable(file):
                continue
            content = decode(_read_bytes(file), encoding, name_sources([file]))
            rows = self.dialect.read_rows(io.StringIO(content, newline=""))
            _, header = next(rows, (0, []))
            for line, fields in rows:
                if is_wanted(header, fields):
                    return f"line {line} of {name_sources([file])}"
        return None

    def find_place(self, column: str, text: str) -> str | None:
        """Name the first line in which a column has a text."""

        def has_text(header: list[str], fields: list[str]) -> bool:
            place = header.index(column) if column in header else len(fields)
            return fields[place : place + 1] == [text]

        return self.find_line(has_text)


def open_csv(
    files: Sequence[str],
    given: FileFormat,
    *,
    asked: Collection[str] = (),
    numbers: Collection[str] = (),
    tell: Callable[[str], None] | None = None,
) -> OpenTable:
    """Open CSV files and check their headers.

    ``asked`` are the names of columns that are used, and ``numbers`` those that hold numbers.
    """
    csv_files = _open(files, given, numbers, tell)
    columns = _read_names(csv_files)
    header = csv_files.start[0] if csv_files.start else columns
    _check_header(header, asked, files[0])
    _check_separator(header, asked, files[0], given)
    names = [name.strip() for name in columns] if csv_files.dialect.is_spaced else columns
    schema = dict(zip(names, _infer_types(csv_files), strict=True))

    def scan(types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        return _scan_rows(csv_files, dict(zip(columns, {**schema, **types}.values(), strict=True)))

    return OpenTable(
        name=name_sources(files),
        schema=schema,
        scan=scan,
        is_inferred=True,
        is_csv=True,
        decimal_comma=csv_files.dialect.decimal_comma,
        first_texts={} if csv_files.is_small else csv_files.list_first_texts(columns),
        find_place=csv_files.find_place,
    )


def _open(
    files: Sequence[str],
    given: FileFormat,
    numbers: Collection[str],
    tell: Callable[[str], None] | None,
) -> _CsvFiles:
    """Recognise the dialect of the first file, and the encoding of each."""
    size = max(_LEAST_BYTES, _MOST_BYTES // len(files))
    start = _read_beginning(files[0], size)
    name = name_sources(files[:1])
    expected = "\t" if ".tsv" in Path(local_name(files[0])).suffixes else ","
    dialect = recognise_dialect(start, given, expected, name, numbers)
    encodings = [dialect.encoding]
    for file in files[1:]:
        known = given.encoding and dialect.encoding
        encodings.append(known or _recognise_encoding(file, size))
    if tell and (described := dialect.describe(expected)):
        others = "" if len(files) == 1 else f" and {len(files) - 1} more"
        tell(f"read {name}{others} as {described}")
    inputs: list[str] | list[bytes]
    if all(encoding == UTF_8 for encoding in encodings) and STANDARD_INPUT not in files:
        inputs = [as_pattern(file, pl.scan_csv) for file in files]
    elif unreadable := [file for file in files if not _is_readable(file)]:
        msg = f"{name_sources(unreadable[:1])} must be in UTF-8: decompress or download it first"
        raise ValueError(msg)
    else:
        inputs = [
            decode(_read_bytes(file), encoding, name_sources([file])).encode()
            for file, encoding in zip(files, encodings, strict=True)
        ]
    rows = read_start(dialect, decode(start, dialect.encoding, name))
    return _CsvFiles(files, encodings, dialect, inputs, rows)


def _recognise_encoding(file: str, size: int) -> str:
    if not _is_readable(file):
        return UTF_8
    return recognise_encoding(_read_bytes(file, size), name_sources([file]))


def _is_readable(file: str) -> bool:
    """Whether Python can read a file; it can read none that is compressed with zstd."""
    if file == STANDARD_INPUT:
        return True
    return not is_address(file) and not _read_mark(file).startswith(ZSTD)


def _read_mark(file: str) -> bytes:
    """Read the bytes by which compressed files are known."""
    with Path(local_name(file)).open("rb") as content:
        return content.read(4)


def _read_bytes(file: str, size: int = -1) -> bytes:
    """Read the beginning of a file, or all of it, uncompressed."""
    if file == STANDARD_INPUT:
        return read_standard_input()
    path = Path(local_name(file))
    if _read_mark(file).startswith(GZIP):
        with gzip.open(path) as unzipped:
            return unzipped.read(size)
    with path.open("rb") as raw:
        return raw.read(size)


def _read_beginning(file: str, size: int) -> bytes:
    """Read the beginning of a file; Polars reads it where Python cannot."""
    if _is_readable(file):
        return _read_bytes(file, size)
    lines = pl.scan_lines(as_pattern(file, pl.scan_csv)).head(_ROWS).collect().to_series()
    return "\n".join(lines).encode()


def _read_names(csv_files: _CsvFiles) -> list[str]:
    """Return the names of the columns, which all files must have."""
    columns = list[str]()
    for number, file in enumerate(csv_files.files):
        try:
            found = csv_files.scan(number, infer_schema=False).collect_schema().names()
        except pl.exceptions.NoDataError:
            msg = f"{name_sources([file])} is empty"
            raise ValueError(msg) from None
        if number and (difference := describe_difference(columns, found)):
            first = name_sources(csv_files.files[:1])
            msg = f"{name_sources([file])} has other columns than {first}: {difference}"
            raise ValueError(msg)
        columns = columns or found
    return columns


def _infer_types(csv_files: _CsvFiles) -> list[pl.DataType]:
    """Infer the types of columns from the first rows of the first files."""
    if csv_files.dialect.is_spaced:
        # Polars takes a space before a number for a part of a text.
        content = io.StringIO()
        csv.writer(content).writerows(csv_files.start)
        types = pl.scan_csv(content.getvalue().encode(), null_values=MISSING_TEXTS)
        return types.collect_schema().dtypes()
    most = _SMALL_FILES if csv_files.is_small else _INFERRED_FILES
    numbers = range(min(len(csv_files.files), most))
    # Without rows all columns are text.
    filled = [number for number in numbers if csv_files.has_rows(number)]
    if not filled and len(numbers) == len(csv_files.files):
        verb = "has" if len(csv_files.files) == 1 else "have"
        msg = f"{name_sources(csv_files.files)} {verb} no rows"
        raise ValueError(msg)
    length = None if csv_files.is_small else _ROWS
    schemas = [
        csv_files.scan(number, infer_schema_length=length).collect_schema()
        for number in filled or numbers
    ]
    empty = [pl.DataFrame(schema=schema) for schema in schemas]
    return pl.concat(empty, how="diagonal_relaxed").dtypes


def _check_header(header: Sequence[str], asked: Collection[str], file: str) -> None:
    """Check that the first line holds names, and each used column once."""
    twice = next((name for name in asked if header.count(name) > 1), None)
    if twice is not None:
        msg = f"{name_sources([file])} has two columns named {twice!r}: rename one of them"
        raise ValueError(msg)
    has_number = any(_NUMBER.fullmatch(name.strip()) for name in header)
    if asked and has_number and not any(name.strip() in asked for name in header):
        shown = shorten_text(",".join(header))
        msg = f"{name_sources([file])} has no header: add a line of names above {shown!r}"
        raise ValueError(msg)


def _check_separator(
    header: Sequence[str], asked: Collection[str], file: str, given: FileFormat
) -> None:
    """Check that a given separator hides no used column that the recognised one has."""
    if given.separator is None:
        return
    open_again = _open([file], replace(given, separator=None), (), None)
    recognised = open_again.start[0] if open_again.start else []
    hidden = [name for name in asked if name in recognised and name not in header]
    if hidden:
        msg = (
            f"{name_sources([file])} has no column {hidden[0]!r} with --separator "
            f"{given.separator!r}, but with {open_again.dialect.separator!r}: leave it out"
        )
        raise ValueError(msg)


def _scan_rows(csv_files: _CsvFiles, types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Scan rows of these types, and refuse those with more fields than the header."""
    dialect = csv_files.dialect
    if any(is_pattern(file) for file in csv_files.files):
        # Only Polars checks that their headers agree.
        frame = csv_files.scan(schema_overrides=types)
    else:
        schema = {**types, _BEYOND: pl.String()}
        # Polars ignores fields that no column takes unless all columns are used.
        frame = csv_files.scan(schema=schema, missing_columns="insert")
        frame = frame.filter(
            pl.col(_BEYOND).map_batches(
                partial(_refuse_fields, csv_files), return_dtype=pl.Boolean, is_elementwise=True
            )
        ).drop(_BEYOND)
    if dialect.is_spaced:
        frame = frame.rename(str.strip).with_columns(cs.string().str.strip_chars_start())
    return frame


def _refuse_fields(csv_files: _CsvFiles, beyond: pl.Series) -> pl.Series:
    """Return True for each row; raise for one with more fields than the header."""
    if beyond.null_count() == len(beyond):
        return pl.Series(beyond.name, [True], pl.Boolean).new_from_index(0, len(beyond))
    raise CheckError(_describe_long_row(csv_files))


def describe_long_row(files: Sequence[str], given: FileFormat) -> str:
    """Describe the first row of files with more fields than the header."""
    return _describe_long_row(_open(files, given, (), None))


def _describe_long_row(csv_files: _CsvFiles) -> str:
    place = csv_files.find_line(lambda header, fields: any(fields[len(header) :]))
    place = place or f"a line of {name_sources(csv_files.files)}"
    advice = "put texts that hold a separator into quotes, and name all columns"
    return f"{place} has more fields than the header: {advice}"


def find_invalid_line(files: Sequence[str]) -> str | None:
    """Name the first line of local files that is not in UTF-8."""
    for file in files:
        if _is_readable(file):
            content = _read_bytes(file)
            try:
                content.decode()
            except UnicodeDecodeError as error:
                line = content.count(b"\n", 0, error.start) + 1
                return f"line {line} of {name_sources([file])}"
    return None
