"""How CSV files are written: their separator, decimal mark, encoding, quotes and missing values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How the CSV files of a command are written; whatever is not given is recognised."""

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
RECOGNISED = FileFormat()
