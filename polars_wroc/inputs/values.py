"""Conversion of single values to the data type of a column, exact or refused."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation

import polars as pl

# From here on several whole numbers round to the same float.
_WHOLE_FLOATS = 2.0**53
# More digits than any integer type has.
_DIGITS = 40
_REFUSED = (TypeError, ValueError, ArithmeticError, RuntimeError, pl.exceptions.PolarsError)


def exact(value: object, dtype: pl.DataType) -> pl.Series | None:
    """Return a value as a Series of one in the type; None if the type has no such value.

    A float is read as it is written: 0.1 is the 0.1 of any float or decimal type.
    """
    if isinstance(value, pl.Series | pl.Expr):
        return None
    try:
        held = _held(value, dtype)
    except _REFUSED:
        return None
    return None if held is None or held.null_count() else held


def literal(held: pl.Series) -> pl.Expr:
    """Return the value that `exact` returned as an expression."""
    dtype = held.dtype
    if dtype.is_temporal():
        # Python's types have no nanoseconds.
        physical = held.to_physical()
        return pl.lit(physical.item(), physical.dtype).cast(dtype)
    typed = dtype.is_numeric() or isinstance(dtype, pl.Enum)
    return pl.lit(held.item(), dtype) if typed else pl.lit(held.to_list()[0])


def from_text(text: str, dtype: pl.DataType) -> object:
    """Read a text as a value of a type; None if it is not one."""
    value: object = None
    with suppress(ValueError, InvalidOperation):
        if dtype == pl.Boolean:
            value = {"true": True, "false": False}.get(text.lower())
        elif dtype.is_numeric():
            value = Decimal(text)
        elif dtype == pl.Date:
            value = date.fromisoformat(text)
        elif dtype == pl.Time:
            value = time.fromisoformat(_in_microseconds(text))
        elif dtype == pl.Datetime:
            value = datetime.fromisoformat(_in_microseconds(text))
        else:
            value = text
    held = None if value is None else exact(value, dtype)
    return None if held is None else held.item()


def _in_microseconds(text: str) -> str:
    """Raise for a time with more digits than microseconds."""
    if re.search(r"[.,]\d{7}", text):
        msg = "digits beyond microseconds"
        raise ValueError(msg)
    return text


def _held(value: object, dtype: pl.DataType) -> pl.Series | None:
    # A Decimal is not put into a Series, which limits its digits.
    given = pl.Series([0 if isinstance(value, Decimal) else value])
    if dtype.is_numeric():
        number = value if isinstance(value, Decimal) else given.item()
        return _number(number, dtype) if given.dtype.is_numeric() else None
    if dtype == pl.Null:
        return pl.Series([value])
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return given.cast(pl.String).cast(dtype) if _is_text(given.dtype) else None
    if type(dtype) is not type(given.dtype) or dtype == pl.Object:
        return None
    if isinstance(dtype, pl.Datetime):
        return _moment(given, dtype)
    held = pl.Series(given.to_list(), dtype=dtype) if dtype.is_nested() else given.cast(dtype)
    return held if held.to_list() == given.to_list() else None


def _is_text(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _moment(given: pl.Series, dtype: pl.Datetime) -> pl.Series | None:
    """Return the same time in another zone; None if only one of them has a zone."""
    naive = isinstance(given.dtype, pl.Datetime) and given.dtype.time_zone is None
    if naive != (dtype.time_zone is None):
        return None
    held = given.cast(pl.Datetime(dtype.time_unit, None if naive else "UTC"))
    same = (held.cast(given.dtype) == given).all()
    return held.cast(dtype) if same else None


def _number(value: float | Decimal, dtype: pl.DataType) -> pl.Series | None:
    if isinstance(value, float) and not dtype.is_float() and abs(value) >= _WHOLE_FLOATS:
        return None
    written = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if dtype.is_float():
        return _float(float(written), dtype, [Decimal(value), written])
    if not written.is_finite() or written.adjusted() > _DIGITS:
        return None
    if dtype.is_integer():
        return pl.Series([int(written)], dtype=dtype) if written == int(written) else None
    held = pl.Series([written], dtype=dtype)
    return held if held.item() == written else None


def _float(number: float, dtype: pl.DataType, meant: list[Decimal]) -> pl.Series | None:
    """Round a number to a float type, if the result equals what is ``meant`` or is written so."""
    held = pl.Series([number], dtype=pl.Float64).cast(dtype)
    found = held.cast(pl.Float64).item()
    if not all(each.is_finite() for each in meant):
        return held
    if Decimal(found) in meant:
        return held
    texts = (f"{found:.{digits}g}" for digits in range(1, 18))
    rounded = (text for text in texts if (pl.Series([float(text)]).cast(dtype) == held).all())
    return held if Decimal(next(rounded, "nan")) in meant else None
