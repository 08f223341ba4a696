"""Numbers in sentences and tables: shares, differences in points, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from polars_wroc.documents.numbers import DASH, SMALL_POINTS, write_number

_MOST_DIGITS = 3
# Shares that round to none or all without being it.
_HALF_PERCENT = 0.005


def write_percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent, as in ``56%``; 0% means nobody, and 100% everybody."""
    if share is None:
        return DASH
    if not digits and 0 < share < _HALF_PERCENT:
        return "<1%"
    if not digits and 1 - _HALF_PERCENT < share < 1:
        return ">99%"
    return write_number(100 * share, f".{digits}f") + "%"


# Several pieces of a sentence need the digits of the same shares.
@lru_cache(maxsize=64)
def find_digits(value: float, other: float, margin: float | None = None) -> int:
    """Return the decimals of two shares: 0 if the rounded shares have the rounded difference.

    Small differences have one decimal, and more if the rounded difference would otherwise be on the
    wrong side of a ``margin``.
    """
    size = abs(value - other)
    for digits in range(_MOST_DIGITS):
        rounded = subtract_rounded(value, other, digits)
        adds_up = digits > 0 or (rounded == round(100 * size) and not 0 < 100 * size < SMALL_POINTS)
        is_on_side = margin is None or (rounded >= round(100 * margin, 6)) == (size >= margin)
        if adds_up and is_on_side:
            return digits
    return _MOST_DIGITS


def subtract_rounded(value: float, other: float, digits: int) -> float:
    """Return the difference, in points, of two shares as they are written with some decimals."""
    return abs(round(round(100 * value, digits) - round(100 * other, digits), digits))


def write_margin(margin: float) -> str:
    """Return a margin with its given digits: ``5 points``, ``7.5 points``."""
    text = f"{100 * margin:.12g}"
    return f"{text} point{'' if text == '1' else 's'}"


def write_interval(
    low: float | None,
    high: float | None,
    digits: int = 0,
    unit: float = 100,
    sides: tuple[str, str] = ("lower", "higher"),
) -> str:
    """Return limits as sizes: ``17 to 32``, ``13 lower to 5 higher``; empty without limits."""
    if low is None or high is None:
        return ""
    low, high = unit * low, unit * high
    if low < 0 < high:
        below, above = sides
        return f"{-low:.{digits}f} {below} to {high:.{digits}f} {above}"
    nearer, farther = sorted((abs(low), abs(high)))
    # Two numbers, neither of which is 0.
    while digits < _MOST_DIGITS and (
        f"{nearer:.{digits}f}" == f"{farther:.{digits}f}" or (nearer > 0 == round(nearer, digits))
    ):
        digits += 1
    return f"{nearer:.{digits}f} to {farther:.{digits}f}"


def write_in_brackets(text: str) -> str:
    """Return a text in brackets after a space; nothing if it is empty."""
    return f" ({text})" if text else ""


def write_limits(row: Mapping[str, Any], number: str, digits: int = 0, unit: float = 100) -> str:
    """Return the limits of a number in brackets after a space; nothing without limits."""
    return write_in_brackets(
        write_interval(row[f"{number}_low"], row[f"{number}_high"], digits, unit)
    )
