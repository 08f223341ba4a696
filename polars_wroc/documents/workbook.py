"""Write tables as an Excel workbook, in which numbers stay numbers in a readable format.

A format changes only the display of a cell, not its number.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.documents.numbers import (
    COUNT,
    CUT,
    DIFFERENCE,
    PLAIN,
    POINTS,
    RATIO,
    SHARE,
    NumberForm,
    cell_form,
)
from polars_wroc.documents.table_layout import is_whole
from polars_wroc.documents.text_writer import text_width
from polars_wroc.files import outputs
from polars_wroc.groups.categories import ATTRIBUTE, CROSSED, SEGMENT, split_crossed
from polars_wroc.inputs.columns import MISSING, OVERALL

# The most rows of a sheet without its header, and the largest exact whole number.
_MOST_ROWS, _LARGEST = 2**20 - 1, 2**53
# The most characters of a cell.
_LONGEST = 2**15 - 1
# The first day of a sheet's calendar.
_FIRST_DAY = dt.date(1900, 1, 1)
_FORMATS: Mapping[NumberForm, str] = {
    SHARE: "0.0%",
    POINTS: "+0.0%;-0.0%;0.0%",
    PLAIN: "#,##0.000",
    DIFFERENCE: "+0.000;-0.000;0.000",
    RATIO: "0.00",
    CUT: "General",
    COUNT: "#,##0",
}
_P_VALUE = '[<0.001]"<0.001";0.000'
_DAY, _TIME = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
# Whole numbers that count; others, for example years, have no commas.
_COUNTS = re.compile(r"n|n_.*|tp|fp|fn|tn|needed.*|rank|events")
# The widths of columns in letters, and the room for the button of a filter.
_NARROWEST, _WIDEST, _BUTTON, _NAMES, _TEXTS = 9, 48, 3, 24, 100
_ABOUT = "About"
_NUMBERS = (
    "Shares are shown in percent, and the gaps between them in percentage points. Cells hold the "
    "numbers that CSV files have."
)
_Column = tuple[str, pl.Series]


def write_workbook(
    title: str,
    facts: Sequence[tuple[str, object]],
    sheets: Mapping[str, pl.DataFrame],
    path: str | Path,
    made: dt.datetime,
) -> None:
    """Write tables as sheets, after a sheet of named facts that describes them.

    The time ``made`` is the only one in the file. Crossed groups have a column for each attribute.
    Texts are never formulas or links.

    Raises
    ------
    ImportError
        When xlsxwriter is not installed, with the command that installs it.
    ValueError
        When a table has more rows than a sheet, or a text more characters than a cell.
    """
    try:
        import xlsxwriter  # noqa: PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a workbook needs xlsxwriter: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    rows = max(table.height for table in sheets.values())
    if rows > _MOST_ROWS:
        found = f"found {rows:,}, which .parquet and .csv can hold"
        msg = f"`path` must have another format for more than {_MOST_ROWS:,} rows; {found}"
        raise ValueError(msg)
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        book.set_properties({"title": title, "created": made})
        _write_facts(book, title, [*facts, ("Numbers", _NUMBERS)])
        for name, table in sheets.items():
            _write_sheet(book, name, table)
    outputs.write(path, lambda part: part.write_bytes(content.getvalue()))


def _write_facts(book: Any, title: str, facts: Sequence[tuple[str, object]]) -> None:
    """Write a title and facts below each other."""
    sheet = book.add_worksheet(_ABOUT)
    sheet.set_column(0, 0, _NAMES)
    sheet.set_column(1, 1, _TEXTS)
    _write_text(sheet, 0, 0, title, book.add_format({"bold": True, "font_size": 14}))
    top = {"valign": "top", "text_wrap": True}
    name_format = book.add_format({"bold": True, **top})
    formats = _Formats(book, {"align": "left", **top})
    for row, (name, value) in enumerate(facts, start=2):
        _write_text(sheet, row, 0, name, name_format)
        number_format = _FORMATS[COUNT] if isinstance(value, int) else "General"
        _write_cell(sheet, row, 1, value, formats, number_format)


def _write_sheet(book: Any, name: str, table: pl.DataFrame) -> None:
    """Write a table below the names of its columns, which stay in sight and have filters."""
    sheet = book.add_worksheet(name)
    header = book.add_format({"bold": True, "bottom": 1})
    formats = _Formats(book, {})
    named = next((one for one in ("metric", "measure") if one in table.columns), None)
    metrics = table[named].to_list() if named else [None] * table.height
    columns = spread_crossed(table)
    for place, (heading, values) in enumerate(columns):
        _write_text(sheet, 0, place, heading, header)
        number_formats = _choose_formats(values, metrics)
        for row, value in enumerate(values):
            _write_cell(sheet, row + 1, place, value, formats, number_formats[row])
        sheet.set_column(place, place, _choose_width(heading, values))
    sheet.freeze_panes(1, 0)
    # Printed pages have all columns of a row, and the header.
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.repeat_rows(0)
    if columns:
        sheet.autofilter(0, 0, table.height, len(columns) - 1)


class _Formats:
    """The formats of a workbook by number format, each made once."""

    def __init__(self, book: Any, look: Mapping[str, object]) -> None:
        self._book, self._look = book, look
        self._made: dict[str, Any] = {}

    def find(self, number_format: str) -> Any:
        """Return the format for a number format."""
        if number_format not in self._made:
            look = {**self._look, "num_format": number_format}
            self._made[number_format] = self._book.add_format(look)
        return self._made[number_format]


def _write_cell(
    sheet: Any, row: int, column: int, value: object, formats: _Formats, number_format: str
) -> None:
    """Write a value of any type; a value that a workbook cannot hold as a number is text."""
    look = formats.find(number_format)
    match value:
        # The most frequent kind comes first.
        case float() if math.isfinite(value):
            sheet.write_number(row, column, value, look)
        case None:
            return
        case bool():
            sheet.write_boolean(row, column, value, look)
        case int() if abs(value) <= _LARGEST:
            sheet.write_number(row, column, value, look)
        case Decimal() if value.is_finite():
            sheet.write_number(row, column, value, look)
        case float() if math.isnan(value):
            return
        case dt.datetime() if value.date() >= _FIRST_DAY:
            moment = value.replace(tzinfo=None)
            sheet.write_datetime(row, column, moment, formats.find(_TIME))
        case dt.date() if not isinstance(value, dt.datetime) and value >= _FIRST_DAY:
            sheet.write_datetime(row, column, value, formats.find(_DAY))
        case pl.Series():
            _write_text(sheet, row, column, ", ".join(map(str, value)), look)
        case _:
            _write_text(sheet, row, column, str(value), look)


def _write_text(sheet: Any, row: int, column: int, text: str, look: Any) -> None:
    """Write a text; raise if it does not fit into a cell."""
    if len(text) > _LONGEST:
        msg = (
            f"`path` must have another format than .xlsx, whose cells hold texts of at most "
            f"{_LONGEST:,} characters; found one of {len(text):,}"
        )
        raise ValueError(msg)
    sheet.write_string(row, column, text, look)


def _choose_formats(values: pl.Series, metrics: Sequence[str | None]) -> list[str]:
    """Return the number format of each row of a column, by column and metric."""
    name = values.name
    if values.dtype.is_integer():
        return [_FORMATS[COUNT] if _COUNTS.fullmatch(name) else "0"] * len(values)
    if not values.dtype.is_float():
        return ["General"] * len(values)
    if name.startswith("p_"):
        return [_P_VALUE] * len(values)
    if is_whole(values):
        return [_FORMATS[COUNT]] * len(values)
    known = {metric: _FORMATS[cell_form(name, metric)] for metric in {*metrics}}
    return [known[metric] for metric in metrics]


def _choose_width(heading: str, values: pl.Series) -> int:
    """Return the width of a column: the width of its texts, or enough for its numbers."""
    widths = [_NARROWEST, text_width(heading) + _BUTTON]
    if not values.dtype.is_numeric():
        texts = values.drop_nulls().unique().to_list()
        widths += [text_width(str(text)) + 1 for text in texts]
    return min(max(widths), _WIDEST)


def spread_crossed(table: pl.DataFrame) -> list[_Column]:
    """Return the columns of a table, with one for each attribute if some groups are crossed.

    Missing values also have a name.
    """
    if not {ATTRIBUTE, SEGMENT} <= {*table.columns}:
        return [(column.name, column) for column in table]
    table = table.with_columns(pl.col(SEGMENT).fill_null(MISSING))
    crossed = [name for name in table[ATTRIBUTE].unique(maintain_order=True) if CROSSED in name]
    if not crossed:
        return [(column.name, column) for column in table]
    attributes = [*dict.fromkeys(name for joined in crossed for name in joined.split(CROSSED))]
    single = table[ATTRIBUTE].unique(maintain_order=True).to_list()
    attributes += [name for name in single if name not in (*crossed, *attributes, OVERALL)]
    categories = {
        name: {*table.filter(pl.col(ATTRIBUTE) == name)[SEGMENT], MISSING} for name in attributes
    }
    parts: dict[str, list[str | None]] = {name: [] for name in attributes}
    for attribute, segment in table.select(ATTRIBUTE, SEGMENT).iter_rows():
        named = _name_parts(attribute, segment, categories)
        for name in attributes:
            parts[name].append(named.get(name) or None)
    columns: list[_Column] = []
    for column in table:
        if column.name == SEGMENT:
            columns += [(name, pl.Series(name, texts, pl.String)) for name, texts in parts.items()]
        else:
            columns.append((column.name, column))
    return columns


def _name_parts(attribute: str, segment: str, categories: Mapping[str, set[str]]) -> dict[str, str]:
    """Return the category of a group in each attribute."""
    if attribute == OVERALL:
        return {}
    names = attribute.split(CROSSED)
    if attribute in categories:
        return {attribute: segment}
    if segment == MISSING:
        return dict.fromkeys(names, MISSING)
    return dict(
        zip(names, split_crossed(segment, [categories[name] for name in names]), strict=True)
    )
