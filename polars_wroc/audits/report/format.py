"""Chart specs and numbers of a page, packed, and rounded to be the same on every machine."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from typing import Any

from polars_wroc.audits.findings import rounded as rounded_table
from polars_wroc.audits.tables import AuditTables

# Columns that select what is shown; all others may be rounded.
_EXACT = ("threshold", "__from")
_DIGITS, _DECIMALS = 7, 5
_RATES = ("fpr", "tpr")


def packed(value: Any) -> str:
    """Encode data as compressed JSON in base64, always with the same bytes."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def rounded_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Round the numbers of rows to the digits that a chart shows."""
    return [
        {
            name: value if name in _EXACT else rounded(value, rate=name in _RATES)
            for name, value in row.items()
        }
        for row in rows
    ]


def rounded(value: Any, *, rate: bool = False) -> Any:
    """Round a number to the digits that a chart shows."""
    if not isinstance(value, float):
        return value
    short = round(value, _DECIMALS) if rate else float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short


def steady(audit: AuditTables) -> AuditTables:
    """Round the numbers of an audit, so that a page is the same for any order of its rows."""
    return replace(
        audit,
        table=rounded_table(audit.table),
        segments=rounded_table(audit.segments),
        curves=rounded_table(audit.curves),
    )


# Limits, a p-value, and a number with its unit.
_PAIR = re.compile(r"(?<=\d) to (?=[+\N{MINUS SIGN}]?\d)|(?<=\bp) (?=[<\d])|(?<=<) (?=\d)")
_UNIT = re.compile(r"(?<=\d) (?=(?:points?|pairs?|rows?)\b)")
_SPACE = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """Put spaces that do not break into pairs of numbers, and before units."""
    paired = _PAIR.sub(lambda found: found[0].replace(" ", _SPACE), text)
    return _UNIT.sub(_SPACE, paired)
