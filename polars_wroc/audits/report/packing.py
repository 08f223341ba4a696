"""Charts as data of a page: what many of them have in common is written once."""

from __future__ import annotations

from collections import Counter
from typing import Any

# Columns that decide what is shown; the others are drawn or written with fewer digits.
_EXACT = ("threshold", "__from")
_DIGITS, _DECIMALS = 7, 5
_RATES = ("fpr", "tpr")
# What is shorter is not worth a reference.
_SHORTEST = 48
REFERENCE = "@"


def packed_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, where what is repeated stands once."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if name not in _EXACT:
            values = [rounded(value, rate=name in _RATES) for value in values]
        same = seen.setdefault(repr(values), name)
        if len({repr(value) for value in values}) == 1:
            columns[name] = {"all": values[0]}
        elif same != name:
            columns[name] = {"same": same}
        elif all(value is None or isinstance(value, str) for value in values):
            place = {text: number for number, text in enumerate(dict.fromkeys(values))}
            columns[name] = {"texts": list(place), "at": [place[value] for value in values]}
        else:
            columns[name] = {"each": values}
    return {"rows": len(rows), "columns": columns}


def shared(charts: dict[str, Any]) -> dict[str, Any]:
    """Take out of the charts the parts that occur again, and refer to them by number."""
    texts: dict[int, str] = {}
    _write(charts, texts)
    counts: Counter[str] = Counter()
    _count(charts, texts, counts)
    parts: list[Any] = []
    places: dict[str, int] = {}

    def without(value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        text = texts[id(value)]
        if counts[text] > 1 and len(text) > _SHORTEST:
            if text not in places:
                places[text] = len(parts)
                parts.append(None)
                parts[places[text]] = inside(value)
            return {REFERENCE: places[text]}
        return inside(value)

    def inside(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(part) for name, part in value.items()}
        return [without(part) for part in value]

    return {"charts": inside(charts), "parts": parts}


def _write(value: Any, texts: dict[int, str]) -> str:
    """Write each part once as a text by which it is known again, from those inside it."""
    if isinstance(value, dict):
        inside = (f"{name!r}:{_write(part, texts)}" for name, part in value.items())
        text = texts[id(value)] = f"{{{','.join(inside)}}}"
    elif isinstance(value, list):
        nested = any(isinstance(part, dict | list) for part in value)
        text = f"[{','.join(_write(part, texts) for part in value)}]" if nested else repr(value)
        texts[id(value)] = text
    else:
        text = repr(value)
    return text


def _count(value: Any, texts: dict[int, str], counts: Counter[str]) -> None:
    if isinstance(value, dict | list):
        text = texts[id(value)]
        counts[text] += 1
        # What is in a part that occurs again is counted there.
        if counts[text] == 1:
            for part in value.values() if isinstance(value, dict) else value:
                _count(part, texts, counts)


def rounded(value: Any, *, rate: bool = False) -> Any:
    """Write a number with as many digits as a chart shows."""
    if not isinstance(value, float):
        return value
    short = round(value, _DECIMALS) if rate else float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 10**_DIGITS else short
