"""Chart specs as compressed data of a page, rounded to what a chart shows."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

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
