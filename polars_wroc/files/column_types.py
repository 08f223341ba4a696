"""Types of columns: numbers and dates written as text, and codes that look like numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeAlias

import polars as pl

from polars_wroc.files.csv_dialect import MISSING_TEXTS


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """Files that were opened, before the types of their columns are chosen."""

    # The name of the files in messages.
    name: str
    schema: Mapping[str, pl.DataType]
    # Scans the files, with other types of some columns if the types are inferred.
    scan: Callable[[Mapping[str, pl.DataType]], pl.LazyFrame]
    # Whether types are inferred from the first rows, as for CSV and NDJSON files.
    is_inferred: bool = False
    is_csv: bool = False
    decimal_comma: bool = False
    # The texts of columns in the first rows, if the files are so large that this matters.
    first_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Says where a text is in a column, for example "line 3 of a.csv".
    find_place: Callable[[str, str], str | None] = lambda _column, _text: None


@dataclass(frozen=True)
class Reading:
    """The reading of a column: the type in which it is scanned, and its conversion."""

    dtype: pl.DataType
    convert: pl.Expr | None = None


# The kind of values that a column is searched for.
_Kind: TypeAlias = Literal["number", "code", "date"]

_WHOLE = r"^[+-]?\d+$"
# A number that a column of numbers would show as it is written, except for decimals of 0. Beyond 15
# digits floats are not exact.
_PLAIN_NUMBER = r"^[+-]?(?:0|[1-9]\d{0,14})(?:\.(?:0*|\d{0,14}[1-9]))?$"
_COMMA = re.compile(r"[+-]?[\d.]*,\d+")
# 1,234 or 1.234.
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?")


def scan_columns(
    table: OpenTable, text: Collection[str], numbers: Collection[str], dates: Collection[str]
) -> pl.LazyFrame:
    """Scan the files, with columns in the types that are asked for.

    Only the columns whose type the first rows leave open are looked through.
    """

    def find_kind(name: str, dtype: pl.DataType) -> _Kind | None:
        if name in numbers:
            is_open = dtype in (pl.String, pl.Null) or (table.is_inferred and dtype.is_integer())
            return "number" if is_open else None
        if name in dates:
            return "date" if dtype == pl.String or dtype.is_integer() else None
        if name in text and table.is_csv and dtype.is_numeric():
            return None if _is_flag(table, name) else "code"
        return None

    kinds = {name: kind for name, dtype in table.schema.items() if (kind := find_kind(name, dtype))}
    if not kinds:
        return table.scan({})
    texts = _scan_texts(table, [*kinds])
    looks = [_LOOKS[kind](pl.col(name), table).alias(name) for name, kind in kinds.items()]
    found = texts.select(looks).collect().row(0, named=True)
    readings = {name: _CHOICES[kind](name, found[name], table) for name, kind in kinds.items()}
    frame = table.scan({name: reading.dtype for name, reading in readings.items()})
    converted = [
        reading.convert.alias(name)
        for name, reading in readings.items()
        if reading.convert is not None
    ]
    return frame.with_columns(converted)


def choose_key_type(values: Sequence[str | None], keep_text: bool) -> pl.DataType:  # noqa: FBT001
    """Choose the type of the values that folders such as day=1 have for a column."""
    texts = {value for value in values if value is not None}
    if keep_text and not all(re.match(_PLAIN_NUMBER, value) for value in texts):
        return pl.String()
    for dtype in (pl.Int64(), pl.Float64(), pl.Date()):
        read = pl.select(pl.concat_list(read_key(value, dtype) for value in texts)).item()
        if read.null_count() == 0:
            return dtype
    return pl.String()


def read_key(value: str | None, dtype: pl.DataType) -> pl.Expr:
    """Read a value that the name of a folder has for a column."""
    text = pl.lit(value, pl.String)
    return text.str.to_date(strict=False) if dtype == pl.Date else text.cast(dtype, strict=False)


def _scan_texts(table: OpenTable, names: Collection[str]) -> pl.LazyFrame:
    """Scan columns as the texts that the files have."""
    texts = table.scan(dict.fromkeys(names, pl.String()))
    return texts.select(pl.col(*names).cast(pl.String))


def _is_flag(table: OpenTable, name: str) -> bool:
    """Whether a column has one character in each of the first rows, as 0 and 1, which are no codes.

    To look through the labels of a large file takes half as long as to read it.
    """
    texts = table.first_texts.get(name)
    return texts is not None and all(len(text) <= 1 for text in texts)


def _strip(text: pl.Expr) -> pl.Expr:
    """Return a text without spaces around it; null if it means that a value is missing."""
    stripped = text.str.strip_chars()
    return pl.when(~stripped.is_in(MISSING_TEXTS)).then(stripped)


def _write_number(text: pl.Expr, table: OpenTable) -> pl.Expr:
    """Write a number with a decimal point; with decimal commas, a point is of thousands."""
    stripped = _strip(text)
    if not table.decimal_comma:
        return stripped
    with_point = stripped.str.replace(",", ".", literal=True)
    return (
        pl.when(stripped.str.contains(".", literal=True)).then(stripped + "?").otherwise(with_point)
    )


def _look_for_numbers(text: pl.Expr, table: OpenTable) -> pl.Expr:
    """Find the first text that is no number, and whether all numbers are whole."""
    written = _write_number(text, table)
    refused = written.is_not_null() & written.cast(pl.Float64, strict=False).is_null()
    return pl.struct(
        refused=text.filter(refused).first(), is_whole=written.str.contains(_WHOLE).all()
    )


def _choose_number(name: str, found: Mapping[str, Any], table: OpenTable) -> Reading:
    """Choose whole numbers or floats, or raise for what is neither."""
    if found["refused"] is not None:
        _refuse(name, found["refused"], "must be a number", _advise(found["refused"], table), table)
    dtype = table.schema[name]
    if dtype.is_integer():
        return Reading(dtype if found["is_whole"] else pl.Float64())
    target = pl.Int64() if found["is_whole"] else pl.Float64()
    scanned = pl.String() if table.is_inferred else dtype
    return Reading(scanned, _write_number(pl.col(name).cast(pl.String), table).cast(target))


def _advise(text: str, table: OpenTable) -> str:
    """Return what to do about a text that is not a number."""
    if _THOUSANDS.fullmatch(text) and not table.decimal_comma and "," in text:
        return "remove the separators of thousands, or pass --decimal-comma if it is a decimal"
    if _THOUSANDS.fullmatch(text):
        return "remove the separators of thousands"
    if text.endswith("%"):
        return "write it without the percent sign, for example 3% as 0.03"
    if _COMMA.fullmatch(text):
        return "pass --decimal-comma if the comma is a decimal mark"
    if table.is_csv:
        return f"pass --null={shlex.quote(text)} if it means that the value is missing"
    return "remove it, or write a number"


def _look_for_codes(text: pl.Expr, table: OpenTable) -> pl.Expr:
    """Find whether all numbers would be shown as they are written."""
    written = _write_number(text, table)
    return pl.struct(is_plain=written.str.contains(_PLAIN_NUMBER).all())


def _choose_code(name: str, found: Mapping[str, Any], table: OpenTable) -> Reading:
    """Choose text where numbers would lose something, as the zeros of 007."""
    return Reading(table.schema[name] if found["is_plain"] else pl.String())


# Beginnings of dates, and the order of their parts in ISO 8601.
_YEAR_FIRST = {
    r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})": "$1-$2-$3",
    r"^(\d{4})(\d{2})(\d{2})": "$1-$2-$3",
    # No country writes the month first with points.
    r"^(\d{1,2})\.(\d{1,2})\.(\d{4})": "$3-$2-$1",
}
_DAY_OR_MONTH_FIRST = r"^(\d{1,2})[/-](\d{1,2})[/-](\d{4})"
_DAY_FIRST, _MONTH_FIRST = "${3}-${2}-${1}", "${3}-${1}-${2}"
_TIMES = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_ZONE = r"(:\d\d(?:\.\d+)?)\s*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$"


def _read_date(text: pl.Expr, order: str, *, has_times: bool) -> pl.Expr:
    """Read dates, or times as their clocks show them; null for other texts."""
    written = _strip(text)
    for pattern, year_first in _YEAR_FIRST.items():
        written = written.str.replace(pattern, year_first)
    written = written.str.replace(_DAY_OR_MONTH_FIRST, order)
    written = written.str.replace(r"[T ]\s*", " ").str.replace(_ZONE, "$1")
    day = written.str.to_date("%Y-%m-%d", strict=False)
    if not has_times:
        return day
    moments = [
        written.str.to_datetime(f"%Y-%m-%d {time}", time_unit="us", strict=False) for time in _TIMES
    ]
    return pl.coalesce(*moments, day.cast(pl.Datetime("us")))


def _look_for_dates(text: pl.Expr, _table: OpenTable) -> pl.Expr:
    """Find the first texts that are no dates, and one that is two, by the order of its parts."""
    by_day = _read_date(text, _DAY_FIRST, has_times=True)
    by_month = _read_date(text, _MONTH_FIRST, has_times=True)
    is_there = _strip(text).is_not_null()
    return pl.struct(
        not_by_day=text.filter(is_there & by_day.is_null()).first(),
        not_by_month=text.filter(is_there & by_month.is_null()).first(),
        ambiguous=text.filter(by_day != by_month).first(),
        has_times=text.str.contains(":", literal=True).any(),
    )


def _choose_date(name: str, found: Mapping[str, Any], table: OpenTable) -> Reading:
    """Choose dates or times, and the order of day and month; raise if it is open."""
    no_day, no_month = found["not_by_day"], found["not_by_month"]
    if table.schema[name].is_integer() and no_day is not None:
        # Numbers that are divided into ranges.
        return Reading(table.schema[name])
    if no_day is not None and no_month is not None:
        such = "must be a date or time"
        _refuse(name, no_day, such, "write dates as 2026-01-31, times as 2026-01-31T08:30", table)
    if no_day is None and no_month is None and found["ambiguous"] is not None:
        rule = "may have the day or the month first"
        _refuse(name, found["ambiguous"], rule, "write dates as 2026-01-31", table)
    order = _DAY_FIRST if no_day is None else _MONTH_FIRST
    column = pl.col(name).cast(pl.String)
    dtype = pl.String() if table.is_inferred else table.schema[name]
    return Reading(dtype, _read_date(column, order, has_times=found["has_times"]))


def _refuse(name: str, text: str, rule: str, advice: str, table: OpenTable) -> NoReturn:
    """Raise for a text in a column."""
    place = table.find_place(name, text) or table.name
    msg = f"column {name!r} {rule}; {place} has {text!r}: {advice}"
    raise ValueError(msg)


_LOOKS: dict[_Kind, Callable[[pl.Expr, OpenTable], pl.Expr]] = {
    "number": _look_for_numbers,
    "code": _look_for_codes,
    "date": _look_for_dates,
}
_CHOICES: dict[_Kind, Callable[[str, Mapping[str, Any], OpenTable], Reading]] = {
    "number": _choose_number,
    "code": _choose_code,
    "date": _choose_date,
}
