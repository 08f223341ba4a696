"""Charts as data of a page: with the digits that a chart shows, and compressed."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

# Columns that decide what is shown; the others are drawn or written with fewer digits.
_EXACT = ("threshold", "__from")
_DIGITS, _DECIMALS = 7, 5
_RATES = ("fpr", "tpr")


def packed(value: Any) -> str:
    """Write data as compressed JSON, which is the same each time, in signs that any page takes."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def rounded_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the numbers of rows with as many digits as a chart shows."""
    return [
        {
            name: value if name in _EXACT else rounded(value, rate=name in _RATES)
            for name, value in row.items()
        }
        for row in rows
    ]


def rounded(value: Any, *, rate: bool = False) -> Any:
    """Write a number with as many digits as a chart shows."""
    if not isinstance(value, float):
        return value
    short = round(value, _DECIMALS) if rate else float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short
