"""The dialect of CSV files: separator, decimal mark, encoding, quotes and missing values."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TextIO

from polars_wroc.checks import reject


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """The format of the CSV files of a command; whatever is not given is recognised."""

    separator: str | None = None
    """Character between the columns of a CSV file, for example ';' or 'tab'; recognised if not
    given."""

    decimal_comma: bool | None = None
    """Whether numbers in a CSV file have a decimal comma, as in 0,5; recognised if not given."""

    encoding: str | None = None
    """Encoding of a CSV file: utf-8, utf-16, windows-1252, or another that Python knows; recognised
    if not given."""

    quote: str | None = None
    """Character around texts in a CSV file, or 'none'; recognised if not given."""

    null: tuple[str, ...] = ()
    """Text that means a missing value in a CSV file, beside empty fields, NA, N/A, nan and null;
    repeatable."""


# Nothing is given, everything is recognised.
ANY_FORMAT = FileFormat()

# The texts that R, NumPy, spreadsheets and databases write for a missing value, without "None",
# which is an answer in many questionnaires. Each text makes reading slower.
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

UTF_8 = "utf-8"
_WINDOWS = "windows-1252"
_ENCODING_NAMES = {
    _WINDOWS: "Windows-1252",
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "UTF-16"),
}
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
_SPACE = " "
# Rows, and bytes at most, from which a dialect is recognised.
_ROWS, _BYTES = 500, 2**16
# A number with a decimal comma, perhaps with points between the thousands, and one with a point.
_COMMA_NUMBER = re.compile(r"[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
# 1,234 or 1.234, whose mark may be one of decimals or of thousands.
_AMBIGUOUS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*")
# The line above the header in which Excel names the separator.
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")


@dataclass(frozen=True, kw_only=True)
class CsvDialect:
    """The dialect of one CSV file."""

    separator: str = ","
    decimal_comma: bool = False
    encoding: str = UTF_8
    quote: str | None = '"'
    line_end: str = "\n"
    lines_above_header: int = 0
    # Whether a space follows each separator.
    is_spaced: bool = False
    null: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of Polars' reader, which takes UTF-8."""
        missing = [*MISSING_TEXTS, *self.null]
        if self.is_spaced:
            missing += [f" {text}" for text in missing]
        return {
            "separator": self.separator,
            "decimal_comma": self.decimal_comma,
            "quote_char": self.quote,
            "eol_char": self.line_end,
            "skip_lines": self.lines_above_header,
            "null_values": missing,
        }

    def read_rows(self, text: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the fields of each row; the first row is the header."""
        for _ in range(self.lines_above_header):
            text.readline()
        rows = csv.reader(
            text,
            delimiter=self.separator,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            skipinitialspace=self.is_spaced,
        )
        for fields in rows:
            if fields:
                yield rows.line_num + self.lines_above_header, fields

    def describe(self, expected_separator: str) -> str:
        """Describe what is not plain about a dialect; empty if nothing is."""
        parts = list[str]()
        if self.separator != expected_separator or self.is_spaced:
            names = {**_SEPARATOR_NAMES, _SPACE: "space"}
            name = names.get(self.separator, repr(self.separator))
            parts.append(f"{name}{'-and-space' if self.is_spaced else ''}-separated")
        if self.decimal_comma:
            parts.append("decimal comma")
        if self.quote == "'":
            parts.append("single quotes")
        if self.encoding != UTF_8:
            parts.append(_ENCODING_NAMES.get(self.encoding, self.encoding))
        return ", ".join(parts)


def recognise_dialect(
    start: bytes,
    given: FileFormat,
    expected_separator: str,
    name: str,
    numbers: Collection[str] = (),
) -> CsvDialect:
    """Return the dialect of a file, recognised from its first lines where it is not given.

    ``name`` is that of the file in messages, ``numbers`` are columns that hold numbers.
    """
    encoding = _check_encoding(given.encoding) or recognise_encoding(start, name)
    text = decode(start[:_BYTES], encoding, name)
    dialect = CsvDialect(
        separator=_check_separator(given.separator) or expected_separator,
        encoding=encoding,
        quote=_check_quote(given.quote),
        line_end="\r" if "\r" in text and "\n" not in text else "\n",
        null=given.null,
    )
    if named := _SEPARATOR_LINE.match(text):
        dialect = replace(dialect, lines_above_header=1)
    if given.separator is None:
        separator = named[1] if named else _recognise_separator(dialect, text)
        dialect = replace(dialect, separator=separator)
    if given.quote is None and _has_single_quotes(read_start(dialect, text)):
        dialect = replace(dialect, quote="'")
    header, *rows = read_start(dialect, text) or [[]]
    decimal_comma = given.decimal_comma
    if decimal_comma is None:
        known = [place for place, column in enumerate(header) if column.strip() in numbers]
        texts = [
            row[place] for row in rows for place in known or range(len(row)) if place < len(row)
        ]
        # Between commas, "1,3" may as well be two answers to one question.
        decimal_comma = dialect.separator != "," and _has_decimal_comma(texts)
    return replace(dialect, decimal_comma=decimal_comma, is_spaced=_is_spaced(rows))


def recognise_encoding(start: bytes, name: str) -> str:
    """Recognise the encoding of a text by its first bytes: UTF-8, UTF-16 or Windows-1252."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # ASCII in UTF-16 is every second byte.
    first = start[:_BYTES]
    for encoding, zeros in (("utf-16-le", first[1::2]), ("utf-16-be", first[::2])):
        if zeros and zeros.count(0) > len(zeros) / 2:
            return encoding
    if 0 in first:
        msg = f"{name} holds no text; it may have the suffix of another format"
        raise ValueError(msg)
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder(UTF_8)().decode(start)
    except UnicodeDecodeError:
        return _WINDOWS
    return UTF_8


def decode(content: bytes, encoding: str, name: str) -> str:
    """Decode the content of a file, or its beginning, without the mark of its encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(content).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        msg = (
            f"{name} cannot be read as {_ENCODING_NAMES.get(encoding, encoding)}: byte "
            f"{byte:#04x} at position {error.start:,} is no character; give its --encoding"
        )
        raise ValueError(msg) from None


def _check_encoding(given: str | None) -> str | None:
    """Return the name that Python has for an encoding."""
    if given is None:
        return None
    try:
        name = codecs.lookup(given).name
    except LookupError:
        rule = "be utf-8, utf-16, windows-1252 or another encoding that Python knows"
        reject("encoding", rule, repr(given))
    return {"cp1252": _WINDOWS, "utf-8-sig": UTF_8}.get(name, name)


def _check_separator(given: str | None) -> str | None:
    """Return the character of a separator."""
    separator = {"tab": "\t", r"\t": "\t"}.get(given or "", given)
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        reject("separator", "be one character, or tab", repr(given))
    return separator


def _check_quote(given: str | None) -> str | None:
    """Return the character around texts; None if there is none."""
    if given == "none":
        return None
    if given is not None and (len(given) != 1 or not given.isascii()):
        reject("quote", "be one character, or none", repr(given))
    return given or '"'


def read_start(dialect: CsvDialect, text: str) -> list[list[str]]:
    """Read the first rows, with the header; none if the dialect does not fit."""
    rows = dialect.read_rows(io.StringIO(text[:_BYTES], newline=""))
    try:
        return [fields for _, fields in islice(rows, _ROWS)]
    except csv.Error:
        return []


def _recognise_separator(dialect: CsvDialect, text: str) -> str:
    """Find the separator that gives most rows as many fields as the header, and the most fields.

    One that is not in the header is none. Spaces are separators only if all rows have as many.
    """

    def measure(separator: str) -> tuple[float, int]:
        widths = [len(row) for row in read_start(replace(dialect, separator=separator), text)]
        if not widths or widths[0] == 1:
            return 0, 0
        return sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(_SEPARATOR_NAMES, key=measure)
    if measure(best) > (0, 0):
        return best
    return _SPACE if measure(_SPACE)[0] == 1 else dialect.separator


def _has_single_quotes(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all names, or all values of a column, are in single quotes."""
    header, *others = rows or [[]]
    columns = zip(*others, strict=False)
    return any(_are_in_single_quotes(texts) for texts in (header, *columns))


def _are_in_single_quotes(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if text]
    return bool(filled) and all(len(text) > 1 and text[0] == text[-1] == "'" for text in filled)


def _has_decimal_comma(texts: Sequence[str]) -> bool:
    """Whether numbers have decimal commas, and none has a decimal point."""
    stripped = [text.strip() for text in texts]
    clear = [text for text in stripped if not _AMBIGUOUS_NUMBER.fullmatch(text)]
    if any(_POINT_NUMBER.fullmatch(text) for text in clear):
        return False
    return any(_COMMA_NUMBER.fullmatch(text) for text in clear)


def _is_spaced(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a space follows each separator."""
    later = [text for fields in rows for text in fields[1:] if text]
    return bool(later) and all(text.startswith(" ") for text in later)
